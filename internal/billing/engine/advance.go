package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// advance brings an open period forward: one look-up or one attempt, then what its answer
// asks for.
func (e *Engine) advance(ctx context.Context, s *billing.Subscription, m trigger, today civil.Date, fresh bool) (step, error) {
	o := s.Open
	if !o.Retry.IsZero() && o.Retry.After(today) && s.Requested == billing.RequestNone && !m.manual && !m.heard {
		return step{}, nil // its day has not come; the walk found a stale row
	}
	var in billing.Intent
	var err error
	if fresh {
		in, err = e.confirm(ctx, s)
	} else {
		in, err = e.proc.Lookup(ctx, o.Ref)
	}
	if err != nil {
		return e.setback(ctx, s, today, err)
	}
	if fresh {
		*m.sent = sent{o.Ref, o.Attempt, in.Latest}
	} else if o.State != billing.Failing && (m.sent.earlier(o, in) || o.ShowsOvertaken(in)) { // a period that is to end is tried no more
		o.Base, o.State, o.Overtaken = in.Latest, "", false
		o.Attempt++ // the one before may have been sent, by who is not there to tell
		return step{again: true}, e.Put(ctx, s)
	}
	ours := in.Amount == o.Amount && (in.Tag.Installation == "" || in.Tag.Period == o.Period)
	if !ours && (in.State == billing.Succeeded || !s.Ending()) { // one that only has to be cancelled may be anything
		return e.park(ctx, s, today, fmt.Sprintf("payment intent %s is for period %d and %s, not period %d and %s",
			in.Ref, in.Tag.Period, in.Amount, o.Period, o.Amount))
	}
	if s.Ending() && in.State != billing.Succeeded && in.State != billing.Canceled {
		if in, err = e.proc.Cancel(ctx, o.Ref); err != nil {
			return e.setback(ctx, s, today, err)
		}
	}
	if !fresh && !s.Ending() && !billing.AttemptRan(o, in) && (o.State != billing.RequiresAction || in.State == billing.Opened) && (s.Status != billing.ParkedState || m.manual) && !m.finish {
		if again, err := e.newer(ctx, s, today); err != nil {
			return step{}, err
		} else if again {
			o.Base, o.State = in.Latest, ""
			return step{again: true}, e.Put(ctx, s)
		}
		if in, err = e.confirm(ctx, s); err != nil {
			return e.setback(ctx, s, today, err)
		}
		*m.sent = sent{o.Ref, o.Attempt, in.Latest}
	}
	if in.State == billing.RequiresAction && in.NoPage && !s.Ending() && s.Status != billing.ParkedState && !m.finish && !e.overdue(s, today) {
		in = e.makePage(ctx, s, in, today)
	}
	return e.act(ctx, s, m, in, today)
}

// act does what the intent's state asks for: the table in docs/design.md.
func (e *Engine) act(ctx context.Context, s *billing.Subscription, m trigger, in billing.Intent, today civil.Date) (step, error) {
	switch {
	case in.State == billing.Succeeded:
		return e.settle(ctx, s, in, today)
	case in.State == billing.Canceled && s.Ending():
		return e.end(ctx, s, today)
	case s.Ending():
		return e.wait(ctx, s, today, in.State, in.Latest, "the payment intent is still being cancelled")
	case s.Status == billing.ParkedState && !m.manual:
		return e.remain(ctx, s, today, OutcomeParked, s.Parked)
	case in.State == billing.Canceled && m.finish:
		return step{}, nil // the request was taken back meanwhile; the payment job goes on from here
	case in.State == billing.Canceled:
		return e.rebind(ctx, s, m, today)
	case in.State == billing.Processing:
		return e.wait(ctx, s, today, billing.Processing, in.Latest, "the processor is still processing it")
	case in.Latest != "" && e.overdue(s, today):
		s.Open.State = billing.Failing
		s.NextPayment = civil.Later(s.NextPayment, today)
		return step{again: true}, e.Put(ctx, s)
	case in.State == billing.RequiresAction:
		return e.wait(ctx, s, today, billing.RequiresAction, in.Latest, "the customer has to authenticate the payment")
	case in.State == billing.Declined && in.Latest != s.Open.Base:
		return e.decline(ctx, s, in, today)
	}
	return e.wait(ctx, s, today, "", in.Latest, "the processor has not yet carried out the attempt")
}

// setback deals with an error of the processor. Only a definite refusal of our own
// credentials, or an intent it does not know, ends the whole job; neither changes anybody's
// state.
func (e *Engine) setback(ctx context.Context, s *billing.Subscription, today civil.Date, err error) (step, error) {
	switch {
	case ctx.Err() != nil:
		return step{}, context.Cause(ctx)
	case errors.Is(err, billing.ErrRefused):
		return step{}, &StopError{err}
	case errors.Is(err, billing.ErrNoIntent) && s.Open != nil && s.Open.Payer.At != "": // the connected account's own affair
		return e.remain(ctx, s, today, OutcomePending, secret.MaskCards(err.Error()))
	case errors.Is(err, billing.ErrNoIntent):
		return step{}, &StopError{fmt.Errorf("subscription %s: %w: is this the processor, and the account at it, that this store was charged with", s.Name, err)}
	case errors.Is(err, billing.ErrInvalid):
		return e.park(ctx, s, today, secret.MaskCards(err.Error()))
	}
	return e.remain(ctx, s, today, OutcomePending, secret.MaskCards(err.Error()))
}

// A StopError ends the whole job: going on would meet the same error everywhere.
type StopError struct{ Err error }

func (e *StopError) Error() string { return e.Err.Error() }
func (e *StopError) Unwrap() error { return e.Err }

// overdue reports whether the customer has had their days to authenticate the payment. A
// person who charges a parked period decides anew.
func (e *Engine) overdue(s *billing.Subscription, today civil.Date) bool {
	o := s.Open
	return o.State == billing.RequiresAction && e.cfg.ActionDays > 0 && !o.Asked.IsZero() && s.Status != billing.ParkedState && !today.Before(o.Asked.AddDays(e.cfg.ActionDays))
}

// wait records that the period waits for the customer or the processor, and tells the
// customer once.
func (e *Engine) wait(ctx context.Context, s *billing.Subscription, today civil.Date, state billing.State, latest, reason string) (step, error) {
	o := s.Open
	if state == "" || o.State == state && (state != billing.RequiresAction || !o.Asked.IsZero()) {
		return e.remain(ctx, s, today, OutcomePending, reason)
	}
	if state == billing.RequiresAction {
		if again, err := e.newer(ctx, s, today); err != nil {
			return step{}, err
		} else if again {
			o.Base, o.State = latest, ""
			return step{again: true}, e.Put(ctx, s)
		}
	}
	told := o.State == state // by an older Duesday, which set no deadline
	o.State, o.Asked, o.Overtaken = state, civil.Date{}, false
	s.NextPayment = civil.Later(s.NextPayment, today)
	var others []store.Write
	if state == billing.RequiresAction {
		o.Asked = today
	}
	if state == billing.RequiresAction && !told {
		others = e.notice(noticeAction, s, s.Open, nil)
	}
	r := resultOf(s, OutcomePending, reason)
	return step{result: r}, e.Put(ctx, s, others...)
}

// remain leaves the period as it is, but moves its row to the run's day when it is older,
// so that walks that have moved on still find it.
func (e *Engine) remain(ctx context.Context, s *billing.Subscription, today civil.Date, outcome Outcome, reason string) (step, error) {
	r := resultOf(s, outcome, reason)
	if s.NextPayment.IsZero() || !s.NextPayment.Before(today) {
		return step{result: r}, nil
	}
	s.NextPayment = today
	return step{result: r}, e.Put(ctx, s)
}

// resultOf describes the subscription's period to be paid next.
func resultOf(s *billing.Subscription, outcome Outcome, reason string) *Result {
	r := &Result{Name: s.Name, Period: s.Period, Outcome: outcome, Amount: s.Amount, Reason: reason}
	r.Due, _ = s.Due()
	if s.Open != nil {
		r.Amount = s.Open.Amount
	}
	return r
}
