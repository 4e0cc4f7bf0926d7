package billing

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/store"
)

// change decides anew until its commit meets the subscription as it was read.
func (e *Engine) change(ctx context.Context, n Name, decide func(s *Subscription, today civil.Date) ([]store.Write, error)) (*Subscription, error) {
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
		others, err := decide(s, s.today(civil.Date{}, e.Now()))
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
func (e *Engine) UpdateSubscription(ctx context.Context, n Name, c Change) (*Subscription, error) {
	var payer Payer
	if c.Method != nil {
		if err := CheckMethod(*c.Method); err != nil {
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
	s, err := e.change(ctx, n, func(s *Subscription, today civil.Date) ([]store.Write, error) {
		if s.over() {
			return nil, fmt.Errorf("subscription %s is %s: %w", s.Name, s.Status, ErrState)
		}
		if err := s.changeTerms(c, today); err != nil {
			return nil, err
		}
		if c.Method == nil {
			return nil, nil
		}
		return e.changeMethod(ctx, s, *c.Method, payer, today)
	})
	if err == nil && c.Method != nil && s.Status == PastDue && s.Open == nil {
		return e.Resume(ctx, n) // more due dates to void than one commit takes
	}
	return s, err
}

// ownMethod returns the method as the subscription is to be charged with it, and the payer.
func (e *Engine) ownMethod(ctx context.Context, n Name, method string) (string, Payer, error) {
	if _, ok := e.proc.(Wallet); !ok {
		return method, Payer{}, nil
	}
	a, err := e.Account(ctx, n.Account)
	if errors.Is(err, store.ErrNotFound) {
		return method, Payer{}, nil
	}
	if err != nil {
		return "", Payer{}, err
	}
	if a.Payer.Customer == "" {
		return method, a.Payer, nil
	}
	card, err := e.ownCard(ctx, a.Payer, method)
	return card.Method, a.Payer, err
}

// changeMethod sets the subscription's own method. An open period is tried with it at once,
// unless its end has begun. past_due becomes active again, without a back-charge.
func (e *Engine) changeMethod(ctx context.Context, s *Subscription, method string, p Payer, today civil.Date) ([]store.Write, error) {
	s.SetMethod(method, e.Now())
	if s.Open != nil {
		if err := e.retry(ctx, s, method, p, today); err != nil && !errors.Is(err, ErrUnchanged) {
			return nil, err
		}
		s.NextPayment = today
	}
	switch {
	case s.Status == PastDue:
		return e.reactivate(s, today)
	case s.Status == ParkedState && s.Parked == noMethod && s.Open == nil:
		return e.unpark(s, today)
	}
	return nil, nil
}

// Pause stops charging until Resume. A period that is open is ended first: void, or paid
// if the money was taken before.
func (e *Engine) Pause(ctx context.Context, n Name) (*Subscription, error) {
	return e.request(ctx, n, RequestPause, func(s *Subscription, today civil.Date) ([]store.Write, error) {
		if s.Status == ParkedState {
			return nil, fmt.Errorf("subscription %s is parked: charge or skip the period first: %w", s.Name, ErrState)
		}
		s.pause(today)
		return nil, nil
	}, Active, PastDue)
}

// Cancel ends the subscription now, or instead of charging the next period. The
// subscription it returns is canceled only when the processor has shown an open intent
// cancelled; if the money was taken first, the receipt stands.
func (e *Engine) Cancel(ctx context.Context, n Name, atPeriodEnd bool) (*Subscription, error) {
	if atPeriodEnd {
		return e.change(ctx, n, func(s *Subscription, _ civil.Date) ([]store.Write, error) {
			if s.Status == CanceledSub || s.Status == Completed {
				return nil, fmt.Errorf("subscription %s is %s: %w", s.Name, s.Status, ErrState)
			}
			if s.Status != Active {
				return nil, fmt.Errorf("subscription %s is %s: cancel it now: %w", s.Name, s.Status, ErrState)
			}
			s.CancelAtEnd = true
			s.NextReminder = civil.Date{}
			return nil, nil
		})
	}
	return e.request(ctx, n, RequestCancel, func(s *Subscription, today civil.Date) ([]store.Write, error) {
		if s.Status != ParkedState {
			s.cancel()
			return nil, nil
		}
		void := e.ended(s, EndVoid, "the subscription was cancelled", nil)
		s.Requested = RequestCancel
		e.pass(s, today, false, e.Now())
		return []store.Write{void.write(e.Table)}, nil
	}, Active, Paused, PastDue, ParkedState)
}

// request does at once what needs no processor; with a period open it commits the request
// first, then brings the period to its end.
func (e *Engine) request(ctx context.Context, n Name, r Request, closed func(*Subscription, civil.Date) ([]store.Write, error), from ...Status) (*Subscription, error) {
	s, err := e.change(ctx, n, func(s *Subscription, today civil.Date) ([]store.Write, error) {
		if !slices.Contains(from, s.Status) {
			return nil, fmt.Errorf("subscription %s is %s: %w", s.Name, s.Status, ErrState)
		}
		if s.Open == nil {
			return closed(s, today)
		}
		if s.Requested == RequestCancel && r != RequestCancel {
			return nil, fmt.Errorf("subscription %s is being cancelled: %w", s.Name, ErrState)
		}
		s.Requested = r
		s.NextPayment = today // recovery is the next run
		return nil, nil
	})
	if err != nil || s.Open == nil {
		return s, err
	}
	name := s.Name
	if err := e.collect(ctx, name, trigger{finish: true}, func(Result) {}); err != nil {
		return s, fmt.Errorf("%s is requested and will be done by the next payment run: %w", r, err)
	}
	if s, err = e.Load(ctx, name); err == nil && s.Open != nil {
		return s, fmt.Errorf("%s is requested; the processor has not yet shown the payment intent cancelled, the next payment run asks again: %w", r, ErrState)
	}
	return s, err
}

// Resume makes a paused or past_due subscription active again, and takes back a
// cancellation at the period's end. Due dates that passed meanwhile are void: nobody is
// charged for them.
func (e *Engine) Resume(ctx context.Context, n Name) (*Subscription, error) {
	if err := e.checkCharge(ctx, n.Account); err != nil {
		return nil, err
	}
	for {
		s, err := e.change(ctx, n, func(s *Subscription, today civil.Date) ([]store.Write, error) {
			switch {
			case s.Requested == RequestPause:
				s.Requested = RequestNone
				return nil, nil
			case s.CancelAtEnd && s.Status == Active:
				s.CancelAtEnd = false
				if due, err := s.Due(); err == nil && s.Open == nil {
					s.Reschedule(due, today)
				}
				return nil, nil
			case s.Status != Paused && s.Status != PastDue:
				return nil, fmt.Errorf("subscription %s is %s: %w", s.Name, s.Status, ErrState)
			}
			return e.reactivate(s, today)
		})
		if err != nil || (s.Status != Paused && s.Status != PastDue) {
			return s, err
		}
	}
}

// reactivate voids the due dates before today, at most as many as one commit takes; while
// more are left the subscription stays as it is and the caller comes again.
func (e *Engine) reactivate(s *Subscription, today civil.Date) ([]store.Write, error) {
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
		if s.paidOff() {
			s.Status, s.PausedOn = Completed, civil.Date{}
			s.Reschedule(due, today)
			return writes, nil
		}
		if !due.Before(today) {
			s.Status, s.PausedOn = Active, civil.Date{}
			s.Reschedule(due, today)
			return writes, nil
		}
		if len(writes) == most {
			return writes, nil
		}
		writes = append(writes, e.ended(s, EndVoid, "due while "+string(was), nil).write(e.Table))
		s.Period++
	}
}

// ChargeParked charges the period that waits for a person, now.
func (e *Engine) ChargeParked(ctx context.Context, n Name) ([]Result, *Subscription, error) {
	s, err := e.Subscription(ctx, n)
	if err == nil && s.Status != ParkedState {
		err = fmt.Errorf("subscription %s is %s, not parked: %w", s.Name, s.Status, ErrState)
	}
	if err != nil {
		return nil, s, err
	}
	return e.collectNow(ctx, s, trigger{manual: true})
}

// CollectNow does for one subscription what the payment job would do today.
func (e *Engine) CollectNow(ctx context.Context, n Name) ([]Result, *Subscription, error) {
	s, err := e.Subscription(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	return e.collectNow(ctx, s, trigger{})
}

// SkipParked ends the period that waits for a person without a charge. A live intent is
// cancelled first; if the money was taken before, the receipt stands.
func (e *Engine) SkipParked(ctx context.Context, n Name) (*Subscription, error) {
	if err := e.checkCharge(ctx, n.Account); err != nil {
		return nil, err
	}
	return e.request(ctx, n, RequestSkip, func(s *Subscription, today civil.Date) ([]store.Write, error) {
		skipped := e.ended(s, EndSkipped, "skipped by a person", nil)
		writes := []store.Write{skipped.write(e.Table)}
		if parked := e.pass(s, today, false, e.Now()); parked != nil {
			writes = append(writes, parked.write(e.Table))
		}
		return writes, nil
	}, ParkedState)
}

func (e *Engine) collectNow(ctx context.Context, s *Subscription, m trigger) ([]Result, *Subscription, error) {
	if err := e.checkCharge(ctx, s.Account); err != nil {
		return nil, s, err
	}
	if meta, err := e.Meta(ctx); err != nil {
		return nil, s, err
	} else if !meta.Charging {
		return nil, s, ErrChargingOff
	}
	var results []Result
	err := e.collect(ctx, s.Name, m, func(r Result) { results = append(results, r) })
	if err != nil {
		return results, s, err
	}
	s, err = e.Load(ctx, s.Name)
	return results, s, err
}
