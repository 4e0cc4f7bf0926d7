package billing

import (
	"context"
	"errors"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/store"
)

// A verdict says what the payment job does with a subscription that has no period open.
type verdict uint8

const (
	leave    verdict = iota // not to be charged
	early                   // its day has not come
	lapse                   // to be cancelled at the period's end, which is now
	overload                // too many missed periods: park it
	charge                  // open the period and charge it
)

// judge is what both the job and its dry run decide by. charged is the number of periods of
// the subscription that this run has charged already.
func (e *Engine) judge(s *Subscription, due, today civil.Date, m mode, charged int) verdict {
	switch {
	case m.finish || (s.Status != Active && !(m.manual && s.Status == ParkedState)):
		return leave
	case due.After(today):
		return early
	case s.CancelAtEnd:
		return lapse
	case m.manual && charged > 0:
		return leave
	case charged >= e.cfg.CatchUp && !m.manual:
		return overload
	}
	return charge
}

// plan reports what collect would do with the subscription, and does none of it: every
// period that would be opened or tried again is reported as skipped.
func (e *Engine) plan(ctx context.Context, n Name, day civil.Date, report func(Result)) error {
	s, err := e.load(ctx, n)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	today := s.today(day, e.now())
	if s.Open != nil {
		o := s.Open
		if !o.Retry.IsZero() && o.Retry.After(today) && s.Requested == RequestNone {
			return nil
		}
		reason := "open: attempt " + itoa(o.Attempt)
		if s.Status == ParkedState {
			reason = "parked: " + s.Parked
		}
		report(*s.result(OutcomeSkipped, reason))
		return nil
	}
	for charged := 0; ; charged++ {
		due, err := s.Schedule().Due(s.Period)
		if err != nil {
			return err
		}
		switch e.judge(s, due, today, mode{}, charged) {
		case charge:
			report(*s.result(OutcomeSkipped, "would be charged"))
		case overload:
			report(*s.result(OutcomeSkipped, "would be parked"))
			return nil
		default:
			return nil
		}
		if s.Period++; s.Installments > 0 && s.Paid+charged+1 >= s.Installments {
			return nil
		}
	}
}
