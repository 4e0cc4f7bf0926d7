package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// Attach applies the attachment to the account. It checks a customer at the processor, and returns
// ErrNoWallet if the processor keeps none, or ErrInvalid if it does not know the customer or the
// method. A new method takes effect for the subscriptions without one of their own: the next
// payment run tries an open period with it, and past_due subscriptions are active again. After an
// interrupted Attach, the same call finishes it.
func (e *Engine) Attach(ctx context.Context, id string, t billing.Attachment) (*billing.Account, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	if err := e.MayChange(ctx); err != nil {
		return nil, err
	}
	old, err := e.Account(ctx, id)
	if err != nil {
		return nil, err
	}
	payer, err := t.Payer(old.Payer)
	if err != nil {
		return nil, err
	}
	if _, ok := e.proc.(processor.Wallet); !ok && payer != old.Payer {
		return nil, processor.ErrNoWallet
	}
	if p, ok := e.proc.(processor.Platform); ok && payer.At != "" && payer.At != old.Payer.At {
		if err := p.CheckConnected(ctx, payer.At); err != nil { // every run asks all registered ones
			return nil, fmt.Errorf("connected account: %w", err)
		}
	}
	if t.Customer != "" || t.Method != "" {
		if err := e.checkRollbackOf(ctx, id, false); err != nil {
			return nil, err
		}
	}
	method, given, err := e.attached(ctx, old, payer, t)
	if err != nil {
		return nil, err
	}
	fallback, err := e.attachedFallback(ctx, old, payer, method, t)
	if err != nil {
		return nil, err
	}
	a, err := e.ChangeAccount(ctx, id, func(now *billing.Account) error {
		switch {
		case now.Payer == payer && now.Method == method && now.Given.Equal(given) && now.Fallback == fallback:
			return billing.ErrUnchanged // as before, or landed with a lost answer
		case now.Payer != old.Payer || now.Method != old.Method || now.Fallback != old.Fallback:
			const overtaken = "account %s was given another customer or payment method meanwhile: %w; look, and attach again"
			return fmt.Errorf(overtaken, id, billing.ErrState)
		}
		now.Payer, now.Method, now.Given, now.Fallback = payer, method, given, fallback
		return nil
	}, e.RegisterPlace(payer)...)
	if err != nil {
		return nil, err
	}
	if t.Customer == "" && t.Method == "" {
		return a, nil
	}
	if err := e.spread(ctx, id, true); err != nil {
		const unfinished = "account %s has its payment method, but not all of its subscriptions could be told: %w; " +
			"attach again to finish"
		return a, fmt.Errorf(unfinished, id, err)
	}
	return a, nil
}

// attached returns the account's new method, and the time at which it was given.
func (e *Engine) attached(ctx context.Context, old *billing.Account, payer processor.Payer,
	t billing.Attachment) (string, time.Time, error) {
	switch {
	case t.Customer == "" && t.Method == "" && payer.At != old.Payer.At:
		return "", e.Now(), nil // the old method is of no use there
	case t.Customer == "" && t.Method == "":
		return old.Method, old.Given, nil
	case payer.Customer == "":
		return t.Method, e.Now(), nil // a plain token: its first charge shows whether it works
	}
	card, err := e.ownCard(ctx, payer, t.Method)
	return card.Method, e.Now(), err
}

// attachedFallback returns the account's new fallback. That of another payer is of no use.
func (e *Engine) attachedFallback(ctx context.Context, old *billing.Account, payer processor.Payer, method string,
	t billing.Attachment) (string, error) {
	fallback := old.Fallback
	switch {
	case t.Fallback != nil:
		fallback = *t.Fallback
	case !payer.Same(old.Payer):
		fallback = ""
	}
	if t.Fallback != nil && fallback != "" && payer.Customer != "" {
		card, err := e.ownCard(ctx, payer, fallback)
		if err != nil {
			return "", fmt.Errorf("fallback: %w", err)
		}
		fallback = card.Method
	}
	if fallback != "" && fallback == method {
		return "", billing.Invalid("fallback", "is the account's payment method: want another one, or none")
	}
	return fallback, nil
}

// ownCard attaches the method to the customer, and returns its card.
func (e *Engine) ownCard(ctx context.Context, payer processor.Payer, method string) (processor.Card, error) {
	w, ok := e.proc.(processor.Wallet)
	if !ok {
		return processor.Card{}, processor.ErrNoWallet
	}
	card, err := w.Attach(ctx, payer, method)
	if err == nil {
		err = billing.CheckMethod(card.Method)
	}
	return card, err
}

// customer returns the account with a customer at the processor, and makes one if it has none. If
// two processes make one at the same time, one of them stays unused.
func (e *Engine) customer(ctx context.Context, w processor.Wallet, a *billing.Account) (*billing.Account, error) {
	if a.Payer.Customer != "" {
		return a, nil
	}
	key := billing.HashKey("customer", e.Opened.Installation, a.ID, a.Payer.At, a.Email)
	r := processor.CustomerRequest{Key: key, At: a.Payer.At, Installation: e.Opened.Installation, Account: a.ID,
		Email: a.Email}
	made, err := w.MakeCustomer(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := billing.CheckID("customer", made); err != nil {
		return nil, err
	}
	return e.ChangeAccount(ctx, a.ID, func(now *billing.Account) error {
		switch {
		case now.Payer.At != r.At:
			return fmt.Errorf("account %s was attached elsewhere meanwhile: %w; ask again", a.ID, billing.ErrState)
		case now.Payer.Customer != "":
			return billing.ErrUnchanged
		}
		now.Payer.Customer, now.Fallback = made, "" // a token that is not the new customer's
		return nil
	}, e.RegisterPlace(a.Payer)...)
}

// AccountCard returns the card of the account's payment method. It returns ErrNoWallet if the
// processor keeps no cards, store.ErrNotFound without a method, or the processor's error.
func (e *Engine) AccountCard(ctx context.Context, id string) (processor.Card, error) {
	w, ok := e.proc.(processor.Wallet)
	if !ok {
		return processor.Card{}, processor.ErrNoWallet
	}
	a, err := e.Account(ctx, id)
	if err != nil {
		return processor.Card{}, err
	}
	if a.Method == "" {
		return processor.Card{}, fmt.Errorf("payment method of account %s: %w", id, store.ErrNotFound)
	}
	return w.Card(ctx, a.Payer.At, a.Method)
}

// cardOf returns the card for the subscription's charges; false: none, or the processor is silent.
func (e *Engine) cardOf(ctx context.Context, s *billing.Subscription) (processor.Card, bool) {
	w, ok := e.proc.(processor.Wallet)
	if !ok {
		return processor.Card{}, false
	}
	method, payer, err := e.methodOf(ctx, s)
	if err != nil || method == "" {
		return processor.Card{}, false
	}
	card, err := w.Card(ctx, payer.At, method)
	if err != nil {
		e.Log.DebugContext(ctx, "no card to tell of", "subscription", s.Name.String(), "error", err)
		return processor.Card{}, false
	}
	return card, true
}

// cardName describes the card of the open period's method to people; "": the processor does not.
func (e *Engine) cardName(ctx context.Context, o *billing.OpenPeriod) string {
	if w, ok := e.proc.(processor.Wallet); ok {
		if card, err := w.Card(ctx, o.Payer.At, o.Method); err == nil {
			return card.String()
		}
	}
	return ""
}

// passing reports whether the same question may be answered later.
func passing(err error) bool {
	return !processor.Definite(err) && !errors.Is(err, processor.ErrNoWallet) && !errors.Is(err, billing.ErrState) &&
		!errors.Is(err, store.ErrNotFound)
}

// methodOf returns the method and the payer of the subscription's next period: its own token, or
// its account's, or "". The account is not read if the subscription has a token and the processor
// keeps no customers, since no payer is needed then.
func (e *Engine) methodOf(ctx context.Context, s *billing.Subscription) (method string, p processor.Payer, err error) {
	if _, ok := e.proc.(processor.Wallet); !ok && s.Method != "" {
		return s.Method, p, nil
	}
	a, err := e.Account(ctx, s.Account)
	if errors.Is(err, store.ErrNotFound) {
		return s.Method, p, nil
	}
	if err != nil {
		return "", p, err
	}
	return cmp.Or(s.Method, a.Method), a.Payer, nil
}
