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
	Repeated bool // an earlier call used this key for the same order
}

// A shop creates purchases in Stripe.
type shop struct{ *intake }

// recoverAfter is how long the inbox waits before it searches Stripe for a purchase's objects. By
// then the call that creates them has ended.
const recoverAfter = 5 * time.Minute

// CreatePurchase creates a purchase. It stores the incomplete purchase before it calls Stripe, and
// stores the objects when Stripe has answered. If a process crashes in between, the purchase is
// completed by the objects' events, by the inbox, which searches for the objects, or by a call with
// the same key, which continues with them. Duesday never creates or charges anything twice.
//
// It returns a FieldError, ErrUnregistered, ErrOther if the key belongs to another order,
// ErrTooLate, or ErrOrder, ErrDisconnected or ErrStripeKey from Stripe. After any other error the
// outcome is unknown, and the caller must call again with the same key. A declined payment is not
// an error.
func (s *shop) CreatePurchase(ctx context.Context, o Order) (*Created, error) {
	account, err := checkUUID("account", o.Merchant)
	if err != nil {
		return nil, err
	}
	o.Merchant, o.Currency = account, strings.ToUpper(o.Currency)
	if err := cmp.Or(o.Check(), s.o.Seller.Check(o)); err != nil {
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
	if !repeated { // the inbox row is not needed any more; it does nothing if it stays
		err := s.commit(ctx, store.Delete(row.Table, s.o.Tables.Outbox.KeyOf(row.Item)))
		if err != nil && !store.Retryable(err) {
			return nil, err
		}
	}
	return &Created{Purchase: p, Sale: sale, Repeated: repeated}, nil
}

// sellWithin is how long after storing a purchase Duesday may create its objects. Stripe certainly
// remembers the idempotency keys for that long.
const sellWithin = 23 * time.Hour

// ErrTooLate is returned if the purchase is too old to continue and Stripe has no objects for it.
var ErrTooLate = errors.New("this purchase was started too long ago to be continued; use a new key")

// sell creates the purchase's objects in Stripe. While Stripe remembers the idempotency keys, sell
// continues with the objects of an earlier call. After that, sell only searches for them. If the
// buyer's Stripe customer has changed meanwhile, the search could miss an earlier payment, and the
// buyer would pay again.
func (s *shop) sell(ctx context.Context, p *Purchase, repeated bool) (Sale, error) {
	if age := s.now().Sub(p.Created); age < sellWithin && age > -time.Hour {
		// A purchase that is new in the store may already exist in Stripe, because the store may
		// have been restored from a backup. A legacy purchase does not charge by itself, and
		// searching for it is expensive.
		return s.o.Seller.Sell(ctx, s.orderOf(p), repeated || p.Kind != Legacy)
	}
	sale, err := s.o.Seller.Find(ctx, s.orderOf(p))
	if err != nil || len(sale.Objects) > 0 || p.Fulfilment.State != NotAsked || len(p.Subscriptions) > 0 {
		return sale, err
	}
	for _, err := range s.items(ctx, &s.o.Tables.Tracking.Payments, schema.PurchaseIndex, p.ID, store.Cursor{}, false) {
		return sale, err // the purchase has a payment
	}
	return sale, fmt.Errorf("purchase %s: %w", p.ID, ErrTooLate)
}

// begin stores the incomplete purchase with an inbox row. If a purchase with this key exists, begin
// returns that one.
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
	err = s.o.Store.Commit(ctx, put(s.o.Tables.Tracking.Purchases.Name, p.fields, now), row) // does not wake the inbox: the row is due later
	if !store.Retryable(err) {
		return p, row, false, err
	}
	there, reading := s.Purchase(ctx, p.ID)
	switch {
	case errors.Is(reading, store.ErrNotFound):
		return nil, row, false, err
	case reading != nil:
		return nil, row, false, reading
	case there.keyHash == "": // a Stripe event created the row; the store has lost the order
		return nil, row, false, fmt.Errorf("purchase %s: its stored order is missing: %w", there.ID, ErrOther)
	case there.keyHash != hash:
		return nil, row, false, fmt.Errorf("the key belongs to purchase %s: %w", there.ID, ErrOther)
	}
	return there, row, true, nil
}

// PurchaseOf returns the purchase that an order with the key has created for the merchant, or
// store.ErrNotFound.
func (s *shop) PurchaseOf(ctx context.Context, merchant, key string) (*Purchase, error) {
	return s.Purchase(ctx, purchaseID(s.salt, merchant, key))
}

// orderOf returns the stored order, so that retries send Stripe identical requests.
func (s *shop) orderOf(p *Purchase) Order {
	o := p.Order
	o.Tag = Tag{Installation: s.o.Installation, Purchase: p.ID, Kind: p.Kind}
	o.Customer = cmp.Or(o.Customer, p.Customer) // the first attempt found or created this customer
	if o.At = p.StripeAccount; o.At == s.o.Own {
		o.At = ""
	}
	return o
}

// merge merges the objects with the order's Tag. It sets the Tag itself because a payment intent
// that an invoice created has none.
func (s *shop) merge(ctx context.Context, p *Purchase, objects []Object) error {
	for _, o := range objects {
		o.Tag = s.orderOf(p).Tag
		if _, err := s.Apply(ctx, p.StripeAccount, o); err != nil {
			return err
		}
	}
	return nil
}

// record merges the purchase's Stripe objects and stores the buyer's customer ID.
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

// remark stores the customer on the purchase, and the problem if the purchase could not be created.
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

// recoverPurchase searches Stripe for the objects of a purchase that was started minutes ago. It
// does not create or charge anything, because the buyer may have been told that the purchase
// failed.
func (s *shop) recoverPurchase(ctx context.Context, id string) error {
	p, err := s.Purchase(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil || p.keyHash == "" {
		return err
	}
	sale, err := s.o.Seller.Find(ctx, s.orderOf(p))
	if errors.Is(err, ErrOrder) { // Stripe refused the order, so it created nothing
		return s.remark(ctx, p.ID, refusedProblem+secret.Short(err.Error()), "")
	}
	if err != nil || len(sale.Objects) == 0 {
		return err
	}
	if err = s.merge(ctx, p, sale.Objects); err != nil || sale.Customer == "" {
		return err
	}
	if p, err = s.Purchase(ctx, p.ID); err != nil { // reload the purchase after the merge
		return err
	}
	return s.remark(ctx, p.ID, p.Problem, sale.Customer)
}

// purchaseID derives the purchase's ID from the caller's key, so the same key always finds the same
// row. The salt never leaves the store, so a merchant who knows the key cannot write the ID into
// metadata in advance. The ID is a version 8 (custom) UUID.
func purchaseID(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part) // never fails
	}
	b := h.Sum(nil)[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
