package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/kept"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/billing/reversal"
	"github.com/duesday/duesday/internal/billing/tax"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// settle is SETTLE: receipt, subscription and effects in one commit. Workers, recovery
// and events all settle through it, and the item's version lets one of them win.
func (e *Engine) settle(ctx context.Context, s *billing.Subscription, in processor.Intent,
	today civil.Date) (step, error) {
	o := s.Open
	r, moved, to := resultOf(s, OutcomePaid, ""), s.Removed() || !s.AlteredTo.IsZero(), s.AlteredTo
	past, err := e.collected(ctx, s)
	if err != nil {
		return step{}, err
	}
	if s.Upgrading() {
		moved, to = moved || s.Altered() != "", cmp.Or(to, s.NextPayment)
		s.Upgraded()
	}
	var others []write
	if s.Manual != nil {
		r.Reason, others = overpaid, []write{e.putReceipt(e.manualReceipt(s, billing.Overpayment))}
	}
	others = append(others, e.bookCharge(s, in, o.Period, s.SKUOf(o), o.Due, past, today)...)
	if moved {
		others = append(others, e.doubt(s, to, r, today))
	}
	return step{result: r, again: goesOn(s, today)}, e.put(ctx, s, others...)
}

// doubt keeps the date to which another tool has moved the row while the period was open, in
// memory; zero: the tool has removed it. That tool may have taken the payment as well: the result
// and the returned write name it.
func (e *Engine) doubt(s *billing.Subscription, moved civil.Date, r *Result, today civil.Date) write {
	if !s.NextPayment.IsZero() { // it goes on
		s.KeepAltered(moved, e.agendaDay(s, today))
	}
	what := "perhaps paid twice"
	if r.Outcome != OutcomePaid {
		what = cmp.Or(r.Reason, string(r.Outcome)) + "; perhaps paid all the same"
	}
	r.Reason = fmt.Sprintf("%s: another tool %s meanwhile", what, billing.MovedTo(moved))
	d := billing.Doubt{Name: s.Name, Period: r.Period, Moved: moved, Created: e.Now()}
	return write{Write: d.Write(e.Table)}
}

// goesOn reports whether another period of the subscription is to be dealt with today.
func goesOn(s *billing.Subscription, today civil.Date) bool {
	return s.Requested == billing.RequestCancel || s.Unfinished() || s.Status == billing.Active && !s.NextPayment.After(today)
}

// bookCharge books the success of the period's intent, in memory, as book does.
func (e *Engine) bookCharge(s *billing.Subscription, in processor.Intent, period int, sku string, due civil.Date,
	was *billing.EndedPeriod, today civil.Date) []write {
	rec := e.receipt(s, billing.Charged, in.Amount, due, cmp.Or(in.Changed, e.Now()), in.Ref)
	rec.Period, rec.SKU, rec.Price, s.LastCharge = period, sku, price.ReadText(in.Price, period, in.Amount), in.Ref
	return e.book(s, rec, was, today)
}

// book books a payment, in memory: that of the period to be paid next moves the subscription on, that
// of a past one ends its collecting. was is the past period's record, or nil if it is illegible. book
// returns the other writes: the receipt and its mail, and the deletion of the record.
func (e *Engine) book(s *billing.Subscription, rec *billing.Receipt, was *billing.EndedPeriod, today civil.Date) []write {
	past := rec.Period < s.Period
	s.Explain(rec, was)
	months, known := kept.Months(s.Kept, rec.Period)
	var o *billing.OpenPeriod
	if s.Open != nil && s.Open.Period == rec.Period && len(s.Open.Attempts) > 0 {
		o, rec.Recovered = s.Open, billing.RecoveredDecline
	}
	switch {
	case past && was != nil:
		rec.Recovered, rec.Declined = cmp.Or(report.Recovery(was, rec), rec.Recovered), declined(s, was.Declined, o)
	case !past && o != nil:
		rec.Declined = declined(s, o.Declined, o)
	}
	if past && known {
		rec.Expires = expiry(e.Now(), months) // the subscription says so, and the audit believes it
	} else if months = e.cfg.ReceiptMonths; !past {
		s.Kept = kept.Note(s.Kept, s.Period, months)
	}
	for _, x := range report.BeforeReceipt(rec) { // a clock was ahead if it is later than the payment
		if least := expiry(x.At, months); !rec.Expires.IsZero() && rec.Expires.Before(least) {
			rec.Expires = least
		}
	}
	rec.Expires = tax.Keep(rec.Price, rec.Processed, rec.Expires)
	others := append(e.notice(outbox.KindReceipt, s, nil, rec), e.putReceipt(rec))
	if past || s.Status == billing.ParkedState {
		others = append(others, e.dropRecord(s, rec.Period))
	}
	if !past {
		return append(others, e.pass(s, today, true, rec.Processed)...)
	}
	s.NotePayment(rec.Processed)
	if at := s.AtHand(); at != s.Period && at != rec.Period || s.NextOpen() != nil || s.Upgrading() { // another period, which goes on
		return others
	}
	return append(others, e.closePast(s, today, rec.Kind == billing.Charged || rec.Period == s.Period-1)...)
}

// pass moves the subscription on to its next period, in memory: it closes the open period, and then
// moves on. It returns the other writes.
func (e *Engine) pass(s *billing.Subscription, today civil.Date, paid bool, at time.Time) (others []write) {
	s.Open = nil
	s.EndUpgrade("its period has ended")
	if s.Held() {
		s.SetTakeover(func(k *billing.Takeover) { k.Waits = civil.Date{} })
	}
	if s.Period++; s.Upgrade != nil && s.Upgrade.Period < s.Period-1 {
		s.Upgrade = nil
	}
	if paid {
		s.NotePayment(at)
		if s.Status == billing.PastDue && s.Requested == billing.RequestNone { // by a charge to be adopted: somebody had made it active
			s.Status = billing.Active
		}
	}
	return e.moveOn(s, today)
}

// moveOn carries out the request, in memory and with no period open, and sets the next dates. If there
// are more periods to skip than one commit takes, the request stays, and the next step goes on with it.
// It returns the other writes: records of skipped periods, that of the next period if it is parked as
// well, or the notice of a cancellation.
func (e *Engine) moveOn(s *billing.Subscription, today civil.Date) (others []write) {
	if s.Requested == billing.RequestSkip {
		others, _, _ = e.voidBefore(s, s.SkipUntil, func(civil.Date) string { return skippedByPerson })
	}
	s.TakeEffect()
	due, err := s.Schedule().Due(s.Period)
	switch {
	case s.Requested == billing.RequestCancel:
		return e.cancel(s, today)
	case err != nil || s.PaidOff():
		s.Status, s.Collect = billing.Completed, 0
	case s.Requested == billing.RequestSkip && due.Before(s.SkipUntil):
		s.NextPayment, s.NextReminder = e.agendaDay(s, today), civil.Date{}
		return others
	case s.Requested == billing.RequestPause:
		s.Pause(today)
	case s.Status == billing.ParkedState && (due.After(today) && !reversal.Holds(s) || s.AtEnd()):
		s.Status, s.Parked = billing.Active, ""
	case s.Status == billing.ParkedState:
		record := e.ended(s, billing.EndParked, s.Parked, nil)
		record.Due = due
		others = append(others, e.putRecord(record))
	}
	s.Requested, s.Manual = billing.RequestNone, nil
	s.Reschedule(due, e.agendaDay(s, today))
	return others
}

// end closes the open period unpaid. The processor has shown its intent cancelled.
func (e *Engine) end(ctx context.Context, s *billing.Subscription, today civil.Date) (step, error) {
	if s.Manual != nil {
		return e.endManual(ctx, s, today)
	}
	o := s.Open
	ending, reason, outcome := billing.EndFailed, "", OutcomeFailed
	switch s.Requested {
	case billing.RequestCancel:
		ending, reason, outcome = billing.EndVoid, billing.CancelledVoid, OutcomeSkipped
	case billing.RequestPause:
		ending, reason, outcome = billing.EndVoid, "the subscription was paused", OutcomeSkipped
	case billing.RequestSkip:
		ending, reason, outcome = billing.EndSkipped, skippedByPerson, OutcomeSkipped
	case billing.RequestManual:
		ending, reason, outcome = billing.EndVoid, "a manual payment of which another tool has removed the record", OutcomeSkipped
	}
	if ending == billing.EndFailed {
		reason = e.failure(o)
	}
	p := e.ended(s, ending, reason, o)
	given := false // another method, too late for this period
	var others []write
	if ending == billing.EndFailed {
		method, _, err := e.Cards().MethodOf(ctx, s)
		if err != nil {
			return step{}, err
		}
		if given = !o.Tried(method); !given {
			e.stop(s)
		}
		if s.Requested == billing.RequestNone {
			p.CollectUntil = e.collectUntil(today)
		}
		others = e.failed(s, o, p.CollectUntil)
	}
	r, moved, to := resultOf(s, outcome, reason), s.Removed() || !s.AlteredTo.IsZero(), s.AlteredTo
	r.First = outcome == OutcomeFailed && o.First == today
	others = append(append(others, e.putRecord(p)), e.pass(s, today, false, e.Now())...)
	if moved && ending == billing.EndFailed { // else a person has ended it, and knows
		others = append(others, e.doubt(s, to, r, today))
	}
	if given && s.Status == billing.Active && !p.CollectUntil.IsZero() {
		s.MarkCollect(p.Period, e.agendaDay(s, today))
	}
	return step{result: r, again: s.Unfinished()}, e.put(ctx, s, others...)
}

// stop has nothing more charged after a failed period, in memory: the subscription is past_due, or
// it ends at once if it was to end with its period.
func (e *Engine) stop(s *billing.Subscription) {
	if s.CancelAtEnd {
		s.Requested, s.RequestedAt = billing.RequestCancel, e.Now()
	} else {
		s.Status = billing.PastDue
	}
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
	r := resultOf(s, parkedOutcome(s), reason)
	others := []write{e.putRecord(e.ended(s, billing.EndParked, reason, s.Open))}
	if reason == billing.NoMethod && !slices.Contains(s.Mailed, outbox.Topic(outbox.KindReminder, s.Period, outbox.NoMethodTopic)) {
		others = append(others, e.askFor(outbox.KindReminder, s, today)...)
	}
	return step{result: r}, e.put(ctx, s, others...)
}

// ended makes the record of the period to be paid next; o is its open period, if any.
func (e *Engine) ended(s *billing.Subscription, ending billing.Ending, reason string,
	o *billing.OpenPeriod) *billing.EndedPeriod {
	p := &billing.EndedPeriod{Name: s.Name, SKU: s.SKU, Period: s.Period, Ending: ending, Ended: e.Now(),
		Reason: reason, Amount: s.AmountOf(s.Period), Price: s.PriceOf(s.Period)}
	if s.Requested == billing.RequestCancel && ending == billing.EndVoid {
		p.Ended = cmp.Or(s.RequestedAt, p.Ended)
	}
	p.Due, _ = s.Due()
	p.Generation = s.NextGeneration()
	if o != nil {
		p.Amount, p.Price, p.Ref, p.Generation, p.Attempts, p.Due = o.Amount, o.Price, o.Ref, o.Generation, o.Attempts, o.Due
		if ending != billing.EndParked { // its open period stays
			p.Declined = declined(s, o.Declined, o)
		}
	}
	return p
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
