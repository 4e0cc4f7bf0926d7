package tracking

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

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

func (p *Payment) item() store.Item {
	var w writer
	w.head(p.ID, p.StripeAccount, p.Account, p.Created, p.Updated, p.version)
	w.text(schema.TrackedPurchase, p.Purchase)
	w.text(schema.TrackedStatus, string(p.Status))
	w.number(schema.TrackedAmount, p.Amount)
	w.text(schema.TrackedCurrency, p.Currency)
	w.text(schema.TrackedInvoice, p.Invoice)
	w.text(schema.TrackedSubscription, p.Subscription)
	w.number(schema.TrackedToldRefunded, p.told)
	if len(p.Codes) > 0 {
		values := make([]store.Value, len(p.Codes))
		for i, code := range p.Codes {
			values[i] = store.S(code)
		}
		w.it.Set(schema.TrackedCode, store.L(values...))
	}
	parts := func(name string, ids []string, part func(id string) (int64, string)) {
		if len(ids) == 0 {
			return
		}
		var all store.Item
		for _, id := range ids {
			amount, status := part(id)
			all.Set(id, store.M(store.NewItem(store.Attribute{Name: schema.TrackedAmount, Value: store.Int(amount)},
				store.Attribute{Name: schema.TrackedStatus, Value: store.S(status)})))
		}
		w.it.Set(name, store.M(all))
	}
	parts(schema.TrackedRefunds, slices.Sorted(maps.Keys(p.Refunds)), func(id string) (int64, string) { return p.Refunds[id].Amount, p.Refunds[id].Status })
	parts(schema.TrackedDisputes, slices.Sorted(maps.Keys(p.Disputes)), func(id string) (int64, string) { return p.Disputes[id].Amount, p.Disputes[id].Status })
	w.history(p.History)
	return w.it
}

func paymentOf(it store.Item) *Payment {
	p := &Payment{ID: it.Str(schema.TrackedID), StripeAccount: it.Str(schema.TrackedStripeAccount), Account: it.Str(schema.TrackedAccount),
		Purchase: it.Str(schema.TrackedPurchase), Created: parseStamp(it.Str(schema.TrackedCreated)), Updated: parseStamp(it.Str(schema.TrackedUpdated)),
		Status: PaymentStatus(it.Str(schema.TrackedStatus)), Amount: it.Int(schema.TrackedAmount), Currency: it.Str(schema.TrackedCurrency),
		Invoice: it.Str(schema.TrackedInvoice), Subscription: it.Str(schema.TrackedSubscription), History: historyOf(it),
		told: it.Int(schema.TrackedToldRefunded), version: it.Int(schema.TrackedVersion)}
	for _, v := range it.Get(schema.TrackedCode).List() {
		p.Codes = append(p.Codes, v.Str())
	}
	for _, a := range it.Get(schema.TrackedRefunds).Map() {
		if p.Refunds == nil {
			p.Refunds = map[string]Refund{}
		}
		p.Refunds[a.Name] = Refund{ID: a.Name, Amount: a.Value.Map().Int(schema.TrackedAmount), Status: a.Value.Map().Str(schema.TrackedStatus)}
	}
	for _, a := range it.Get(schema.TrackedDisputes).Map() {
		if p.Disputes == nil {
			p.Disputes = map[string]Dispute{}
		}
		p.Disputes[a.Name] = Dispute{ID: a.Name, Amount: a.Value.Map().Int(schema.TrackedAmount), Status: a.Value.Map().Str(schema.TrackedStatus)}
	}
	mergeRefunds(p, Object{}) // Refunded follows from what is stored
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

// Payments yields the payments to a customer account, the newest first, from an index.
func (s *Service) Payments(ctx context.Context, account string) iter.Seq2[*Payment, error] {
	return read(s.items(ctx, &s.o.Tables.Tracking.Payments, schema.AccountIndex, account, true), func(it store.Item) (*Payment, error) { return paymentOf(it), nil })
}
