package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
)

// retryDate returns the first day of the retry schedule after today, or zero if no day is left. The
// schedule counts from the first decline. It does not make up for missed days. debit selects the
// schedule of bank debits.
func (e *Engine) retryDate(first, today civil.Date, debit bool) civil.Date {
	schedule := e.cfg.RetryDays
	if debit {
		schedule = e.cfg.DebitRetries
	}
	for _, days := range schedule {
		if d := first.AddDays(days); d.After(today) {
			return d
		}
	}
	return civil.Date{}
}

// newMethod returns the account's method if the account received it after the period was opened,
// and an empty string otherwise. The person who set the method was told that it takes effect at
// once. newMethod returns an empty string for a period with the subscription's own method, because
// a request to change that method updates the period.
func (e *Engine) newMethod(ctx context.Context, s *billing.Subscription) (string, error) {
	if s.Method != "" || s.Ending() || s.Status == billing.ParkedState {
		return "", nil
	}
	method, payer, err := e.Cards().MethodOf(ctx, s)
	if err != nil || s.Open.Tried(method) || !payer.Same(s.Open.Payer) {
		return "", err
	}
	return method, nil
}

// doNotTryAgain is the decline code with which a bank refuses further attempts.
const doNotTryAgain = "do_not_try_again"

// fallback returns the account's fallback method if Duesday may try the declined period with it,
// and an empty string otherwise. Duesday uses the fallback once per period, and not against the
// processor's advice.
func (e *Engine) fallback(ctx context.Context, s *billing.Subscription, in processor.Intent) (string, error) {
	o := s.Open
	if o.FallbackFor != "" || in.Stop || in.Code == doNotTryAgain || s.Status == billing.ParkedState {
		return "", nil
	}
	a, err := e.Account(ctx, s.Account)
	if err != nil {
		return "", billing.IgnoreNotFound(err)
	}
	declined := func(x billing.Attempt) bool { return x.Method == a.Fallback }
	if a.Fallback == o.Method || !a.Payer.Same(o.Payer) || slices.ContainsFunc(o.Attempts, declined) {
		return "", nil
	}
	return a.Fallback, nil
}

// noteDecline records, in memory, a decline that the intent shows but no commit has recorded,
// because a process died in between. The receipt and the prove command show the decline, but it
// does not count against a new method.
func noteDecline(o *billing.OpenPeriod, in processor.Intent, number int, method string) {
	if in.State != processor.Declined && in.State != processor.Canceled || in.Code == "" || in.Code == notAuthenticated ||
		in.Latest == "" || in.Latest == o.Base {
		return
	}
	o.Attempts = append(o.Attempts, billing.Attempt{Number: number, Code: in.Code, Method: method, At: in.Changed})
	o.Base = in.Latest
}

// retry commits the consequences of an attempt that has not succeeded or will not be made.
func (t *turn) retry(ctx context.Context, a action) (step, error) {
	e, s, o := t.e, t.s, t.s.Open
	switch a {
	case doDecline, doDeclineLast, doDeclineParked, doDeclineUseMethod, doDeclineFallback:
		o.Attempts = append(o.Attempts, billing.Attempt{Number: o.Attempt, Code: t.in.Code, Method: o.Method,
			At: t.in.Changed})
		o.First = cmp.Or(o.First, t.today)
		o.Base, o.State, o.Overtaken = t.in.Latest, "", false
		if a != doDeclineLast && !s.Beside() { // else the commit that ends the period adds it, with its mail
			o.Declined = declined(s, o.Declined, o)
		}
	case doUseMethod:
		o.Base, o.State = t.in.Latest, ""
	case doRetryOvertaken: // a dead worker may have sent the previous attempt with either method
		number, method := o.Attempt-1, ""
		if t.w.sent.before(o, t.in) {
			number, method = t.w.sent.attempt, t.w.sent.method
		}
		noteDecline(o, t.in, number, method)
		o.Base, o.State, o.Overtaken = t.in.Latest, "", false
	}
	st := step{again: true}
	switch a {
	case doRetryOvertaken:
		o.Attempt++
		return st, e.put(ctx, s)
	case doUseMethod, doDeclineUseMethod:
		o.Attempt++
		o.Use(t.method)
		o.Retry = civil.Date{}
	case doDeclineFallback:
		o.Attempt++
		o.FallbackFor, o.Method, o.Retry = o.Method, t.method, civil.Date{}
		o.FallbackCard = e.Cards().CardName(ctx, o)
	case doFail:
		if o.State = billing.Failing; t.in.State == processor.RequiresAction {
			o.Asked = cmp.Or(o.Asked, t.today) // set for a past period, which does not wait beside the next one
		}
	case doDeclineLast:
		o.State, o.Retry = billing.Failing, civil.Date{}
	case doDeclineParked:
		o.Attempt++
		st = step{result: resultOf(s, OutcomeParked, "declined: "+t.in.Code)}
	case doDecline:
		o.Debit = t.in.Debit
		o.Retry = e.retryDate(o.First, t.today, o.Debit)
		o.Attempt++
		s.NextPayment = o.Retry
		r := resultOf(s, OutcomeRetry, "declined: "+t.in.Code)
		r.Retry, r.First = o.Retry, o.First == t.today
		return step{result: r}, e.put(ctx, s, e.notice(outbox.KindDeclined, s, o, nil)...)
	}
	s.NextPayment = e.waitDay(s, t.today)
	return st, e.put(ctx, s)
}

// debitDays is the number of business days after which a bank has answered a debit, by Stripe's documentation.
const debitDays = 14

// awaitsCustomer is the reason for a period that waits for its customer.
const awaitsCustomer = "the customer has to authenticate the payment"

// wait records that the period waits for the customer or the processor, and notifies the customer
// once.
func (t *turn) wait(ctx context.Context, a action) (step, error) {
	e, s, o := t.e, t.s, t.s.Open
	if a == doAwaitProcessor || a == doReportCanceling {
		reason := "the processor is still processing it"
		if a == doReportCanceling {
			reason = "the payment intent is still being cancelled"
		}
		if s.Beside() && s.NextDue(t.today) {
			reason += fmt.Sprintf("; period %d waits for that", s.Period)
		}
		late := t.in.State == processor.Processing &&
			billing.TodayIn(s.TimeZone, t.in.Changed).AddBusinessDays(debitDays).Before(t.today)
		if late {
			reason = fmt.Sprintf("the bank has not answered for %d business days; check the payment at the processor", debitDays)
		}
		if o.State == processor.Processing || o.State == billing.Failing || t.in.State != processor.Processing {
			st, err := e.report(ctx, s, t.today, OutcomePending, reason)
			st.known = !late // an operator has to look at it, so each run counts it as new
			return st, err
		}
		// The customer has authenticated, so the deadline no longer applies, even if the request is
		// withdrawn.
		o.State, o.Asked, o.Overtaken = processor.Processing, civil.Date{}, false
		s.NextPayment = e.waitDay(s, t.today)
		return step{result: resultOf(s, OutcomePending, reason)}, e.put(ctx, s)
	}
	told := o.State == processor.RequiresAction // true if an older Duesday told the customer without setting a deadline
	o.State, o.Asked, o.Overtaken = processor.RequiresAction, t.today, false
	s.NextPayment = e.waitDay(s, t.today)
	var others []write
	if !told {
		others = e.notice(outbox.KindActionRequired, s, o, nil)
	}
	return step{result: resultOf(s, OutcomePending, awaitsCustomer)}, e.put(ctx, s, others...)
}
