package engine

import (
	"cmp"
	"context"
	"strconv"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
)

// Report scans the store and returns its report. Expect predicts the future charges.
func (e *Engine) Report(ctx context.Context, q report.Query) (*report.Report, error) {
	q.Settings, q.Expect = e.cfg.Settings, e.Expect
	return report.Make(ctx, e.Records, q)
}

// Expect is a report.Expect.
func (e *Engine) Expect(ctx context.Context, s *billing.Subscription, days int, note func(civil.Date, money.Amount) error) (err error) {
	today := s.Today(civil.Date{}, e.Now())
	failed := e.foresee(ctx, s, today, today.AddDays(days-1), func(day civil.Date, r *Result) {
		if (r.Outcome == OutcomeSkipped || r.Outcome == OutcomeAsked) && err == nil {
			err = note(day, r.Amount)
		}
	})
	return cmp.Or(failed, err)
}

// DryRun reports what collect would do with the subscription, and changes nothing.
func (e *Engine) DryRun(ctx context.Context, n billing.Name, day civil.Date, report func(Result)) error {
	s, err := e.Load(ctx, n)
	if err != nil {
		return billing.IgnoreNotFound(err)
	}
	today := s.Today(day, e.Now())
	return e.foresee(ctx, s, today, today, func(_ civil.Date, r *Result) { report(*r) })
}

// foresee reports the results of the runs from today to the last day, with the day of each result,
// on the assumption that every charge succeeds. It only changes s. It reports a period that a run
// would open or try again as skipped, or as asked if the customer pays by wire. It reports a period
// that is parked or would be parked as parked.
func (e *Engine) foresee(ctx context.Context, s *billing.Subscription, today, last civil.Date,
	report func(civil.Date, *Result)) error {
	method := ""
	for w, day := (work{}), today; ; {
		switch {
		case s.Open != nil:
			day = civil.Later(day, s.Open.Retry)
		case s.Collect == 0 && !s.Upgrading():
			due, err := s.Due()
			if err != nil {
				return nil // the last year of the subscription is over
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
		a, past := next(x.released()), s.AtHand() < s.Period
		switch a {
		case doOpen:
			if method == "" {
				if method, _, err = e.Cards().MethodOf(ctx, s); err != nil {
					return err
				}
			}
			if s.TakeEffect(); method == "" {
				report(day, resultOf(s, OutcomePending, billing.NoMethod))
				return nil
			}
			report(day, resultOf(s, OutcomeSkipped, "would be charged"))
			w.paid++
		case doReopen:
			if err := e.foreseePast(ctx, s, func(r *Result) { report(day, r) }); err != nil {
				return err
			}
		case doLookUp:
			r := foreseeOpen(s)
			if report(day, r); s.Ending() || s.Status == billing.ParkedState {
				return nil
			}
			if r.Outcome == OutcomePending { // the wait may last beyond the next period
				today = day.AddDays(1)
			}
		case doDropUpgrade, doUnpark:
			s.EndUpgrade("its day is over")
			s.Status, s.Parked = billing.Active, ""
			continue
		default:
			r, ends := foreseeAction(s, a)
			if r != nil {
				report(day, r)
			}
			if ends {
				return nil
			}
		}
		if s.Upgrading() {
			s.Upgraded()
		}
		if s.Open, s.Paid = nil, s.Paid+1; !past {
			s.Period++
		}
	}
}

// foreseeAction returns the result of an action that asks the processor nothing, and reports whether the
// forecast ends with it.
func foreseeAction(s *billing.Subscription, a action) (r *Result, ends bool) {
	switch a {
	case doOpenUpgrade:
		return upgradeResult(s, OutcomeSkipped, "would be charged"), false
	case doAskToPay:
		s.TakeEffect()
		return resultOf(s, OutcomeAsked, "the customer would be asked to pay"), false
	case doEndUnpaid:
		return resultOf(s, OutcomeFailed, "would end unpaid"), false
	case doAwaitPayment:
		return resultOf(s, OutcomePending, awaitsPayment(s.Open)), false
	case doParkOverload, doParkAltered, doParkUntaxed:
		return resultOf(s, OutcomeParked, "would be parked"), true
	case doReportParked:
		return resultOf(s, parkedOutcome(s), s.Parked), true
	}
	return nil, true
}

// foreseePast reports the past period that is marked for collection.
func (e *Engine) foreseePast(ctx context.Context, s *billing.Subscription, report func(*Result)) error {
	p, err := e.RecordOf(ctx, s.Name, s.Collect-1)
	if s.Collect = 0; err != nil {
		return billing.IgnoreNotFound(err)
	}
	t := turn{s: s, record: p}
	switch method, _, err := e.Cards().MethodOf(ctx, s); {
	case err != nil:
		return err
	case method == "":
		report(t.result(OutcomeFailed, "not collected: "+billing.NoMethod))
	default:
		report(t.result(OutcomeSkipped, "would be charged"))
	}
	return nil
}

// foreseeOpen returns the expected outcome of the open period. It reports only a period that a run
// would try again as skipped, like the periods that a run would charge.
func foreseeOpen(s *billing.Subscription) *Result {
	switch o := s.Open; {
	case s.Ending():
		return resultOf(s, OutcomePending, "its payment intent is being canceled")
	case s.Status == billing.ParkedState:
		return resultOf(s, OutcomeParked, s.Parked)
	case o.State == processor.RequiresAction:
		return resultOf(s, OutcomePending, awaitsCustomer)
	case o.State == processor.Processing:
		return resultOf(s, OutcomePending, "the processor is still processing it")
	default:
		return resultOf(s, OutcomeSkipped, "open: attempt "+strconv.Itoa(o.Attempt))
	}
}
