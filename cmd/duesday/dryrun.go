package main

import (
	"context"
	"strconv"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/money"
)

// dryRun lists the periods of the job as they are found.
func (p *program) dryRun(ctx context.Context, s *session, kind billing.Kind, o engine.RunOptions) error {
	name := "would_charge"
	if kind == billing.Reminders {
		name = "would_remind"
	}
	list := newObjectWriter(p.stdout, name)
	t := newTable(p.stdout, "SUBSCRIPTION", "PERIOD", "DUE", "AMOUNT", "WHAT")
	var totals money.Totals
	n := 0
	var failed error
	o.Each = func(r engine.Result) {
		if kind == billing.Reminders && r.Outcome == engine.OutcomeSkipped {
			return
		}
		if kind == billing.Payments {
			if r.Outcome == engine.OutcomeParked {
				return
			}
			if err := totals.Add(r.Amount); err != nil && failed == nil {
				failed = err
			}
		}
		n++
		if !p.cfg.JSON {
			t.row(r.Name.String(), strconv.Itoa(r.Period), date(r.Due), r.Amount.Format(), r.Reason)
			return
		}
		v := viewResult(r)
		v.Outcome = ""
		if err := list.add(v); err != nil && failed == nil {
			failed = err
		}
	}
	report, err := p.start(ctx, s, kind, o)
	if err == nil {
		err = failed
	}
	if report == nil {
		return err
	}
	if p.cfg.JSON {
		report.DryRun, report.Amounts = true, totals
		if ending := list.end(viewReport(report, 0, 0)); err == nil {
			err = ending
		}
		return err
	}
	t.flush()
	what := "charged"
	if kind == billing.Reminders {
		what = "reminded of"
	}
	p.say("\n%d would be %s on %s%s; nothing was done", n, what, report.Date, prefixed(": ", formatTotals(&totals)))
	return err
}
