package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/store"
)

// A PeriodCharge is a person's request to charge one period.
type PeriodCharge struct {
	Period int
	Reopen string // why a void or skipped period is charged after all
}

// A PeriodCharged is the answer to a PeriodCharge.
type PeriodCharged struct {
	Results      []Result
	Subscription *billing.Subscription
	Paid         bool             // the period was paid before
	Receipt      *billing.Receipt // of that payment; nil: it has expired
}

// ChargePeriod charges the period now, and no other one: the next one if it is due or parked, or a
// past one that ended unpaid. A past one is marked first, so that the next payment run goes on with
// it after a crash. It returns ErrState if the period cannot be charged now. A paid period is no
// error: the same request may have landed before.
func (e *Engine) ChargePeriod(ctx context.Context, n billing.Name, r PeriodCharge) (a PeriodCharged, err error) {
	if err := billing.CheckText("reopen", r.Reopen, billing.MaxText); err != nil {
		return a, err
	}
	s, err := e.Subscription(ctx, n)
	if err != nil {
		return a, err
	}
	if a.Subscription = s; s.AtHand() != r.Period {
		if err := mayCollectBeside(s, r.Period); err != nil {
			return a, err
		}
	}
	if err := e.mayCollect(ctx, s); err != nil {
		return a, err
	}
	if r.Period < s.Period {
		s, err = e.change(ctx, s.Name, func(s *billing.Subscription, today civil.Date) ([]store.Write, error) {
			return e.markPast(ctx, s, r, today)
		})
		if errors.Is(err, errPaid) {
			a.Paid = true
			a.Receipt, err = e.receiptOf(ctx, n, r.Period)
			return a, err
		}
		if err != nil && !errors.Is(err, billing.ErrUnchanged) {
			return a, err
		}
	} else if s.Open == nil && s.Status != billing.Active && s.Status != billing.ParkedState {
		return a, wrongStatus(s)
	} else if due, err := s.Due(); err != nil {
		return a, err
	} else if today := s.Today(civil.Date{}, e.Now()); due.After(today) {
		return a, fmt.Errorf("subscription %s: period %d is due on %s: %w", s.Name, r.Period, due, billing.ErrState)
	}
	a.Results, a.Subscription, err = e.collectOne(ctx, s, byPerson, r.Period)
	return a, err
}

// mayCollectBeside returns ErrState if the period, which is not at hand, may not be charged now.
func mayCollectBeside(s *billing.Subscription, period int) error {
	switch {
	case period < 0:
		return billing.Invalid("period", "want 0 or more")
	case s.Over():
		return wrongStatus(s)
	case period > s.Period:
		due, err := s.Schedule().Due(period)
		if err != nil {
			return billing.Invalid("period", err.Error())
		}
		return fmt.Errorf("subscription %s: period %d is due on %s, and period %d is the next: %w", s.Name, period, due,
			s.Period, billing.ErrState)
	case s.Open != nil:
		return fmt.Errorf("subscription %s: period %d is open; period %d can be charged when it has ended: %w", s.Name,
			s.Open.Period, period, billing.ErrState)
	case s.Collect > 0:
		return fmt.Errorf("subscription %s: period %d is to be collected first: %w", s.Name, s.AtHand(), billing.ErrState)
	case s.Status == billing.ParkedState:
		return fmt.Errorf("subscription %s: period %d is parked: charge or skip it first: %w", s.Name, s.Period,
			billing.ErrState)
	case s.Altered() != "":
		return fmt.Errorf("subscription %s: %s: %w", s.Name, s.Altered(), billing.ErrState)
	}
	return nil
}

// errPaid: the past period has no record of an unpaid end.
var errPaid = errors.New("the period is paid")

// markPast marks the past period, in memory. It returns the write of a record that is opened again,
// ErrUnchanged if the period is at hand, or errPaid.
func (e *Engine) markPast(ctx context.Context, s *billing.Subscription, r PeriodCharge,
	today civil.Date) ([]store.Write, error) {
	p, err := e.recordOf(ctx, s.Name, r.Period)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, errPaid
	case err != nil:
		return nil, err
	case s.AtHand() == r.Period:
		return nil, billing.ErrUnchanged
	}
	if err := mayCollectBeside(s, r.Period); err != nil {
		return nil, err
	}
	var writes []store.Write
	switch {
	case s.PaidOff():
		return nil, fmt.Errorf("subscription %s: all %d installments are paid: %w", s.Name, s.Installments, billing.ErrState)
	case p.Ending == billing.EndFailed:
	case r.Reopen == "":
		return nil, fmt.Errorf("subscription %s: period %d is %s (%s): to charge it after all, say why with --reopen: %w",
			s.Name, p.Period, p.Ending, p.Reason, billing.ErrState)
	default:
		p.Reason = fmt.Sprintf("%s (%s); reopened: %s", p.Ending, p.Reason, r.Reopen)
		p.Ending = billing.EndFailed
		writes = append(writes, p.Write(e.Table))
	}
	s.MarkCollect(r.Period, today)
	return writes, nil
}

// receiptOf returns the receipt that has settled the period, or nil if it has expired.
func (e *Engine) receiptOf(ctx context.Context, n billing.Name, period int) (*billing.Receipt, error) {
	found, err := e.ReceiptsOf(ctx, n, period)
	for _, r := range found {
		if r.Kind != billing.Overpayment {
			return r, err
		}
	}
	return nil, err
}
