package wallet

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/processor"
)

// CardLink creates a page on which the account's customer enters a card for the account, or for one
// subscription if subscription is not empty. If the account has no customer at the processor,
// CardLink creates one. It returns ErrNoWallet if the processor keeps no customers. Each link is
// new and secret, except that a repeated call gets the same link for as long as the processor
// remembers the call's key.
func (c *Cards) CardLink(ctx context.Context, account, subscription string) (processor.CardLink, error) {
	w, ok := c.Processor.(processor.Wallet)
	if !ok {
		return processor.CardLink{}, processor.ErrNoWallet
	}
	if _, err := call.Begin(ctx, c.Store, nil); err != nil {
		return processor.CardLink{}, err
	}
	a, err := c.Account(ctx, account)
	if err != nil {
		return processor.CardLink{}, fmt.Errorf("account %s: %w", account, err)
	}
	if a.Erased() != "" {
		return processor.CardLink{}, fmt.Errorf("account %s: %w", account, billing.ErrErased)
	}
	currency, err := c.linkCurrency(ctx, account, subscription)
	if err != nil {
		return processor.CardLink{}, err
	}
	if a, err = c.Customer(ctx, w, a); err != nil {
		return processor.CardLink{}, err
	}
	if err = call.Store(ctx, c.Store); err != nil {
		return processor.CardLink{}, err
	}
	each := rand.Text()
	if key := call.KeyOf(ctx); key != "" {
		each = "key " + key
	}
	return w.CardLink(ctx, processor.LinkRequest{Key: billing.HashKey("link", c.Opened.Installation, each),
		Payer: a.Payer, Installation: c.Opened.Installation, Account: account, Subscription: subscription,
		Currency: currency})
}

// linkCurrency returns the currency of the card's first charge, as far as it is known.
func (c *Cards) linkCurrency(ctx context.Context, account, subscription string) (string, error) {
	if subscription != "" {
		s, err := c.Subscription(ctx, billing.Name{Account: account, ID: subscription})
		if err != nil {
			return "", err
		}
		if s.Over() {
			return "", fmt.Errorf("subscription %s is %s: %w", s.Name, s.Status, billing.ErrState)
		}
		return s.Amount.Currency().Code(), nil
	}
	currency := "USD" // the currency of the published model
	for s, err := range c.GetSubscriptionsByAccount(ctx, account) {
		if err != nil {
			return "", err
		}
		if currency = s.Amount.Currency().Code(); !s.Over() {
			break
		}
	}
	return currency, nil
}

// Target returns the account or the subscription for which the customer entered the card, as text.
func Target(s processor.Setup) string {
	if s.Subscription == "" {
		return "account " + s.Account
	}
	return "subscription " + s.Account + "/" + s.Subscription
}

// Entered returns the cards that customers have entered since the time, including that time. It
// returns the newest card for each account or subscription, and lists an account before its
// subscriptions. If some places return errors, Entered returns the errors and the cards of the
// other places.
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

// setups lists the entered cards at one place. It starts an interrupted listing again.
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
