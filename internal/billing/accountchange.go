package billing

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// CreateAccount stores a new account, or returns ErrExists. It takes Email, Name, Locale and TimeZone of
// a, of which all but Email may be "".
func (e *Records) CreateAccount(ctx context.Context, id string, a Account) (*Account, error) {
	if err := cmp.Or(CheckID("account", id), CheckEmail(a.Email), CheckName(a.Name), given(a.TimeZone, checkZone),
		given(a.Locale, CheckLocale)); err != nil {
		return nil, err
	}
	if err := e.MayChange(ctx); err != nil {
		return nil, err
	}
	made := &Account{ID: id, Email: a.Email, Name: a.Name, TimeZone: a.TimeZone, Locale: a.Locale, Created: e.Now(), Version: 1}
	err := e.Store.Commit(ctx, store.Put(e.Table, made.Item(), store.Absent()))
	if errors.Is(err, store.ErrConflict) {
		return nil, fmt.Errorf("account %s %w", id, ErrExists)
	}
	return made, err
}

// An AccountChange has an account's new values. Nil fields stay as they are.
type AccountChange struct {
	Email    *string
	Locale   *string // of its mail; "" for English
	Name     *string // of the customer; "": not known
	TimeZone *string // its subscriptions are charged by the days of this zone from now on
}

func (c AccountChange) check() error {
	changed := func(text *string, check func(string) error) error {
		if text == nil {
			return nil
		}
		return check(*text)
	}
	return cmp.Or(changed(c.Email, CheckEmail), changed(c.TimeZone, checkZone), changed(c.Name, CheckName),
		changed(c.Locale, func(locale string) error { return given(locale, CheckLocale) }))
}

// UpdateAccount changes the account and its copies: the address on subscriptions and receipts, the
// zone on subscriptions. Any address given takes away the mark of a bounce. The account is marked
// as copying until all copies follow. The same call finishes an interrupted change.
func (e *Records) UpdateAccount(ctx context.Context, id string, c AccountChange) (*Account, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := e.MayChange(ctx); err != nil {
		return nil, err
	}
	a, err := e.ChangeAccount(ctx, id, func(a *Account) error {
		if c.Email != nil {
			a.Email, a.Bounced = *c.Email, Bounce{}
		}
		if c.TimeZone != nil {
			a.TimeZone = *c.TimeZone
		}
		if c.Locale != nil {
			a.Locale = *c.Locale
		}
		if c.Name != nil {
			a.Name = *c.Name
		}
		a.Copying, a.Mixed = true, false
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, prefix := range []string{SubPrefix, RecPrefix} {
		q := store.Query{Table: e.Table, Partition: AccountPK(id), Prefix: prefix}
		for it, err := range e.Store.Query(ctx, q) {
			if err != nil {
				return nil, err
			}
			if err := e.copyInto(ctx, it, a); err != nil {
				return nil, err
			}
		}
	}
	return e.ChangeAccount(ctx, id, func(now *Account) error {
		now.Copying = now.Copying && (now.Email != a.Email || now.TimeZone != a.TimeZone)
		return nil
	})
}

// ChangeAccount commits change and the other writes if the account is still as it was read,
// and returns the account. It calls change once for each try, also after a try with an unknown
// outcome. If change returns ErrUnchanged, nothing is written and the error is nil.
func (e *Records) ChangeAccount(ctx context.Context, id string, change func(*Account) error,
	others ...store.Write) (a *Account, err error) {
	err = store.Retry(ctx, "account "+id, func() error {
		if err := e.Live(ctx); err != nil {
			return err
		}
		if a, err = e.Account(ctx, id); err != nil {
			return err
		}
		if err = change(a); err != nil {
			return err
		}
		w := a.BumpVersion(e.Table)
		if err = e.Store.Commit(ctx, append([]store.Write{w}, others...)...); err == nil {
			a.Raw = w.Item
		}
		return err
	})
	if err != nil && !errors.Is(err, ErrUnchanged) {
		return nil, err
	}
	return a, nil
}

// copyInto writes the account's values into one subscription or receipt with other values. The
// commit requires the account to have these values still: an overtaken change must not replace
// newer copies. A receipt expired meanwhile needs no copy.
func (e *Records) copyInto(ctx context.Context, it store.Item, a *Account) error {
	n, isSubscription := NameOf(KeyOf(it))
	if !isSubscription && it.Str(schema.Email) == a.Email {
		return nil
	}
	return store.Retry(ctx, it.Str(schema.PK)+" "+it.Str(schema.SK), func() error {
		now, err := e.Account(ctx, a.ID)
		if err != nil {
			return err
		}
		if now.Email != a.Email || now.TimeZone != a.TimeZone {
			return fmt.Errorf("account %s changed again in the meantime: %w", a.ID, ErrState)
		}
		if !isSubscription {
			if _, err = e.Store.Get(ctx, e.Table, KeyOf(it)); errors.Is(err, store.ErrNotFound) {
				return nil
			}
			set := store.NewItem(store.Attribute{Name: schema.Email, Value: store.S(a.Email)})
			return e.Store.Commit(ctx, store.Update(e.Table, KeyOf(it), set, nil), now.UnchangedCheck(e.Table))
		}
		s, err := e.Load(ctx, n)
		if err != nil {
			return err
		}
		if s.Email == a.Email && (s.TimeZone == a.TimeZone || (s.TimeZone == "" && a.TimeZone == "UTC")) {
			return nil
		}
		s.Email, s.TimeZone = a.Email, a.TimeZone
		return e.Put(ctx, s, now.UnchangedCheck(e.Table))
	})
}
