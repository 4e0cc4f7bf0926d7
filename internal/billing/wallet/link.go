package wallet

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/processor"
)

// CardLink makes a page on which the account's customer gives a card: for the account, or for one
// subscription ("" for none). It makes the customer at the processor if the account has none. It
// returns ErrNoWallet if the processor keeps no customers. Each link is new, and a secret.
func (c *Cards) CardLink(ctx context.Context, account, subscription string) (processor.CardLink, error) {
	w, ok := c.Processor.(processor.Wallet)
	if !ok {
		return processor.CardLink{}, processor.ErrNoWallet
	}
	a, err := c.Account(ctx, account)
	if err != nil {
		return processor.CardLink{}, fmt.Errorf("account %s: %w", account, err)
	}
	currency, err := c.linkCurrency(ctx, account, subscription)
	if err != nil {
		return processor.CardLink{}, err
	}
	if a, err = c.Customer(ctx, w, a); err != nil {
		return processor.CardLink{}, err
	}
	return w.CardLink(ctx, processor.LinkRequest{Key: billing.HashKey("link", c.Opened.Installation, rand.Text()),
		Payer: a.Payer, Installation: c.Opened.Installation, Account: account, Subscription: subscription,
		Currency: currency})
}

// linkCurrency returns the currency in which the card will be charged first, as far as it is known.
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
	currency := "USD" // as the published model's
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
