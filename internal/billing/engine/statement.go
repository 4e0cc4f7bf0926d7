package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/store"
)

// A Month is the money of a month in one currency.
type Month struct {
	First    civil.Date
	Currency money.Currency
	Sums     map[billing.SumKind]money.Amount
	Missing  string // why the sums may be too small, or can be held against no receipts; "": they are complete
}

// A Statement is the sums of some months.
type Statement struct {
	Zone   string    // of the months' days: the setting
	AsOf   time.Time // nothing from before is missing
	Months []Month   // by month, then by currency
}

// Statement adds up the months from one to another, both by a day in them: each month for each
// currency that any of them or the others have. The zero dates are those of the last twelve months
// in which there was a store.
func (e *Engine) Statement(ctx context.Context, from, to civil.Date, others ...money.Currency) (*Statement, error) {
	name := cmp.Or(e.cfg.TimeZone, "UTC")
	zone, err := civil.Zone(name)
	if err != nil {
		return nil, err
	}
	end := nextMonth(cmp.Or(to, civil.Today(e.Now(), zone)))
	if from.IsZero() {
		from = civil.Earlier(civil.Later(end.AddDays(-360), civil.Today(e.Opened.Created, zone)), end.AddDays(-1))
	}
	first := from.AddDays(1 - from.Day())
	list, asOf, late, err := e.sumsNow(ctx, first.In(zone), end.In(zone))
	if err != nil {
		return nil, err
	}
	st := &Statement{Zone: name, AsOf: asOf}
	months := map[dated]*Month{}
	currencies := slices.Clone(others)
	for _, s := range list {
		currencies = append(currencies, s.Amount.Currency())
	}
	slices.SortFunc(currencies, func(a, b money.Currency) int { return cmp.Compare(a.Code(), b.Code()) })
	for m := first; m.Before(end); m = nextMonth(m) {
		for _, c := range slices.Compact(slices.Clone(currencies)) {
			x := &Month{First: m, Currency: c, Sums: map[billing.SumKind]money.Amount{},
				Missing: e.missing(m.In(zone), nextMonth(m).In(zone), asOf, late)}
			months[dated{m, c}] = x
			st.Months = append(st.Months, *x)
		}
	}
	for _, s := range list {
		day := civil.Today(s.At, zone)
		x := months[dated{day.AddDays(1 - day.Day()), s.Amount.Currency()}]
		was := money.New(x.Sums[s.Kind].Minor(), s.Amount.Currency())
		if x.Sums[s.Kind], err = was.Add(s.Amount); err != nil {
			return nil, err
		}
	}
	return st, nil
}

func nextMonth(d civil.Date) civil.Date {
	d = d.AddDays(32 - d.Day())
	return d.AddDays(1 - d.Day())
}

// missing returns why the sums of a month may be too small. Sums never expire; but where receipts may
// have, the audit can no longer tell that they are right.
func (e *Engine) missing(begins, ends, asOf time.Time, late bool) string {
	kept, months := e.Opened.Summed, e.cfg.ReceiptMonths
	switch {
	case kept.IsZero():
		return "no sums are kept: an older Duesday made this store, and nothing has written to it since"
	case kept.After(begins) && !(kept.Equal(e.Opened.Created) && kept.Before(ends)):
		return "sums have been kept since " + kept.Format(time.DateOnly)
	case months > 0 && begins.Before(e.Now().AddDate(0, -months, 0)):
		return "receipts of it have expired: verify compares its sums no more"
	case late && asOf.Before(ends):
		return "mail is being sent, and the sums of its rows are still being added"
	}
	return ""
}

// sumsNow returns the sums from one time to another, those that wait in the outbox among them, and the
// time as of which nothing is missing. It is late if drains add sums so busily that those that wait
// cannot be told from those that are added.
func (e *Engine) sumsNow(ctx context.Context, from, until time.Time) (list []billing.Sum, asOf time.Time,
	late bool, err error) {
	var items []store.Item
	for range 5 {
		now := e.Now()
		before, err := billing.Gather(e.SumItems(ctx, from, until))
		if err != nil {
			return nil, asOf, false, err
		}
		var texts []string
		asOf = now
		for row, err := range e.uncounted(ctx) {
			if err != nil {
				return nil, asOf, false, err
			}
			if texts = append(texts, row.Sums); row.Created.Before(asOf) {
				asOf = row.Created
			}
		}
		if items, err = billing.Gather(e.SumItems(ctx, from, until)); err != nil {
			return nil, asOf, false, err
		}
		if slices.EqualFunc(before, items, store.Item.Equal) {
			return within(items, texts, from, until), now, false, nil
		}
	}
	return within(items, nil, from, until), asOf, true, nil
}

// within returns the readable sums of the items and texts from one time to another.
func within(items []store.Item, texts []string, from, until time.Time) (list []billing.Sum) {
	add := func(some []billing.Sum, err error) {
		for _, s := range some {
			if err == nil && !s.At.Before(from) && s.At.Before(until) {
				list = append(list, s)
			}
		}
	}
	for _, it := range items {
		add(billing.DecodeSums(it))
	}
	for _, text := range texts {
		add(billing.ParseSums(text))
	}
	return list
}
