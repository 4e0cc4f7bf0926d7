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

// An Outcome is the state in which one run leaves one due period.
type Outcome = billing.Outcome

// The outcomes of payments, and that of a reminder. A run balances: due is the sum of them all.
const (
	OutcomePaid    Outcome = "paid"
	OutcomeRetry   Outcome = "retry"   // declined, and tried again on a later day
	OutcomeFailed  Outcome = "failed"  // declined for good
	OutcomePending Outcome = "pending" // the customer or the processor has to act, or the outcome is unknown
	OutcomeParked  Outcome = "parked"  // waits for a person
	OutcomeSkipped Outcome = "skipped" // not charged on request: cancelled, paused, or charging is off
	OutcomeAsked   Outcome = "asked"   // the customer, who pays by wire, was asked to pay
	OutcomeSent    Outcome = "sent"    // reminders committed to the outbox
	// OutcomeUnreadable is that of a row whose item another tool has made unreadable.
	OutcomeUnreadable Outcome = "unreadable"
)

// Outcomes lists the outcomes of a payment run in the order they are shown, except OutcomeUnreadable.
func Outcomes() []Outcome {
	return []Outcome{OutcomePaid, OutcomeRetry, OutcomeFailed, OutcomePending, OutcomeParked, OutcomeAsked, OutcomeSkipped}
}

// A Result is the outcome of one period.
type Result struct {
	billing.Name
	SKU     string // what the period is for
	Period  int
	Outcome Outcome
	Amount  money.Amount
	Due     civil.Date
	Reason  string
	Retry   civil.Date // the next attempt's day, of OutcomeRetry
	First   bool       // the period was declined on this day for the first time
	New     bool       // made since the last run that has ended; else it repeats a wait of which that one has told
}

// resultOf describes the subscription's open period, or else the one to be paid next.
func resultOf(s *billing.Subscription, outcome Outcome, reason string) *Result {
	r := &Result{Name: s.Name, SKU: s.SKU, Period: s.Period, Outcome: outcome, Amount: s.Amount, Reason: reason}
	r.Due, _ = s.Due()
	if o := s.Open; o != nil {
		r.SKU, r.Period, r.Amount, r.Due = s.SKUOf(o), o.Period, o.Amount, o.Due
	}
	return r
}

// agendaDay returns the business day, or the clock's if the business day has not come yet: on it a
// row that waits is found by the next runs.
func (e *Engine) agendaDay(s *billing.Subscription, today civil.Date) civil.Date {
	return civil.Earlier(today, s.Today(civil.Date{}, e.Now()))
}

// waitDay returns the date of a waiting row: the run's day if it is older, at most the clock's.
func (e *Engine) waitDay(s *billing.Subscription, today civil.Date) civil.Date {
	if s.Collecting() && s.Altered() != "" {
		return s.NextPayment // another tool has moved the next period, which is parked for it
	}
	return e.agendaDay(s, civil.Later(s.NextPayment, today))
}

// report leaves the period as it is, but moves its row to waitDay: later walks still find it there. The
// other writes, if there are any, go with it.
func (e *Engine) report(ctx context.Context, s *billing.Subscription, today civil.Date,
	outcome Outcome, reason string, others ...write) (step, error) {
	r, day := resultOf(s, outcome, reason), e.waitDay(s, today)
	if s.NextPayment.IsZero() || s.NextPayment == day && len(others) == 0 {
		return step{result: r, known: true}, nil
	}
	s.NextPayment = day
	return step{result: r, known: true}, e.put(ctx, s, others...)
}

// setback deals with an error of the processor. Only a definite refusal of our own credentials, or
// an intent unknown to the processor, ends the whole job. Neither changes any item.
func (e *Engine) setback(ctx context.Context, s *billing.Subscription, today civil.Date, err error) (step, error) {
	connected := s.Open != nil && s.Open.Payer.At != ""
	switch {
	case ctx.Err() != nil:
		return step{}, context.Cause(ctx)
	case errors.As(err, new(*charging.StopError)): // of the gate
		return step{}, err
	case errors.Is(err, processor.ErrRefused):
		return step{}, &charging.StopError{Err: err}
	case errors.Is(err, processor.ErrNoIntent) && !connected:
		return step{}, &charging.StopError{Err: fmt.Errorf("subscription %s: %w: check that the processor is the "+
			"account that has charged for this store", s.Name, err)}
	case errors.Is(err, processor.ErrInvalid) && !errors.Is(err, processor.ErrNoIntent) && s.Collecting():
		return e.failPast(ctx, s, today, err)
	case errors.Is(err, processor.ErrInvalid) && !errors.Is(err, processor.ErrNoIntent):
		return e.park(ctx, s, today, secret.MaskCards(err.Error()))
	}
	st, err := e.report(ctx, s, today, OutcomePending, secret.MaskCards(err.Error()))
	st.known = false // each run meets its own error
	return st, err
}
