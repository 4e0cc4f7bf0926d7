package engine

import (
	"context"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

// Report returns the report of the store. It decides about the days to come, today the first, as runs
// do. It scans.
func (e *Engine) Report(ctx context.Context, q report.Query) (*report.Report, error) {
	q.Expect, q.Settings = e.expect, e.cfg.Settings
	return report.Make(ctx, e.Records, q)
}

// expect is report.Query.Expect.
func (e *Engine) expect(ctx context.Context, s *billing.Subscription, days int,
	note func(civil.Date, money.Amount) error) error {
	today := s.Today(civil.Date{}, e.Now())
	last := today.AddDays(days - 1)
	method := ""
	for w, day := (work{}), today; ; {
		switch {
		case s.Open != nil:
			day = civil.Later(day, s.Open.Retry)
		case s.Collect == 0:
			due, err := s.Due()
			if err != nil {
				return nil // its last year is over
			}
			if later := civil.Later(due, today); later != day {
				w, day = work{}, later
			}
		}
		if day.After(last) {
			return nil
		}
		x, err := e.situation(s, &w, day, false)
		if err != nil {
			return err
		}
		a, past := next(x), s.AtHand() < s.Period
		if (a == doOpen || a == doReopen) && method == "" {
			if method, _, err = e.methodOf(ctx, s); err != nil || method == "" {
				return err
			}
		}
		switch a {
		case doOpen:
			s.TakeEffect()
			err = note(day, s.Amount)
			w.paid++
		case doReopen:
			var p *billing.EndedPeriod
			if p, err = e.RecordOf(ctx, s.Name, s.Collect-1); err == nil {
				err = note(day, p.Amount)
			}
			s.Collect = 0
		case doLookUp:
			switch r := dryRunOpen(s); {
			case r.Outcome == OutcomeSkipped:
				err = note(day, s.Open.Amount)
			case s.Ending() || s.Status == billing.ParkedState:
				return nil
			}
			s.Open = nil // the customer or the processor may take longer than to the next period
		default:
			return nil
		}
		if billing.IgnoreNotFound(err) != nil {
			return err
		}
		if s.Paid++; !past {
			s.Period++
		}
	}
}
