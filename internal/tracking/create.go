package tracking

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Created is a purchase that was made, and what there is of it at Stripe.
type Created struct {
	Purchase *Purchase
	Sale     Sale
	Repeated bool // the key was used before for the same order
}

// recoverAfter is how long after a purchase was begun it is looked for at Stripe: whoever began
// it has ended by then, one way or another.
const recoverAfter = 5 * time.Minute

// CreatePurchase makes a purchase. It is stored, incomplete, before Stripe hears of it; what
// Stripe has made is stored when it has answered. A crash in between is healed by the events of
// what was made, by the inbox, which looks for it, and by whoever calls again with the same key:
// then what is there is gone on with, and nothing is made or paid twice.
//
// Errors: FieldError; ErrUnregistered; ErrOther, the key was used for another order; ErrOrder and
// ErrDisconnected, from Stripe; ErrTooLate. After any other it is not known how far it came: call again with
// the same key. A decline is no error.
func (s *Service) CreatePurchase(ctx context.Context, o Order) (*Created, error) {
	account, err := checkUUID("account", o.Merchant)
	if err != nil {
		return nil, err
	}
	o.Merchant, o.Currency = account, strings.ToUpper(o.Currency)
	if err := o.Check(); err != nil {
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
		if errors.Is(err, ErrOrder) || errors.Is(err, ErrDisconnected) {
			err = errors.Join(err, s.remark(ctx, p.ID, refusedProblem+short(err.Error()), ""))
		}
		return nil, err
	}
	if p, err = s.record(ctx, p, sale); err != nil {
		return nil, err
	}
	if !repeated { // the inbox need not look for it any more; if the row stays, it finds nothing to do
		if err := s.commit(ctx, store.Delete(row.Table, s.o.Tables.Outbox.KeyOf(row.Item))); err != nil && !store.Retryable(err) {
			return nil, err
		}
	}
	return &Created{Purchase: p, Sale: sale, Repeated: repeated}, nil
}

// sellWithin is how long after its beginning a purchase may still be made at Stripe: as long as
// Stripe is sure to remember the idempotency keys of the first time.
const sellWithin = 23 * time.Hour

// ErrTooLate: the purchase was begun too long ago to be gone on with, and there is nothing of it
// at Stripe. It takes another key.
var ErrTooLate = errors.New("begun too long ago to be gone on with: use another key")

// sell has Stripe make what the purchase asks for. Of one that was begun before, what is there is
// found and gone on with while Stripe remembers the keys. Later it is only found: a buyer whose
// customer has changed meanwhile could not be, and would pay again.
func (s *Service) sell(ctx context.Context, p *Purchase, repeated bool) (Sale, error) {
	if age := s.now().Sub(p.Created); age < sellWithin && age > -time.Hour {
		// That the purchase is new here does not say that it is new at Stripe: the store may have been
		// put back. A legacy purchase takes no money by itself, and looking for one is expensive.
		return s.o.Seller.Sell(ctx, s.orderOf(p), repeated || p.Kind != Legacy)
	}
	sale, err := s.o.Seller.Find(ctx, s.orderOf(p))
	if err != nil || len(sale.Objects) > 0 || p.Fulfilment.State != NotAsked || len(p.Subscriptions) > 0 {
		return sale, err
	}
	for _, err := range s.items(ctx, &s.o.Tables.Tracking.Payments, schema.PurchaseIndex, p.ID, false) {
		return sale, err // something is known of it
	}
	return sale, fmt.Errorf("purchase %s: %w", p.ID, ErrTooLate)
}

// begin stores the incomplete purchase, with a row of the inbox that looks for it if this process
// dies; or it finds the purchase of that key.
func (s *Service) begin(ctx context.Context, o Order, at string) (p *Purchase, row store.Write, repeated bool, err error) {
	stored, hash, err := o.encode()
	if err != nil {
		return nil, row, false, err
	}
	now := s.now()
	p = &Purchase{ID: purchaseID(s.salt, o.Merchant, o.Key), Merchant: o.Merchant, StripeAccount: at, Kind: o.Kind, Created: now,
		Order: o, Customer: o.Customer, order: stored, keyHash: hash}
	p.History = remember(nil, Change{At: now, What: "asked for: " + string(o.Kind)})
	row = s.pending(pendingPurchase, p.ID, recoverAfter)
	err = s.commit(ctx, put(s.o.Tables.Tracking.Purchases.Name, p.fields, now), row)
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
		return nil, row, false, fmt.Errorf("purchase %s: its order is not known: %w", there.ID, ErrOther)
	case there.keyHash != hash:
		return nil, row, false, fmt.Errorf("the key of purchase %s: %w", there.ID, ErrOther)
	}
	return there, row, true, nil
}

// orderOf is the order as it was stored: what is sent to Stripe never differs between two tries.
func (s *Service) orderOf(p *Purchase) Order {
	o := p.Order
	o.Tag = Tag{Installation: s.o.Installation, Purchase: p.ID, Kind: p.Kind}
	if o.Customer == "" {
		o.Customer = p.Customer // who was found or made the first time
	}
	if o.At = p.StripeAccount; o.At == s.o.Own {
		o.At = ""
	}
	return o
}

// tagged says of each object whose it is: a payment intent that an invoice made does not.
func (s *Service) tagged(p *Purchase, objects []Object) []Object {
	list := slices.Clone(objects)
	for i := range list {
		list[i].Tag = s.orderOf(p).Tag
	}
	return list
}

// record merges what there is at Stripe, and notes the buyer's customer.
func (s *Service) record(ctx context.Context, p *Purchase, sale Sale) (*Purchase, error) {
	if _, err := s.applyFetched(ctx, p.StripeAccount, s.tagged(p, sale.Objects)...); err != nil {
		return nil, fmt.Errorf("purchase %s: %w", p.ID, err)
	}
	problem := ""
	switch {
	case sale.Declined != "":
		problem = declinedProblem + short(sale.Declined)
	case sale.Action:
		problem = buyerProblem
	}
	if err := s.remark(ctx, p.ID, problem, sale.Customer); err != nil {
		return nil, err
	}
	return s.Purchase(ctx, p.ID)
}

// How the problems begin that creating a purchase runs into. Others are for a person, and are
// not taken back.
const (
	declinedProblem = "declined: "
	refusedProblem  = "not made: "
	buyerProblem    = "waits for the buyer, who has to authenticate the payment"
)

func ofCreating(problem string) bool {
	return problem == "" || problem == buyerProblem || strings.HasPrefix(problem, declinedProblem) || strings.HasPrefix(problem, refusedProblem)
}

// remark notes on the purchase the problem of creating it, if any, and its customer.
func (s *Service) remark(ctx context.Context, id, problem, customer string) error {
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

// recoverPurchase looks at Stripe for what was made of a purchase that was begun some minutes
// ago. It makes nothing and pays nothing: the buyer may have been told that it failed.
func (s *Service) recoverPurchase(ctx context.Context, id string) error {
	p, err := s.Purchase(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil || p.keyHash == "" {
		return err
	}
	sale, err := s.o.Seller.Find(ctx, s.orderOf(p))
	if errors.Is(err, ErrOrder) { // then nothing was made of it
		return s.remark(ctx, p.ID, refusedProblem+short(err.Error()), "")
	}
	if err != nil || len(sale.Objects) == 0 {
		return err
	}
	if _, err = s.applyFetched(ctx, p.StripeAccount, s.tagged(p, sale.Objects)...); err != nil || sale.Customer == "" {
		return err
	}
	if p, err = s.Purchase(ctx, p.ID); err != nil { // as it is by now
		return err
	}
	return s.remark(ctx, p.ID, p.Problem, sale.Customer)
}

// purchaseID is the id of the purchase under a caller's key: the same for the same key, so that
// storing it once is all it takes. The salt, which never leaves the store, keeps who knows the key
// from knowing the id: a merchant could take it by writing it into metadata. It is a UUID of
// version 8: custom.
func purchaseID(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part) // never fails
	}
	b := h.Sum(nil)[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	x := hex.EncodeToString(b)
	return strings.Join([]string{x[:8], x[8:12], x[12:16], x[16:20], x[20:]}, "-")
}

// encode returns the order as it is stored, and a hash that tells it from others. The key is not
// in the hash.
func (o Order) encode() (stored, hash string, err error) {
	b, err := json.Marshal(o)
	if err != nil {
		return "", "", fmt.Errorf("order: %w", err)
	}
	stored, o.Key = string(b), ""
	if b, err = json.Marshal(o); err != nil {
		return "", "", fmt.Errorf("order: %w", err)
	}
	sum := sha256.Sum256(b)
	return stored, hex.EncodeToString(sum[:16]), nil
}
