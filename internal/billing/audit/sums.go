package audit

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/money"
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

// sums are amounts in minor units.
type sums map[sumKey]int64

func (s sums) add(list ...report.Sum) {
	for _, x := range list {
		s[sumKey{x.At.Unix(), x.Kind, x.Amount.Currency()}] += x.Amount.Minor()
	}
}

// readSums reads the sums of the store, and those that wait to be added. Between the two reads a drain
// may add some: reading the store's sums first misses them, and last has them twice.
func (a *auditor) readSums(ctx context.Context, storeFirst bool) (sums, error) {
	now := sums{}
	stored := func() error {
		for it, err := range report.Items(ctx, a.Records, a.oldestSum(), a.now.AddDate(0, 1, 0)) {
			if err != nil {
				return err
			}
			list, _ := report.Decode(it) // of an illegible one gather tells
			now.add(list...)
		}
		return nil
	}
	waiting := func() error {
		for row, err := range report.Uncounted(ctx, a.Records) {
			if err != nil {
				return err
			}
			if list, err := report.Parse(row.Sums); err == nil {
				now.add(list...)
			}
		}
		return nil
	}
	if !storeFirst {
		stored, waiting = waiting, stored
	}
	return now, cmp.Or(stored(), waiting())
}

// compareSums compares the sums of each quarter that has all records; least are those read before.
func (a *auditor) compareSums(ctx context.Context, least sums) error {
	most, err := a.readSums(ctx, false)
	if err != nil || a.Opened.Summed.IsZero() {
		return err
	}
	from := a.sumsFrom().Unix()
	all := maps.Clone(a.sums)
	maps.Copy(all, most)
	for k := range all {
		got, low, high := a.sums[k], least[k], most[k]
		if k.at < from || min(low, high) <= got && got <= max(low, high) {
			continue
		}
		at, c := time.Unix(k.at, 0).UTC(), k.currency
		if low == high {
			a.result.Corrections = append(a.result.Corrections, report.SumAt(k.kind, at, money.New(got-high, c)))
		}
		a.problem(sumDiffers, billing.Name{}, 0, "%s of the 15 minutes from %s UTC: the store keeps %s, and its records add "+
			"up to %s", k.kind, at.Format("2006-01-02 15:04"), money.New(high, c), money.New(got, c))
	}
	return nil
}

// sumsMargin is for the clocks of a processor and of other processes, when sums begin to be kept.
const sumsMargin = time.Hour

// oldestSum is a time before all sums, but for those of manual payments with an older date.
func (a *auditor) oldestSum() time.Time { return a.Opened.Created.AddDate(-1, 0, 0) }

// sumsFrom returns since when sums are compared: they were kept, and no receipt has expired.
func (a *auditor) sumsFrom() time.Time {
	from := a.oldestSum()
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
