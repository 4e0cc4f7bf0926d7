package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
)

// settle is SETTLE: receipt, subscription and effects in one commit. Workers, recovery
// and events all settle through it, and the item's version lets one of them win.
func (e *Engine) settle(ctx context.Context, s *billing.Subscription, in billing.Intent,
	today civil.Date) (step, error) {
	o := s.Open
	r := resultOf(s, OutcomePaid, "")
	if s.Collecting() {
		collected := e.collected(s, in, s.SKUOf(o), o.Due, today)
		return step{result: r, again: goesOn(s, today)}, e.Put(ctx, s, collected...)
	}
	s.LastCharge = in.Ref
	paid := e.paid(s, e.receipt(s, billing.Charged, o.Amount, o.Due, cmp.Or(in.Changed, e.Now()), in.Ref), today)
	err := e.Put(ctx, s, paid...)
	return step{result: r, again: err == nil && goesOn(s, today)}, err
}

// goesOn reports whether another period of the subscription is to be dealt with today.
func goesOn(s *billing.Subscription, today civil.Date) bool {
	return s.Status == billing.Active && !s.NextPayment.After(today)
}

// paid moves the subscription on, in memory, after the payment of the period to be paid next. It
// returns the other writes: the receipt and its mail.
func (e *Engine) paid(s *billing.Subscription, r *billing.Receipt, today civil.Date) []store.Write {
	s.NoteKept(s.Period, e.cfg.ReceiptMonths)
	others := append(e.notice(outbox.KindReceipt, s, nil, r), store.Put(e.Table, r.Item(), store.Absent()))
	if s.Status == billing.ParkedState {
		others = append(others, store.Delete(e.Table, billing.PeriodKey(s.Name, s.Period)))
	}
	return append(others, e.pass(s, today, true, r.Processed)...)
}

// pass moves the subscription on to its next period, in memory: it closes the open period, carries
// out the request and sets the next dates. It returns the other writes: the record of the next period
// if that is parked as well, or the notice of a cancellation.
func (e *Engine) pass(s *billing.Subscription, today civil.Date, paid bool, at time.Time) (others []store.Write) {
	s.Open = nil
	s.Period++
	if paid {
		s.Paid++
		s.LastPayment = at
	}
	s.TakeEffect()
	due, err := s.Schedule().Due(s.Period)
	switch {
	case s.Requested == billing.RequestCancel:
		others, _ = e.voidOverdue(s, today)
		others = append(others, e.cancelled(s)...)
	case err != nil || s.PaidOff():
		s.Status, s.Collect = billing.Completed, 0
	case s.Requested == billing.RequestPause:
		s.Pause(today)
	case s.Status == billing.ParkedState && due.After(today):
		s.Status, s.Parked = billing.Active, ""
	case s.Status == billing.ParkedState:
		record := e.ended(s, billing.EndParked, s.Parked, nil)
		record.Due = due
		others = []store.Write{record.Write(e.Table)}
	}
	s.Requested = billing.RequestNone
	s.Reschedule(due, e.agendaDay(s, today))
	return others
}

// end closes the open period unpaid. The processor has shown its intent cancelled: nobody
// can pay it any more.
func (e *Engine) end(ctx context.Context, s *billing.Subscription, today civil.Date) (step, error) {
	o := s.Open
	ending, reason, outcome := billing.EndFailed, "", OutcomeFailed
	switch s.Requested {
	case billing.RequestCancel:
		ending, reason, outcome = billing.EndVoid, cancelledVoid, OutcomeSkipped
	case billing.RequestPause:
		ending, reason, outcome = billing.EndVoid, "the subscription was paused", OutcomeSkipped
	case billing.RequestSkip:
		ending, reason, outcome = billing.EndSkipped, "skipped by a person", OutcomeSkipped
	}
	if ending == billing.EndFailed {
		reason = e.failure(o)
	}
	p := e.ended(s, ending, reason, o)
	given := false // another method, too late for this period
	var others []store.Write
	if ending == billing.EndFailed {
		p.CollectUntil = e.collectUntil(today)
		others = e.failed(s, o, p.CollectUntil)
		method, _, err := e.methodOf(ctx, s)
		if err != nil {
			return step{}, err
		}
		if given = method != o.Method; !given {
			s.Status = billing.PastDue
		}
	}
	r := resultOf(s, outcome, reason)
	others = append(append(others, p.Write(e.Table)), e.pass(s, today, false, e.Now())...)
	if given && s.Status == billing.Active && !p.CollectUntil.IsZero() {
		s.MarkCollect(p.Period, e.agendaDay(s, today))
	}
	return step{result: r}, e.Put(ctx, s, others...)
}

// failure returns why the open period fails. A missing authentication is noted as an attempt.
func (e *Engine) failure(o *billing.OpenPeriod) string {
	if !o.Unanswered() {
		return "declined: " + o.Attempts[len(o.Attempts)-1].Code
	}
	o.Attempts = append(o.Attempts, billing.Attempt{Number: o.Attempt, Code: notAuthenticated, Method: o.Method,
		At: e.Now()})
	return "the customer did not authenticate the payment"
}

// notAuthenticated is the code of an attempt not authenticated by the customer.
const notAuthenticated = "authentication_required"

// park hands the period to a person. Its row stays in the index: until the person has decided,
// every run reports it and checks whether a bound intent has taken the money, but confirms nothing.
func (e *Engine) park(ctx context.Context, s *billing.Subscription, today civil.Date, reason string) (step, error) {
	if s.Status == billing.ParkedState && s.Parked == reason {
		return e.report(ctx, s, today, OutcomeParked, reason)
	}
	s.Status, s.Parked, s.Collect = billing.ParkedState, reason, 0
	s.NextPayment, s.NextReminder = e.agendaDay(s, today), civil.Date{}
	r := resultOf(s, OutcomeParked, reason)
	return step{result: r}, e.Put(ctx, s, e.ended(s, billing.EndParked, reason, s.Open).Write(e.Table))
}

// ended makes the record of the period to be paid next; o is its open period, if any.
func (e *Engine) ended(s *billing.Subscription, ending billing.Ending, reason string,
	o *billing.OpenPeriod) *billing.EndedPeriod {
	p := &billing.EndedPeriod{Name: s.Name, SKU: s.SKU, Period: s.Period, Ending: ending, Ended: e.Now(),
		Reason: reason, Amount: s.Amount}
	p.Due, _ = s.Due()
	if o != nil {
		p.Amount, p.Ref, p.Generation, p.Attempts, p.Due = o.Amount, o.Ref, o.Generation, o.Attempts, o.Due
	}
	return p
}

// CreateReceipt is access pattern 2 as a person's operation: a manual payment settles the period
// that is due at the first read, without a charge. It returns ErrState if nothing is due, or while
// an intent is live and could still take the money a second time. A zero amount means the
// subscription's; note is the person's reference.
func (e *Engine) CreateReceipt(ctx context.Context, n billing.Name, amount money.Amount, note string,
	at time.Time) (rec *billing.Receipt, err error) {
	if err := billing.CheckText("note", note, billing.MaxText); err != nil {
		return nil, err
	}
	full, err := e.Subscription(ctx, n)
	if err != nil {
		return nil, err
	}
	if err := e.checkRollbackOf(ctx, n.Account, true); err != nil {
		return nil, err
	}
	defer e.locks.lock(full.Name)()
	o, at := once{Engine: e}, cmp.Or(at, e.Now()).UTC().Truncate(time.Millisecond)
	err = e.reload(ctx, full.Name, func(s *billing.Subscription) error {
		landed, err := o.landed(ctx, s)
		switch {
		case landed || err != nil:
			return err
		case s.Period != full.Period:
			return passed(s, full.Period)
		}
		if rec, err = e.manual(ctx, s, amount, note, at); err != nil {
			return err
		}
		return o.put(ctx, s, e.paid(s, rec, billing.TodayIn(s.TimeZone, e.Now()))...)
	})
	return rec, err
}

// manual returns the receipt of a manual payment of the due period. A zero amount is the
// subscription's.
func (e *Engine) manual(ctx context.Context, s *billing.Subscription, amount money.Amount, note string,
	at time.Time) (*billing.Receipt, error) {
	today := billing.TodayIn(s.TimeZone, e.Now())
	if s.Collecting() {
		return nil, fmt.Errorf("subscription %s: period %d is being collected: %w", s.Name, s.Open.Period, billing.ErrState)
	}
	if s.Open != nil {
		in, err := e.proc.Lookup(ctx, s.Open.Ref)
		if err != nil {
			return nil, fmt.Errorf("subscription %s: its payment intent cannot be looked up: %w", s.Name, err)
		}
		if in.State != billing.Canceled {
			const live = "subscription %s: payment intent %s is live (%s) and could still be paid; cancel, pause or skip " +
				"first: %w"
			return nil, fmt.Errorf(live, s.Name, s.Open.Ref, in.State, billing.ErrState)
		}
	}
	due, err := s.Due()
	switch {
	case err != nil:
		return nil, err
	case s.Status != billing.Active && s.Status != billing.ParkedState:
		return nil, fmt.Errorf("subscription %s is %s: nothing is due: %w", s.Name, s.Status, billing.ErrState)
	case due.After(today):
		return nil, fmt.Errorf("subscription %s: nothing is due before %s: %w", s.Name, due, billing.ErrState)
	case amount == money.Amount{}:
		amount = s.Amount
	case !amount.IsPositive() || amount.Currency() != s.Amount.Currency():
		return nil, billing.Invalid("amount", "want more than zero "+s.Amount.Currency().Code())
	}
	return e.receipt(s, billing.External, amount, due, at, note), nil
}

// ImportReceipt stores a receipt of imported data. It returns false if the receipt is there
// already. An expired receipt is kept as long as a new one: people can then look at the import.
func (e *Engine) ImportReceipt(ctx context.Context, r billing.Receipt) (bool, error) {
	if err := e.MayChange(ctx); err != nil {
		return false, err
	}
	r.Kind = billing.Imported
	if now := e.Now(); !r.Expires.IsZero() && !r.Expires.After(now) {
		r.Expires = expiry(now, e.cfg.ReceiptMonths)
	}
	err := e.Store.Commit(ctx, store.Put(e.Table, r.Item(), store.Absent()))
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}
