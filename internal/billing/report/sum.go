package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/store"
)

// A Kind identifies one of the sums of a quarter and currency.
type Kind string

// The kinds of sums. Recovered is a part of the first two.
const (
	Collected Kind = "collected" // charges
	Outside   Kind = "outside"   // manual payments
	Refunded  Kind = "refunded"  // refunds, and lost disputes
	Declined  Kind = "declined"  // periods, at their first declined attempt, also if they were paid later
	Failed    Kind = "failed"    // periods, when they first ended failed, also if they were paid later
	Recovered Kind = "recovered" // paid after a decline, or after the period had ended failed
)

// Kinds lists all kinds in the order of a report's columns.
var Kinds = [...]Kind{Collected, Outside, Refunded, Declined, Failed, Recovered}

// A Sum is the money of one event, or of a quarter's, by kind; of a refund sent back, negative.
type Sum struct {
	Kind   Kind
	At     time.Time // the beginning of the quarter, UTC
	Amount money.Amount
}

const (
	prefix        = "SUM#"
	quarter       = 15 * time.Minute
	quarterLayout = "2006-01-02T15:04"
	monthLayout   = "2006-01"
)

// SumAt returns the sum of one event.
func SumAt(kind Kind, at time.Time, amount money.Amount) Sum {
	return Sum{kind, at.UTC().Truncate(quarter), amount}
}

// OfReceipt returns what the receipt adds to the sums. An imported one was no event of this store.
func OfReceipt(r *billing.Receipt) []Sum {
	kind := Outside
	switch r.Kind {
	case billing.Imported:
		return nil
	case billing.Charged:
		kind = Collected
	}
	list := []Sum{SumAt(kind, r.Processed, r.Amount)}
	if r.Recovered != "" {
		list = append(list, SumAt(Recovered, r.Processed, r.Amount))
	}
	return list
}

// OfPeriod returns what the end of the period has added to the sums.
func OfPeriod(p *billing.EndedPeriod) []Sum {
	if p.Ending != billing.EndFailed {
		return nil
	}
	return []Sum{SumAt(Failed, p.Ended, p.Amount)}
}

// Recovery returns Receipt.Recovered of a receipt for the period: when it had ended failed. A manual
// payment of another amount notes the one that had failed.
func Recovery(p *billing.EndedPeriod, r *billing.Receipt) string {
	switch {
	case p.Ending != billing.EndFailed:
		return ""
	case p.Amount == r.Amount:
		return billing.Stamp(p.Ended)
	}
	return billing.Stamp(p.Ended) + " " + p.Amount.Decimal()
}

// BeforeReceipt returns what the receipt's period had added to the sums: by its first decline, and by its end, if it
// had ended failed.
func BeforeReceipt(r *billing.Receipt) []Sum {
	list, _ := Parse(r.Declined)
	text, other, _ := strings.Cut(r.Recovered, " ")
	at, amount := billing.ParseStamp(text), r.Amount
	if failed, err := money.Parse(other, amount.Currency()); err == nil {
		amount = failed
	}
	if at.IsZero() {
		return list
	}
	return append(list, SumAt(Failed, at, amount))
}

// OfReversal returns the sums of the record's change from was, which is nil for a new record.
func OfReversal(r, was *billing.ReversalRecord) []Sum {
	now, before := r.State == processor.ReversalSucceeded, was != nil && was.State == processor.ReversalSucceeded
	switch {
	case now && !before:
		return []Sum{SumAt(Refunded, r.Processed, r.Amount)}
	case before && !now:
		return []Sum{SumAt(Refunded, was.Processed, money.New(-was.Amount.Minor(), was.Amount.Currency()))}
	}
	return nil
}

// Text returns the sums as text, or "" if there are none.
func Text(list []Sum) string {
	b := make([]byte, 0, 96)
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.Amount.AppendDecimal(append(append(b, s.Kind...), ' '))
		b = s.At.AppendFormat(append(append(append(b, ' '), s.Amount.Currency().Code()...), ' '), quarterLayout)
	}
	return string(b)
}

// Parse reads such a text.
func Parse(text string) (list []Sum, err error) {
	for one := range strings.SplitSeq(text, ",") {
		f := strings.Fields(one)
		if len(f) != 4 {
			return nil, fmt.Errorf("sum %.60q: must have a kind, an amount, a currency and a time", one)
		}
		at, err := time.Parse(quarterLayout, f[3])
		if err != nil {
			return nil, err
		}
		c, err := money.ParseCurrency(f[2])
		if err != nil {
			return nil, err
		}
		amount, err := money.Parse(f[1], c)
		if err != nil {
			return nil, err
		}
		list = append(list, SumAt(Kind(f[0]), at, amount))
	}
	return list, nil
}

// Key is the key of the item that has the sum.
func (s Sum) Key() store.Key {
	return store.Key{PK: prefix + s.At.Format(monthLayout), SK: s.At.Format(quarterLayout) + "#" + s.Amount.Currency().Code()}
}

// IsSum reports whether the key is of an item with sums.
func IsSum(k store.Key) bool { return strings.HasPrefix(k.PK, prefix) }

// TimeOf returns the quarter of such an item; of an illegible one, its month's beginning, if any.
func TimeOf(it store.Item) time.Time {
	at, _, _ := strings.Cut(it.Str(schema.SK), "#")
	t, err := time.Parse(quarterLayout, at)
	if err != nil {
		t, _ = time.Parse(prefix+monthLayout, it.Str(schema.PK))
	}
	return t
}

// Decode reads such an item. With an error the illegible sums are zero, if their kind can be read.
func Decode(it store.Item) (list []Sum, err error) {
	at, currency, _ := strings.Cut(it.Str(schema.SK), "#")
	amounts := it.Get(schema.Amounts)
	if amounts.Kind() != store.KindMap {
		err = fmt.Errorf("%s is not a map", schema.Amounts)
	}
	for _, a := range amounts.Map() {
		one, wrong := Parse(a.Name + " " + a.Value.Str() + " " + currency + " " + at)
		if a.Value.Str() == tooLarge {
			wrong = fmt.Errorf("%s of the 15 minutes from %s UTC: "+TooLarge, a.Name, at, currency)
		}
		if wrong != nil {
			one, _ = Parse(a.Name + " 0 " + currency + " " + at)
			err = cmp.Or(err, fmt.Errorf("%s: %w", schema.Amounts, wrong))
		}
		list = append(list, one...)
	}
	return list, err
}

// Tally returns the writes that add the sums of the texts to those of the store. They hold only
// while the changed ones are as they were read, and the store has not been moved: its copy has the
// texts or the sums. An illegible text or sum stays as it is: the audit shows both.
func Tally(e *billing.Records) outbox.Tally {
	return func(ctx context.Context, texts []string) ([]store.Write, error) {
		var all []Sum
		for _, text := range texts {
			list, err := Parse(text)
			if err != nil {
				e.Log.WarnContext(ctx, missed, "error", err)
			}
			all = append(all, list...)
		}
		return add(ctx, e, all)
	}
}

const missed = "a sum cannot be read and is missing in reports; to repair it, run verify --repair-sums"

// A Correction is the value that a sum of the store must have, and the item as the audit read it.
type Correction struct {
	Sum
	Was store.Item // nil: it was absent
}

// Correct sets the sums to the values of the corrections, and returns how many have them. It leaves
// an item that has changed since the audit: another audit tells. Calling it again changes nothing.
func Correct(ctx context.Context, e *billing.Records, all []Correction) (done int, err error) {
	amounts := map[store.Key]store.Item{}
	for _, c := range all {
		key := c.Key()
		if amounts[key] == nil {
			amounts[key] = c.Was.Get(schema.Amounts).Map().Clone()
		}
		it := amounts[key]
		it.Set(string(c.Kind), store.S(c.Amount.Decimal()))
		amounts[key] = it
	}
	for _, c := range all {
		key := c.Key()
		want := store.M(amounts[key])
		err := store.Retry(ctx, "correcting the sums", func() error {
			now, err := e.Store.Get(ctx, e.Table, key)
			switch is := now.Get(schema.Amounts); {
			case billing.IgnoreNotFound(err) != nil:
				return err
			case is.Equal(want):
				done++
				return nil
			case !now.Equal(c.Was):
				return nil
			}
			return e.Store.Commit(ctx, put(e, key, now, want), fence(e))
		})
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// put returns the write that gives the item, as it was read, other amounts.
func put(e *billing.Records, key store.Key, was store.Item, amounts store.Value) store.Write {
	it, still := was.Clone(), []store.Condition{billing.Unchanged(schema.Version, was.Get(schema.Version)),
		billing.Unchanged(schema.Amounts, was.Get(schema.Amounts))}
	if len(was) == 0 {
		it, still = billing.ItemAt(key), []store.Condition{store.Absent()}
	}
	it.Set(schema.Amounts, amounts)
	it.Set(schema.Version, store.Int(it.Int(schema.Version)+1))
	return store.Put(e.Table, it, still...)
}

// fence holds while the store has not been moved.
func fence(e *billing.Records) store.Write {
	return store.Check(e.Table, billing.MetaKey, store.AttributeAbsent(schema.Moved))
}

// tooLarge stands for a sum that no amount can hold. It cannot be read, so reports and audits name it.
const tooLarge = "too large"

// TooLarge returns the text for a sum that is too large, in a currency.
const TooLarge = "the sum in %s is larger than an amount can hold, and cannot be repaired while its records exist"

// add returns the writes that add the sums to those of the store.
func add(ctx context.Context, e *billing.Records, all []Sum) (writes []store.Write, err error) {
	changed := map[store.Key][]Sum{}
	var keys []store.Key
	for _, s := range all {
		key := s.Key()
		if changed[key] == nil {
			keys = append(keys, key)
		}
		changed[key] = append(changed[key], s)
	}
	for _, key := range keys {
		it, err := e.Store.Get(ctx, e.Table, key)
		if billing.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("adding to the sums %s/%s: %w", key.PK, key.SK, err)
		}
		v := it.Get(schema.Amounts)
		if v.Kind() != store.KindMap && !v.IsZero() {
			e.Log.WarnContext(ctx, missed, "error", schema.Amounts+" is not a map")
			continue
		}
		amounts := v.Map().Clone()
		for _, s := range changed[key] {
			text := s.Amount.Decimal()
			if v := amounts.Get(string(s.Kind)); !v.IsZero() {
				was, err := money.Parse(v.Str(), s.Amount.Currency())
				if err == nil {
					was, err = was.Add(s.Amount)
					text = was.Decimal()
				}
				switch {
				case errors.Is(err, money.ErrOverflow) || v.Str() == tooLarge:
					text = tooLarge
					e.Log.WarnContext(ctx, fmt.Sprintf(TooLarge, s.Amount.Currency().Code()), "kind", s.Kind, "quarter", s.At)
				case err != nil:
					e.Log.WarnContext(ctx, missed, "error", err)
					text = v.Str()
				}
			}
			amounts.Set(string(s.Kind), store.S(text))
		}
		writes = append(writes, put(e, key, it, store.M(amounts)))
	}
	return append(writes, fence(e)), nil
}

// Items yields the items with sums of the months, in UTC, from one time to another.
func Items(ctx context.Context, e *billing.Records, from, until time.Time) iter.Seq2[store.Item, error] {
	from = from.UTC()
	var months []string
	for m := time.Date(from.Year(), from.Month(), 1, 0, 0, 0, 0, time.UTC); m.Before(until); m = m.AddDate(0, 1, 0) {
		months = append(months, prefix+m.Format(monthLayout))
	}
	return sequence.Flat(slices.Values(months), func(month string) iter.Seq2[store.Item, error] {
		return e.Store.Query(ctx, store.Query{Table: e.Table, Partition: month})
	})
}

// Uncounted yields the outbox's rows whose sums no drain has added yet.
func Uncounted(ctx context.Context, e *billing.Records) iter.Seq2[outbox.Effect, error] {
	return outbox.New(e.Store, e.Tables.Outbox, e.Now, nil, nil).Uncounted(ctx)
}
