package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

type reportFlags struct {
	from, to valueFlag[civil.Date]
	days     int
	csv      bool
}

func (p *program) reportCommand() *cobra.Command {
	f := reportFlags{from: monthFlag(), to: monthFlag()}
	c := p.storeLeaf("report", need{read: true},
		func(ctx context.Context, s *session, _ []string) error { return p.report(ctx, s, &f) })
	c.Flags().Var(&f.from, "from", "first month (default: a year ago, or the store's first)")
	c.Flags().Var(&f.to, "to", "last month (default: this month)")
	c.Flags().IntVar(&f.days, "days", 30, "`N` days of expected charges, starting today")
	c.Flags().BoolVar(&f.csv, "csv", false, "write the months as CSV")
	return checked(c, func([]string) error {
		switch {
		case f.csv && p.cfg.JSON:
			return usagef("--csv and --json cannot be combined")
		case !f.to.value.IsZero() && f.from.value.After(f.to.value):
			return usagef("--from %s must not be after --to %s", f.from.text, f.to.text)
		case f.from.value.After(civil.Of(p.now().AddDate(0, 0, 1))):
			return usagef("--from %s has not begun yet", f.from.text)
		}
		if err := p.walkable("to", f.to.value); err != nil {
			return err
		}
		return between("days", f.days, 1, 366)
	})
}

func (p *program) report(ctx context.Context, s *session, f *reportFlags) error {
	bar := p.progress("items", 0, nil)
	r, err := s.engine.Report(ctx, report.Query{From: f.from.value, To: f.to.value, Days: f.days, Progress: bar.done.Store})
	bar.end()
	if err != nil {
		return err
	}
	if r.Unreadable > 0 {
		p.code = exitPerson
		p.warn("the expected charges do not include %s that another tool wrote and that cannot be read",
			plural(r.Unreadable, "subscription"))
	}
	months := views(r.Months, viewRevenue)
	if f.csv {
		for _, a := range r.Before {
			p.warn("%s more is outstanding from earlier months; set an earlier --from", a.Format())
		}
		return exportRows(p.stdout, false, new(progress), monthColumns, each(months), as[object])
	}
	p.showReport(r, months, f.days)
	return p.json(object{"as_of", r.AsOf, "time_zone", r.Zone, "months", months, "outstanding_before", viewAmounts(r.Before),
		"mrr", viewAmounts(r.MRR), "expected", views(r.Expected, func(x report.Expected) object {
			return object{"date", x.Date, "currency", x.Amount.Currency().Code(), "amount", x.Amount.Decimal(), "count", x.Count}
		}), "unreadable?", r.Unreadable})
}

// viewAmounts has an amount of each currency.
func viewAmounts(list []money.Amount) object {
	o := object{}
	for _, a := range list {
		o = append(o, a.Currency().Code(), a.Decimal())
	}
	return o
}

// monthColumns are the members of a month, and the columns of tables.
var monthColumns = []string{"month", "currency", "collected", "outside", "refunded", "failed", "recovered", "outstanding",
	"complete"}

func viewRevenue(m report.Month) object {
	o := object{"month", m.First.String()[:len("2026-01")], "currency", m.Outstanding.Currency().Code()}
	for _, kind := range report.Kinds {
		o = append(o, string(kind), m.Sums[kind].Decimal())
	}
	return append(o, "outstanding", m.Outstanding.Decimal(), "complete", m.Missing == "")
}

// showReport prints the report for people.
func (p *program) showReport(r *report.Report, months []object, days int) {
	p.say("As of %s, with days in %s\n", stamp(r.AsOf), r.Zone)
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
	for _, m := range r.Months {
		if text := m.First.String()[:len("2026-01")] + ": " + m.Missing; m.Missing != "" && text != told {
			p.say("%s", text)
			told = text
		}
	}
	for _, a := range r.Before {
		p.say("outstanding from earlier months: %s", a.Format())
	}
	if len(months) == 0 {
		p.say("the store has no sums for these months, and nothing that was due in them is outstanding")
	}
	mrr := make([]string, len(r.MRR))
	for i, a := range r.MRR {
		mrr[i] = a.Format()
	}
	p.say("\nMonthly recurring revenue: %s\n", cmp.Or(strings.Join(mrr, "; "), "none"))
	section(p, "Expected in "+plural(days, "day")+", starting today:", []string{"DATE", "AMOUNT", "PERIODS"},
		r.Expected, func(x report.Expected) []any { return []any{x.Date, x.Amount, x.Count} })
}
