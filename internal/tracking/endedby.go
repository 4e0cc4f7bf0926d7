package tracking

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// TakeEndedBy has the inbox look at subscriptions that were past due, unpaid or paused before
// Options.EndedBy was set as it is now. Repeating it does nothing until the setting changes.
func (b *inbox) TakeEndedBy(ctx context.Context) error {
	return store.Retry(ctx, "ended-by", func() error {
		now := strings.Join(slices.Sorted(slices.Values(b.o.EndedBy)), ",")
		it, err := b.o.Store.Get(ctx, b.accounts, store.Key{PK: ownRow, SK: endedByRow})
		if errors.Is(err, store.ErrNotFound) {
			err = nil
		}
		if err != nil || it.Str(schema.TrackedStatus) == now {
			return err
		}
		defer b.nudge()
		return b.commit(ctx, store.Put(b.accounts, registryRow(ownRow, endedByRow,
			store.Attribute{Name: schema.TrackedStatus, Value: store.S(now)})), b.pending(pendingEndedBy, now, 0))
	})
}

// askEndedBy asks for the state of each subscription that by its last known state has ended for its
// buyer. It reads them by the merchants' index: the policy of the runtime allows no scan.
func (b *inbox) askEndedBy(ctx context.Context) error {
	merchants := map[string]bool{}
	for a, err := range b.ConnectedAccounts(ctx) {
		if err != nil {
			return err
		}
		merchants[a.Merchant] = true
	}
	for merchant := range merchants {
		for it, err := range b.items(ctx, &b.o.Tables.Tracking.Subscriptions, schema.AccountIndex, merchant,
			store.Cursor{}, false) {
			if err != nil {
				return err
			}
			sub := from(it, (*Subscription).fields)
			if sub.Status != SubscriptionActive || !slices.Contains(b.o.EndedBy, sub.Detail) {
				continue
			}
			if err := b.commit(ctx, b.pending(pendingRefresh, sub.StripeAccount+"/"+sub.ID, 0)); err != nil {
				return err
			}
		}
	}
	b.nudge()
	return nil
}
