package engine

import (
	"context"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
)

// Arrears are the periods that a cancellation writes off. They were due by the time of the request,
// and no one has paid them. Each period has a record.

// CancelCollecting cancels the subscription now, after one attempt to charge each overdue period.
// It uses no retry days, and a payment that the customer would have to authenticate counts as
// unpaid. It returns the outcomes, and ErrState unless the subscription is active or past_due. The
// first commit sets the subscription to end with its period, so after a crash no run charges a
// later period, and the same call continues.
func (e *Engine) CancelCollecting(ctx context.Context, n billing.Name) (results []Result, s *billing.Subscription, err error) {
	if s, err = e.Subscription(ctx, n); err == nil {
		err = e.mayCollect(ctx, s)
	}
	if err != nil {
		return nil, s, err
	}
	s, err = e.change(ctx, n, func(s *billing.Subscription, today civil.Date) ([]write, error) {
		switch {
		case s.Over():
			return nil, wrongStatus(s)
		case s.Status != billing.Active && s.Status != billing.PastDue:
			return nil, refusal(s, " is %s, so its overdue periods cannot be collected; omit --collect", s.Status)
		case s.Requested != billing.RequestNone:
			return nil, refusal(s, ": %s is requested; wait until it is done", s.Requested)
		case s.Altered() != "":
			return nil, refusal(s, " was %s; the next run parks it, then charge or skip the period", s.Altered())
		}
		if err := refuseByWire(s, s.AtHand()); err != nil {
			return nil, err
		}
		s.EndWithPeriod(today)
		if due, err := s.Due(); s.Status == billing.PastDue && err == nil {
			s.Status = billing.Active
			s.Reschedule(due, today)
		}
		return nil, nil
	})
	if err == nil && call.Of(ctx).Repeats() != nil && !s.CancelAtEnd && s.Requested != billing.RequestCancel {
		return nil, s, nil // somebody has withdrawn the cancellation
	}
	for moved := true; err == nil && moved && s.Status == billing.Active && (s.AtHand() < s.Period || !s.AtEnd()); {
		at := s.AtHand()
		w := work{trigger: byPerson, period: at, Pass: Pass{Day: e.day}, last: true}
		failed := e.collect(ctx, s.Name, w, func(r Result) { results = append(results, r) })
		if s, err = e.Load(ctx, s.Name); err == nil && s.AtHand() == at {
			moved, err = false, failed
		}
	}
	if err != nil || s.Over() {
		return results, s, err
	}
	s, err = e.Cancel(call.After(ctx), n, false) // also in a repetition, which finds the subscription as it was left
	return results, s, err
}

// endTried closes the open period as void after CancelCollecting has made its one attempt.
func (e *Engine) endTried(ctx context.Context, s *billing.Subscription, today civil.Date) (step, error) {
	r := resultOf(s, OutcomeSkipped, e.failure(s.Open))
	p := e.ended(s, billing.EndVoid, billing.CancelledVoid, s.Open)
	return step{result: r}, e.put(ctx, s, append(e.pass(s, today, false, e.Now()), e.putRecord(p))...)
}
