package engine

import (
	"context"
	"errors"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
)

// This file asks customers who pay by wire to pay, and asks other customers to act when they must.
// A period by wire has no intent. Its open period contains PayBy instead of Ref.

// askToPay opens the period without an intent, and asks the customer to pay.
func (t *turn) askToPay(ctx context.Context) (step, error) {
	e, s := t.e, t.s
	due, err := s.Due()
	if err != nil {
		return step{}, err
	}
	o, err := s.NewPeriod(due, e.Now())
	if err != nil {
		return e.park(ctx, s, t.today, err.Error())
	}
	o.PayBy = e.payBy(s, due, t.today)
	t.endHold()
	s.Open, s.NextPayment = o, o.PayBy
	r := resultOf(s, OutcomeAsked, awaitsPayment(s.Open))
	return step{result: r}, e.put(ctx, s, e.notice(outbox.KindPaymentRequest, s, s.Open, nil)...)
}

// awaitsPayment returns the reason for an open period by wire.
func awaitsPayment(o *billing.OpenPeriod) string {
	return "the customer has to pay before " + o.PayBy.String()
}

// payBy returns the day on which an unpaid period by wire ends. A customer who is asked late still
// has the full time to pay. That time is at most the time between the period's due date and the
// following due date, so that periods do not pile up.
func (e *Engine) payBy(s *billing.Subscription, due, today civil.Date) civil.Date {
	days := e.cfg.PayDays
	if next, err := s.Schedule().Due(s.Period + 1); err == nil {
		days = max(1, min(days, next.DaysSince(due)))
	}
	return civil.Later(due, today).AddDays(days)
}

// mostUnpaid is the number of consecutive failed periods after which a subscription by wire becomes
// past_due.
const mostUnpaid = 3

// endUnpaid ends a period by wire as failed, and continues with the next period.
func (t *turn) endUnpaid(ctx context.Context) (step, error) {
	e, s, o := t.e, t.s, t.s.Open
	failed := 1
	for ; failed < mostUnpaid; failed++ {
		p, err := e.RecordOf(ctx, s.Name, o.Period-failed)
		if billing.IgnoreNotFound(err) != nil {
			return step{}, err
		}
		if p == nil || p.Ending != billing.EndFailed {
			break
		}
	}
	if failed == mostUnpaid {
		e.stop(s)
	}
	p := e.ended(s, billing.EndFailed, "not paid before "+o.PayBy.String(), o)
	r := resultOf(s, OutcomeFailed, p.Reason)
	others := append(e.failed(s, o, civil.Date{}), e.putRecord(p))
	others = append(others, e.pass(s, t.today, false, e.Now())...)
	return step{result: r, again: goesOn(s, t.today)}, e.put(ctx, s, others...)
}

// awaitPayment moves a row that a walk found too early to the day on which the period ends.
func (t *turn) awaitPayment(ctx context.Context) (step, error) {
	if t.s.NextPayment == t.s.Open.PayBy {
		return step{}, nil
	}
	t.s.NextPayment = t.s.Open.PayBy
	return step{}, t.e.put(ctx, t.s)
}

// refuseByWire returns ErrState if the customer pays the period by wire, because Duesday cannot
// charge such a period.
func refuseByWire(s *billing.Subscription, period int) error {
	if !s.PaidByWire(period) {
		return nil
	}
	return refusal(s, ": the customer pays period %d by wire, so it cannot be charged; to record a payment: duesday receipt "+
		"create %s --period %d", period, s.Name, period)
}

// parkedOutcome returns the outcome for a period that waits for a decision or for the customer's
// card.
func parkedOutcome(s *billing.Subscription) Outcome {
	if s.Parked == billing.NoMethod {
		return OutcomePending
	}
	return OutcomeParked
}

// reportParked reports the wait. It asks a customer without a payment method again to enter one.
func (t *turn) reportParked(ctx context.Context) (step, error) {
	e, s := t.e, t.s
	var others []write
	if s.Parked == billing.NoMethod && s.Open == nil {
		p, err := e.RecordOf(ctx, s.Name, s.Period)
		switch {
		case err == nil:
			others = t.askAgain(outbox.KindReminder, billing.TodayIn(s.TimeZone, p.Ended))
		case !errors.Is(err, store.ErrNotFound):
			return step{}, err
		}
	}
	return e.report(ctx, s, t.today, parkedOutcome(s), s.Parked, others...)
}

// askAgain returns the mail that asks the customer again to act. The mail is due on the retry days
// after the first request. If several of these days have passed since the last mail, askAgain
// returns only one mail. Only runs send it.
func (t *turn) askAgain(kind string, first civil.Date) []write {
	told := first
	if !t.s.Told.After(t.today) { // ignores a day that a fast clock recorded
		told = civil.Later(first, t.s.Told)
	}
	if day := t.e.retryDate(first, told, false); t.w.trigger != byRun || day.IsZero() || day.After(t.today) {
		return nil
	}
	return t.e.askFor(kind, t.s, t.today)
}

// askFor returns the mail that asks the customer to act, and records the day of the mail.
func (e *Engine) askFor(kind string, s *billing.Subscription, today civil.Date) []write {
	f := e.effect(kind, s, s.Open, nil)
	f.ID += "/" + today.String()
	if kind == outbox.KindReminder {
		f.Data[outbox.DataNoMethod] = "true"
	}
	s.Told = today
	return e.mail(s, f)
}
