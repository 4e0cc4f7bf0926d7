package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
)

// CardLink makes a page by which the account's customer gives a card: for the account, or for
// one subscription ("" for none). It makes the customer at the processor when the account has
// none. ErrNoWallet when the processor keeps no customers. Each call makes a page of its own;
// the links are secrets.
func (e *Engine) CardLink(ctx context.Context, account, subscription string) (billing.CardLink, error) {
	w, ok := e.proc.(billing.Wallet)
	if !ok {
		return billing.CardLink{}, billing.ErrNoWallet
	}
	a, err := e.Account(ctx, account)
	if err != nil {
		return billing.CardLink{}, fmt.Errorf("account %s: %w", account, err)
	}
	currency, err := e.linkCurrency(ctx, account, subscription)
	if err != nil {
		return billing.CardLink{}, err
	}
	if a, err = e.customer(ctx, w, a); err != nil {
		return billing.CardLink{}, err
	}
	return w.CardLink(ctx, billing.LinkRequest{Key: billing.HashKey("link", e.Opened.Installation, rand.Text()), Payer: a.Payer, Installation: e.Opened.Installation,
		Account: account, Subscription: subscription, Currency: currency})
}

// linkCurrency returns the currency that the card will be charged in first, as far as that is
// known.
func (e *Engine) linkCurrency(ctx context.Context, account, subscription string) (string, error) {
	if subscription != "" {
		s, err := e.Subscription(ctx, billing.Name{Account: account, ID: subscription})
		if err != nil {
			return "", err
		}
		if s.Over() {
			return "", fmt.Errorf("subscription %s is %s: %w", s.Name, s.Status, billing.ErrState)
		}
		return s.Amount.Currency().Code(), nil
	}
	currency := "USD" // as the published model's
	for s, err := range e.GetSubscriptionsByAccount(ctx, account) {
		if err != nil {
			return "", err
		}
		if currency = s.Amount.Currency().Code(); !s.Over() {
			break
		}
	}
	return currency, nil
}

// Link returns where the effect's mail leads its reader: to authenticate a payment, or to
// give a card; zero when there is no such place. It is a secret that does not live long, so it is
// made when the mail is delivered and never stored. An error means: ask again later.
func (e *Engine) Link(ctx context.Context, f outbox.Effect) (billing.CardLink, error) {
	link, err := e.link(ctx, f)
	if err != nil && passing(err) {
		return billing.CardLink{}, fmt.Errorf("no link for the mail yet: %w", err)
	}
	if err != nil {
		e.Log.WarnContext(ctx, "a mail goes out without its link", "effect", f.ID, "error", err)
		return billing.CardLink{}, nil
	}
	return link, nil
}

func (e *Engine) link(ctx context.Context, f outbox.Effect) (billing.CardLink, error) {
	switch f.Kind {
	case noticeAction:
		if e.proc == nil || f.Data[outbox.DataRef] == "" {
			return billing.CardLink{}, nil
		}
		in, err := e.proc.Lookup(ctx, f.Data[outbox.DataRef])
		return billing.CardLink{URL: in.Link}, err
	case noticeDeclined, noticeFailed:
	case noticeReminder:
		if f.Data[outbox.DataCardExpired] == "" && f.Data[outbox.DataNoMethod] == "" {
			return billing.CardLink{}, nil
		}
	default:
		return billing.CardLink{}, nil
	}
	account, subscription := f.Data[outbox.DataAccount], f.Data[outbox.DataSubscription]
	if e.cfg.CardURL != "" {
		return billing.CardLink{URL: fill(e.cfg.CardURL, account, subscription)}, nil
	}
	if _, ok := e.proc.(billing.Wallet); !ok || e.cfg.NoLinks {
		return billing.CardLink{}, nil
	}
	s, err := e.Load(ctx, billing.Name{Account: account, ID: subscription, SKU: f.Data[outbox.DataSKU]})
	if errors.Is(err, store.ErrNotFound) || (err == nil && s.Over()) {
		return billing.CardLink{}, nil
	}
	if err != nil {
		return billing.CardLink{}, err
	}
	if s.Method == "" {
		subscription = "" // it is the account's card that is used
	}
	return e.CardLink(ctx, account, subscription)
}

// fill puts the ids into the merchant's URL.
func fill(template, account, subscription string) string {
	return strings.NewReplacer("{account}", url.QueryEscape(account), "{subscription}", url.QueryEscape(subscription)).Replace(template)
}
