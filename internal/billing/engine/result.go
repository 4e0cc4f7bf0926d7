package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/secret"
)

// An Outcome is the state of a due period after a run.
type Outcome = billing.Outcome

// The outcomes of payments and of a reminder. The number of due periods in a run equals the sum of
// all outcomes.
const (
	OutcomePaid    Outcome = "paid"
	OutcomeRetry   Outcome = "retry"   // declined; a later run tries again
	OutcomeFailed  Outcome = "failed"  // permanently declined
	OutcomePending Outcome = "pending" // the customer or the processor must act, or the outcome is unknown
	OutcomeParked  Outcome = "parked"  // the period waits for a person
	OutcomeSkipped Outcome = "skipped" // not charged on request: cancelled, paused, or charging is off
	OutcomeAsked   Outcome = "asked"   // the customer, who pays by wire, was asked to pay
	OutcomeSent    Outcome = "sent"    // reminders committed to the outbox
	// OutcomeUnreadable is the outcome of a row whose item another tool has made unreadable.
	OutcomeUnreadable Outcome = "unreadable"
)

// Outcomes lists the outcomes of a payment run in the order they are shown, except OutcomeUnreadable.
func Outcomes() []Outcome {
	return []Outcome{OutcomePaid, OutcomeRetry, OutcomeFailed, OutcomePending, OutcomeParked, OutcomeAsked, OutcomeSkipped}
}

// A Result is the outcome of one period.
type Result struct {
	billing.Name
	SKU      string // what the period is for
	Period   int
	Outcome  Outcome
	Amount   money.Amount
	Due      civil.Date
	Reason   string
	Retry    civil.Date // the next attempt's day, set for OutcomeRetry
	First    bool       // the period was first declined on this day
	Customer bool       // OutcomePending: until the customer acts
	New      bool       // arose since the last run ended; otherwise that run already reported the wait
}

// resultOf returns a result for the subscription's open period, or for the next period to be paid
// if none is open.
func resultOf(s *billing.Subscription, outcome Outcome, reason string) *Result {
	r := &Result{Name: s.Name, SKU: s.SKU, Period: s.Period, Outcome: outcome, Amount: s.AmountOf(s.Period), Reason: reason}
	r.Due, _ = s.Due()
	r.Customer = outcome == OutcomePending && (reason == awaitsCustomer || reason == billing.NoMethod || s.Open != nil && s.Open.ByWire())
	if o := s.Open; o != nil {
		r.SKU, r.Period, r.Amount, r.Due = s.SKUOf(o), o.Period, o.Amount, o.Due
	}
	return r
}

// agendaDay returns the business day, or the clock's day if the business day is in the future. The
// next runs find a waiting row on that day.
func (e *Engine) agendaDay(s *billing.Subscription, today civil.Date) civil.Date {
	return civil.Earlier(today, s.Today(civil.Date{}, e.Now()))
}

// waitDay returns the date for a waiting row: the later of its current date and the run's day, but
// not after the clock's day.
func (e *Engine) waitDay(s *billing.Subscription, today civil.Date) civil.Date {
	if s.Beside() && s.Altered() != "" {
		return s.NextPayment // another tool has moved the next period
	}
	return e.agendaDay(s, civil.Later(s.NextPayment, today))
}

// report leaves the period unchanged but moves its row to waitDay, where later walks still find it.
// It commits the other writes, if any, together with the row.
func (e *Engine) report(ctx context.Context, s *billing.Subscription, today civil.Date,
	outcome Outcome, reason string, others ...write) (step, error) {
	r, day := resultOf(s, outcome, reason), e.waitDay(s, today)
	if s.NextPayment.IsZero() || s.NextPayment == day && len(others) == 0 {
		return step{result: r, known: true}, nil
	}
	s.NextPayment = day
	return step{result: r, known: true}, e.put(ctx, s, others...)
}

// setback handles a processor error. The whole job ends only if the processor definitely refuses
// our own credentials or does not know an intent. Neither error changes an item.
func (e *Engine) setback(ctx context.Context, s *billing.Subscription, today civil.Date, err error) (step, error) {
	connected := s.Open != nil && s.Open.Payer.At != ""
	switch {
	case ctx.Err() != nil:
		return step{}, context.Cause(ctx)
	case errors.As(err, new(*charging.StopError)): // from the gate
		return step{}, err
	case errors.Is(err, processor.ErrRefused):
		return step{}, &charging.StopError{Err: err}
	case errors.Is(err, processor.ErrNoIntent) && !connected:
		return step{}, &charging.StopError{Err: fmt.Errorf("subscription %s: %w: check that the processor is the "+
			"account that has charged for this store", s.Name, err)}
	case errors.Is(err, processor.ErrInvalid) && !errors.Is(err, processor.ErrNoIntent) && s.Beside():
		return e.failPast(ctx, s, today, err)
	case errors.Is(err, processor.ErrInvalid) && !errors.Is(err, processor.ErrNoIntent):
		return e.park(ctx, s, today, secret.MaskCards(err.Error()))
	}
	st, err := e.report(ctx, s, today, OutcomePending, secret.MaskCards(err.Error()))
	st.known = false // each run reports its own error
	return st, err
}
