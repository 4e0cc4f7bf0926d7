package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/store"
)

// change decides anew until its commit meets the subscription as it was read.
func (e *Engine) change(ctx context.Context, n billing.Name, decide func(s *billing.Subscription, today civil.Date) ([]store.Write, error)) (*billing.Subscription, error) {
	if err := e.checkClock(ctx); err != nil {
		return nil, err
	}
	full, err := e.Subscription(ctx, n)
	if err != nil {
		return nil, err
	}
	defer e.locks.lock(full.Name)()
	for range store.MaxTries {
		s, err := e.Load(ctx, full.Name)
		if err != nil {
			return nil, err
		}
		others, err := decide(s, s.Today(civil.Date{}, e.Now()))
		if err != nil {
			return s, err
		}
		if err = e.Put(ctx, s, others...); err == nil {
			return s, nil
		} else if !store.Retryable(err) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("subscription %s: overtaken by others %d times", n, store.MaxTries)
}

// UpdateSubscription changes amount, day, method, address or reminder. A new method for an
// open period takes effect with the next look of the payment job, which is set to today.
// Where the processor keeps the account's customer, the method must be that customer's.
func (e *Engine) UpdateSubscription(ctx context.Context, n billing.Name, c billing.Change) (*billing.Subscription, error) {
	var payer billing.Payer
	if c.Method != nil {
		if err := billing.CheckMethod(*c.Method); err != nil {
			return nil, err
		}
		if err := e.checkRollbackOf(ctx, n.Account); err != nil {
			return nil, err
		}
		method, p, err := e.ownMethod(ctx, n, *c.Method)
		if err != nil {
			return nil, err
		}
		c.Method, payer = &method, p
	}
	s, err := e.change(ctx, n, func(s *billing.Subscription, today civil.Date) ([]store.Write, error) {
		if s.Over() {
			return nil, fmt.Errorf("subscription %s is %s: %w", s.Name, s.Status, billing.ErrState)
		}
		if err := s.ChangeTerms(c, today); err != nil {
			return nil, err
		}
		if c.Method == nil {
			return nil, nil
		}
		return e.changeMethod(ctx, s, *c.Method, payer, today)
	})
	if err == nil && c.Method != nil && s.Status == billing.PastDue && s.Open == nil {
		return e.Resume(ctx, n) // more due dates to void than one commit takes
	}
	return s, err
}

// ownMethod returns the method as the subscription is to be charged with it, and the payer.
func (e *Engine) ownMethod(ctx context.Context, n billing.Name, method string) (string, billing.Payer, error) {
	if _, ok := e.proc.(billing.Wallet); !ok {
		return method, billing.Payer{}, nil
	}
	a, err := e.Account(ctx, n.Account)
	if errors.Is(err, store.ErrNotFound) {
		return method, billing.Payer{}, nil
	}
	if err != nil {
		return "", billing.Payer{}, err
	}
	if a.Payer.Customer == "" {
		return method, a.Payer, nil
	}
	card, err := e.ownCard(ctx, a.Payer, method)
	return card.Method, a.Payer, err
}

// changeMethod sets the subscription's own method. An open period is tried with it at once,
// unless its end has begun. past_due becomes active again, without a back-charge.
func (e *Engine) changeMethod(ctx context.Context, s *billing.Subscription, method string, p billing.Payer, today civil.Date) ([]store.Write, error) {
	s.SetMethod(method, e.Now())
	if s.Open != nil {
		if err := e.retry(ctx, s, method, p, today); err != nil && !errors.Is(err, billing.ErrUnchanged) {
			return nil, err
		}
		s.NextPayment = today
	}
	switch {
	case s.Status == billing.PastDue:
		return e.reactivate(s, today)
	case s.Status == billing.ParkedState && s.Parked == noMethod && s.Open == nil:
		return e.unpark(s, today)
	}
	return nil, nil
}

// Pause stops charging until Resume. A period that is open is ended first: void, or paid
// if the money was taken before.
func (e *Engine) Pause(ctx context.Context, n billing.Name) (*billing.Subscription, error) {
	return e.request(ctx, n, billing.RequestPause, func(s *billing.Subscription, today civil.Date) ([]store.Write, error) {
		if s.Status == billing.ParkedState {
			return nil, fmt.Errorf("subscription %s is parked: charge or skip the period first: %w", s.Name, billing.ErrState)
		}
		s.Pause(today)
		return nil, nil
	}, billing.Active, billing.PastDue)
}

// Cancel ends the subscription now, or instead of charging the next period. The
// subscription it returns is canceled only when the processor has shown an open intent
// cancelled; if the money was taken first, the receipt stands.
func (e *Engine) Cancel(ctx context.Context, n billing.Name, atPeriodEnd bool) (*billing.Subscription, error) {
	if atPeriodEnd {
		return e.change(ctx, n, func(s *billing.Subscription, _ civil.Date) ([]store.Write, error) {
			if s.Status == billing.CanceledSub || s.Status == billing.Completed {
				return nil, fmt.Errorf("subscription %s is %s: %w", s.Name, s.Status, billing.ErrState)
			}
			if s.Status != billing.Active {
				return nil, fmt.Errorf("subscription %s is %s: cancel it now: %w", s.Name, s.Status, billing.ErrState)
			}
			s.CancelAtEnd = true
			s.NextReminder = civil.Date{}
			return nil, nil
		})
	}
	return e.request(ctx, n, billing.RequestCancel, func(s *billing.Subscription, today civil.Date) ([]store.Write, error) {
		if s.Status != billing.ParkedState {
			s.Cancel()
			return nil, nil
		}
		void := e.ended(s, billing.EndVoid, "the subscription was cancelled", nil)
		s.Requested = billing.RequestCancel
		e.pass(s, today, false, e.Now())
		return []store.Write{void.Write(e.Table)}, nil
	}, billing.Active, billing.Paused, billing.PastDue, billing.ParkedState)
}

// request does at once what needs no processor; with a period open it commits the request
// first, then brings the period to its end.
func (e *Engine) request(ctx context.Context, n billing.Name, r billing.Request, closed func(*billing.Subscription, civil.Date) ([]store.Write, error), from ...billing.Status) (*billing.Subscription, error) {
	s, err := e.change(ctx, n, func(s *billing.Subscription, today civil.Date) ([]store.Write, error) {
		if !slices.Contains(from, s.Status) {
			return nil, fmt.Errorf("subscription %s is %s: %w", s.Name, s.Status, billing.ErrState)
		}
		if s.Open == nil {
			return closed(s, today)
		}
		if s.Requested == billing.RequestCancel && r != billing.RequestCancel {
			return nil, fmt.Errorf("subscription %s is being cancelled: %w", s.Name, billing.ErrState)
		}
		s.Requested = r
		s.NextPayment = today // recovery is the next run
		return nil, nil
	})
	if err != nil || s.Open == nil {
		return s, err
	}
	name := s.Name
	if err := e.collect(ctx, name, work{trigger: byRequest}, func(Result) {}); err != nil {
		return s, fmt.Errorf("%s is requested and will be done by the next payment run: %w", r, err)
	}
	if s, err = e.Load(ctx, name); err == nil && s.Open != nil {
		return s, fmt.Errorf("%s is requested; the processor has not yet shown the payment intent cancelled, the next payment run asks again: %w", r, billing.ErrState)
	}
	return s, err
}

// Resume makes a paused or past_due subscription active again, and takes back a
// cancellation at the period's end. Due dates that passed meanwhile are void: nobody is
// charged for them.
func (e *Engine) Resume(ctx context.Context, n billing.Name) (*billing.Subscription, error) {
	if err := e.checkCharge(ctx, n.Account); err != nil {
		return nil, err
	}
	for {
		s, err := e.change(ctx, n, func(s *billing.Subscription, today civil.Date) ([]store.Write, error) {
			switch {
			case s.Requested == billing.RequestPause:
				s.Requested = billing.RequestNone
				return nil, nil
			case s.CancelAtEnd && s.Status == billing.Active:
				s.CancelAtEnd = false
				if due, err := s.Due(); err == nil && s.Open == nil {
					s.Reschedule(due, today)
				}
				return nil, nil
			case s.Status != billing.Paused && s.Status != billing.PastDue:
				return nil, fmt.Errorf("subscription %s is %s: %w", s.Name, s.Status, billing.ErrState)
			}
			return e.reactivate(s, today)
		})
		if err != nil || (s.Status != billing.Paused && s.Status != billing.PastDue) {
			return s, err
		}
	}
}

// reactivate voids the due dates before today, at most as many as one commit takes; while
// more are left the subscription stays as it is and the caller comes again.
func (e *Engine) reactivate(s *billing.Subscription, today civil.Date) ([]store.Write, error) {
	if s.Open != nil {
		return nil, nil
	}
	const most = store.MaxWrites - 10
	was := s.Status
	var writes []store.Write
	for {
		due, err := s.Schedule().Due(s.Period)
		if err != nil {
			return nil, err
		}
		if s.PaidOff() {
			s.Status, s.PausedOn = billing.Completed, civil.Date{}
			s.Reschedule(due, today)
			return writes, nil
		}
		if !due.Before(today) {
			s.Status, s.PausedOn = billing.Active, civil.Date{}
			s.Reschedule(due, today)
			return writes, nil
		}
		if len(writes) == most {
			return writes, nil
		}
		writes = append(writes, e.ended(s, billing.EndVoid, "due while "+string(was), nil).Write(e.Table))
		s.Period++
	}
}

// ChargeParked charges the period that waits for a person, now.
func (e *Engine) ChargeParked(ctx context.Context, n billing.Name) ([]Result, *billing.Subscription, error) {
	s, err := e.Subscription(ctx, n)
	if err == nil && s.Status != billing.ParkedState {
		err = fmt.Errorf("subscription %s is %s, not parked: %w", s.Name, s.Status, billing.ErrState)
	}
	if err != nil {
		return nil, s, err
	}
	return e.collectNow(ctx, s, work{trigger: byPerson})
}

// CollectNow does for one subscription what the payment job would do today.
func (e *Engine) CollectNow(ctx context.Context, n billing.Name) ([]Result, *billing.Subscription, error) {
	s, err := e.Subscription(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	return e.collectNow(ctx, s, work{})
}

// SkipParked ends the period that waits for a person without a charge. A live intent is
// cancelled first; if the money was taken before, the receipt stands.
func (e *Engine) SkipParked(ctx context.Context, n billing.Name) (*billing.Subscription, error) {
	if err := e.checkCharge(ctx, n.Account); err != nil {
		return nil, err
	}
	return e.request(ctx, n, billing.RequestSkip, func(s *billing.Subscription, today civil.Date) ([]store.Write, error) {
		skipped := e.ended(s, billing.EndSkipped, "skipped by a person", nil)
		writes := []store.Write{skipped.Write(e.Table)}
		if parked := e.pass(s, today, false, e.Now()); parked != nil {
			writes = append(writes, parked.Write(e.Table))
		}
		return writes, nil
	}, billing.ParkedState)
}

func (e *Engine) collectNow(ctx context.Context, s *billing.Subscription, w work) ([]Result, *billing.Subscription, error) {
	if err := e.checkCharge(ctx, s.Account); err != nil {
		return nil, s, err
	}
	if meta, err := e.Meta(ctx); err != nil {
		return nil, s, err
	} else if !meta.Charging {
		return nil, s, ErrChargingOff
	}
	var results []Result
	err := e.collect(ctx, s.Name, w, func(r Result) { results = append(results, r) })
	if err != nil {
		return results, s, err
	}
	s, err = e.Load(ctx, s.Name)
	return results, s, err
}
