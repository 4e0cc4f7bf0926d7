// Package wallet creates processor customers, card links and payment methods for accounts, lists
// the cards that customers enter, and selects the payment method and card for a payment.
//
// It does not change subscriptions: package engine applies an account's new method to them, and
// processes the entered cards.
package wallet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// Cards manages the payment methods of a store's accounts, and the accounts' customers at a
// processor.
type Cards struct {
	*billing.Records
	Processor processor.Charger

	// Check is the rollback check for a command about one account. It must pass before an account
	// receives a customer or a method.
	Check func(ctx context.Context, account string) error
}

// Attach applies the attachment to the account and returns the account. It checks a customer at the
// processor. It returns ErrNoWallet if the processor keeps no customers, and ErrInvalid if the
// processor does not know the customer or the method.
func (c *Cards) Attach(ctx context.Context, id string, t billing.Attachment) (*billing.Account, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	if err := c.MayChange(ctx); err != nil {
		return nil, err
	}
	if row, err := call.Begin(ctx, c.Store, nil); err != nil {
		return nil, err
	} else if row != nil {
		return c.Account(ctx, id)
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
		if err := p.CheckConnected(ctx, payer.At); err != nil { // every run asks all registered connected accounts
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
			return billing.ErrUnchanged // nothing differs, or an earlier commit succeeded but its answer was lost
		case now.Payer != old.Payer || now.Method != old.Method || now.Fallback != old.Fallback:
			const overtaken = "account %s got another customer or payment method in the meantime: %w; check it, then attach again"
			return fmt.Errorf(overtaken, id, billing.ErrState)
		}
		now.Payer, now.Method, now.Given, now.Fallback = payer, method, given, fallback
		return nil
	}, c.RegisterPlace(payer)...)
}

// attached returns the account's new method and the time at which the account received it.
func (c *Cards) attached(ctx context.Context, old *billing.Account, payer processor.Payer,
	t billing.Attachment) (string, time.Time, error) {
	switch {
	case !t.GivesMethod() && payer.At != old.Payer.At:
		return "", c.Now(), nil // the old method does not work there
	case !t.GivesMethod():
		return old.Method, old.Given, nil
	case payer.Customer == "":
		return t.Method, c.Now(), nil // the first charge shows whether a plain token works
	}
	card, err := c.OwnCard(ctx, payer, t.Method)
	return card.Method, c.Now(), err
}

// attachedFallback returns the account's new fallback method. It drops a fallback that belongs to
// another payer, because the new payer cannot use it.
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

// OwnCard attaches the method to the customer and returns the method's card.
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

// Customer returns the account with its customer at the processor, and creates the customer if the
// account has none. If two processes create a customer at the same time, one of the customers stays
// unused.
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
		now.Payer.Customer, now.Fallback = made, "" // the old fallback is a token that does not belong to the new customer
		return nil
	}, c.RegisterPlace(a.Payer)...)
}

// AccountCard returns the card of the account's payment method. It returns ErrNoWallet if the
// processor keeps no cards, store.ErrNotFound if the account has no method, or the processor's
// error.
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

// CardOf returns the card that pays for the subscription. It returns false if there is no card or
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

// CardName returns a description of the open period's card for human readers, or an empty string if
// the processor does not describe the card.
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

// MethodOf returns the payment method and the payer for the subscription's next period. The method
// is the subscription's own token or the account's method, or an empty string if there is neither.
// If the subscription has a token and the processor keeps no customers, MethodOf does not read the
// account, because no payer is needed.
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
