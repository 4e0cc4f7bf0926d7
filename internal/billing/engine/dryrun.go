package engine

import (
	"context"
	"strconv"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
)

// dryRun reports what collect would do with the subscription, and does none of it. A period to be
// opened or tried again is reported as skipped; one parked, or to be parked, as parked.
func (e *Engine) dryRun(ctx context.Context, n billing.Name, day civil.Date, report func(Result)) error {
	s, err := e.Load(ctx, n)
	if err != nil {
		return billing.IgnoreNotFound(err)
	}
	today := s.Today(day, e.Now())
	for w := (work{}); ; {
		x, err := e.situation(s, &w, today, false)
		if err != nil {
			return err
		}
		switch next(x) {
		case doOpen:
			method, _, err := e.methodOf(ctx, s)
			if err != nil {
				return err
			}
			if method == "" {
				report(*resultOf(s, OutcomeParked, noMethod))
				return nil
			}
			report(*resultOf(s, OutcomeSkipped, "would be charged"))
		case doParkOverload, doParkAltered:
			report(*resultOf(s, OutcomeParked, "would be parked"))
			return nil
		case doReportParked:
			report(*resultOf(s, OutcomeParked, s.Parked))
			return nil
		case doReopen:
			if p, err := e.RecordOf(ctx, s.Name, s.Collect-1); err == nil {
				t := turn{s: s, record: p}
				report(*t.result(OutcomeSkipped, "would be charged"))
			} else if billing.IgnoreNotFound(err) != nil {
				return err
			}
			s.Collect = 0
			continue
		case doLookUp:
			r := dryRunOpen(s)
			if report(*r); !s.Collecting() || r.Outcome != OutcomeSkipped {
				return nil
			}
			s.Open = nil
			continue
		default:
			return nil
		}
		w.paid++
		if s.Period++; s.Installments > 0 && s.Paid+w.paid+1 >= s.Installments {
			return nil
		}
	}
}

// dryRunOpen returns the expected outcome of the open period. Only a period to be tried again is
// reported as skipped, like those to be charged.
func dryRunOpen(s *billing.Subscription) *Result {
	switch o := s.Open; {
	case s.Ending():
		return resultOf(s, OutcomePending, "its payment intent is being cancelled")
	case s.Status == billing.ParkedState:
		return resultOf(s, OutcomeParked, s.Parked)
	case o.State == billing.RequiresAction:
		return resultOf(s, OutcomePending, awaitsCustomer)
	case o.State == billing.Processing:
		return resultOf(s, OutcomePending, "the processor is still processing it")
	default:
		return resultOf(s, OutcomeSkipped, "open: attempt "+strconv.Itoa(o.Attempt))
	}
}
