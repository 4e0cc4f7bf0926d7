// Package report stores running totals of a store's money, and reports received, outstanding and expected
// payments.
//
// Receipts expire, and adding up a million of them is slow, so the package keeps a sum for each
// quarter of an hour, in items SUM#<month>/<quarter>#<currency>. Every time zone differs from UTC by
// whole quarters, so days and months in any zone can be added up from the quarters, and a new
// time-zone setting changes no sum. The commit that records a payment, failure or reversal also writes
// its amount into an outbox row. Package outbox describes how each row is counted exactly once.
//
// It does not decide what is charged: the engine forecasts what its runs would charge.
package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/store"
)

// A Query selects what a report shows.
type Query struct {
	// From and To are days of the first and last month; zero: of the last twelve that had a store.
	From, To civil.Date
	Days     int // for which charges are expected, today the first
	Expect   Expect
	Settings settings.Settings
	Progress func(items int64) // is called with the number of items read
}

// A Report shows a store's received, outstanding and expected money.
type Report struct {
	Zone       string         // of the days: the setting
	AsOf       time.Time      // nothing from before is missing
	Months     []Month        // by month, then by currency: each month has every currency
	Before     []money.Amount // outstanding of the months before, by currency
	MRR        []money.Amount // monthly recurring revenue, by currency
	Expected   []Expected     // by date, then by currency
	Taxes      []Tax          // of the months, from the receipts that are kept
	TaxesLeft  int            // receipts, refunds and disputes that Taxes leave out, because they cannot be read
	Unreadable int            // subscriptions left out: another tool has made their items unreadable
}

// A Month holds the sums of one month in one currency.
type Month struct {
	First       civil.Date
	Sums        map[Kind]money.Amount // of every kind
	Outstanding money.Amount          // unpaid periods that were due in it
	Missing     string                // why the sums may be too small, or can be held against no receipts; "": they are complete
}

// An Expected is the amount that the runs of one day are expected to charge in one currency.
type Expected struct {
	Date   civil.Date
	Amount money.Amount
	Count  int // periods
}

// A table adds up amounts by date and currency.
type table map[dated]*Expected

type dated struct {
	date     civil.Date
	currency money.Currency
}

func (t table) add(d civil.Date, amount money.Amount) (err error) {
	key := dated{d, amount.Currency()}
	x := t[key]
	if x == nil {
		x = &Expected{Date: d, Amount: money.New(0, key.currency)}
		t[key] = x
	}
	x.Count++
	x.Amount, err = x.Amount.Add(amount)
	return err
}

// at returns the amount of the date and currency.
func (t table) at(d civil.Date, c money.Currency) money.Amount {
	if x := t[dated{d, c}]; x != nil {
		return x.Amount
	}
	return money.New(0, c)
}

// list returns the amounts by date, then by currency.
func (t table) list() (list []Expected) {
	for _, x := range t {
		list = append(list, *x)
	}
	slices.SortFunc(list, func(a, b Expected) int {
		return cmp.Or(a.Date.Compare(b.Date), cmp.Compare(a.Amount.Currency().Code(), b.Amount.Currency().Code()))
	})
	return list
}

// A maker makes one report.
type maker struct {
	*billing.Records
	q           Query
	zone        *time.Location
	forecast    Forecast
	outstanding table // by the first day of the month
	taxes       taxes
	gaps        map[civil.Date]string // why sums of the month are missing, by its first day
	Report
}

// Make returns the report. It scans, and changes nothing.
func Make(ctx context.Context, e *billing.Records, q Query) (*Report, error) {
	m := maker{Records: e, q: q, forecast: Forecast{Days: q.Days, Expect: q.Expect}, outstanding: table{},
		gaps: map[civil.Date]string{}, taxes: taxes{sums: map[TaxOf]*Tax{}, reversed: map[store.Key][]*billing.ReversalRecord{}}}
	m.Zone = cmp.Or(q.Settings.TimeZone, "UTC")
	var err error
	if m.zone, err = civil.Zone(m.Zone); err != nil {
		return nil, err
	}
	read := int64(0)
	for it, err := range e.Store.Scan(ctx, store.Scan{Table: e.Table}) {
		if err != nil {
			return nil, err
		}
		read++
		q.Progress(read)
		if err := m.add(ctx, it); err != nil {
			return nil, err
		}
	}
	if m.MRR, err = m.forecast.MRR(); err != nil {
		return nil, err
	}
	m.Expected = m.forecast.Expected()
	if err := m.addReversed(ctx); err != nil {
		return nil, err
	}
	return &m.Report, m.months(ctx)
}

// add adds what an item tells.
func (m *maker) add(ctx context.Context, it store.Item) error {
	if billing.IsImported(it) {
		if r, err := billing.DecodeReceipt(it); err == nil {
			m.gaps[monthOf(civil.Today(r.Processed, m.zone))] = "its imported receipts are in no sum, because another system took those payments"
		}
		return nil
	}
	if _, is := billing.NameOf(billing.KeyOf(it)); !is {
		m.addTaxed(it)
		return nil
	}
	s, err := billing.DecodeSubscription(it)
	if err != nil {
		m.Unreadable++
		return nil
	}
	if err := m.unpaid(ctx, s, s.Today(civil.Date{}, m.Now())); err != nil {
		return fmt.Errorf("subscription %s: %w", s.Name, err)
	}
	return m.forecast.Add(ctx, s)
}

// unpaid notes the amounts of the periods that were due and may still be paid: open, due or parked
// ones, one to be collected, and the failed one of a past_due subscription.
func (m *maker) unpaid(ctx context.Context, s *billing.Subscription, today civil.Date) error {
	owed := func(due civil.Date, amount money.Amount) error { return m.outstanding.add(monthOf(due), amount) }
	next := s.Period
	if s.Open != nil {
		if err := owed(s.Open.Due, s.Open.Amount); err != nil {
			return err
		}
		next = max(next, s.Open.Period+1)
	}
	past := s.Collect - 1
	if s.Status == billing.PastDue && s.Open == nil && past < 0 {
		past = s.Period - 1
	}
	if past >= 0 {
		p, err := m.RecordOf(ctx, s.Name, past)
		if err == nil && (p.Ending == billing.EndFailed || s.Collect > 0) {
			err = owed(p.Due, p.Amount)
		}
		if billing.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if s.Status != billing.Active && s.Status != billing.ParkedState {
		return nil
	}
	for ; s.Installments == 0 || s.Paid+next-s.Period < s.Installments; next++ {
		due, err := s.Schedule().Due(next)
		if err != nil || due.After(today) || s.EndsBefore(due) {
			return nil
		}
		_, amount := s.PlanOn(next, due)
		if err := owed(due, amount); err != nil {
			return err
		}
	}
	return nil
}
