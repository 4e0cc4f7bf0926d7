package audit

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/store"
)

// This file adds up the receipts, the failed periods and the refunds, and compares that with the sums
// which the store keeps. A job may run beside the audit. Therefore the sums are read before the items,
// and after them: what the items add up to lies between.

// A sumKey is a quarter, kind and currency.
type sumKey struct {
	at       int64 // Unix seconds
	kind     report.Kind
	currency money.Currency
}

const sumDiffers = "sum differs"

// A total is an amount in minor units, or over: more than an amount holds.
type total struct {
	minor int64
	over  bool
}

type sums map[sumKey]total

func (s sums) add(list ...report.Sum) {
	for _, x := range list {
		k := sumKey{x.At.Unix(), x.Kind, x.Amount.Currency()}
		sum, err := money.New(s[k].minor, k.currency).Add(x.Amount)
		s[k] = total{sum.Minor(), s[k].over || err != nil}
	}
}

// addText adds the sums of the text, or nothing if it cannot be read: the sum then differs.
func (s sums) addText(text string) {
	list, _ := report.Parse(text)
	s.add(list...)
}

// A span is the times from the first to before the last.
type span struct{ from, until time.Time }

// add widens the span by the time, unless that is zero.
func (s *span) add(at time.Time) {
	if at.Before(s.from) && !at.IsZero() {
		s.from = at
	} else if !at.Before(s.until) {
		s.until = at.AddDate(0, 1, 0)
	}
}

// A reading is the sums of the store at one time, those that wait to be added among them.
type reading struct {
	all, waiting sums
	items        map[store.Key]store.Item
}

// readSums reads the sums of the store, and those that wait to be added. Between the two reads a drain
// may add some: reading the store's sums first misses them, and last has them twice.
func (a *auditor) readSums(ctx context.Context, storeFirst bool) (reading, error) {
	now := reading{sums{}, sums{}, map[store.Key]store.Item{}}
	stored := func() error {
		for it, err := range report.Items(ctx, a.Records, a.read.from, a.read.until) {
			if err != nil {
				return err
			}
			list, _ := report.Decode(it) // of an illegible one gather tells
			now.all.add(list...)
			now.items[billing.KeyOf(it)] = it
		}
		return nil
	}
	waiting := func() error {
		for row, err := range report.Uncounted(ctx, a.Records) {
			if err != nil {
				return err
			}
			if list, err := report.Parse(row.Sums); err == nil {
				now.all.add(list...)
				now.waiting.add(list...)
			}
		}
		return nil
	}
	if !storeFirst {
		stored, waiting = waiting, stored
	}
	return now, cmp.Or(stored(), waiting())
}

// compareSums compares the sums of each quarter that has all records. Only manual payments can be
// dated before the store was made, and all of their receipts are there until the first can have
// expired. before is what was read before the items. A difference has a correction if neither the
// item nor what waits for it has changed meanwhile.
func (a *auditor) compareSums(ctx context.Context, before reading) error {
	after, err := a.readSums(ctx, false)
	if err != nil || a.Opened.Summed.IsZero() {
		return err
	}
	from, made := a.sumsFrom().Unix(), a.Opened.Created.Add(-sumsMargin).Unix()
	all := maps.Clone(a.sums)
	maps.Copy(all, after.all)
	for k := range all {
		got, low, high := a.sums[k], before.all[k], after.all[k]
		over := got.over || low.over || high.over
		early := k.at < made && (from <= made || k.kind != report.Outside && k.kind != report.Recovered)
		if k.at < from && !early || !over && min(low.minor, high.minor) <= got.minor && got.minor <= max(low.minor, high.minor) {
			continue
		}
		at, c := time.Unix(k.at, 0).UTC(), k.currency
		if over {
			a.problem("sum too large", billing.Name{}, 0, "%s of the 15 minutes from %s UTC: "+report.TooLarge, k.kind,
				at.Format("2006-01-02 15:04"), c.Code())
			continue
		}
		key, waits := report.SumAt(k.kind, at, money.New(0, c)).Key(), after.waiting[k]
		if before.items[key].Equal(after.items[key]) && before.waiting[k] == waits {
			a.correct(k, got.minor-waits.minor, after.items[key])
		}
		a.problem(sumDiffers, billing.Name{}, 0, "%s of the 15 minutes from %s UTC: the store keeps %s, and its records add "+
			"up to %s", k.kind, at.Format("2006-01-02 15:04"), money.New(high.minor, c), money.New(got.minor, c))
	}
	return nil
}

// correct notes the value that the sum should have in the item as it was read.
func (a *auditor) correct(k sumKey, minor int64, was store.Item) {
	a.result.Corrections = append(a.result.Corrections, report.Correction{Was: was,
		Sum: report.SumAt(k.kind, time.Unix(k.at, 0), money.New(minor, k.currency))})
}

// sumsMargin is for the clocks of a processor and of other processes, when sums begin to be kept.
const sumsMargin = time.Hour

// sumsFrom returns since when sums are compared: they were kept, and no receipt has expired.
func (a *auditor) sumsFrom() (from time.Time) {
	if a.Opened.Summed.After(a.Opened.Created) {
		from = a.Opened.Summed.Add(sumsMargin)
	}
	months := a.o.ReceiptMonths
	if months == 0 || a.kept > 0 && a.kept < months {
		months = a.kept
	}
	if kept := a.now.AddDate(0, -months, 1); months > 0 && kept.After(from) {
		from = kept
	}
	return from
}
