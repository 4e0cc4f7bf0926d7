package tracking

import (
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Payment is a Stripe payment intent that belongs to a purchase.
type Payment struct {
	ID            string        `json:"id"` // pi_…
	StripeAccount string        `json:"stripe_account"`
	Merchant      string        `json:"account"`  // UUID of the merchant who receives the payment
	Purchase      string        `json:"purchase"` // UUID
	Created       time.Time     `json:"created"`
	Updated       time.Time     `json:"last_updated"`
	Status        PaymentStatus `json:"status"`
	Codes         []string      `json:"codes,omitempty"`  // Stripe's decline codes, sorted
	Amount        int64         `json:"amount,omitempty"` // minor units
	Currency      string        `json:"currency,omitempty"`
	Invoice       string        `json:"invoice,omitempty"`      // in_…, the invoice that it pays
	Subscription  string        `json:"subscription,omitempty"` // sub_… of a recurring payment

	Refunded int64              `json:"refunded,omitempty"` // minor units, total of all valid refunds
	Refunds  map[string]Refund  `json:"refunds,omitempty"`
	Disputes map[string]Dispute `json:"disputes,omitempty"`

	History []Change `json:"history,omitempty"`

	told     int64 // the largest refund total that a charge has reported
	attached bool  // attached to an invoice that was not yet fully paid, so it fulfils nothing itself
	version  int64
}

// A PaymentStatus is the status of a payment. Paid overrides failed, and failed overrides new.
type PaymentStatus string

// The statuses of a payment.
const (
	PaymentNew    PaymentStatus = "new"
	PaymentPaid   PaymentStatus = "paid"
	PaymentFailed PaymentStatus = "failed"
)

func (p *Payment) fields(c *codec) {
	head(c, &p.ID, &p.StripeAccount, &p.Merchant, &p.Created, &p.Updated, &p.version)
	text(c, schema.TrackedPurchase, &p.Purchase)
	text(c, schema.TrackedStatus, &p.Status)
	number(c, schema.TrackedAmount, &p.Amount)
	text(c, schema.TrackedCurrency, &p.Currency)
	text(c, schema.TrackedInvoice, &p.Invoice)
	text(c, schema.TrackedSubscription, &p.Subscription)
	number(c, schema.TrackedToldRefunded, &p.told)
	c.flag(schema.TrackedAttached, &p.attached)
	values(c, schema.TrackedCode, &p.Codes, store.Value.Str, store.S)
	parts(c, schema.TrackedRefunds, &p.Refunds, func(c *codec, id string, r *Refund) {
		r.ID = id
		c.amount(&r.Amount, &r.Status)
	})
	parts(c, schema.TrackedDisputes, &p.Disputes, func(c *codec, id string, d *Dispute) {
		d.ID = id
		c.amount(&d.Amount, &d.Status)
		c.time(schema.TrackedDue, &d.Due)
	})
	c.history(&p.History)
}
