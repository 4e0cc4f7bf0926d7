package bookkeeping

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing/payout"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

type reportFlags struct {
	from, to       screen.Flag[civil.Date]
	payouts, until screen.Flag[civil.Date]
	days, settled  int
	csv, tax       bool
}

func (p *program) reportCommand() *cobra.Command {
	f := reportFlags{from: screen.MonthFlag(), to: screen.MonthFlag(), payouts: screen.DateFlag(), until: screen.DateFlag()}
	c := session.Leaf("report", func(ctx context.Context, _ []string) error {
		if f.payouts.Value.IsZero() {
			return p.With(ctx, session.Need{Read: true}, func(s *session.Session) error { return p.report(ctx, s, &f) })
		}
		return p.With(ctx, session.Need{Read: true, Processor: true},
			func(s *session.Session) error { return p.comparePayouts(ctx, s, &f) })
	})
	c.Flags().Var(&f.from, "from", "first month (default: a year ago, or the store's first)")
	c.Flags().Var(&f.to, "to", "last month (default: this month)")
	c.Flags().IntVar(&f.days, "days", 30, "`N` days of expected charges, starting today")
	c.Flags().BoolVar(&f.csv, "csv", false, "write the months, or the transactions in the payouts, as CSV")
	c.Flags().Var(&f.payouts, "payouts", "compare the receipts with payouts that arrive on this day or later")
	c.Flags().Var(&f.until, "until", "with --payouts: last day on which payouts arrive (default: no end)")
	c.Flags().IntVar(&f.settled, "settled", payout.Settled, "with --payouts: `N` days after which a receipt must be in a payout")
	c.Flags().BoolVar(&f.tax, "tax", false, "show only the taxes, by month, country and rate")
	return session.Checked(c, func([]string) error {
		if err := f.checkPayouts(c.Flags()); err != nil {
			return err
		}
		switch {
		case f.csv && p.AsJSON:
			return screen.Usagef("--csv and --json cannot be combined")
		case !f.to.Value.IsZero() && f.from.Value.After(f.to.Value):
			return screen.Usagef("--from %s must not be after --to %s", f.from.Text, f.to.Text)
		case f.from.Value.After(civil.Of(p.Now().AddDate(0, 0, 1))):
			return screen.Usagef("--from %s has not begun yet", f.from.Text)
		}
		if err := p.Walkable("to", f.to.Value); err != nil {
			return err
		}
		return screen.Between("days", f.days, 1, 366)
	})
}

// checkPayouts returns a UsageError if flags of the comparison and of the monthly report are combined.
func (f *reportFlags) checkPayouts(flags *pflag.FlagSet) error {
	others, needs := []string{"until", "settled"}, "needs"
	if !f.payouts.Value.IsZero() {
		others, needs = []string{"from", "to", "days"}, "cannot be combined with"
	}
	for _, name := range others {
		if flags.Changed(name) {
			return screen.Usagef("--%s %s --payouts", name, needs)
		}
	}
	if !f.until.Value.IsZero() && f.until.Value.Before(f.payouts.Value) {
		return screen.Usagef("--until %s must not be before --payouts %s", f.until.Text, f.payouts.Text)
	}
	return screen.Between("settled", f.settled, 0, payout.MaxSettled)
}

func (p *program) report(ctx context.Context, s *session.Session, f *reportFlags) error {
	bar := p.Progress("items", 0, nil)
	r, err := s.Engine.Report(ctx, report.Query{From: f.from.Value, To: f.to.Value, Days: f.days, Progress: bar.Done.Store})
	bar.End()
	if err != nil {
		return err
	}
	if r.Unreadable > 0 {
		p.Code = screen.ExitPerson
		p.Warn("the expected charges do not include %s that another tool wrote and that cannot be read",
			screen.Plural(r.Unreadable, "subscription"))
	}
	months := view.List(r.Months, func(m report.Month) view.Object { return row(view.Month(m), "", "") })
	if f.tax {
		if r.TaxesLeft > 0 {
			p.Code = screen.ExitPerson
			p.Warn("the sums do not include %s, refund or dispute that cannot be read; duesday verify names them", screen.Plural(r.TaxesLeft, "receipt"))
		}
		return p.reportTaxes(r, f)
	}
	if f.csv {
		for _, a := range r.Before {
			p.Warn("%s more is outstanding from earlier months; set an earlier --from", a.Format())
		}
		return exportRows(p.Out, false, new(screen.Progress), monthColumns, sequence.Of(months), screen.Itself[view.Object])
	}
	p.showReport(r, months, f.days)
	return p.JSON(view.Report(r))
}

// monthColumns are the members of a month's view, and the columns of the report's tables.
var monthColumns = []string{"month", "currency", "collected", "outside", "refunded", "declined", "failed", "recovered",
	"outstanding", "complete"}

// taxColumns are the members of a tax's view, and the columns of its table.
var taxColumns = []string{"month", "country", "rate", "note", "currency", "receipts", "net", "tax", "gross", "refunds",
	"refunded_net", "refunded_tax", "refunded"}

func (p *program) reportTaxes(r *report.Report, f *reportFlags) error {
	rows := view.List(r.Taxes, func(x report.Tax) view.Object { return row(view.Tax(x), "", "") })
	if f.csv {
		return exportRows(p.Out, false, new(screen.Progress), taxColumns, sequence.Of(rows), screen.Itself[view.Object])
	}
	p.rows(taxColumns, rows)
	if len(rows) == 0 {
		p.Say("no receipt of these months has a tax rate")
	}
	return p.JSON(view.Report(r))
}

// rows prints a table with the columns.
func (p *program) rows(columns []string, rows []view.Object) {
	t := p.Table(strings.Split(strings.ToUpper(strings.Join(columns, " ")), " ")...)
	for _, r := range rows {
		cells := make([]any, len(columns))
		for i, name := range columns {
			cells[i] = screen.Text(r, name)
		}
		t.Row(cells...)
	}
	t.Flush()
}

// showReport prints the report as text for human readers.
func (p *program) showReport(r *report.Report, months []view.Object, days int) {
	p.Say("As of %s, with days in %s\n", view.Stamp(r.AsOf), r.Zone)
	p.rows(monthColumns, months)
	told := ""
	for _, m := range r.Months {
		if text := m.First.String()[:len("2026-01")] + ": " + m.Missing; m.Missing != "" && text != told {
			p.Say("%s", text)
			told = text
		}
	}
	for _, a := range r.Before {
		p.Say("outstanding from earlier months: %s", a.Format())
	}
	if len(months) == 0 {
		p.Say("the store has no sums for these months, and nothing that was due in them is outstanding")
	}
	mrr := make([]string, len(r.MRR))
	for i, a := range r.MRR {
		mrr[i] = a.Format()
	}
	p.Say("\nMonthly recurring revenue: %s\n", cmp.Or(strings.Join(mrr, "; "), "none"))
	screen.Section(p.Screen, "Expected in "+screen.Plural(days, "day")+", starting today:", []string{"DATE", "AMOUNT", "PERIODS"},
		r.Expected, func(x report.Expected) []any { return []any{x.Date, x.Amount, x.Count} })
}
