package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// This file carries out the actions of next.go. The walk does FIND, and collect does READ. OPEN,
// BIND and CONFIRM are in intent.go, declines are in retry.go, and SETTLE and the period's other
// ends are in settle.go. Each step can be repeated after a crash at any point.
//
// At most one charge succeeds, for three reasons. An intent makes at most one charge. A period is
// never bound to two uncancelled intents, because a worker binds another intent only after the
// processor has shown the first intent cancelled. Workers only confirm a bound intent.

// A step is the result of one action.
type step struct {
	result *Result               // nil if there is nothing to count
	known  bool                  // the result repeats an earlier wait
	again  bool                  // read the subscription and decide again
	bound  *billing.Subscription // subscription with a newly bound intent, from which to decide again
}

// A Pass configures how a run handles its subscriptions.
type Pass struct {
	Day      civil.Date      // business day; zero means the clock's day in the subscription's zone
	Refused  map[string]bool // connected accounts at which the run must not open intents
	Charging *charging.Switch
	Since    time.Time // end of the last run that ended; zero if no run does this work
}

// A work is one call of collect, with its request and its progress.
type work struct {
	Pass
	trigger trigger
	period  int    // the only period that a person charges; a past period is collected
	upgrade bool   // the person makes an upgrade, and charges the period only as that
	attempt int    // the only attempt that a person's request with a key makes; 0: no key
	told    string // why the period was parked when the person asked; "" for a repeated request
	last    bool   // the period has only one attempt, because its subscription is about to be cancelled

	paid int  // number of charged periods, except past ones
	sent sent // the attempt that this call confirmed last

	refusal string // the processor's last error
}

// sent is an attempt that this worker confirmed, and the intent's latest attempt after it.
type sent struct {
	ref     string
	attempt int
	latest  string
	method  string
}

// before reports whether the intent shows this worker's attempt while the period has a later one.
// The period has an untried later attempt if a person has set another method in the meantime.
func (x *sent) before(o *billing.OpenPeriod, in processor.Intent) bool {
	return x.ref == o.Ref && x.attempt < o.Attempt && x.latest != "" && x.latest == in.Latest && in.Latest != o.Base &&
		(in.State == processor.Declined || in.State == processor.RequiresAction)
}

// Collect advances one subscription for a run.
func (e *Engine) Collect(ctx context.Context, n billing.Name, p Pass, report func(Result)) error {
	return e.collect(ctx, n, work{Pass: p}, report)
}

// collect advances one subscription as far as possible today. It recovers an open period, charges
// due periods, oldest first, and reports each period that it handled. It reports nothing for a row
// that is not due yet.
func (e *Engine) collect(ctx context.Context, n billing.Name, w work, report func(Result)) error {
	ctx = call.Without(ctx) // what the protocol commits is nobody's request
	defer e.locks.Lock(n)()
	var fresh *billing.Subscription // this worker has just bound its intent, so there is nothing to look up
	var pending pendingSettle
	moved := false // this call has changed the current period
	reported, tell := false, report
	report = func(r Result) { reported = true; tell(r) }
	for tries := 0; tries < store.MaxTries; {
		s, bound := fresh, fresh != nil
		if fresh = nil; !bound {
			var err error
			if s, err = e.Load(ctx, n); err != nil {
				return billing.IgnoreNotFound(err)
			}
		}
		if r := pending.landed(s); r != nil {
			pending.result = nil
			report(*r)
			w.count(r, pending.past)
		}
		if w.tried(s) || w.upgrade && !s.Upgrading() {
			return nil
		}
		if w.trigger == byPerson && s.AtHand() != w.period {
			if !reported && w.attempt == 0 {
				return passed(s, w.period)
			}
			return nil
		}
		past := s.AtHand() < s.Period
		st, err := e.step(ctx, s, &w, bound)
		pending.note(s, st.result, past, err)
		if store.Retryable(err) {
			tries++
			continue
		}
		if err != nil {
			return err
		}
		if st.result == nil {
			moved = true // only matters if collect continues
		} else {
			st.result.New = moved || !st.known || e.waitsSince(ctx, s, w.Since)
			moved = false
			report(*st.result)
			w.count(st.result, past)
		}
		if fresh = st.bound; fresh == nil && !st.again {
			return nil
		}
	}
	return fmt.Errorf("subscription %s: other processes changed it %d times in a row; the next run continues",
		n, store.MaxTries)
}

// tried reports whether the attempt of a request with a key was made, by this or another process, and was
// declined. The period then waits for its retry day.
func (w *work) tried(s *billing.Subscription) bool {
	o := s.NextOpen()
	return w.attempt > 0 && o != nil && o.Attempt > w.attempt && !s.Ending()
}

// waitsSince reports whether the wait of the subscription's period began after the given time. If
// so, a webhook, a person or a killed run started the wait, and no run has reported it yet. If
// Duesday asked the customer to authenticate, the wait counts from the following day.
func (e *Engine) waitsSince(ctx context.Context, s *billing.Subscription, since time.Time) bool {
	o := s.Open
	switch {
	case since.IsZero():
		return false
	case s.Status == billing.ParkedState && !s.Collecting():
		p, err := e.RecordOf(ctx, s.Name, s.Period)
		return err == nil && p.Ended.After(since)
	case o == nil:
		return false
	}
	began := o.Opened
	if n := len(o.Attempts); n > 0 {
		began = o.Attempts[n-1].At
	}
	asked := o.Asked.After(billing.TodayIn(s.TimeZone, since)) && !o.Asked.After(billing.TodayIn(s.TimeZone, e.Now())) // maybe set by a run for a future date
	return asked || began.After(since) || s.RequestedAt.After(since)
}

// count counts a charged period. It leaves out a past period, because a past period is not part of
// a run's catch-up limit.
func (w *work) count(r *Result, past bool) {
	if r.Outcome == OutcomePaid && !past {
		w.paid++
	}
}

// A pendingSettle is a settle commit whose outcome is unknown.
type pendingSettle struct {
	result *Result
	charge string
	past   bool
}

func (p *pendingSettle) note(s *billing.Subscription, r *Result, past bool, err error) {
	switch {
	case errors.Is(err, store.ErrUnknown) && r != nil && r.Outcome == OutcomePaid:
		*p = pendingSettle{r, s.LastCharge, past}
	case err == nil:
		*p = pendingSettle{}
	}
}

// landed returns the result if the subscription shows that the commit succeeded. This is row 11 of
// the crash matrix.
func (p *pendingSettle) landed(s *billing.Subscription) *Result {
	if p.result != nil && s.Period > p.result.Period && s.LastCharge == p.charge {
		return p.result
	}
	return nil
}

// step carries out the next step for the subscription as it was read. It asks the processor until
// next decides on a commit, and makes the commit. bound reports that this worker has just bound the
// open period's intent.
func (e *Engine) step(ctx context.Context, s *billing.Subscription, w *work, bound bool) (step, error) {
	today := s.Today(w.Day, e.Now())
	x, err := e.situation(s, w, today, bound)
	if err != nil {
		return step{}, err
	}
	t := turn{e: e, s: s, w: w, today: today}
	for {
		a := next(x)
		switch a {
		case doOpen, doOpenUpgrade, doReopen, doRebind, doConfirm, doMakePage, doAskToPay, doEndUnpaid:
			if err := w.Charging.Check(ctx); err != nil {
				return step{}, err
			}
		}
		if a == doConfirm || a == doMakePage {
			if err := t.unmoved(ctx); err != nil {
				return step{}, err
			}
		}
		switch a {
		case doAskOrigin:
			x.origin = t.askOrigin(ctx)
			continue
		case doLookUp:
			t.in, err = e.proc.Lookup(ctx, s.Open.Ref)
			x.answer = lookedUp
		case doConfirm:
			if t.in, err = e.confirm(ctx, s, w.Charging); err == nil {
				w.sent = sent{s.Open.Ref, s.Open.Attempt, t.in.Latest, s.Open.Method}
			}
			x.answer = confirmed
		case doCancel:
			t.in, err = e.proc.Cancel(ctx, s.Open.Ref)
			x.answer = canceling
		case doMakePage:
			t.in = t.makePage(ctx)
			x.answer = paged
		case doReadMethod:
			if t.method, err = e.newMethod(ctx, s); err != nil {
				return step{}, err
			}
			if x.method = methodSame; t.method != "" {
				x.method = methodNew
			} else if x.state == processor.Declined && (x.hard || !x.retryLeft || x.past) {
				t.method, err = e.fallback(ctx, s, t.in)
				x.fallback = t.method != ""
			}
			if err != nil {
				return step{}, err
			}
			continue
		default:
			return t.commit(ctx, a)
		}
		if err != nil && x.trigger == byEvent && x.retryAhead {
			return step{}, err // the event is not applied, and the processor sends it again
		}
		if err != nil {
			w.refusal = secret.MaskCards(err.Error())
			return e.setback(ctx, s, today, err)
		}
		t.see(&x)
	}
}

// unmoved reads the row once more, right before money may move. If the subscription has changed or
// its date was moved, unmoved returns store.ErrConflict, or ErrState for a person's request.
func (t *turn) unmoved(ctx context.Context) error {
	now, err := t.e.Load(ctx, t.s.Name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.ErrConflict
	case err != nil:
		return err
	case now.NextPayment != t.s.NextPayment && t.w.trigger == byPerson:
		return fmt.Errorf("subscription %s: another tool has just %s and may have taken the payment, "+
			"so Duesday charged nothing; check the payment, then repeat the request: %w", now.Name, billing.MovedTo(now.NextPayment), billing.ErrState)
	case now.NextPayment != t.s.NextPayment || now.Version != t.s.Version:
		return store.ErrConflict
	}
	return nil
}

// situation returns the inputs of the first decision.
func (e *Engine) situation(s *billing.Subscription, w *work, today civil.Date, bound bool) (x situation, err error) {
	if w.trigger == byPerson && !s.Shifted() {
		s.AlteredTo = civil.Date{} // the person knows that the row was moved
	}
	x = situation{trigger: w.trigger, status: s.Status, open: s.Open != nil, charged: w.paid > 0,
		altered: s.Altered() != "" || w.trigger == byRun && s.Status == billing.Active && s.Removed()}
	x.upgrade = s.Upgrading()
	x.withdrawn = x.upgrade && e.withdrawn(s, today) != ""
	o := s.Open
	if o == nil {
		due, err := s.Due()
		if err != nil {
			return x, fmt.Errorf("subscription %s: %w", s.Name, err)
		}
		x.due, x.paidOff, x.cancelAtEnd, x.marked = !due.After(today), s.PaidOff(), s.AtEnd(), s.Collect > 0
		if s.Held() {
			x.origin = originUnasked
		}
		x.unfinished, x.byWire = s.Unfinished(), s.Collection == billing.ByWire
		x.untaxed = e.Untaxed(s)
		x.taxed = !x.untaxed && s.Parked == billing.NoTaxRate
		x.overload = w.paid >= e.cfg.CatchUp || x.due && !s.Ours() && s.Arrears(e.cfg.CatchUp, today)
		return x, nil
	}
	x.byWire = o.ByWire()
	x.requested, x.failing, x.bound = s.Requested != billing.RequestNone, o.State == billing.Failing, bound
	x.past, x.late = s.Beside(), s.Beside() && s.NextDue(today) || w.last
	x.retryAhead = !o.Retry.IsZero() && o.Retry.After(today)
	x.waiting = o.State == processor.RequiresAction
	x.asked = x.waiting && !o.Asked.IsZero()
	x.overdue = x.asked && e.cfg.ActionDays > 0 && s.Status != billing.ParkedState &&
		!today.Before(o.Asked.AddDays(e.cfg.ActionDays)) || x.byWire && !today.Before(o.PayBy)
	return x, nil
}

// A turn is one step of a subscription, with the data that it has found.
type turn struct {
	e      *Engine
	s      *billing.Subscription
	w      *work
	today  civil.Date
	in     processor.Intent     // the processor's last answer
	before processor.Intent     // the answer that showed a decline for a period whose end a person has requested
	method string               // the account's new method
	origin processor.Succession // of the processor's subscription that Duesday takes over
	lost   error                // why it is not known
	record *billing.EndedPeriod // record of the past period to be collected
}

// see records the processor's answer in the situation.
func (t *turn) see(x *situation) {
	o, in := t.s.Open, t.in
	x.state, x.noPage, x.hard, x.attempted = in.State, in.NoPage, in.Hard, in.Latest != ""
	x.matches = in.Amount == o.Amount && (in.Tag.Installation == "" || in.Tag.Period == o.Period)
	if x.ran = billing.AttemptRan(o, in); x.requested && x.ran && in.State == processor.Declined {
		t.before = in
	}
	x.overtaken = t.w.sent.before(o, in) || o.ShowsOvertaken(in)
	x.retryLeft = !t.w.last && !t.e.retryDate(cmp.Or(o.First, t.today), t.today, in.Debit).IsZero()
	x.method, x.fallback = methodUnread, false // the account may have received a method during the request
}

// commit carries out an action that is not a request to the processor.
func (t *turn) commit(ctx context.Context, a action) (step, error) {
	e, s, o, in := t.e, t.s, t.s.Open, t.in
	switch a {
	case doReportParked:
		return t.reportParked(ctx)
	case doVoidRenewed:
		return t.voidRenewed(ctx)
	case doAwaitOrigin, doParkOrigin:
		return t.awaitOrigin(ctx, a)
	case doAskToPay:
		return t.askToPay(ctx)
	case doEndUnpaid:
		return t.endUnpaid(ctx)
	case doAwaitPayment:
		return t.awaitPayment(ctx)
	case doRealign, doUnpark:
		return t.realign(ctx)
	case doParkUntaxed:
		return e.park(ctx, s, t.today, billing.NoTaxRate)
	case doLapse:
		return t.lapse(ctx)
	case doParkOverload:
		return e.park(ctx, s, t.today, fmt.Sprintf("more than %d periods were due at once", e.cfg.CatchUp))
	case doParkAltered:
		return e.park(ctx, s, t.today, cmp.Or(s.Altered(), "changed by another tool: NextPaymentDate was removed"))
	case doOpen:
		return t.open(ctx)
	case doOpenUpgrade:
		return t.openUpgrade(ctx)
	case doDropUpgrade:
		return t.dropUpgrade(ctx, e.withdrawn(s, t.today))
	case doReopen:
		return t.reopen(ctx)
	case doSettle:
		noteDecline(o, t.before, o.Attempt, o.Method)
		return e.settle(ctx, s, in, t.today)
	case doEnd:
		noteDecline(o, t.before, o.Attempt, o.Method)
		noteDecline(o, in, o.Attempt, o.Method)
		if s.Upgrading() {
			return t.endUpgrade(ctx)
		}
		if s.Collecting() && s.Manual == nil {
			return e.endPast(ctx, s, t.today, cmp.Or(t.w.refusal, "its payment intent was cancelled"))
		}
		if t.w.last && s.Requested == billing.RequestNone {
			return e.endTried(ctx, s, t.today)
		}
		return e.end(ctx, s, t.today)
	case doRebind:
		if noteDecline(o, in, o.Attempt, o.Method); !o.Unanswered() {
			o.Attempt++
		}
		return t.rebind(ctx)
	case doParkMismatch:
		return e.park(ctx, s, t.today, mismatch(o, in))
	case doReportMismatch:
		return e.report(ctx, s, t.today, OutcomePending, mismatch(o, in))
	case doRetryOvertaken, doUseMethod, doFail, doDecline, doDeclineLast, doDeclineParked, doDeclineUseMethod,
		doDeclineFallback:
		return t.retry(ctx, a)
	case doAwaitProcessor, doAskCustomer, doReportCanceling:
		return t.wait(ctx, a)
	case doReportAwaited:
		return e.report(ctx, s, t.today, OutcomePending, awaitsCustomer, t.askAgain(outbox.KindActionRequired, o.Asked)...)
	case doReportUntried:
		return e.report(ctx, s, t.today, OutcomePending, "the processor has not yet carried out the attempt")
	}
	return step{}, nil
}

func mismatch(o *billing.OpenPeriod, in processor.Intent) string {
	return fmt.Sprintf("payment intent %s is for period %d and %s, not period %d and %s", in.Ref, in.Tag.Period, in.Amount,
		o.Period, o.Amount)
}

// lapse cancels the subscription after its last period, or records more overdue periods.
func (t *turn) lapse(ctx context.Context) (step, error) {
	e, s := t.e, t.s
	if s.CancelAtEnd && s.CancelDate.IsZero() { // no one knows which periods were overdue then, so each has a record
		s.Requested, s.RequestedAt = billing.RequestCancel, e.Now()
	}
	if s.Requested == billing.RequestCancel {
		return step{again: true}, e.put(ctx, s, e.cancel(s, t.today)...)
	}
	if s.Unfinished() {
		return step{again: true}, e.put(ctx, s, e.moveOn(s, t.today)...)
	}
	var parked []write
	if s.Status == billing.ParkedState { // its period is not charged, and waits for no one
		parked = append(parked, e.dropRecord(s, s.Period))
	}
	return step{}, e.put(ctx, s, append(parked, e.cancelled(s)...)...)
}

// realign moves a row that a walk found too early to its due day. Otherwise, every walk would find
// the row again in vain. Such a row appears if the index lags, or if an operator's tool wrote the
// row.
func (t *turn) realign(ctx context.Context) (step, error) {
	s := t.s
	if s.Status == billing.ParkedState { // its tax rate is there, or a person charges it before it is due
		others, err := t.e.unpark(s, t.today)
		if err != nil {
			return step{}, err
		}
		return step{again: true}, t.e.put(ctx, s, others...)
	}
	if s.Status != billing.Active || s.NextPayment.IsZero() || s.NextPayment.After(t.today) {
		return step{}, nil
	}
	due, err := s.Due()
	if err != nil {
		return step{}, err
	}
	s.NextPayment = due
	return step{}, t.e.put(ctx, s)
}

// Heard updates the open period of a subscription to the state of its payment intent, after the
// processor sent an event about it. Heard looks up the intent and settles the period as runs do,
// but it does not open or confirm anything. It does not trust the event's content, because anyone
// who can write metadata at the processor can name a subscription. It ignores an intent that is not
// bound here, and does nothing while charging is off.
func (e *Engine) Heard(ctx context.Context, account, subscription, intent string) error {
	if _, err := e.CheckClock(ctx); err != nil {
		return err
	}
	if err := e.Charging().MayCharge(ctx); charging.IsOff(err) { // runs handle open periods when charging is on again
		return nil
	} else if err != nil {
		return err
	}
	s, err := e.Subscription(ctx, billing.Name{Account: account, ID: subscription})
	if err != nil || !s.Bound(intent) {
		return billing.IgnoreNotFound(err)
	}
	if e, err = e.Fresh(ctx); err != nil {
		return err
	}
	return e.collect(ctx, s.Name, work{trigger: byEvent}, func(Result) {})
}
