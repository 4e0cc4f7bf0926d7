package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// This file collects a past period: one that ended unpaid is charged once more, by the protocol of
// every other period. Its record stays until it is paid. The commit that ends the collecting changes
// the record or writes the receipt, and never moves the period to be paid next.

// reopen is OPEN and BIND of the past period to be collected: the generation after its record's, and
// only after a look that shows the record's intent cancelled. Money taken by that intent settles the
// period.
func (t *turn) reopen(ctx context.Context) (step, error) {
	e, s := t.e, t.s
	p, err := e.RecordOf(ctx, s.Name, s.Collect-1)
	if errors.Is(err, store.ErrNotFound) || s.Collection == billing.ByWire { // a person has recorded a payment of it, or it is paid by wire
		e.closePast(s, t.today, false)
		return step{again: goesOn(s, t.today)}, e.put(ctx, s)
	} else if err != nil {
		return step{}, err
	}
	t.record = p
	o := &billing.OpenPeriod{Period: p.Period, SKU: p.SKU, Amount: p.Amount, Price: p.Price, Due: p.Due, Attempts: p.Attempts,
		Attempt: 1, Opened: e.Now()}
	o.Generation = p.Generation
	if n := len(p.Attempts); n > 0 {
		o.Attempt = p.Attempts[n-1].Number + 1
	}
	unchanged := store.AttributeAbsent(schema.Ref)
	if p.Ref != "" {
		unchanged = store.AttributeEquals(schema.Ref, store.S(p.Ref))
		in, err := e.lastOf(ctx, p)
		switch {
		case err != nil:
			return t.notReopened(ctx, err)
		case in.State == processor.Succeeded:
			return step{result: t.result(OutcomePaid, ""), again: true}, e.put(ctx, s,
				e.bookCharge(s, in, p.Period, p.SKU, p.Due, p, t.today)...)
		case in.State != processor.Canceled:
			return t.reportPast(ctx, fmt.Sprintf("its last payment intent %s is %s and cannot be cancelled yet", p.Ref, in.State))
		}
		o.Generation = max(p.Generation, in.Tag.Generation) + 1
	}
	if o.Method, o.Payer, err = e.Cards().MethodOf(ctx, s); err != nil {
		return step{}, err
	}
	if o.Method == "" {
		return t.giveUp(ctx, billing.NoMethod)
	}
	return t.bind(ctx, o, plain(store.Check(e.Table, billing.PeriodKey(s.Name, p.Period), unchanged))...)
}

// lastOf returns the record's intent as it is now, cancelled if it was neither that nor paid.
func (e *Engine) lastOf(ctx context.Context, p *billing.EndedPeriod) (processor.Intent, error) {
	in, err := e.proc.Lookup(ctx, p.Ref)
	if err == nil && in.State != processor.Canceled && in.State != processor.Succeeded {
		in, err = e.proc.Cancel(ctx, p.Ref)
	}
	return in, err
}

// notReopened deals with an error before the past period is bound. It never parks: that would park
// the next period. A definite one ends the collecting.
func (t *turn) notReopened(ctx context.Context, err error) (step, error) {
	switch {
	case ctx.Err() != nil, errors.As(err, new(*charging.StopError)), errors.Is(err, processor.ErrRefused):
		return t.e.setback(ctx, t.s, t.today, err)
	case errors.Is(err, processor.ErrAccountRefused) && !t.s.NextDue(t.today):
	case processor.Definite(err):
		return t.giveUp(ctx, secret.MaskCards(err.Error()))
	}
	return t.reportPast(ctx, secret.MaskCards(err.Error()))
}

// result describes the past period to be collected.
func (t *turn) result(outcome Outcome, reason string) *Result {
	p := t.record
	return &Result{Name: t.s.Name, SKU: p.SKU, Period: p.Period, Outcome: outcome, Amount: p.Amount, Due: p.Due,
		Reason: reason}
}

// reportPast leaves the past period for the next run.
func (t *turn) reportPast(ctx context.Context, reason string) (step, error) {
	_, err := t.e.report(ctx, t.s, t.today, OutcomePending, reason)
	return step{result: t.result(OutcomePending, reason)}, err
}

// giveUp ends the collecting before an intent is bound. The record says why.
func (t *turn) giveUp(ctx context.Context, reason string) (step, error) {
	e, s, p := t.e, t.s, t.record
	was := p.Ending
	p.Fail(e.Now(), "not collected: "+reason)
	others := append(e.closePast(s, t.today, false), e.putAgain(p, was))
	return step{result: t.result(OutcomeFailed, p.Reason), again: goesOn(s, t.today)}, e.put(ctx, s, others...)
}

// failPast marks the past period as failing: the processor refuses its request as invalid.
func (e *Engine) failPast(ctx context.Context, s *billing.Subscription, today civil.Date, err error) (step, error) {
	if s.Open.State == billing.Failing {
		return e.report(ctx, s, today, OutcomePending, secret.MaskCards(err.Error()))
	}
	s.Open.State = billing.Failing
	s.NextPayment = e.waitDay(s, today)
	return step{again: true}, e.put(ctx, s)
}

// closePast ends the collecting of a past period, in memory: it carries out the request, and sets the
// dates of the period to be paid next, which stays the same. paid makes a past_due subscription
// active, unless a due date has passed meanwhile. It returns the other writes of a cancellation.
func (e *Engine) closePast(s *billing.Subscription, today civil.Date, paid bool) (others []write) {
	altered, status, reminder := s.Altered() != "", s.Status, s.NextReminder
	s.Open, s.Collect = nil, 0
	due, err := s.Due()
	switch {
	case s.Requested == billing.RequestCancel:
		return e.cancel(s, today)
	case s.Requested == billing.RequestSkip && !s.SkipUntil.IsZero():
		return e.moveOn(s, today)
	case s.PaidOff() && !s.Over():
		if s.Status == billing.ParkedState { // the next period waits for nobody any more
			others = []write{e.dropRecord(s, s.Period)}
		}
		s.Status, s.Parked = billing.Completed, ""
	case s.Requested == billing.RequestPause:
		s.Pause(today)
	case paid && s.Status == billing.PastDue && err == nil && !due.Before(today):
		s.Status = billing.Active
	}
	if s.Requested, s.Manual = billing.RequestNone, nil; !altered {
		s.Reschedule(due, e.agendaDay(s, today))
	}
	if s.Status == status {
		s.NextReminder = reminder // the customer may have been reminded of the next period
	}
	return others
}

// endPast closes the past period unpaid, again: its record has the new intent and attempts. On a
// person's request it stays as it ended before, or failed if another tool has removed its record. why is
// the reason if the customer has no part in it.
func (e *Engine) endPast(ctx context.Context, s *billing.Subscription, today civil.Date, why string) (step, error) {
	o := s.Open
	p, err := e.RecordOf(ctx, s.Name, o.Period)
	switch {
	case errors.Is(err, store.ErrNotFound):
		p = e.ended(s, billing.EndFailed, "not collected: "+string(s.Requested)+" was requested", o)
		p.Period, p.SKU = o.Period, s.SKUOf(o)
	case err != nil:
		return step{}, fmt.Errorf("subscription %s: the record of period %d, which is being collected: %w", s.Name, o.Period, err)
	}
	was, outcome, reason := p.Ending, OutcomeSkipped, "not collected: "+string(s.Requested)+" was requested"
	var others []write
	if s.Requested == billing.RequestNone {
		outcome, reason = OutcomeFailed, "not collected: "+why
		if o.State == billing.Failing && !(o.Unanswered() && o.Asked.IsZero()) {
			reason = e.failure(o)
			p.CollectUntil = cmp.Or(p.CollectUntil, e.collectUntil(today))
			promised := p.CollectUntil // if the subscription still waits for a method after this very period
			if s.Status != billing.PastDue || p.Period != s.Period-1 || promised.Before(today) {
				promised = civil.Date{}
			}
			others = e.failed(s, o, promised)
		}
		p.Fail(e.Now(), reason)
	}
	p.Ref, p.Generation, p.Attempts, p.Declined = o.Ref, o.Generation, o.Attempts, declined(s, p.Declined, o)
	r := resultOf(s, outcome, reason)
	others = append(append(others, e.putAgain(p, was)), e.closePast(s, today, false)...)
	return step{result: r, again: goesOn(s, today)}, e.put(ctx, s, others...)
}

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
