package tracking

import (
	"context"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Takeovers marks subscriptions that billing takes over.
type Takeovers struct{ rows }

// OpenTakeovers returns the Takeovers of a store, or nil if the store follows no Stripe account.
func OpenTakeovers(ctx context.Context, s store.Store, t schema.Tables, now func() time.Time) (*Takeovers, error) {
	own, live, err := Pinned(ctx, s, t)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	o := Options{Store: s, Tables: t, Own: own, Live: live, Now: now}
	return &Takeovers{rows{&base{o: o, accounts: t.Tracking.Registry.Name, wake: make(chan struct{}, 1)}}}, nil
}

// TakeOver marks a subscription of the own Stripe account as taken over by billing, or removes the mark.
// Its end then triggers no unsubscribe, in any process, because the customer's subscription continues.
// TakeOver returns false if no purchase has the subscription.
func (r *rows) TakeOver(ctx context.Context, id string, taken bool) (tracked bool, err error) {
	err = store.Retry(ctx, "subscription "+id, func() error {
		tracked = false
		s, err := r.Subscription(ctx, r.o.Own, id)
		if err != nil {
			return ignoreNotFound(err)
		}
		p, err := r.loadPurchase(ctx, s.Purchase)
		if err != nil {
			return err
		}
		if tracked = true; s.TakenOver == taken {
			return nil
		}
		what := "taken over by billing"
		if s.TakenOver = taken; !taken {
			what = "no longer taken over by billing"
		}
		s.Status, s.Ending = s.decide()
		s.History = slices.Clip(append(s.History, Change{At: r.now(), What: what}))
		mergeSubscriptionState(p, s)
		if u := p.Unsubscribe.State; taken && (u == Waits || u == Asked) {
			p.Unsubscribe = Effect{} // it has not begun
		}
		t := r.o.Tables.Tracking
		return r.commit(ctx, put(t.Subscriptions.Name, s.fields, r.now()), put(t.Purchases.Name, p.fields, r.now()))
	})
	return tracked, err
}
