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
	Refund(ctx context.Context, r RefundRequest) (Return, error)

	// ReturnsOf returns the refunds and disputes of one intent, in no order; consistent: a
	// refund that was answered is there.
	ReturnsOf(ctx context.Context, ref string) ([]Return, error)

	// Returns yields the refunds and disputes that were made at or after r.Since, whoever
	// made them, in no order, each as it stands now. An error comes last.
	Returns(ctx context.Context, r ListRequest) iter.Seq2[Return, error]
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
type Return struct {
	Kind    ReturnKind
	ID      string // the processor's
	Request string // RefundRequest.ID; "" when it was not asked for here
	Ref     string // of the intent; "" when it is of no intent
	Tag     Tag    // of the intent; zero when it is none of Duesday's
	Amount  money.Amount
	State   ReturnState
	Reason  string    // the processor's word
	Created time.Time // UTC
}

// A ReturnKind says who asked for the money back.
type ReturnKind string

// The kinds of returns.
const (
	Refunded ReturnKind = "refund"  // we give it back
	Disputed ReturnKind = "dispute" // the customer's bank claims it
)

// A ReturnState is how far a return has come.
type ReturnState string

// The states of a return.
const (
	ReturnRequested ReturnState = "requested" // recorded here, and not yet answered by the processor
	ReturnInquiry   ReturnState = "inquiry"   // of a dispute: the bank asks, and has claimed nothing yet
	ReturnPending   ReturnState = "pending"   // under way; of a dispute: not decided
	ReturnSucceeded ReturnState = "succeeded" // the money is back with the customer; of a dispute: lost
	ReturnFailed    ReturnState = "failed"    // the money stays here; of a dispute: won
	ReturnCanceled  ReturnState = "canceled"
)
