package tracking

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// A Created is the result of CreatePurchase.
type Created struct {
	Purchase *Purchase
	Sale     Sale
	Repeated bool // the key was used before for the same order
}

// A shop makes purchases at Stripe.
type shop struct{ *intake }

// recoverAfter is when the inbox looks at Stripe for a purchase: the call for it has ended.
const recoverAfter = 5 * time.Minute

// CreatePurchase makes a purchase. It stores the purchase, incomplete, before Stripe hears of it,
// and its objects when Stripe has answered. Three things mend a crash in between: the events of
// the objects, the inbox, which looks for them, and a call with the same key, which continues
// with them. Nothing is made or paid twice.
//
// It returns a FieldError, ErrUnregistered, ErrOther if the key was used for another order,
// ErrOrder, ErrDisconnected and ErrStripeKey from Stripe, and ErrTooLate. After any other error the
// outcome is unknown: the caller must call again with the same key. A decline is no error.
func (s *shop) CreatePurchase(ctx context.Context, o Order) (*Created, error) {
	account, err := checkUUID("account", o.Merchant)
	if err != nil {
		return nil, err
	}
	o.Merchant, o.Currency = account, strings.ToUpper(o.Currency)
	if err := o.Check(); err != nil {
		return nil, err
	}
	if err := s.o.Seller.Check(o); err != nil {
		return nil, err
	}
	at, err := s.stripeAccountOf(ctx, account)
	if err != nil {
		return nil, err
	}
	p, row, repeated, err := s.begin(ctx, o, at)
	if err != nil {
		return nil, err
	}
	sale, err := s.sell(ctx, p, repeated)
	if err != nil {
		if errors.Is(err, ErrOrder) || errors.Is(err, ErrDisconnected) || errors.Is(err, ErrStripeKey) {
			err = errors.Join(err, s.remark(ctx, p.ID, refusedProblem+secret.Short(err.Error()), ""))
		}
		return nil, err
	}
	if p, err = s.record(ctx, p, sale); err != nil {
		return nil, err
	}
	if !repeated { // the inbox need not look for it any more; if the row stays, it finds nothing to do
		err := s.commit(ctx, store.Delete(row.Table, s.o.Tables.Outbox.KeyOf(row.Item)))
		if err != nil && !store.Retryable(err) {
			return nil, err
		}
	}
	return &Created{Purchase: p, Sale: sale, Repeated: repeated}, nil
}

// sellWithin is how long a stored purchase may be made: Stripe is sure to remember its keys.
const sellWithin = 23 * time.Hour

// ErrTooLate: the purchase was begun too long ago to be continued, and Stripe has nothing of it.
var ErrTooLate = errors.New("this purchase was started too long ago to be continued; use a new key")

// sell has Stripe make the purchase's objects. It continues with the objects of an earlier call
// while Stripe remembers the keys. Later it only finds them: a buyer whose customer has changed
// meanwhile could not be found, and would pay again.
func (s *shop) sell(ctx context.Context, p *Purchase, repeated bool) (Sale, error) {
	if age := s.now().Sub(p.Created); age < sellWithin && age > -time.Hour {
		// A purchase new here may exist at Stripe: the store may have been put back. A legacy
		// purchase takes no money by itself, and looking for one is expensive.
		return s.o.Seller.Sell(ctx, s.orderOf(p), repeated || p.Kind != Legacy)
	}
	sale, err := s.o.Seller.Find(ctx, s.orderOf(p))
	if err != nil || len(sale.Objects) > 0 || p.Fulfilment.State != NotAsked || len(p.Subscriptions) > 0 {
		return sale, err
	}
	for _, err := range s.items(ctx, &s.o.Tables.Tracking.Payments, schema.PurchaseIndex, p.ID, store.Cursor{}, false) {
		return sale, err // something is known of it
	}
	return sale, fmt.Errorf("purchase %s: %w", p.ID, ErrTooLate)
}

// begin stores the incomplete purchase, with a row of the inbox; or it finds that of the key.
func (s *shop) begin(ctx context.Context, o Order, at string) (p *Purchase, row store.Write, repeated bool, err error) {
	stored, hash, err := o.encode()
	if err != nil {
		return nil, row, false, err
	}
	now := s.now()
	p = &Purchase{ID: purchaseID(s.salt, o.Merchant, o.Key), Merchant: o.Merchant, StripeAccount: at, Kind: o.Kind,
		Created: now, Order: o, Customer: o.Customer, order: stored, keyHash: hash}
	asked := "asked for: " + string(o.Kind)
	if o.By != "" {
		asked += ", with the API key " + o.By
	}
	p.History = remember(nil, Change{At: now, What: asked})
	row = s.pending(pendingPurchase, p.ID, recoverAfter)
	err = s.o.Store.Commit(ctx, put(s.o.Tables.Tracking.Purchases.Name, p.fields, now), row) // without waking the inbox: the row is due later
	if !store.Retryable(err) {
		return p, row, false, err
	}
	there, reading := s.Purchase(ctx, p.ID)
	switch {
	case errors.Is(reading, store.ErrNotFound):
		return nil, row, false, err
	case reading != nil:
		return nil, row, false, reading
	case there.keyHash == "": // first heard of through Stripe: its order was lost with an older store
		return nil, row, false, fmt.Errorf("purchase %s: its stored order is missing: %w", there.ID, ErrOther)
	case there.keyHash != hash:
		return nil, row, false, fmt.Errorf("the key belongs to purchase %s: %w", there.ID, ErrOther)
	}
	return there, row, true, nil
}

// orderOf is the order as it was stored: requests to Stripe never differ between two tries.
func (s *shop) orderOf(p *Purchase) Order {
	o := p.Order
	o.Tag = Tag{Installation: s.o.Installation, Purchase: p.ID, Kind: p.Kind}
	o.Customer = cmp.Or(o.Customer, p.Customer) // found or made the first time
	if o.At = p.StripeAccount; o.At == s.o.Own {
		o.At = ""
	}
	return o
}

// merge merges the objects with the order's Tag: a payment intent made by an invoice has none.
func (s *shop) merge(ctx context.Context, p *Purchase, objects []Object) error {
	for _, o := range objects {
		o.Tag = s.orderOf(p).Tag
		if _, err := s.Apply(ctx, p.StripeAccount, o); err != nil {
			return err
		}
	}
	return nil
}

// record merges the purchase's objects at Stripe, and notes the buyer's customer.
func (s *shop) record(ctx context.Context, p *Purchase, sale Sale) (*Purchase, error) {
	if err := s.merge(ctx, p, sale.Objects); err != nil {
		return nil, fmt.Errorf("purchase %s: %w", p.ID, err)
	}
	problem := ""
	switch {
	case sale.Declined != "":
		problem = declinedProblem + secret.Short(sale.Declined)
	case sale.Action:
		problem = buyerProblem
	}
	if err := s.remark(ctx, p.ID, problem, sale.Customer); err != nil {
		return nil, err
	}
	return s.Purchase(ctx, p.ID)
}

// remark notes on the purchase the problem of creating it, if any, and its customer.
func (s *shop) remark(ctx context.Context, id, problem, customer string) error {
	p, err := s.loadPurchase(ctx, id)
	if err != nil {
		return err
	}
	_, err = s.changePurchase(ctx, p, func(p *Purchase) (bool, []store.Write) {
		now := problem
		if !ofCreating(p.Problem) {
			now = p.Problem
		}
		if p.Problem == now && (customer == "" || p.Customer == customer) {
			return false, nil
		}
		if now != "" && now != p.Problem {
			p.History = remember(p.History, Change{At: s.now(), What: now})
		}
		p.Problem, p.Customer = now, cmp.Or(customer, p.Customer)
		return true, nil
	})
	return err
}

// recoverPurchase looks at Stripe for the objects of a purchase begun some minutes ago. It makes
// nothing and pays nothing: the buyer may have been told that it failed.
func (s *shop) recoverPurchase(ctx context.Context, id string) error {
	p, err := s.Purchase(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil || p.keyHash == "" {
		return err
	}
	sale, err := s.o.Seller.Find(ctx, s.orderOf(p))
	if errors.Is(err, ErrOrder) { // then nothing was made
		return s.remark(ctx, p.ID, refusedProblem+secret.Short(err.Error()), "")
	}
	if err != nil || len(sale.Objects) == 0 {
		return err
	}
	if err = s.merge(ctx, p, sale.Objects); err != nil || sale.Customer == "" {
		return err
	}
	if p, err = s.Purchase(ctx, p.ID); err != nil { // as it is by now
		return err
	}
	return s.remark(ctx, p.ID, p.Problem, sale.Customer)
}

// purchaseID derives a purchase's id from the caller's key, so the same key is the same row.
// The salt never leaves the store: a merchant who knows the key cannot write the id into metadata
// beforehand. The id is a UUID of version 8: custom.
func purchaseID(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part) // never fails
	}
	b := h.Sum(nil)[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
