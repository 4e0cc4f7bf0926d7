package billing

import (
	"context"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/money"
)

// A Refunder is a Processor that gives money back.
type Refunder interface {
	// Refund gives back a part of what the intent took, or all of it. The same key within a
	// day gives the same refund. ErrInvalid when there is not so much left to give back.
	Refund(ctx context.Context, r RefundRequest) (Reversal, error)

	// ReturnsOf returns the refunds and disputes of one intent, in no order; consistent: a
	// refund that was answered is there.
	ReturnsOf(ctx context.Context, ref string) ([]Reversal, error)

	// Returns yields the refunds and disputes that were made at or after r.Since, whoever
	// made them, in no order, each as it stands now. An error comes last.
	Reversals(ctx context.Context, r ListRequest) iter.Seq2[Reversal, error]
}

// A RefundRequest asks to give money back.
type RefundRequest struct {
	Key    string // idempotency key
	ID     string // ours; travels as metadata and comes back as Return.Request
	Ref    string // of the intent
	Amount money.Amount
	Reason RefundReason
	Tag    Tag // of the charge
}

// A RefundReason is why money is given back, in Stripe's words, or "".
type RefundReason string

// The reasons that a person may give.
const (
	Duplicate           RefundReason = "duplicate"
	Fraudulent          RefundReason = "fraudulent"
	RequestedByCustomer RefundReason = "requested_by_customer"
)

// A Return is money that went back, or is claimed back: a refund or a dispute, as the
// processor shows it.
type Reversal struct {
	Kind    ReversalKind
	ID      string // the processor's
	Request string // RefundRequest.ID; "" when it was not asked for here
	Ref     string // of the intent; "" when it is of no intent
	Tag     Tag    // of the intent; zero when it is none of Duesday's
	Amount  money.Amount
	State   ReversalState
	Reason  string    // the processor's word
	Created time.Time // UTC
}

// A ReturnKind says who asked for the money back.
type ReversalKind string

// The kinds of returns.
const (
	Refunded ReversalKind = "refund"  // we give it back
	Disputed ReversalKind = "dispute" // the customer's bank claims it
)

// A ReturnState is how far a return has come.
type ReversalState string

// The states of a return.
const (
	ReversalRequested ReversalState = "requested" // recorded here, and not yet answered by the processor
	ReversalInquiry   ReversalState = "inquiry"   // of a dispute: the bank asks, and has claimed nothing yet
	ReversalPending   ReversalState = "pending"   // under way; of a dispute: not decided
	ReversalSucceeded ReversalState = "succeeded" // the money is back with the customer; of a dispute: lost
	ReversalFailed    ReversalState = "failed"    // the money stays here; of a dispute: won
	ReversalCanceled  ReversalState = "canceled"
)
