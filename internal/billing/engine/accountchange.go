package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// CreateAccount makes an account without a subscription; ErrExists when there is one.
func (e *Engine) CreateAccount(ctx context.Context, id, email, zone string) (*billing.Account, error) {
	if err := billing.CheckID("account", id); err != nil {
		return nil, err
	}
	if err := billing.CheckEmail(email); err != nil {
		return nil, err
	}
	if zone != "" {
		if _, err := civil.Zone(zone); err != nil {
			return nil, billing.Invalid("time_zone", err.Error())
		}
	}
	if err := e.Live(ctx); err != nil {
		return nil, err
	}
	a := &billing.Account{ID: id, Email: email, TimeZone: zone, Created: e.Now(), Version: 1}
	err := e.Store.Commit(ctx, store.Put(e.Table, a.Item(), store.Absent()))
	if errors.Is(err, store.ErrConflict) {
		return nil, fmt.Errorf("account %s %w", id, billing.ErrExists)
	}
	return a, err
}

// An AccountChange is what an account may be changed to; nil fields stay as they are.
type AccountChange struct {
	Email    *string
	TimeZone *string // decides which day it is for its subscriptions from now on
}

// UpdateAccount changes the account and every copy of what it changes: the address on
// subscriptions and receipts, the time zone on subscriptions. The account says so until all
// copies follow, so that a change that was cut off is seen, and done again by asking again.
func (e *Engine) UpdateAccount(ctx context.Context, id string, c AccountChange) (*billing.Account, error) {
	if c.Email != nil {
		if err := billing.CheckEmail(*c.Email); err != nil {
			return nil, err
		}
	}
	if c.TimeZone != nil {
		if _, err := civil.Zone(*c.TimeZone); err != nil {
			return nil, billing.Invalid("time_zone", err.Error())
		}
	}
	a, err := e.changeAccount(ctx, id, func(a *billing.Account) error {
		if c.Email != nil {
			a.Email = *c.Email
		}
		if c.TimeZone != nil {
			a.TimeZone = *c.TimeZone
		}
		a.Copying, a.Mixed = true, false
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, prefix := range []string{billing.SubPrefix, billing.RecPrefix} {
		q := store.Query{Table: e.Table, Partition: billing.AccountPK(id), Prefix: prefix}
		for it, err := range e.Store.Query(ctx, q) {
			if err != nil {
				return nil, err
			}
			if err := e.copyInto(ctx, it, a); err != nil {
				return nil, err
			}
		}
	}
	return e.changeAccount(ctx, id, func(now *billing.Account) error {
		now.Copying = now.Copying && (now.Email != a.Email || now.TimeZone != a.TimeZone)
		return nil
	})
}

// changeAccount decides anew until its commit meets the account as it was read, and returns
// the account as it then is. change may be asked again after a commit of which nobody knows
// whether it landed; errAsIs from it writes nothing and is no error. The writes go into the
// same commit.
func (e *Engine) changeAccount(ctx context.Context, id string, change func(*billing.Account) error, others ...store.Write) (*billing.Account, error) {
	for range store.MaxTries {
		if err := e.Live(ctx); err != nil {
			return nil, err
		}
		a, err := e.Account(ctx, id)
		if err != nil {
			return nil, err
		}
		if err := change(a); errors.Is(err, billing.ErrUnchanged) {
			return a, nil
		} else if err != nil {
			return nil, err
		}
		w := a.BumpVersion(e.Table)
		if err = e.Store.Commit(ctx, append([]store.Write{w}, others...)...); err == nil {
			a.Raw = w.Item
			return a, nil
		} else if !store.Retryable(err) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("account %s: overtaken by others %d times", id, store.MaxTries)
}

// copyInto writes the account's values into one subscription or receipt that differs. The
// account must still have them, or a change that was overtaken would leave old copies behind
// the newer one's. A receipt that has expired meanwhile needs no copy.
func (e *Engine) copyInto(ctx context.Context, it store.Item, a *billing.Account) error {
	n, isSubscription := billing.NameOf(billing.KeyOf(it))
	if !isSubscription && it.Str(schema.Email) == a.Email {
		return nil
	}
	for range store.MaxTries {
		now, err := e.Account(ctx, a.ID)
		if err != nil {
			return err
		}
		if now.Email != a.Email || now.TimeZone != a.TimeZone {
			return fmt.Errorf("account %s was changed again meanwhile: %w", a.ID, billing.ErrState)
		}
		still := store.Check(e.Table, billing.AccountKey(a.ID), now.Unchanged())
		if isSubscription {
			var s *billing.Subscription
			if s, err = e.Load(ctx, n); err != nil {
				return err
			}
			if s.Email == a.Email && (s.TimeZone == a.TimeZone || (s.TimeZone == "" && a.TimeZone == "UTC")) {
				return nil
			}
			s.Email, s.TimeZone = a.Email, a.TimeZone
			err = e.Put(ctx, s, still)
		} else {
			if _, err = e.Store.Get(ctx, e.Table, billing.KeyOf(it)); errors.Is(err, store.ErrNotFound) {
				return nil
			}
			set := store.NewItem(store.Attribute{Name: schema.Email, Value: store.S(a.Email)})
			err = e.Store.Commit(ctx, store.Update(e.Table, billing.KeyOf(it), set, nil), still)
		}
		if !store.Retryable(err) {
			return err
		}
	}
	return fmt.Errorf("%s %s: overtaken by others %d times", it.Str(schema.PK), it.Str(schema.SK), store.MaxTries)
}
