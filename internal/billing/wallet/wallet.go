// Package wallet creates processor customers and payment methods for accounts, and selects the payment
// method and card for a payment.
//
// It does not change subscriptions: package engine applies an account's new method to them, and
// processes the cards that customers enter.
package wallet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// Cards are the payment methods of the accounts in a store, and the accounts' customers at a processor.
type Cards struct {
	*billing.Records
	Processor processor.Charger

	// Check is the rollback check of a command about one account. It must pass before the account
	// is given a customer or a method.
	Check func(ctx context.Context, account string) error
}

// Attach applies the attachment to the account. It checks a customer at the processor, and returns
// ErrNoWallet if the processor keeps none, or ErrInvalid if the processor does not know the customer
// or the method.
func (c *Cards) Attach(ctx context.Context, id string, t billing.Attachment) (*billing.Account, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	if err := c.MayChange(ctx); err != nil {
		return nil, err
	}
	old, err := c.Account(ctx, id)
	if err != nil {
		return nil, err
	}
	payer, err := t.Payer(old.Payer)
	if err != nil {
		return nil, err
	}
	if _, ok := c.Processor.(processor.Wallet); !ok && payer != old.Payer {
		return nil, processor.ErrNoWallet
	}
	if p, ok := c.Processor.(processor.Platform); ok && payer.At != "" && payer.At != old.Payer.At {
		if err := p.CheckConnected(ctx, payer.At); err != nil { // every run asks all registered ones
			return nil, fmt.Errorf("connected account: %w", err)
		}
	}
	if t.GivesMethod() {
		if err := c.Check(ctx, id); err != nil {
			return nil, err
		}
	}
	method, given, err := c.attached(ctx, old, payer, t)
	if err != nil {
		return nil, err
	}
	fallback, err := c.attachedFallback(ctx, old, payer, method, t)
	if err != nil {
		return nil, err
	}
	return account.Edit(ctx, c.Records, id, func(now *billing.Account) error {
		switch {
		case now.Payer == payer && now.Method == method && now.Given.Equal(given) && now.Fallback == fallback:
			return billing.ErrUnchanged // as before, or landed with a lost answer
		case now.Payer != old.Payer || now.Method != old.Method || now.Fallback != old.Fallback:
			const overtaken = "account %s got another customer or payment method in the meantime: %w; check it, then attach again"
			return fmt.Errorf(overtaken, id, billing.ErrState)
		}
		now.Payer, now.Method, now.Given, now.Fallback = payer, method, given, fallback
		return nil
	}, c.RegisterPlace(payer)...)
}

// attached returns the account's new method, and the time at which it was given.
func (c *Cards) attached(ctx context.Context, old *billing.Account, payer processor.Payer,
	t billing.Attachment) (string, time.Time, error) {
	switch {
	case !t.GivesMethod() && payer.At != old.Payer.At:
		return "", c.Now(), nil // the old method is of no use there
	case !t.GivesMethod():
		return old.Method, old.Given, nil
	case payer.Customer == "":
		return t.Method, c.Now(), nil // a plain token: its first charge shows whether it works
	}
	card, err := c.OwnCard(ctx, payer, t.Method)
	return card.Method, c.Now(), err
}

// attachedFallback returns the account's new fallback. That of another payer is of no use.
func (c *Cards) attachedFallback(ctx context.Context, old *billing.Account, payer processor.Payer, method string,
	t billing.Attachment) (string, error) {
	fallback := old.Fallback
	switch {
	case t.Fallback != nil:
		fallback = *t.Fallback
	case !payer.Same(old.Payer):
		fallback = ""
	}
	if t.Fallback != nil && fallback != "" && payer.Customer != "" {
		card, err := c.OwnCard(ctx, payer, fallback)
		if err != nil {
			return "", fmt.Errorf("fallback: %w", err)
		}
		fallback = card.Method
	}
	if fallback != "" && fallback == method {
		return "", billing.Invalid("fallback", "must differ from the account's payment method, or be none")
	}
	return fallback, nil
}

// OwnCard attaches the method to the customer, and returns its card.
func (c *Cards) OwnCard(ctx context.Context, payer processor.Payer, method string) (processor.Card, error) {
	w, ok := c.Processor.(processor.Wallet)
	if !ok {
		return processor.Card{}, processor.ErrNoWallet
	}
	card, err := w.Attach(ctx, payer, method)
	if err == nil {
		err = billing.CheckMethod(card.Method)
	}
	return card, err
}

// Customer returns the account with a customer at the processor, and makes one if it has none. If
// two processes make one at the same time, one of them stays unused.
func (c *Cards) Customer(ctx context.Context, w processor.Wallet, a *billing.Account) (*billing.Account, error) {
	if a.Payer.Customer != "" {
		return a, nil
	}
	key := billing.HashKey("customer", c.Opened.Installation, a.ID, a.Payer.At, a.Email)
	r := processor.CustomerRequest{Key: key, At: a.Payer.At, Installation: c.Opened.Installation, Account: a.ID,
		Email: a.Email}
	made, err := w.MakeCustomer(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := billing.CheckID("customer", made); err != nil {
		return nil, err
	}
	return account.Edit(ctx, c.Records, a.ID, func(now *billing.Account) error {
		switch {
		case now.Payer.At != r.At:
			return fmt.Errorf("account %s was attached elsewhere in the meantime: %w; repeat the command", a.ID, billing.ErrState)
		case now.Payer.Customer != "":
			return billing.ErrUnchanged
		}
		now.Payer.Customer, now.Fallback = made, "" // a token that is not the new customer's
		return nil
	}, c.RegisterPlace(a.Payer)...)
}

// AccountCard returns the card of the account's payment method. It returns ErrNoWallet if the
// processor keeps no cards, store.ErrNotFound without a method, or the processor's error.
func (c *Cards) AccountCard(ctx context.Context, id string) (processor.Card, error) {
	w, ok := c.Processor.(processor.Wallet)
	if !ok {
		return processor.Card{}, processor.ErrNoWallet
	}
	a, err := c.Account(ctx, id)
	if err != nil {
		return processor.Card{}, err
	}
	if a.Method == "" {
		return processor.Card{}, fmt.Errorf("payment method of account %s: %w", id, store.ErrNotFound)
	}
	return w.Card(ctx, a.Payer.At, a.Method)
}

// CardOf returns the card for the subscription's charges. It returns false if there is no card or
// the processor does not answer.
func (c *Cards) CardOf(ctx context.Context, s *billing.Subscription) (processor.Card, bool) {
	w, ok := c.Processor.(processor.Wallet)
	if !ok {
		return processor.Card{}, false
	}
	method, payer, err := c.MethodOf(ctx, s)
	if err != nil || method == "" {
		return processor.Card{}, false
	}
	card, err := w.Card(ctx, payer.At, method)
	if err != nil {
		c.Log.DebugContext(ctx, "the processor reports no card for this mail", "subscription", s.Name.String(), "error", err)
		return processor.Card{}, false
	}
	return card, true
}

// CardName describes the card of the open period's method to people; "": the processor does not.
func (c *Cards) CardName(ctx context.Context, o *billing.OpenPeriod) string {
	if w, ok := c.Processor.(processor.Wallet); ok {
		if card, err := w.Card(ctx, o.Payer.At, o.Method); err == nil {
			return card.String()
		}
	}
	return ""
}

// Passing reports whether the error is temporary, so that the same request may succeed later.
func Passing(err error) bool {
	return !processor.Definite(err) && !errors.Is(err, processor.ErrNoWallet) && !errors.Is(err, billing.ErrState) &&
		!errors.Is(err, store.ErrNotFound)
}

// MethodOf returns the method and the payer of the subscription's next period: its own token, or
// its account's, or "". The account is not read if the subscription has a token and the processor
// keeps no customers, since no payer is needed then.
func (c *Cards) MethodOf(ctx context.Context, s *billing.Subscription) (method string, p processor.Payer, err error) {
	if _, ok := c.Processor.(processor.Wallet); !ok && s.Method != "" {
		return s.Method, p, nil
	}
	a, err := c.Account(ctx, s.Account)
	if errors.Is(err, store.ErrNotFound) {
		return s.Method, p, nil
	}
	if err != nil {
		return "", p, err
	}
	return cmp.Or(s.Method, a.Method), a.Payer, nil
}
