package processor

import (
	"context"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/money"
)

// A Refunder is a Charger that can refund charges.
type Refunder interface {
	// Refund gives back a part of the intent's amount, or all of it. The same key within a day
	// gives the same refund. It returns ErrInvalid if less is left.
	Refund(ctx context.Context, r RefundRequest) (Reversal, error)

	// ReversalsOf returns the refunds and disputes of one intent, all answered ones, in no order.
	ReversalsOf(ctx context.Context, ref string) ([]Reversal, error)

	// Reversals yields the refunds and disputes made by anybody at or after r.Since, in no order,
	// each in its present state. An error comes last.
	Reversals(ctx context.Context, r ListRequest) iter.Seq2[Reversal, error]
}

// A RefundRequest requests a refund of a charge.
type RefundRequest struct {
	Key    string // idempotency key
	ID     string // ours; travels as metadata and comes back as Reversal.Request
	Ref    string // of the intent
	Amount money.Amount
	Reason RefundReason
	Tag    Tag // of the charge
}

// A RefundReason is one of Stripe's refund reasons, or empty.
type RefundReason string

// The reasons that an operator can give.
const (
	Duplicate           RefundReason = "duplicate"
	Fraudulent          RefundReason = "fraudulent"
	RequestedByCustomer RefundReason = "requested_by_customer"
)

// A Reversal is a refund or a dispute, as the processor shows it.
type Reversal struct {
	Kind    ReversalKind
	ID      string // the processor's
	Request string // RefundRequest.ID; "": not asked for here
	Ref     string // of the intent; "": none
	Tag     Tag    // of the intent; zero: it is none of Duesday's
	Amount  money.Amount
	State   ReversalState
	Reason  string    // the processor's word
	Created time.Time // UTC
}

// A ReversalKind is the origin of a reversal.
type ReversalKind string

// The kinds of reversals.
const (
	Refunded ReversalKind = "refund"  // we give it back
	Disputed ReversalKind = "dispute" // the customer's bank claims it
)

// A ReversalState is the progress of a reversal.
type ReversalState string

// The states of a reversal.
const (
	ReversalRequested ReversalState = "requested" // recorded here; the processor has not answered
	ReversalInquiry   ReversalState = "inquiry"   // of a dispute: the bank asks and has claimed nothing yet
	ReversalPending   ReversalState = "pending"   // under way; of a dispute: not decided
	ReversalSucceeded ReversalState = "succeeded" // the customer has the money; of a dispute: lost
	ReversalFailed    ReversalState = "failed"    // the money stays here; of a dispute: won
	ReversalCanceled  ReversalState = "canceled"
)

// Final reports whether the reversal has an outcome. The outcome may still change: a bank may
// return a succeeded refund, and a lost dispute may be won after an appeal.
func (s ReversalState) Final() bool {
	return s == ReversalSucceeded || s == ReversalFailed || s == ReversalCanceled
}
