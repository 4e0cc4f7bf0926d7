package wallet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/processor"
)

// Target names the account or the subscription for which the card was entered.
func Target(s processor.Setup) string {
	if s.Subscription == "" {
		return "account " + s.Account
	}
	return "subscription " + s.Account + "/" + s.Subscription
}

// Entered returns the cards that customers entered since then (inclusive), for each account or
// subscription the last one, and an account before its subscriptions. It also returns cards beside
// the errors of some places.
func (c *Cards) Entered(ctx context.Context, w processor.Wallet, since time.Time) ([]processor.Setup, error) {
	type target struct{ account, subscription, customer, at string }
	lists, err := billing.OfPlaces(ctx, c.Records, func(at string) ([]processor.Setup, error) {
		return c.setups(ctx, w, processor.ListRequest{At: at, Since: since})
	})
	newest := map[target]processor.Setup{}
	for _, s := range slices.Concat(lists...) {
		t := target{s.Account, s.Subscription, s.Customer, s.At}
		if was, ok := newest[t]; !ok || cmp.Or(s.Card.Made.Compare(was.Card.Made), cmp.Compare(s.ID, was.ID)) > 0 {
			newest[t] = s
		}
	}
	return slices.SortedFunc(maps.Values(newest), func(a, b processor.Setup) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Subscription, b.Subscription),
			cmp.Compare(a.Customer, b.Customer), cmp.Compare(a.At, b.At))
	}), err
}

// setups lists one place. An interrupted listing is begun again.
func (c *Cards) setups(ctx context.Context, w processor.Wallet, r processor.ListRequest) ([]processor.Setup, error) {
	return processor.Ask(ctx, func() (found []processor.Setup, err error) {
		for s, err := range w.Setups(ctx, r) {
			if err != nil {
				return nil, fmt.Errorf("listing the cards that customers entered: %w", err)
			}
			if s.Installation == c.Opened.Installation && billing.CheckMethod(s.Card.Method) == nil && !s.Card.Made.IsZero() {
				s.At, s.Card.Made = r.At, s.Card.Made.UTC().Truncate(time.Millisecond) // the precision of the store
				found = append(found, s)
			}
		}
		return found, nil
	})
}
