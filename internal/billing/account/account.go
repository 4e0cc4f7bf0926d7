// Package account creates and changes accounts, and updates the copies of their values on
// subscriptions and receipts.
//
// It does not handle payment methods, which package wallet attaches, and makes no decision about
// charges.
package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Check returns a FieldError for each wrong field of a new account as one error, or nil.
func Check(id string, a billing.Account) error {
	return errors.Join(errors.Join(party.Check(a.Details, billing.CheckText)...), billing.CheckID("account", id), billing.CheckEmail(a.Email), billing.CheckName(a.Name),
		billing.CheckGiven(a.TimeZone, billing.CheckZone), billing.CheckGiven(a.Locale, billing.CheckLocale))
}

// Create stores a new account with the Email, Name, Details, Locale and TimeZone of a, and returns the
// account. Only Email is required. Create returns billing.ErrExists if the account exists.
func Create(ctx context.Context, r *billing.Records, id string, a billing.Account) (*billing.Account, error) {
	if err := Check(id, a); err != nil {
		return nil, err
	}
	if err := r.MayChange(ctx); err != nil {
		return nil, err
	}
	made := &billing.Account{ID: id, Email: a.Email, Name: a.Name, Details: a.Details, TimeZone: a.TimeZone, Locale: a.Locale, Created: r.Now(), Version: 1}
	err := r.Commit(ctx, store.Put(r.Table, made.Item(), store.Absent()))
	if errors.Is(err, store.ErrConflict) && !call.Of(ctx).Stored() {
		return nil, fmt.Errorf("account %s %w", id, billing.ErrExists)
	}
	return made, err
}

// A Change contains an account's new values. A nil field leaves the value unchanged.
type Change struct {
	Email    *string
	Locale   *string // language of the mail to the account; "" for English
	Name     *string // name of the customer; "" if not known
	Details  party.Change
	TimeZone *string // zone whose calendar days decide when subscriptions are charged from now on
}

// Check returns a FieldError for each wrong field as one error, or nil.
func (c Change) Check() error {
	changed := func(text *string, check func(string) error) error {
		if text == nil {
			return nil
		}
		return check(*text)
	}
	var details party.Details
	party.Apply(&details, c.Details)
	return errors.Join(errors.Join(party.Check(details, billing.CheckText)...), changed(c.Email, billing.CheckEmail), changed(c.TimeZone, billing.CheckZone),
		changed(c.Name, billing.CheckName), changed(c.Locale, func(locale string) error { return billing.CheckGiven(locale, billing.CheckLocale) }))
}

// Update changes the account and its copies, which are the address on subscriptions and receipts
// and the zone on subscriptions. A new or repeated address removes the bounce mark. The account is
// marked as copying until every copy is updated. A second call with the same change finishes an
// interrupted update.
func Update(ctx context.Context, r *billing.Records, id string, c Change) (*billing.Account, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if err := r.MayChange(ctx); err != nil {
		return nil, err
	}
	if row, err := call.Begin(ctx, r.Store, nil); err != nil {
		return nil, err
	} else if row != nil {
		return finish(ctx, r, id)
	}
	_, err := Edit(ctx, r, id, func(a *billing.Account) error {
		if c.Email != nil {
			a.Email, a.Bounced = *c.Email, billing.Bounce{}
		}
		a.TimeZone, a.Locale, a.Name = *cmp.Or(c.TimeZone, &a.TimeZone), *cmp.Or(c.Locale, &a.Locale), *cmp.Or(c.Name, &a.Name)
		if c.Details != (party.Change{}) {
			party.Apply(&a.Details, c.Details)
			if all := party.Check(a.Details, billing.CheckText); len(all) > 0 { // the tax id may be of another country
				return errors.Join(all...)
			}
		}
		a.Copying, a.Mixed = true, false
		return nil
	})
	if err != nil {
		return nil, err
	}
	return finish(ctx, r, id)
}

// finish updates the copies of a marked account, and removes the mark.
func finish(ctx context.Context, r *billing.Records, id string) (*billing.Account, error) {
	ctx = call.After(ctx) // the account's own commit has the key
	a, err := r.Account(ctx, id)
	if err != nil || !a.Copying {
		return a, err
	}
	for _, prefix := range []string{billing.SubPrefix, billing.RecPrefix} {
		q := store.Query{Table: r.Table, Partition: billing.AccountPK(id), Prefix: prefix}
		for it, err := range r.Store.Query(ctx, q) {
			if err != nil {
				return nil, err
			}
			if err := copyInto(ctx, r, it, a); err != nil {
				return nil, err
			}
		}
	}
	return Edit(ctx, r, id, func(now *billing.Account) error {
		if !now.Copying || now.Email != a.Email || now.TimeZone != a.TimeZone {
			return billing.ErrUnchanged // another call has removed the mark, or updates the copies again
		}
		now.Copying = false
		return nil
	})
}

// Edit commits change and the other writes if the account has not changed since Edit read it, and
// returns the account. Edit calls change once for each try, also after a try with an unknown
// outcome. If change returns billing.ErrUnchanged, Edit writes nothing and returns no error.
// It returns billing.ErrErased for an erased account.
func Edit(ctx context.Context, r *billing.Records, id string, change func(*billing.Account) error,
	others ...store.Write) (a *billing.Account, err error) {
	err = store.Retry(ctx, "account "+id, func() error {
		if err := r.Live(ctx); err != nil {
			return err
		}
		if a, err = r.Account(ctx, id); err != nil {
			return err
		}
		was := a.Raw // change may replace it
		if err = change(a); errors.Is(err, billing.ErrUnchanged) {
			return cmp.Or(call.Store(ctx, r.Store), err)
		}
		if err == nil && a.Erased() != "" {
			err = fmt.Errorf("account %s: %w", id, billing.ErrErased)
		}
		if err != nil {
			return err
		}
		w := a.BumpVersion(r.Table)
		w.Was = was
		if err = r.Commit(ctx, append([]store.Write{w}, others...)...); err == nil {
			a.Raw = w.Item
		}
		return err
	})
	if err != nil && !errors.Is(err, billing.ErrUnchanged) {
		return nil, err
	}
	return a, nil
}

// copyInto writes the account's values into one subscription or receipt whose values differ. The
// commit requires that the account still has these values, because an older change must not replace
// newer copies. A receipt that has expired in the meantime needs no copy.
func copyInto(ctx context.Context, r *billing.Records, it store.Item, a *billing.Account) error {
	n, isSubscription := billing.NameOf(billing.KeyOf(it))
	if !isSubscription && it.Str(schema.Email) == a.Email {
		return nil
	}
	return store.Retry(ctx, it.Str(schema.PK)+" "+it.Str(schema.SK), func() error {
		now, err := r.Account(ctx, a.ID)
		if err != nil {
			return err
		}
		if now.Email != a.Email || now.TimeZone != a.TimeZone {
			return fmt.Errorf("account %s changed again in the meantime: %w", a.ID, billing.ErrState)
		}
		if !isSubscription {
			if _, err = r.Store.Get(ctx, r.Table, billing.KeyOf(it)); errors.Is(err, store.ErrNotFound) {
				return nil
			}
			set := store.NewItem(store.Attribute{Name: schema.Email, Value: store.S(a.Email)})
			return r.Store.Commit(ctx, store.Update(r.Table, billing.KeyOf(it), set, nil), now.UnchangedCheck(r.Table))
		}
		s, err := r.Load(ctx, n)
		if err != nil {
			return err
		}
		if s.Email == a.Email && (s.TimeZone == a.TimeZone || (s.TimeZone == "" && a.TimeZone == "UTC")) {
			return nil
		}
		s.Email, s.TimeZone = a.Email, a.TimeZone
		return r.Put(ctx, s, now.UnchangedCheck(r.Table))
	})
}
