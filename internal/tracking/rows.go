package tracking

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
)

// rows reads the stored rows of purchases, payments, subscriptions and events.
type rows struct{ *base }

// Purchase returns the purchase, or store.ErrNotFound if it does not exist.
func (r *rows) Purchase(ctx context.Context, id string) (*Purchase, error) {
	p, err := r.loadPurchase(ctx, id)
	if err != nil {
		return nil, err
	}
	return p.whole()
}

// loadPurchase returns the purchase like Purchase, but does not decode its order.
func (r *rows) loadPurchase(ctx context.Context, id string) (*Purchase, error) {
	id, err := checkUUID("purchase", id)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, store.ErrNotFound)
	}
	it, err := r.o.Store.Get(ctx, r.o.Tables.Tracking.Purchases.Name, store.Key{PK: id})
	if err != nil {
		return nil, err
	}
	return from(it, (*Purchase).fields), nil
}

// changePurchase changes a purchase and stores it together with other writes. It tries again if
// another writer changes the row first.
func (r *rows) changePurchase(ctx context.Context, p *Purchase,
	change func(*Purchase) (changed bool, with []store.Write)) (*Purchase, error) {
	id, stale := p.ID, false
	err := store.Retry(ctx, "purchase "+id, func() (err error) {
		if stale {
			if p, err = r.Purchase(ctx, id); err != nil {
				return err
			}
		}
		stale = true
		changed, with := change(p)
		if !changed {
			return nil
		}
		return r.commit(ctx, append(with, put(r.o.Tables.Tracking.Purchases.Name, p.fields, r.now()))...)
	})
	return p, err
}

// Payment returns the payment, or store.ErrNotFound if it does not exist.
func (r *rows) Payment(ctx context.Context, stripeAccount, id string) (*Payment, error) {
	it, err := r.ofAccount(ctx, "payment", r.o.Tables.Tracking.Payments.Name, stripeAccount, "pi_", id)
	if err != nil {
		return nil, err
	}
	return paymentOf(it), nil
}

func paymentOf(it store.Item) *Payment {
	p := from(it, (*Payment).fields)
	mergeRefunds(p, Object{}) // computes Refunded from the stored refunds
	return p
}

// Subscription returns the subscription, or store.ErrNotFound if it does not exist.
func (r *rows) Subscription(ctx context.Context, stripeAccount, id string) (*Subscription, error) {
	it, err := r.ofAccount(ctx, "subscription", r.o.Tables.Tracking.Subscriptions.Name, stripeAccount, "sub_", id)
	if err != nil {
		return nil, err
	}
	return from(it, (*Subscription).fields), nil
}

func (r *rows) ofAccount(ctx context.Context, kind, table, stripeAccount, prefix, id string) (store.Item, error) {
	if !isID(stripeAccount, "acct_") || !isID(id, prefix) {
		return nil, fmt.Errorf("%s %s/%s: %w", kind, stripeAccount, id, store.ErrNotFound)
	}
	return r.o.Store.Get(ctx, table, store.Key{PK: stripeAccount, SK: id})
}

// Event returns the stored event, or store.ErrNotFound if it does not exist.
func (r *rows) Event(ctx context.Context, id string) (*Event, error) {
	e, err := r.eventOrMarker(ctx, id)
	if err == nil && e.isMarker() {
		return nil, fmt.Errorf("event %s has not arrived, only its other form %s: %w", id, e.Twin, store.ErrNotFound)
	}
	return e, err
}

// eventOrMarker returns the stored event like Event, or the marker stored in its place.
func (r *rows) eventOrMarker(ctx context.Context, id string) (*Event, error) {
	if !isID(id, "evt_") {
		return nil, fmt.Errorf("event %q: %w", id, store.ErrNotFound)
	}
	it, err := r.o.Store.Get(ctx, r.events, store.Key{PK: id})
	if err != nil {
		return nil, err
	}
	return eventOf(it)
}

func ignoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// items yields the items in an index partition. The index only has keys, so items reads each item
// from the table.
func (r *rows) items(ctx context.Context, t *store.Table, index, partition string,
	after store.Cursor, reverse bool) iter.Seq2[store.Item, error] {
	if partition == "" {
		return sequence.Of[store.Item](nil)
	}
	q := store.Query{Table: t.Name, Index: index, Partition: partition, After: after, Reverse: reverse}
	return sequence.Map(r.o.Store.Query(ctx, q), func(row store.Item) (store.Item, error) {
		return unlessGone(r.o.Store.Get(ctx, t.Name, t.KeyOf(row)))
	})
}

// unlessGone is for sequence.Map: it skips what no longer exists.
func unlessGone[T any](v T, err error) (T, error) {
	if errors.Is(err, store.ErrNotFound) {
		err = sequence.ErrSkip
	}
	return v, err
}
