package processor

import (
	"context"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

// A Biller is a Charger that also runs subscriptions of its own, on its own account, which Duesday can
// take over. A payment method stays where it is.
type Biller interface {
	// Subscriptions yields every subscription that has not ended, those after the given one, or all if it
	// is "". An error is the last element.
	Subscriptions(ctx context.Context, after string) iter.Seq2[Subscription, error]

	// Subscription returns one subscription, or ErrInvalid if there is none. Its Obstacle does not
	// tell of disputes.
	Subscription(ctx context.Context, id string) (Subscription, error)

	// Disputed returns the open dispute of a customer, or "".
	Disputed(ctx context.Context, customer string) (string, error)

	// SetEnd changes whether the subscription ends with its period. It returns the state afterwards.
	SetEnd(ctx context.Context, id string, e End) (Subscription, error)

	// Succession returns what has become of the subscription at and after the boundary.
	Succession(ctx context.Context, id string, boundary time.Time) (Succession, error)
}

// An End is how a subscription shall end.
type End struct {
	Ends   *bool  // with its period; nil: as it did
	Taker  string // the installation that takes it over; "" for none
	Forget bool   // the reason of an earlier cancellation
}

// A Subscription is one that the processor runs.
type Subscription struct {
	ID      string
	Created time.Time

	Customer       string
	Email, Name    string // of the customer; "" if the processor does not know them
	Locale         string
	SKU            string       // the price's lookup key, or else its product
	Amount         money.Amount // of one unit
	Quantity       int
	Interval       civil.Interval
	Percent        string       // the discount, such as 25 or 12.5; "" for none
	Off            money.Amount // instead of Percent
	DiscountEnds   time.Time    // zero: with the subscription
	DiscountOnce   bool         // it is used up by the next period
	TaxRate        string       // in percent; "" for none
	TaxInclusive   bool
	Method         string    // attached to the customer
	Anchor         time.Time // whose day of the month each later due date has
	PeriodEnd      time.Time // the next due date
	Ended          time.Time // zero: it has not ended
	EndsWithPeriod bool
	TakenBy        string // the installation for which it ends; "" for none
	Refused        bool   // its customer has said why it was cancelled
	Status         string // in the processor's words
	Obstacle       string // why Duesday cannot take it over; "" for nothing
}

// A Succession is the state of a subscription that was to end at a boundary.
type Succession struct {
	Status  string    // in the processor's words
	Ends    bool      // it ends with its period
	TakenBy string    // the installation that has made it end; "" if none has
	Ended   time.Time // zero: it has not ended
	Refused bool      // its customer has said why it was cancelled
	Renewal string    // the first invoice for a period that ends after the boundary, unless it is void; "" for none
	Until   time.Time // when that period ends
	Paid    bool      // that invoice is paid
}
