package person

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/history"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/tracking"
)

// An Erasure tells what Erase did.
type Erasure struct {
	Account   *billing.Account
	Changed   int                // items from which this call took personal data, or would take it
	Invoices  []*billing.Receipt // keep what an invoice must have until they expire
	Customers []string           // at Stripe, which are not erased: <Stripe account>/<customer>
	left      []string           // reasons for which items of a marked account are not erased yet
	again     map[string]bool    // customers of purchases that came after the mark
}

// A RefusedError has all reasons for which an account cannot be erased yet. It is a
// billing.ErrState.
type RefusedError struct {
	Account string
	Reasons []string
}

func (e *RefusedError) Error() string {
	return "account " + e.Account + " cannot be erased: " + strings.Join(e.Reasons, "; ")
}

func (e *RefusedError) Unwrap() error { return billing.ErrState }

const passes = 20 // over the store, of which the last one finds nothing

// Erase takes the personal data out of every item about the account's person. It keeps amounts,
// dates and IDs, and never deletes an item, except for mail that is not sent. It marks the account
// first and changes it last, so a repeated call continues an interrupted one. It returns a
// RefusedError while something about the account is not finished, and records that in the history.
// Once the account is marked, it leaves a new purchase as it is, because the person is a customer
// again, and it first erases everything but what must still be applied. With dry, it writes
// nothing.
func Erase(ctx context.Context, r *billing.Records, account string, dry bool) (*Erasure, error) {
	s, a, err := of(ctx, r, account)
	if err == nil && !dry {
		err = r.MayChange(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := s.mark(ctx, account, dry); err != nil {
		return nil, err
	}
	if !dry {
		ctx = call.After(ctx)
	}
	x := &Erasure{again: map[string]bool{}}
	for pass, before := 0, -1; x.Changed > before && (pass == 0 || !dry); pass++ { // new items may come during a scan
		if pass == passes {
			return nil, fmt.Errorf("account %s: new items about the person are written all the time; erase it again", account)
		}
		before, x.Invoices, x.left = x.Changed, nil, nil
		if err := s.pass(ctx, x, dry); err != nil {
			return nil, err
		}
	}
	if len(x.left) > 0 { // the account must be found by its address again
		return nil, s.refuse(ctx, a, x.left, dry)
	}
	maps.DeleteFunc(s.customers, func(c string, _ bool) bool { return x.again[c] }) // deleting them ends the new subscriptions
	x.Customers = slices.Sorted(maps.Keys(s.customers))
	if a, err = r.Account(ctx, account); err == nil {
		err = s.erase(ctx, x, Item{&r.Tables.RecurringPayments, a.Raw}, dry)
	}
	if err == nil {
		x.Account, err = r.Account(ctx, account)
	}
	return x, err
}

// pass erases each item about the person once, except for the account. It changes the purchases
// after all others, because their customers find events.
func (s *search) pass(ctx context.Context, x *Erasure, dry bool) error {
	var purchases []Item
	for it, err := range s.items(ctx) {
		switch {
		case err != nil:
			return err
		case it.Table == &s.Tables.Tracking.Purchases:
			if p, err := tracking.DecodePurchase(it.Item); err == nil && len(s.reasons(&it)) > 0 {
				x.again[customerOf(p)] = true
			} else {
				purchases = append(purchases, it)
			}
		case len(s.reasons(&it)) > 0 && !billing.IsReversal(it.Item):
			x.left = append(x.left, s.reasons(&it)...)
		case it.Table != &s.Tables.RecurringPayments || kindOf(it.Item) != "":
			x.keeps(it.Item)
			if err := s.erase(ctx, x, it, dry); err != nil {
				return err
			}
		}
	}
	for _, it := range purchases {
		if err := s.erase(ctx, x, it, dry); err != nil {
			return err
		}
	}
	return nil
}

// keeps notes a receipt that keeps what its invoice must have.
func (x *Erasure) keeps(it store.Item) {
	if r, err := billing.DecodeReceipt(it); kindOf(it) == billing.RecPrefix && it.Has(schema.InvoicedTo) && err == nil {
		x.Invoices = append(x.Invoices, r)
	}
}

// check returns a RefusedError while something about the account is not finished.
func (s *search) check(ctx context.Context, a *billing.Account, dry bool) error {
	var reasons []string
	for it, err := range s.items(ctx) {
		if err != nil {
			return err
		}
		reasons = append(reasons, s.reasons(&it)...)
	}
	for it, err := range s.Store.Query(ctx, store.Query{Table: s.Table, Partition: billing.DoubtPK, Prefix: a.ID + "#"}) {
		if err != nil {
			return err
		}
		reasons = append(reasons, it.Str(schema.SK)[len(a.ID)+1:]+" was perhaps paid twice")
	}
	if len(reasons) == 0 {
		return nil
	}
	return s.refuse(ctx, a, reasons, dry)
}

// refuse returns a RefusedError, and records it in the history unless dry.
func (s *search) refuse(ctx context.Context, a *billing.Account, reasons []string, dry bool) error {
	refused := &RefusedError{a.ID, reasons}
	if dry {
		return refused
	}
	why := history.Change{Name: "refused", After: strings.Join(reasons, "; ")}
	return errors.Join(refused, history.Note(ctx, s.Records, &history.Entry{Account: a.ID, What: "account.erasure_refused", Version: a.Version,
		Changes: []history.Change{why}}))
}

// reasons returns why the item's person cannot be erased yet.
func (s *search) reasons(it *Item) (all []string) {
	t := &s.Tables
	add := func(is bool, format string, of ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, of...))
		}
	}
	key := billing.KeyOf(it.Item)
	switch {
	case it.Table == &t.Tracking.Purchases:
		p, err := tracking.DecodePurchase(it.Item)
		for _, id := range slices.Sorted(maps.Keys(p.Subscriptions)) {
			add(p.Subscriptions[id].Status != tracking.SubscriptionTerminated, "subscription %s of purchase %s is %s", id, p.ID, p.Subscriptions[id].Status)
		}
		add(err == nil && s.Now().Sub(p.Created) < 24*time.Hour, "purchase %s is less than a day old", p.ID)
	case it.Table == &t.Tracking.Events:
		e, err := tracking.DecodeEvent(it.Item)
		add(err == nil && e.Status == tracking.Received, "event %s waits to be applied", e.ID)
	case it.Table == &t.RecurringPayments && kindOf(it.Item) == billing.SubPrefix:
		x, err := billing.DecodeSubscription(it.Item)
		if add(err != nil, "subscription %s cannot be read", key.SK); err == nil {
			add(!x.Over(), "subscription %s is %s", x.Name, x.Status)
			add(x.Open != nil, "a period of subscription %s is open", x.Name)
			add(x.Requested != "" || x.Collect > 0, "a request about subscription %s is not finished", x.Name)
		}
	case it.Table == &t.RecurringPayments && billing.IsReversal(it.Item):
		x, err := billing.DecodeReversal(it.Item)
		if add(err != nil, "refund or dispute %s cannot be read", key.SK); err == nil {
			add(!x.State.Final(), "%s %s is %s", x.Kind, x.ReversalID, x.State)
		}
	}
	return all
}

// ListPK is the partition with the accounts that were erased: each item has the account's ID and
// the day.
const ListPK = "ERASED"

// listed returns the put of the account's item in the list.
func (s *search) listed(account string) store.Write {
	day := store.Attribute{Name: schema.ErasedDate, Value: store.S(s.Today().String())}
	return store.Put(s.Table, billing.ItemAt(store.Key{PK: ListPK, SK: account}, day))
}

// mark checks the account and marks it as erased, unless it is marked. A new subscription changes
// the account's version, so none can come between the check and the mark.
func (s *search) mark(ctx context.Context, account string, dry bool) error {
	return store.Retry(ctx, "account "+account, func() error {
		_, err := call.Begin(ctx, s.Store, nil)
		a, rerr := s.Account(ctx, account)
		if err = cmp.Or(err, rerr); err != nil {
			return err
		}
		if a.Erased() != "" {
			if dry {
				return nil
			}
			return call.Store(ctx, s.Store)
		}
		if err := s.check(ctx, a, dry); err != nil || dry {
			return err
		}
		now := a.Raw.Clone()
		now.Set(schema.ErasedDate, store.S(s.Today().String()))
		now.Set(schema.Version, store.Int(a.Version+1))
		return s.Commit(ctx, store.Rewrite(s.Table, a.Raw, now, a.Unchanged()), s.listed(account))
	})
}

// erase takes the personal data out of the item, and counts it if there is any.
func (s *search) erase(ctx context.Context, x *Erasure, it Item, dry bool) (err error) {
	key, changed := it.Table.KeyOf(it.Item), 0
	err = store.Retry(ctx, "erasing a person's data", func() error {
		if it.Item == nil {
			if it.Item, err = s.Store.Get(ctx, it.Table.Name, key); err != nil {
				return billing.IgnoreNotFound(err)
			}
		}
		w, is, err := s.without(&it)
		it.Item = nil
		if err != nil || !is {
			return err
		}
		if changed = 1; dry {
			return nil
		}
		if w.Was != nil {
			return s.Commit(ctx, w) // with its lookup rows and history
		}
		return s.Store.Commit(ctx, w)
	})
	x.Changed += changed
	return err
}

// without returns the write that takes the personal data out of the item, or false if there is
// none.
func (s *search) without(it *Item) (w store.Write, is bool, err error) {
	was := it.Item
	switch it.Table {
	case &s.Tables.Outbox:
		unclaimed := billing.Unchanged(schema.Until, was.Get(schema.Until))
		if w = store.Delete(it.Table.Name, billing.KeyOf(was), unclaimed); was.Str(schema.Sums) != "" { // not counted yet
			sum := was.Clone()
			sum.Set(schema.Kind, store.S(outbox.KindSum))
			sum.Set(schema.Data, store.M(nil))
			sum.Remove(schema.LastError)
			w = store.Put(it.Table.Name, sum, unclaimed, store.AttributeEquals(schema.Sums, was.Get(schema.Sums)))
		}
		return w, true, nil
	case &s.Tables.Tracking.Purchases:
		return tracking.ErasePurchase(it.Table.Name, was, s.Now())
	case &s.Tables.Tracking.Events:
		return tracking.EraseEvent(it.Table.Name, was)
	}
	now := bare(was)
	if now.Equal(was) {
		return w, false, nil
	}
	for _, a := range billing.NextVersion(was) {
		if kindOf(was) == "" || kindOf(was) == billing.SubPrefix {
			now.Set(a.Name, a.Value)
			return store.Rewrite(s.Table, was, now, store.AttributeEquals(a.Name, was.Get(a.Name))), true, nil
		}
	}
	changes := store.Rewrite(s.Table, was, now)
	set, remove := changes.Differences()
	w = store.Update(s.Table, billing.KeyOf(was), set, remove)
	for _, a := range was {
		if set.Has(a.Name) || slices.Contains(remove, a.Name) {
			w.If = append(w.If, store.AttributeEquals(a.Name, a.Value))
		}
	}
	return w, true, nil
}
