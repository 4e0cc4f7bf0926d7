package billing

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Receipts expire, and a store of a million of them is slow to add up. Therefore the money of each
// quarter of an hour is kept as sums, in items SUM#<month>/<quarter>#<currency>. Every time zone is
// whole quarters from UTC: the days and months of any zone are sums of quarters, and a changed setting
// of the zone changes no sum.

// A SumKind tells the sums of one quarter and currency apart.
type SumKind string

// The kinds of sums. SumRecovered is a part of the first two.
const (
	SumCollected SumKind = "collected" // charges
	SumOutside   SumKind = "outside"   // manual payments
	SumRefunded  SumKind = "refunded"  // refunds, and lost disputes
	SumFailed    SumKind = "failed"    // periods, when they last ended failed, also if they were paid later
	SumRecovered SumKind = "recovered" // paid after a decline, or after the period had ended failed
)

// A Sum is the money of one event, or of all events of one kind in a quarter. The amount of a refund
// that was sent back is negative.
type Sum struct {
	Kind   SumKind
	At     time.Time // the beginning of the quarter, UTC
	Amount money.Amount
}

const (
	sumPrefix     = "SUM#"
	quarter       = 15 * time.Minute
	quarterLayout = "2006-01-02T15:04"
	monthLayout   = "2006-01"
)

// SumAt returns the sum of one event.
func SumAt(kind SumKind, at time.Time, amount money.Amount) Sum {
	return Sum{kind, at.UTC().Truncate(quarter), amount}
}

// RecoveredDecline is Receipt.Recovered of a payment that had been declined. Of a period that had
// ended failed it is the time of that end.
const RecoveredDecline = "declined"

// DecodePayment reads of a receipt just written what Sums needs, and its period: each charge does.
func DecodePayment(it store.Item) (*Receipt, error) {
	r := &Receipt{Kind: Charged}
	c := codec{stored: it}
	text(&c, schema.Kind, &r.Kind)
	c.number(schema.Period, &r.Period)
	c.amount(schema.ProcessedAmount, "receipt", &r.Amount)
	c.instant(schema.ProcessedDate, &r.Processed)
	return r, c.err
}

// Sums returns what the receipt adds to the sums. An imported one was no event of this store.
func (r *Receipt) Sums() (list []Sum) {
	switch r.Kind {
	case Imported:
		return nil
	case Charged:
		list = append(list, SumAt(SumCollected, r.Processed, r.Amount))
	default:
		list = append(list, SumAt(SumOutside, r.Processed, r.Amount))
	}
	if r.Recovered != "" {
		list = append(list, SumAt(SumRecovered, r.Processed, r.Amount))
	}
	return list
}

// Sums returns what the end of the period adds to the sums; was is the record that it replaces, or
// nil.
func (p *EndedPeriod) Sums(was *EndedPeriod) (list []Sum) {
	if was != nil && was.Ending == EndFailed {
		list = append(list, SumAt(SumFailed, was.Ended, negative(was.Amount)))
	}
	if p.Ending == EndFailed {
		list = append(list, SumAt(SumFailed, p.Ended, p.Amount))
	}
	return list
}

// RecoveredBy returns Receipt.Recovered of a receipt for the period, which had ended failed. A
// manual payment of another amount notes the one that had failed.
func (p *EndedPeriod) RecoveredBy(r *Receipt) string {
	if p.Amount == r.Amount {
		return Stamp(p.Ended)
	}
	return Stamp(p.Ended) + " " + p.Amount.Decimal()
}

// Failed returns what the end of the receipt's period had added to the sums, if it had ended failed.
func (r *Receipt) Failed() (list []Sum) {
	text, other, _ := strings.Cut(r.Recovered, " ")
	amount := r.Amount
	if failed, err := money.Parse(other, amount.Currency()); other != "" && err == nil {
		amount = failed
	}
	if ended := ParseStamp(text); !ended.IsZero() {
		list = append(list, SumAt(SumFailed, ended, amount))
	}
	return list
}

func negative(a money.Amount) money.Amount { return money.New(-a.Minor(), a.Currency()) }

// Sums returns what the change of the record from was adds to the sums; was is nil for a new one.
func (r *ReversalRecord) Sums(was *ReversalRecord) []Sum {
	now, before := r.State == ReversalSucceeded, was != nil && was.State == ReversalSucceeded
	switch {
	case now && !before:
		return []Sum{SumAt(SumRefunded, r.Processed, r.Amount)}
	case before && !now:
		return []Sum{SumAt(SumRefunded, was.Processed, negative(was.Amount))}
	}
	return nil
}

// SumsText returns the sums as a text; "" of none.
func SumsText(list []Sum) string {
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

// ParseSums reads such a text.
func ParseSums(text string) (list []Sum, err error) {
	for one := range strings.SplitSeq(text, ",") {
		f := strings.Fields(one)
		if len(f) != 4 {
			return nil, fmt.Errorf("sum %.60q: want a kind, an amount, a currency and a time", one)
		}
		at, err := time.Parse(quarterLayout, f[3])
		if err != nil {
			return nil, err
		}
		amount, err := decodeAmount(f[1], f[2])
		if err != nil {
			return nil, err
		}
		list = append(list, SumAt(SumKind(f[0]), at, amount))
	}
	return list, nil
}

func (s Sum) key() store.Key {
	return store.Key{PK: sumPrefix + s.At.Format(monthLayout), SK: s.At.Format(quarterLayout) + "#" + s.Amount.Currency().Code()}
}

// IsSum reports whether the key is of an item with sums.
func IsSum(k store.Key) bool { return strings.HasPrefix(k.PK, sumPrefix) }

// DecodeSums reads such an item.
func DecodeSums(it store.Item) (list []Sum, err error) {
	at, currency, _ := strings.Cut(it.Str(schema.SK), "#")
	for _, a := range it.Get(schema.Amounts).Map() {
		one, err := ParseSums(a.Name + " " + a.Value.Str() + " " + currency + " " + at)
		if err != nil {
			return nil, &IllegibleError{schema.Amounts, "has what is no sum", err}
		}
		list = append(list, one...)
	}
	return list, nil
}

// Tally returns the writes that add the sums of the texts to those of the store. They hold only while
// the changed ones are as they were read, and the store has not been moved: its copy has the texts or
// the sums. A text that is none adds nothing: the audit shows it.
func (e *Records) Tally(ctx context.Context, texts []string) (writes []store.Write, err error) {
	changed := map[store.Key][]Sum{}
	var keys []store.Key
	for _, text := range texts {
		list, err := ParseSums(text)
		if err != nil {
			e.Log.WarnContext(ctx, "a sum of money cannot be read, and is missing in reports", "error", err)
		}
		for _, s := range list {
			if changed[s.key()] == nil {
				keys = append(keys, s.key())
			}
			changed[s.key()] = append(changed[s.key()], s)
		}
	}
	for _, key := range keys {
		w, err := e.addSums(ctx, key, changed[key])
		if err != nil {
			return nil, fmt.Errorf("adding to the sums %s/%s: %w", key.PK, key.SK, err)
		}
		writes = append(writes, w)
	}
	return append(writes, store.Check(e.Table, MetaKey, store.AttributeAbsent(schema.Moved))), nil
}

// addSums returns the put of an item with the sums added. They are of its quarter and currency.
func (e *Records) addSums(ctx context.Context, key store.Key, more []Sum) (w store.Write, err error) {
	it, err := e.Store.Get(ctx, e.Table, key)
	still := unchanged(schema.Version, it.Get(schema.Version))
	if errors.Is(err, store.ErrNotFound) {
		it, still = ItemAt(key), store.Absent()
	} else if err != nil {
		return w, err
	}
	now, err := DecodeSums(it)
	if err != nil {
		return w, err
	}
	amounts := it.Get(schema.Amounts).Map().Clone()
	for _, s := range more {
		i := slices.IndexFunc(now, func(x Sum) bool { return x.Kind == s.Kind })
		if i < 0 {
			i, now = len(now), append(now, Sum{Kind: s.Kind, Amount: money.New(0, s.Amount.Currency())})
		}
		if now[i].Amount, err = now[i].Amount.Add(s.Amount); err != nil {
			return w, err
		}
		amounts.Set(string(s.Kind), store.S(now[i].Amount.Decimal()))
	}
	it = it.Clone()
	it.Set(schema.Amounts, store.M(amounts))
	it.Set(schema.Version, store.Int(it.Int(schema.Version)+1))
	return store.Put(e.Table, it, still), nil
}

// SumItems yields the items with sums of the months, in UTC, from one time to another.
func (e *Records) SumItems(ctx context.Context, from, until time.Time) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		from = from.UTC()
		for m := time.Date(from.Year(), from.Month(), 1, 0, 0, 0, 0, time.UTC); m.Before(until); m = m.AddDate(0, 1, 0) {
			q := store.Query{Table: e.Table, Partition: sumPrefix + m.Format(monthLayout)}
			for it, err := range e.Store.Query(ctx, q) {
				if !yield(it, err) || err != nil {
					return
				}
			}
		}
	}
}
