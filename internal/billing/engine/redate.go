package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/reversal"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
)

// SetCharging calls charging.Control.Turn. If it turns charging on, it also redates the rows that
// runs with a fast clock have postponed.
func (e *Engine) SetCharging(ctx context.Context, on bool, reason string) error {
	if on {
		if err := e.redate(call.Without(ctx)); err != nil {
			return err
		}
	}
	return e.Charging().Turn(ctx, on, reason)
}

// redate moves waiting rows to today if runs with a fast clock have moved them to later days.
// Otherwise, no run would read the rows before those days. The caller can repeat an interrupted
// redate.
func (e *Engine) redate(ctx context.Context) error {
	days, err := e.daysAhead(ctx)
	if err != nil {
		return err
	}
	for _, d := range days {
		for it, err := range e.Indexed(ctx, schema.PaymentIndex, d) {
			if err != nil {
				return err
			}
			n, illegible, err := e.FindRow(ctx, it)
			if err = cmp.Or(err, illegible); err == nil {
				err = e.reload(ctx, n, func(s *billing.Subscription) error { return e.redateOne(ctx, s) })
			}
			if _, bad := errors.AsType[*billing.IllegibleError](err); err != nil && !bad {
				return billing.IgnoreNotFound(err)
			}
		}
	}
	return nil
}

// daysAhead returns the days after today to which payment runs with a fast clock may have moved
// rows.
func (e *Engine) daysAhead(ctx context.Context) (days []civil.Date, err error) {
	later := append(append([]int{-1, 0, 1}, e.cfg.RetryDays...), e.cfg.DebitRetries...)
	for n := range e.cfg.PayDays {
		later = append(later, n+2) // days of periods by wire
	}
	for it, err := range e.LatestRuns(ctx, billing.Payments, 0) {
		if err != nil {
			return nil, err
		}
		for _, name := range [...]string{schema.StartedDate, schema.SeenDate, schema.EndedDate} {
			at := billing.ParseStamp(it.Str(name))
			for _, n := range later {
				if d := civil.Of(at).AddDays(n); at.After(e.Now()) && d.After(e.Today()) && !slices.Contains(days, d) {
					days = append(days, d)
				}
			}
		}
	}
	return days, nil
}

// redateOne redates one subscription. A period that was parked before it was due waits for no one.
func (e *Engine) redateOne(ctx context.Context, s *billing.Subscription) error {
	today := s.Today(civil.Date{}, e.Now())
	due, err := s.Due()
	o := s.Open
	switch {
	case err != nil || !s.NextPayment.After(today):
		return err
	case o == nil && s.Status == billing.ParkedState && due.After(today) && !reversal.Holds(s):
		others, err := e.unpark(s, today)
		if err != nil {
			return err
		}
		return e.put(ctx, s, others...)
	case o == nil && s.Status != billing.ParkedState && s.Collect == 0 && s.Requested == billing.RequestNone:
		return nil
	case o.ByWire():
		o.PayBy = civil.Earlier(o.PayBy, e.payBy(s, o.Due, today))
		today = civil.Later(o.PayBy, today)
	case o != nil:
		for _, d := range [...]*civil.Date{&o.First, &o.Asked} {
			if d.After(today) {
				*d = today
			}
		}
		if !o.Retry.IsZero() {
			o.Retry = e.retryDate(o.First, today, o.Debit)
		}
		today = civil.Later(o.Retry, today)
	}
	s.NextPayment = today
	return e.put(ctx, s)
}
