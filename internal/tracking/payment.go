package tracking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Payment is one payment intent of Stripe's under a purchase.
type Payment struct {
	ID            string        `json:"id"` // pi_…
	StripeAccount string        `json:"stripe_account"`
	Merchant      string        `json:"account"`  // UUID of the paid merchant
	Purchase      string        `json:"purchase"` // UUID
	Created       time.Time     `json:"created"`
	Updated       time.Time     `json:"last_updated"`
	Status        PaymentStatus `json:"status"`
	Codes         []string      `json:"codes,omitempty"`  // why attempts failed, in Stripe's words; sorted
	Amount        int64         `json:"amount,omitempty"` // minor units
	Currency      string        `json:"currency,omitempty"`
	Invoice       string        `json:"invoice,omitempty"`      // in_…, its origin
	Subscription  string        `json:"subscription,omitempty"` // sub_… of a recurring payment

	Refunded int64              `json:"refunded,omitempty"` // minor units, of all valid refunds
	Refunds  map[string]Refund  `json:"refunds,omitempty"`
	Disputes map[string]Dispute `json:"disputes,omitempty"`

	History []Change `json:"history,omitempty"`

	told     int64 // the largest refunded sum of a charge
	attached bool  // to an invoice that was not yet paid in full: it fulfils nothing by itself
	version  int64
}

// A PaymentStatus is where a payment stands. Paid beats failed, and failed beats new.
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

func (c *codec) amount(minor *int64, status *string) {
	if c.reads {
		*minor, *status = c.it.Int(schema.TrackedAmount), c.it.Str(schema.TrackedStatus)
		return
	}
	c.it.Set(schema.TrackedAmount, store.Int(*minor))
	c.it.Set(schema.TrackedStatus, store.S(*status))
}

func paymentOf(it store.Item) *Payment {
	p := from(it, (*Payment).fields)
	mergeRefunds(p, Object{}) // Refunded follows from the stored parts
	return p
}

// Payment returns the payment, or store.ErrNotFound.
func (s *Service) Payment(ctx context.Context, stripeAccount, id string) (*Payment, error) {
	if !isID(stripeAccount, "acct_") || !isID(id, "pi_") {
		return nil, fmt.Errorf("payment %s/%s: %w", stripeAccount, id, store.ErrNotFound)
	}
	it, err := s.o.Store.Get(ctx, s.o.Tables.Tracking.Payments.Name, store.Key{PK: stripeAccount, SK: id})
	if err != nil {
		return nil, err
	}
	return paymentOf(it), nil
}

// Mark returns the payment's place in a list.
func (p *Payment) Mark() Mark { return Mark{p.Created, p.StripeAccount, p.ID} }

// Payments yields the payments to a merchant after the mark, the newest first, from an index.
func (s *Service) Payments(ctx context.Context, merchant string, after Mark) iter.Seq2[*Payment, error] {
	return read(s.items(ctx, &s.o.Tables.Tracking.Payments, schema.AccountIndex, merchant,
		after.cursor(merchant, stamp(after.At), store.Key{PK: after.StripeAccount, SK: after.ID}), true),
		func(it store.Item) (*Payment, error) { return paymentOf(it), nil })
}

func (a *application) applyPayment(ctx context.Context, o Object) (decision, error) {
	if err := a.loadPayment(ctx, o.Payment); err != nil {
		return decision{}, err
	}
	if a.payment == nil {
		if d, err := a.beginPayment(ctx, o); err != nil || d.status != "" {
			return d, err
		}
	}
	p, before := a.payment, a.payment.Status
	a.fetched = a.fetched || o.Kind == KindPayment && o.Fetched
	if o.Kind == KindInvoicePayment && o.Status == "paid" && p.Status != PaymentPaid && !a.fetched {
		return decision{}, need{kind: KindPayment, id: p.ID} // its own events may have come before this link
	}
	if p.attached && o.Kind == KindPayment && o.Fetched && !o.Attached {
		p.attached, a.changed.payment = false, true
	}
	changes, ask := mergePayment(p, o, a.fresh)
	a.note(&p.History, changes)
	if a.changed.payment = a.changed.payment || len(changes) > 0 || ask; ask {
		a.refresh = p.ID + "/" + o.ID
	}
	settled := o.Kind == KindInvoice && o.Status == "paid" // perhaps by other means than this payment
	paid := p.Status == PaymentPaid && (before != PaymentPaid || a.changed.payment)
	// The payment of a subscription's invoice fulfils nothing: the subscription does. Nor does a part of an
	// invoice, which tells when it is paid.
	if p.Subscription != "" || !settled && (!paid || p.attached) {
		return applied, nil
	}
	by := p.ID
	if settled {
		by = o.ID
	}
	return applied, a.paid(ctx, p.Purchase, Object{}, by)
}

// beginPayment makes the row of a purchase's payment. The decision has a status if it is not ours.
func (a *application) beginPayment(ctx context.Context, o Object) (decision, error) {
	switch {
	case o.Tag.Purchase != "" && (o.InvoiceTold || o.Kind == KindInvoice || !recurring(o.Tag.Kind)):
	case o.Kind == KindInvoice:
		return ignored(notOurs), nil
	case o.Kind == KindPayment && o.InvoiceTold && (o.Fetched || o.Invoice == "" && o.Customer == ""):
		// An event's payment with a customer may have an invoice of a newer kind, which its version
		// of the API does not tell: then Stripe is asked.
		return decision{status: Ignored, reason: notOurs, mark: markOf(o)}, nil
	default:
		return decision{}, need{kind: KindPayment, id: o.Payment}
	}
	if err := a.loadPurchase(ctx, o.Tag.Purchase, o); err != nil {
		return decision{}, err
	}
	a.payment = &Payment{ID: o.Payment, StripeAccount: a.at, Merchant: a.merchant, Purchase: o.Tag.Purchase,
		Status: PaymentNew, Created: cmp.Or(o.Created, a.s.now()), attached: o.Attached}
	a.changed.payment = true
	return decision{}, nil
}

func (a *application) loadPayment(ctx context.Context, id string) error {
	if p := a.payment; p != nil && p.ID == id {
		return nil
	} else if a.changed.payment {
		return fmt.Errorf("%w: one commit would write two payments, %s and %s", errPoison, p.ID, id)
	}
	var err error
	if a.payment, err = a.s.Payment(ctx, a.at, id); errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
