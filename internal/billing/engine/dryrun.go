package engine

import (
	"context"
	"errors"
	"strconv"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/store"
)

// A verdict says what the payment job does with a subscription that has no period open.
type verdict uint8

const (
	leave     verdict = iota // not to be charged
	early                    // its day has not come
	lapse                    // to be cancelled at the period's end, which is now
	overload                 // too many missed periods: park it
	charge                   // open the period and charge it
	undecided                // parked: a person has to decide
)

// judge is what both the job and its dry run decide by. charged is the number of periods of
// the subscription that this run has charged already.
func (e *Engine) judge(s *billing.Subscription, due, today civil.Date, m trigger, charged int) verdict {
	switch {
	case s.Status == billing.ParkedState && !m.manual && !m.finish:
		return undecided
	case m.finish || s.PaidOff() || (s.Status != billing.Active && s.Status != billing.ParkedState):
		return leave
	case due.After(today):
		return early
	case s.CancelAtEnd:
		return lapse
	case m.manual && charged > 0:
		return leave
	case charged >= e.cfg.CatchUp && !m.manual:
		return overload
	case !m.manual && !s.Ours() && s.Arrears(e.cfg.CatchUp, today):
		return overload
	}
	return charge
}

// plan reports what collect would do with the subscription, and does none of it: every
// period that would be opened or tried again is reported as skipped, and what is or would be
// parked as parked.
func (e *Engine) dryRun(ctx context.Context, n billing.Name, day civil.Date, report func(Result)) error {
	s, err := e.Load(ctx, n)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	today := s.Today(day, e.Now())
	if s.Open != nil {
		o := s.Open
		if !o.Retry.IsZero() && o.Retry.After(today) && s.Requested == billing.RequestNone {
			return nil
		}
		report(*dryRunOpen(s))
		return nil
	}
	for charged := 0; ; charged++ {
		due, err := s.Schedule().Due(s.Period)
		if err != nil {
			return err
		}
		switch e.judge(s, due, today, trigger{}, charged) {
		case charge:
			method, _, err := e.methodOf(ctx, s)
			if err != nil {
				return err
			}
			if method == "" {
				report(*resultOf(s, OutcomeParked, noMethod))
				return nil
			}
			report(*resultOf(s, OutcomeSkipped, "would be charged"))
		case overload:
			report(*resultOf(s, OutcomeParked, "would be parked"))
			return nil
		case undecided:
			report(*resultOf(s, OutcomeParked, s.Parked))
			return nil
		default:
			return nil
		}
		if s.Period++; s.Installments > 0 && s.Paid+charged+1 >= s.Installments {
			return nil
		}
	}
}

// dryRunOpen says what would become of the open period: only one that would be tried again is
// reported as skipped, like those that would be charged.
func dryRunOpen(s *billing.Subscription) *Result {
	switch o := s.Open; {
	case s.Ending():
		return resultOf(s, OutcomePending, "its payment intent is being cancelled")
	case s.Status == billing.ParkedState:
		return resultOf(s, OutcomeParked, s.Parked)
	case o.State == billing.RequiresAction:
		return resultOf(s, OutcomePending, "the customer has to authenticate the payment")
	case o.State == billing.Processing:
		return resultOf(s, OutcomePending, "the processor is still processing it")
	default:
		return resultOf(s, OutcomeSkipped, "open: attempt "+strconv.Itoa(o.Attempt))
	}
}
