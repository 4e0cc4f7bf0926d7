package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

type reportFlags struct {
	from, to valueFlag[civil.Date]
	days     int
	csv      bool
}

// mostReportDays bounds the days of expected charges.
const mostReportDays = 366

func (p *program) reportCommand() *cobra.Command {
	f := reportFlags{from: monthFlag(), to: monthFlag()}
	c := p.storeLeaf("report", "Show what came in by month, what is outstanding, and what is expected", need{read: true},
		func(ctx context.Context, s *session, _ []string) error { return p.report(ctx, s, &f) })
	c.Long = `Show for each month and currency what was collected (charges), taken outside (manual
payments), refunded and lost in disputes, what failed, what was recovered (the part of the
first two that was paid after a decline, or after its period had ended failed), and what is
outstanding of the periods due in that month: open, due or parked, or failed with the
subscription past_due. Days are those of the setting time-zone.

Then the monthly recurring revenue: the amounts of active subscriptions that go on, after their
trial, each by its interval, a year of 12 months or 52 weeks. And the charges that the runs of the next days
would make, if every one succeeds.

A month is not complete if sums have not been kept since its first day, or if receipts of it have expired,
so that verify can no longer tell that its sums are right.`
	c.Flags().Var(&f.from, "from", "the first month (default a year back, or the store's first)")
	c.Flags().Var(&f.to, "to", "the last month (default this one)")
	c.Flags().IntVar(&f.days, "days", 30, "`N` days of expected charges, today the first")
	c.Flags().BoolVar(&f.csv, "csv", false, "write the months as CSV")
	return checked(c, func([]string) error {
		switch {
		case f.csv && p.cfg.JSON:
			return usagef("want one of --csv and --json")
		case !f.to.value.IsZero() && f.from.value.After(f.to.value):
			return usagef("--from %s is after --to %s", f.from.text, f.to.text)
		case f.from.value.After(civil.Of(p.now().AddDate(0, 0, 1))):
			return usagef("--from %s has not begun", f.from.text)
		}
		if err := p.walkable("to", f.to.value); err != nil {
			return err
		}
		return between("days", f.days, 1, mostReportDays)
	})
}

func (p *program) report(ctx context.Context, s *session, f *reportFlags) error {
	bar := p.progress("items", 0, nil)
	forecast, err := s.engine.Forecast(ctx, f.days, bar.done.Store)
	bar.end()
	if err != nil {
		return err
	}
	var currencies []money.Currency
	for _, x := range forecast.Outstanding {
		currencies = append(currencies, x.Amount.Currency())
	}
	for _, x := range forecast.MRR {
		currencies = append(currencies, x.Currency())
	}
	st, err := s.engine.Statement(ctx, f.from.value, f.to.value, currencies...)
	if err != nil {
		return err
	}
	if forecast.Unreadable > 0 {
		p.code = exitPerson
		p.warn("%s cannot be read and is not among the amounts to come: another tool has written it",
			plural(forecast.Unreadable, "subscription"))
	}
	months := make([]object, len(st.Months))
	for i := range st.Months {
		months[i] = viewMoney(&st.Months[i], forecast.Outstanding)
	}
	earlier, err := owedBefore(st, forecast.Outstanding)
	if err != nil {
		return err
	}
	if f.csv {
		for _, a := range earlier {
			p.warn("%s more is outstanding of months before these: give an earlier --from", a.Format())
		}
		all := func(yield func(object, error) bool) {
			for _, m := range months {
				if !yield(m, nil) {
					return
				}
			}
		}
		return exportRows(p.stdout, false, new(progress), monthColumns, all, func(m object) object { return m })
	}
	p.showReport(st, forecast, months, earlier, f.days)
	before, mrr := object{}, object{}
	for _, a := range earlier {
		before = append(before, a.Currency().Code(), a.Decimal())
	}
	for _, a := range forecast.MRR {
		mrr = append(mrr, a.Currency().Code(), a.Decimal())
	}
	return p.json(object{"as_of", st.AsOf, "time_zone", st.Zone, "months", months, "outstanding_before", before, "mrr", mrr,
		"expected", views(forecast.Expected, func(x engine.Expected) object {
			return object{"date", x.Date, "currency", x.Amount.Currency().Code(), "amount", x.Amount.Decimal(), "count", x.Count}
		}), "unreadable?", forecast.Unreadable})
}

// monthColumns are the members of a month, and the columns of tables.
var monthColumns = []string{"month", "currency", "collected", "outside", "refunded", "failed", "recovered", "outstanding",
	"complete"}

func viewMoney(m *engine.Month, outstanding []engine.Expected) object {
	o := object{"month", m.First.String()[:len("2026-01")], "currency", m.Currency.Code()}
	for _, kind := range []billing.SumKind{billing.SumCollected, billing.SumOutside, billing.SumRefunded, billing.SumFailed,
		billing.SumRecovered} {
		o = append(o, string(kind), money.New(m.Sums[kind].Minor(), m.Currency).Decimal())
	}
	owed := money.New(0, m.Currency)
	if i := slices.IndexFunc(outstanding, func(x engine.Expected) bool {
		return x.Date == m.First && x.Amount.Currency() == m.Currency
	}); i >= 0 {
		owed = outstanding[i].Amount
	}
	return append(o, "outstanding", owed.Decimal(), "complete", m.Missing == "")
}

// owedBefore sums by currency what is outstanding of the months before those of the statement: an
// imported book may have periods that were due before there was a store.
func owedBefore(st *engine.Statement, outstanding []engine.Expected) (sums []money.Amount, err error) {
	for _, x := range outstanding { // by date
		if len(st.Months) > 0 && !x.Date.Before(st.Months[0].First) {
			break
		}
		i := slices.IndexFunc(sums, func(a money.Amount) bool { return a.Currency() == x.Amount.Currency() })
		if i < 0 {
			sums = append(sums, x.Amount)
		} else if sums[i], err = sums[i].Add(x.Amount); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// showReport prints the report for people.
func (p *program) showReport(st *engine.Statement, forecast *engine.Forecast, months []object, earlier []money.Amount,
	days int) {
	p.say("As of %s, by the days of %s\n", stamp(st.AsOf), st.Zone)
	t := p.table(strings.Split(strings.ToUpper(strings.Join(monthColumns, " ")), " ")...)
	for _, m := range months {
		cells := make([]any, len(monthColumns))
		for i, name := range monthColumns {
			cells[i] = m.text(name)
		}
		t.row(cells...)
	}
	t.flush()
	told := ""
	for _, m := range st.Months {
		if text := m.First.String()[:len("2026-01")] + ": " + m.Missing; m.Missing != "" && text != told {
			p.say("%s", text)
			told = text
		}
	}
	for _, a := range earlier {
		p.say("outstanding of earlier months: %s", a.Format())
	}
	if len(months) == 0 {
		p.say("no money has been taken yet, and no subscription is active")
	}
	mrr := make([]string, len(forecast.MRR))
	for i, a := range forecast.MRR {
		mrr[i] = a.Format()
	}
	p.say("\nMonthly recurring revenue: %s\n", cmp.Or(strings.Join(mrr, "; "), "none"))
	section(p, "Expected in "+plural(days, "day")+", today the first:", []string{"DATE", "AMOUNT", "PERIODS"},
		forecast.Expected, func(x engine.Expected) []any { return []any{x.Date, x.Amount, x.Count} })
}
