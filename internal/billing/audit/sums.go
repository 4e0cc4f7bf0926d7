package audit

import (
	"context"
	"maps"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/money"
)

// This file adds up the receipts, the failed periods and the refunds, and compares that with the sums
// which the store keeps. A job may run beside the audit. Therefore the sums are read before the items,
// and after them: what the items add up to lies between.

// A sumKey is a quarter, kind and currency.
type sumKey struct {
	at       int64 // Unix seconds
	kind     billing.SumKind
	currency money.Currency
}

// sums are the amounts that the items add up to, in minor units.
type sums struct {
	of     map[sumKey]int64
	months int // the least for which a subscription's receipts are kept; 0: for ever, or not known
}

func (s *sums) add(list ...billing.Sum) {
	if s.of == nil {
		s.of = map[sumKey]int64{}
	}
	for _, x := range list {
		s.of[sumKey{x.At.Unix(), x.Kind, x.Amount.Currency()}] += x.Amount.Minor()
	}
}

// readSums reads the sums of the store, and those that wait to be added. Between the two reads a drain
// may add some: reading the store's sums first misses them, and last has them twice.
func (a *auditor) readSums(ctx context.Context, storeFirst bool) (now sums, err error) {
	if a.o.Uncounted == nil || a.Opened.Summed.IsZero() {
		return now, nil
	}
	stored := func() error {
		for it, err := range a.SumItems(ctx, a.oldestSum(), a.now.AddDate(0, 1, 0)) {
			if err != nil {
				return err
			}
			if list, err := billing.DecodeSums(it); err == nil { // else gather tells
				now.add(list...)
			}
		}
		return nil
	}
	waiting := func() error {
		for text, err := range a.o.Uncounted(ctx) {
			if err != nil {
				return err
			}
			if list, err := billing.ParseSums(text); err == nil {
				now.add(list...)
			}
		}
		return nil
	}
	if !storeFirst {
		stored, waiting = waiting, stored
	}
	if err = stored(); err == nil {
		err = waiting()
	}
	return now, err
}

// compareSums compares the sums of every quarter whose records are all there.
func (a *auditor) compareSums(ctx context.Context, least sums) error {
	if a.o.Uncounted == nil || a.Opened.Summed.IsZero() {
		return nil
	}
	most, err := a.readSums(ctx, false)
	if err != nil {
		return err
	}
	from := a.sumsFrom().Unix()
	all := maps.Clone(a.sums.of)
	maps.Copy(all, most.of)
	for k := range all {
		got, low, high := a.sums.of[k], least.of[k], most.of[k]
		if k.at < from || min(low, high) <= got && got <= max(low, high) {
			continue
		}
		at, c := time.Unix(k.at, 0).UTC(), k.currency
		a.problem("sum differs", billing.Name{}, 0, "%s of the 15 minutes from %s UTC: the store keeps %s, and its records add "+
			"up to %s", k.kind, at.Format("2006-01-02 15:04"), money.New(high, c), money.New(got, c))
	}
	return nil
}

// sumsMargin is for the clocks of a processor and of other processes, when sums begin to be kept.
const sumsMargin = time.Hour

// oldestSum is a time before all sums, but for those of manual payments with an older date.
func (a *auditor) oldestSum() time.Time { return a.Opened.Created.AddDate(-1, 0, 0) }

// sumsFrom returns the time from which sums are compared: since then they were kept, and no receipt
// has expired.
func (a *auditor) sumsFrom() time.Time {
	from := a.oldestSum()
	if a.Opened.Summed.After(a.Opened.Created) {
		from = a.Opened.Summed.Add(sumsMargin)
	}
	months := a.o.ReceiptMonths
	if months == 0 || a.sums.months > 0 && a.sums.months < months {
		months = a.sums.months
	}
	if kept := a.now.AddDate(0, -months, 1); months > 0 && kept.After(from) {
		from = kept
	}
	return from
}
