package tracking

import "time"

// A Payment is one payment intent of Stripe's under a purchase.
type Payment struct {
	ID            string        `json:"id"` // pi_…
	StripeAccount string        `json:"stripe_account"`
	Account       string        `json:"account"`  // UUID of the customer account that was paid
	Purchase      string        `json:"purchase"` // UUID
	Created       time.Time     `json:"created"`
	Updated       time.Time     `json:"last_updated"`
	Status        PaymentStatus `json:"status"`
	Codes         []string      `json:"codes,omitempty"`  // why attempts failed, in Stripe's words; sorted
	Amount        int64         `json:"amount,omitempty"` // minor units
	Currency      string        `json:"currency,omitempty"`
	Invoice       string        `json:"invoice,omitempty"`      // in_… that made it
	Subscription  string        `json:"subscription,omitempty"` // sub_… that it is a payment of: then it is recurring

	Refunded int64              `json:"refunded,omitempty"` // minor units, of all refunds that stand
	Refunds  map[string]Refund  `json:"refunds,omitempty"`
	Disputes map[string]Dispute `json:"disputes,omitempty"`

	History []Change `json:"history,omitempty"`

	told    int64 // the most that a charge told to have been refunded
	version int64
}

// A PaymentStatus is where a payment stands. Paid beats failed, and failed beats new.
type PaymentStatus string

// The statuses of a payment.
const (
	PaymentNew    PaymentStatus = "new"
	PaymentPaid   PaymentStatus = "paid"
	PaymentFailed PaymentStatus = "failed"
)
