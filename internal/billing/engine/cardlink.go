package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/billing/wallet"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
)

// CardLink makes a page on which the account's customer gives a card: for the account, or for one
// subscription ("" for none). It makes the customer at the processor if the account has none. It
// returns ErrNoWallet if the processor keeps no customers. Each link is new, and a secret.
func (e *Engine) CardLink(ctx context.Context, account, subscription string) (processor.CardLink, error) {
	w, ok := e.proc.(processor.Wallet)
	if !ok {
		return processor.CardLink{}, processor.ErrNoWallet
	}
	a, err := e.Account(ctx, account)
	if err != nil {
		return processor.CardLink{}, fmt.Errorf("account %s: %w", account, err)
	}
	currency, err := e.linkCurrency(ctx, account, subscription)
	if err != nil {
		return processor.CardLink{}, err
	}
	if a, err = e.Cards().Customer(ctx, w, a); err != nil {
		return processor.CardLink{}, err
	}
	return w.CardLink(ctx, processor.LinkRequest{Key: billing.HashKey("link", e.Opened.Installation, rand.Text()),
		Payer: a.Payer, Installation: e.Opened.Installation, Account: account, Subscription: subscription,
		Currency: currency})
}

// linkCurrency returns the currency in which the card will be charged first, as far as it is known.
func (e *Engine) linkCurrency(ctx context.Context, account, subscription string) (string, error) {
	if subscription != "" {
		s, err := e.Subscription(ctx, billing.Name{Account: account, ID: subscription})
		if err != nil {
			return "", err
		}
		if s.Over() {
			return "", wrongStatus(s)
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

// Link returns the link of the effect's mail, by which the customer authenticates a payment or
// gives a card; zero if the mail has none. It is a secret with a short life: it is made when the
// mail is delivered and never stored. After an error the caller should ask again later.
func (e *Engine) Link(ctx context.Context, f outbox.Effect) (processor.CardLink, error) {
	link, err := e.link(ctx, f)
	if err != nil && wallet.Passing(err) {
		return processor.CardLink{}, fmt.Errorf("the mail has no card link yet: %w", err)
	}
	if err != nil {
		e.Log.WarnContext(ctx, "an email is sent without its card link", "effect", f.ID, "error", err)
		return processor.CardLink{}, nil
	}
	return link, nil
}

// link returns the link for the effect's mail, or the zero CardLink if the mail needs none.
func (e *Engine) link(ctx context.Context, f outbox.Effect) (processor.CardLink, error) {
	switch f.Kind {
	case outbox.KindActionRequired:
		if e.proc == nil || f.Data[outbox.DataRef] == "" {
			return processor.CardLink{}, nil
		}
		in, err := e.proc.Lookup(ctx, f.Data[outbox.DataRef])
		return processor.CardLink{URL: in.Link}, err
	case outbox.KindDeclined, outbox.KindFailed, outbox.KindCardExpires:
		if f.Data[outbox.DataPayBy] != "" {
			return processor.CardLink{}, nil
		}
	case outbox.KindReminder:
		if f.Data[outbox.DataCardExpired] == "" && f.Data[outbox.DataNoMethod] == "" {
			return processor.CardLink{}, nil
		}
	default:
		return processor.CardLink{}, nil
	}
	account, subscription := f.Data[outbox.DataAccount], f.Data[outbox.DataSubscription]
	if e.cfg.CardURL != "" {
		ids := strings.NewReplacer("{account}", url.QueryEscape(account), "{subscription}", url.QueryEscape(subscription))
		return processor.CardLink{URL: ids.Replace(e.cfg.CardURL)}, nil
	}
	if _, ok := e.proc.(processor.Wallet); !ok || e.cfg.NoLinks {
		return processor.CardLink{}, nil
	}
	s, err := e.Load(ctx, nameIn(f))
	if err != nil || s.Over() {
		return processor.CardLink{}, billing.IgnoreNotFound(err)
	}
	if s.Method == "" {
		subscription = "" // the account's card is charged
	}
	return e.CardLink(ctx, account, subscription)
}

// nameIn returns the subscription of the effect.
func nameIn(f outbox.Effect) billing.Name {
	return billing.Name{Account: f.Data[outbox.DataAccount], ID: f.Data[outbox.DataSubscription],
		SKU: cmp.Or(f.Data[outbox.DataKeySKU], f.Data[outbox.DataSKU])}
}

// Holder returns the locale and the customer's name of the effect's account, as they are right
// before the delivery; "" if it has none. It returns outbox.ErrPermanent if a mail server has
// refused the effect's address for good.
func (e *Engine) Holder(ctx context.Context, f outbox.Effect) (locale, name string, err error) {
	a, err := e.Account(ctx, f.Data[outbox.DataAccount])
	if _, wrong := errors.AsType[*billing.FieldError](err); wrong {
		return "", "", nil // no account has such an id
	}
	if err != nil {
		return "", "", billing.IgnoreNotFound(err)
	}
	if b := a.Bounced; b.Email != "" && b.Email == f.Data[outbox.DataEmail] {
		return "", "", fmt.Errorf("%w: the mail server permanently refused the address of account %s on %s (%s); "+
			"to set another, use account update --email", outbox.ErrPermanent, a.ID, b.At.UTC().Format(time.DateOnly), b.Code)
	}
	return a.Locale, a.Name, nil
}

// NoteBounce marks the effect's address at its account: no mail is sent to it any more. The mark goes
// with the next change of the account's address.
func (e *Engine) NoteBounce(ctx context.Context, f outbox.Effect, code string) error {
	_, err := account.Edit(ctx, e.Records, f.Data[outbox.DataAccount], func(a *billing.Account) error {
		email := f.Data[outbox.DataEmail]
		if a.Bounced.Email == email || a.Email != email && !a.Mixed { // it has another one by now
			return billing.ErrUnchanged
		}
		a.Bounced = billing.Bounce{Email: email, Code: code, At: e.Now()}
		return nil
	})
	return billing.IgnoreNotFound(err)
}
