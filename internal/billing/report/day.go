package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/store"
)

// A Day holds the sums of one day in one currency.
type Day struct {
	Date     civil.Date
	Currency money.Currency
	Sums     map[Kind]money.Amount
}

// Days returns the sums of the days from first to last in the zone, by date, then by currency, without those
// that wait in the outbox. It leaves out days without sums, and reads each month's partition once. Illegible is the
// number of items that it cannot read whole.
func Days(ctx context.Context, e *billing.Records, zone *time.Location, first, last civil.Date) (list []*Day, illegible int, err error) {
	from, until := first.In(zone).UTC(), last.AddDays(1).In(zone)
	all := map[dated]*Day{}
	for month := monthOf(civil.Of(from)); month.In(time.UTC).Before(until); month = nextMonth(month) {
		q := store.Query{Table: e.Table, Partition: prefix + month.String()[:len(monthLayout)], From: from.Format(quarterLayout)}
		for it, err := range e.Store.Query(ctx, q) {
			if err != nil {
				return nil, 0, err
			}
			sums, wrong := Decode(it)
			if wrong != nil {
				illegible++
			}
			for _, s := range sums {
				if !s.At.Before(until) {
					continue
				}
				key := dated{civil.Today(s.At, zone), s.Amount.Currency()}
				if all[key] == nil {
					all[key] = &Day{key.date, key.currency, map[Kind]money.Amount{}}
					list = append(list, all[key])
				}
				was, there := all[key].Sums[s.Kind]
				if !there {
					was = money.New(0, key.currency)
				}
				if all[key].Sums[s.Kind], err = was.Add(s.Amount); err != nil {
					return nil, 0, fmt.Errorf("%s on %s: "+TooLarge+": %w", s.Kind, key.date, key.currency.Code(), err)
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b *Day) int {
		return cmp.Or(a.Date.Compare(b.Date), cmp.Compare(a.Currency.Code(), b.Currency.Code()))
	})
	return list, illegible, nil
}

// At returns the sum of the kind.
func (d *Day) At(kind Kind) money.Amount {
	if a, there := d.Sums[kind]; there {
		return a
	}
	return money.New(0, d.Currency)
}
