// Package history records who changed an account or its subscriptions, and how. Each commit that belongs to
// a call also writes a row, which expires.
//
// It does not record what the charge protocol does, which receipts and period records show.
package history

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// An Entry is one change by a person, a program or an event.
type Entry struct {
	Account      string
	Subscription string // "" for a change of the account itself
	Actor        string // such as "user anna", "key shop", "event evt_1" or "stripe seti_1"
	At           time.Time
	What         string // such as subscription.updated
	Version      int64  // of the subscription or account after the change
	Currency     string // of the amounts
	Reason       string // in the customer's words; "" if not given
	Changes      []Change
	Place        string // the row's sort key
}

// A Change is a changed field of the JSON view. A personal field has no values. Amounts are decimal.
type Change struct {
	Name          string
	Personal      bool
	Before, After string // "" if absent
}

// Prefix is the prefix of a row's sort key. The rows are in the account's partition.
const Prefix = "HIS#"

// Keep makes the records' commits write the rows.
func Keep(r *billing.Records) {
	r.Beside = append(r.Beside, func(ctx context.Context, was, now store.Item, others []store.Write) ([]store.Write, error) {
		c := call.Of(ctx)
		if c == nil || c.Actor == "" {
			return nil, nil
		}
		e := entryOf(was, now, others)
		if len(e.Changes) == 0 {
			return nil, nil
		}
		e.Reason = c.Reason
		row, err := e.put(ctx, r)
		return []store.Write{row}, err
	})
}

// Note stores an entry about what was refused, with the context's actor and the current time. It commits for no call.
func Note(ctx context.Context, r *billing.Records, e *Entry) error {
	return store.Retry(ctx, "history", func() error {
		row, err := e.put(ctx, r)
		if err != nil {
			return err
		}
		return r.Store.Commit(ctx, row)
	})
}

// Agree stores what the customer has agreed to, each entry once for the context's call. The rows do not expire,
// because a bank may ask for them as long as the subscription lasts.
func Agree(ctx context.Context, r *billing.Records, entries []*Entry) error {
	const most = 50 // a commit's writes are limited
	var rows []store.Write
	for _, e := range entries {
		row, err := e.put(ctx, r)
		if err != nil {
			return err
		}
		row.Item.Remove(schema.TTL)
		rows = append(rows, row)
	}
	for some := range slices.Chunk(rows, most) {
		if err := store.Retry(ctx, "history", func() error { return call.Commit(ctx, r.Store, some...) }); err != nil {
			return err
		}
	}
	return nil
}

// put returns the put of the entry's row, with the context's actor and the current time.
func (e *Entry) put(ctx context.Context, r *billing.Records) (store.Write, error) {
	kept, err := settings.Read(ctx, r)
	e.Actor, e.At = "duesday", r.Now()
	if c := call.Of(ctx); c != nil && c.Actor != "" {
		e.Actor = c.Actor
	}
	return store.Put(r.Table, e.item(e.At.AddDate(0, kept.HistoryMonths, 0)), store.Absent()), err
}

// entryOf compares the items, and derives What from the commit's other writes.
func entryOf(was, now store.Item, others []store.Write) *Entry {
	key := billing.KeyOf(now)
	n, isSub := billing.NameOf(key)
	e := &Entry{Account: billing.AccountOf(key.PK), Subscription: n.ID, Version: now.Int(schema.Version)}
	noun, fields := "account", accountFields[:]
	if isSub {
		noun, fields = "subscription", subscriptionFields[:]
		e.Currency = now.Get(schema.PaymentDetails).Map().Str(schema.Currency)
	}
	e.What = noun + ".updated"
	if len(was) == 0 {
		e.What = noun + ".created"
	}
	for _, f := range fields {
		if before, after := f.text(was), f.text(now); before != after {
			c := Change{Name: f.name, Personal: f.personal}
			if !f.personal {
				c.Before, c.After = before, after
			}
			e.Changes = append(e.Changes, c)
		}
	}
	for i := range others {
		it := others[i].Item
		switch {
		case billing.IsReversal(it):
			e.What, e.Subscription, e.Currency = "refund.created", it.Str(schema.Subscription), it.Str(schema.Currency)
			e.Changes = append(e.Changes, Change{Name: "amount", After: it.Str(schema.Amount)},
				Change{Name: "period", After: text(it.Get(schema.Period))})
		case strings.HasPrefix(it.Str(schema.SK), billing.RecPrefix):
			e.What = "receipt.created"
		case others[i].Op == store.OpDelete && others[i].Key.PK == billing.DoubtPK:
			if d, err := billing.DecodeDoubt(billing.ItemAt(others[i].Key)); err == nil {
				e.Changes = append(e.Changes, Change{Name: "perhaps_paid_twice", Before: strconv.Itoa(d.Period)})
			}
		}
	}
	return e
}

// Attributes of a change in a row.
const (
	before = "before"
	after  = "after"
)

// changed is the value of a personal change.
const changed = "changed"

func (e *Entry) item(expires time.Time) store.Item {
	changes := store.Item{}
	for _, c := range e.Changes {
		v := store.S(changed)
		if !c.Personal {
			both := store.Item{}
			for name, text := range map[string]string{before: c.Before, after: c.After} {
				if text != "" {
					both.Set(name, store.S(text))
				}
			}
			v = store.M(both)
		}
		changes.Set(c.Name, v)
	}
	at := billing.Stamp(e.At)
	it := billing.ItemAt(store.Key{PK: billing.AccountPK(e.Account), SK: fmt.Sprintf("%s%s#%09d-%s", Prefix, at, e.Version, rand.Text()[:10])},
		store.Attribute{Name: schema.Actor, Value: store.S(e.Actor)}, store.Attribute{Name: schema.CreatedDate, Value: store.S(at)},
		store.Attribute{Name: schema.Kind, Value: store.S(e.What)}, store.Attribute{Name: schema.Changes, Value: store.M(changes)},
		store.Attribute{Name: schema.Version, Value: store.Int(e.Version)},
		store.Attribute{Name: schema.TTL, Value: store.Int(expires.Unix())})
	for name, text := range map[string]string{schema.Subscription: e.Subscription, schema.Currency: e.Currency, schema.Note: e.Reason} {
		if text != "" {
			it.Set(name, store.S(text))
		}
	}
	return it
}

// Decode reads a row.
func Decode(it store.Item) (*Entry, error) {
	key := billing.KeyOf(it)
	e := &Entry{Account: billing.AccountOf(key.PK), Place: key.SK, Subscription: it.Str(schema.Subscription),
		Actor: it.Str(schema.Actor), At: billing.ParseStamp(it.Str(schema.CreatedDate)), What: it.Str(schema.Kind),
		Version: it.Int(schema.Version), Currency: it.Str(schema.Currency), Reason: it.Str(schema.Note)}
	if e.At.IsZero() || e.Actor == "" {
		return nil, fmt.Errorf("%s %s is not a row of the history: %w", key.PK, key.SK, store.ErrFormat)
	}
	for _, a := range it.Get(schema.Changes).Map() {
		both := a.Value.Map()
		e.Changes = append(e.Changes, Change{Name: a.Name, Personal: a.Value.Str() == changed,
			Before: both.Str(before), After: both.Str(after)})
	}
	return e, nil
}

// Of yields the changes of an account, or only of one of its subscriptions, newest first. It starts after
// the Entry at place, or with the newest if place is "".
func Of(ctx context.Context, r *billing.Records, account, subscription, place string) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		q := store.Query{Table: r.Table, Partition: billing.AccountPK(account), Prefix: Prefix, Reverse: true}
		if place != "" {
			q.After = store.Cursor{Key: store.Key{PK: q.Partition, SK: place}}
		}
		for it, err := range r.Store.Query(ctx, q) {
			if err != nil {
				yield(nil, err)
				return
			}
			if subscription != "" && it.Str(schema.Subscription) != subscription {
				continue
			}
			if e, err := Decode(it); !yield(e, err) {
				return
			}
		}
	}
}

// A field is a field of the JSON view, and its place in an item.
type field struct {
	name     string // in the view
	at       string // attribute
	in       string // map attribute that contains it; "" for the item itself
	personal bool   // identifies the customer or a payment method
}

// accountFields contains the fields of an account's item.
var accountFields = [...]field{{name: "address.city", at: "city", in: schema.BillingDetails, personal: true},
	{name: "address.country", at: "country", in: schema.BillingDetails, personal: true},
	{name: "address.line1", at: "address_line1", in: schema.BillingDetails, personal: true},
	{name: "address.line2", at: "address_line2", in: schema.BillingDetails, personal: true},
	{name: "address.postal_code", at: "postal_code", in: schema.BillingDetails, personal: true},
	{name: "address.state", at: "state", in: schema.BillingDetails, personal: true}, {name: "application_fee", at: schema.ApplicationFee},
	{name: "bounced", at: schema.EmailBounced, personal: true},
	{name: "company", at: "company", in: schema.BillingDetails, personal: true}, {name: "connected_account", at: schema.ProcessorAccount},
	{name: "customer", at: schema.Customer, personal: true}, {name: "email", at: schema.Email, personal: true},
	{name: "erased_on", at: schema.ErasedDate},
	{name: "fallback_payment_method", at: schema.Fallback, personal: true}, {name: "link_epoch", at: schema.LinkEpoch}, {name: "locale", at: schema.Locale},
	{name: "name", at: schema.Name, personal: true}, {name: "payment_method", at: schema.PaymentMethod, personal: true},
	{name: "tax_id", at: "tax_id", in: schema.BillingDetails, personal: true}, {name: "time_zone", at: schema.TimeZone}}

// subscriptionFields contains the fields of a subscription's item.
var subscriptionFields = [...]field{{name: "address", at: schema.DefaultAddress, in: schema.PaymentDetails, personal: true},
	{name: "amount", at: schema.PaymentAmount}, {name: "cancel_at_period_end", at: schema.CancelAtEnd},
	{name: "collection", at: schema.CollectionMethod}, {name: "currency", at: schema.Currency, in: schema.PaymentDetails},
	{name: "discount", at: "discount", in: schema.PriceTerms}, {name: "discount_from", at: "discount_from", in: schema.PriceTerms},
	{name: "discount_periods", at: "discount_periods", in: schema.PriceTerms},
	{name: "email", at: schema.Email, personal: true}, {name: "installments", at: schema.Installments},
	{name: "interval", at: schema.Interval}, {name: "manual.amount", at: schema.Amount, in: schema.Manual},
	{name: "manual.period", at: schema.Period, in: schema.Manual}, {name: "next_payment_date", at: schema.NextPaymentDate},
	{name: "next_reminder_date", at: schema.NextReminderDate}, {name: "paid_periods", at: schema.Paid},
	{name: "parked", at: schema.Parked}, {name: "paused_on", at: schema.PausedDate}, {name: "payment_day", at: schema.PaymentDay},
	{name: "payment_method", at: schema.PaymentMethod, in: schema.PaymentDetails, personal: true},
	{name: "pending.amount", at: schema.Amount, in: schema.Pending}, {name: "pending.from", at: schema.FromDate, in: schema.Pending},
	{name: "pending.quantity", at: schema.Quantity, in: schema.Pending},
	{name: "pending.sku", at: schema.SKU, in: schema.Pending}, {name: "period", at: schema.Period},
	{name: "quantity", at: "quantity", in: schema.PriceTerms},
	{name: "reminder_days", at: schema.ReminderDays}, {name: "requested", at: schema.Requested}, {name: "sku", at: schema.SKU},
	{name: "status", at: schema.Status}, {name: "tax.country", at: "tax_country", in: schema.PriceTerms},
	{name: "tax.mode", at: "tax", in: schema.PriceTerms}, {name: "tax.note", at: "tax_note", in: schema.PriceTerms},
	{name: "tax.rate", at: "tax_rate", in: schema.PriceTerms}, {name: "time_zone", at: schema.TimeZone}, {name: "trial_ends", at: schema.TrialEnds},
	{name: "upgrade.amount", at: schema.Amount, in: schema.Upgrade}, {name: "upgrade.date", at: schema.DueDate, in: schema.Upgrade},
	{name: "upgrade.detail", at: schema.Reason, in: schema.Upgrade}, {name: "upgrade.period", at: schema.Period, in: schema.Upgrade},
	{name: "upgrade.sku", at: schema.SKU, in: schema.Upgrade}}

// text returns the field's value, or "" if the item does not have it.
func (f *field) text(it store.Item) string {
	if f.in != "" {
		it = it.Get(f.in).Map()
	}
	s := text(it.Get(f.at))
	if f.at == schema.NextPaymentDate || f.at == schema.NextReminderDate {
		s = billing.IndexDate(s) // without its shard
	}
	return s
}

func text(v store.Value) string {
	switch v.Kind() {
	case store.KindNumber:
		n, _ := v.Int64()
		return strconv.FormatInt(n, 10)
	case store.KindBool:
		return strconv.FormatBool(v.Bool())
	case store.KindMap:
		var parts []string
		for _, a := range v.Map() {
			parts = append(parts, a.Name+"="+text(a.Value))
		}
		slices.Sort(parts)
		return strings.Join(parts, " ")
	}
	return v.Str()
}
