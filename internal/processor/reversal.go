package processor

import (
	"context"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/money"
)

// A Refunder is a Charger that can refund charges.
type Refunder interface {
	// Refund returns a part of the intent's amount, or all of it, to the customer. Within a day,
	// the same key returns the same refund. Refund returns ErrInvalid if the remaining amount is
	// too small.
	Refund(ctx context.Context, r RefundRequest) (Reversal, error)

	// ReversalsOf returns the refunds and disputes of one intent, in no particular order. It
	// includes every reversal that the processor has answered.
	ReversalsOf(ctx context.Context, ref string) ([]Reversal, error)

	// Reversals yields the refunds and disputes created by anyone at or after r.Since, in no
	// particular order. Each has its current state. An error is the last element.
	Reversals(ctx context.Context, r ListRequest) iter.Seq2[Reversal, error]
}

// A RefundRequest requests a refund of a charge.
type RefundRequest struct {
	Key    string // idempotency key
	ID     string // Duesday's ID, sent as metadata and returned as Reversal.Request
	Ref    string // the intent
	Amount money.Amount
	Reason RefundReason
	Tag    Tag // the charge's tag
}

// A RefundReason is one of Stripe's refund reasons, or empty.
type RefundReason string

// These are the reasons that an operator can specify.
const (
	Duplicate           RefundReason = "duplicate"
	Fraudulent          RefundReason = "fraudulent"
	RequestedByCustomer RefundReason = "requested_by_customer"
)

// A Reversal is a refund or a dispute in its state at the processor.
type Reversal struct {
	Kind    ReversalKind
	ID      string // the processor's ID
	Request string // RefundRequest.ID; "" if Duesday did not request the reversal
	Ref     string // the intent; "" if there is none
	Tag     Tag    // the intent's tag; zero if Duesday did not open the intent
	Amount  money.Amount
	State   ReversalState
	Reason  string    // in the processor's words
	Created time.Time // UTC
	// EvidenceDue is when the processor stops accepting evidence against a dispute; zero if it has not said.
	EvidenceDue time.Time
}

// A ReversalKind is the origin of a reversal.
type ReversalKind string

// These are the kinds of reversals.
const (
	Refunded ReversalKind = "refund"  // the merchant returns the money
	Disputed ReversalKind = "dispute" // the customer's bank claims the money
)

// A ReversalState is the progress of a reversal.
type ReversalState string

// These are the states of a reversal.
const (
	ReversalRequested ReversalState = "requested" // recorded here; the processor has not answered
	ReversalInquiry   ReversalState = "inquiry"   // the bank asks about a payment, but has claimed nothing yet
	ReversalPending   ReversalState = "pending"   // in progress; an undecided dispute
	ReversalSucceeded ReversalState = "succeeded" // the customer has the money; a lost dispute
	ReversalFailed    ReversalState = "failed"    // the merchant keeps the money; a won dispute
	ReversalCanceled  ReversalState = "canceled"
)

// Final reports whether the reversal has an outcome. The outcome may still change: a bank may
// return a succeeded refund, and a lost dispute may be won after an appeal.
func (s ReversalState) Final() bool {
	return s == ReversalSucceeded || s == ReversalFailed || s == ReversalCanceled
}
