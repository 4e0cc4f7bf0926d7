package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/secret"
)

// This file opens the first period of a subscription that the processor ran before. Theirs and ours
// would both charge it if theirs had not ended, so each run that would open the period first looks
// up theirs. The look-up fails closed: what Duesday does not know, it waits for.

// originDays is after how many days of waiting the period is parked.
const originDays = 3

// askOrigin looks up the processor's subscription.
func (t *turn) askOrigin(ctx context.Context) origin {
	k := t.s.Takeover
	b, ok := t.e.Biller()
	if !ok {
		t.lost = fmt.Errorf("this processor does not have %s", k.From)
		return originWaits
	}
	t.origin, t.lost = processor.Ask(ctx, func() (processor.Succession, error) { return b.Succession(ctx, k.From, k.Boundary) })
	switch o := t.origin; {
	case t.lost != nil:
		return originWaits
	case o.Renewal != "" && o.Paid:
		return originRenewed
	case o.Renewal != "" || o.Ended.IsZero():
		return originWaits
	case !o.Ended.Before(k.Boundary) && !o.Refused && o.TakenBy == t.e.Opened.Installation:
		return originEnded
	case t.w.trigger == byPerson && t.w.told == t.goneReason():
		return originEnded // who charges it has read this
	}
	return originGone
}

// goneReason returns why the customer may not want what the processor's subscription has ended without.
func (t *turn) goneReason() string {
	k := t.s.Takeover
	switch o := t.origin; {
	case o.Refused:
		return k.From + " was canceled at the processor, with a reason from its customer"
	case o.Ended.Before(k.Boundary):
		return fmt.Sprintf("%s ended at the processor on %s, before its period did; perhaps its customer cancelled it", k.From, billing.TodayIn(t.s.TimeZone, o.Ended))
	}
	return k.From + " was canceled at the processor, and not by a start of this takeover"
}

// released returns the situation as if theirs had ended.
func (x situation) released() situation {
	x.origin = originNone
	return x
}

// Biller returns the processor if it runs subscriptions of its own. That of a dry engine does not.
func (e *Engine) Biller() (processor.Biller, bool) {
	b, ok := e.proc.(processor.Biller)
	return b, ok
}

// endHold notes, in memory, that theirs has ended. Only the commit that opens the first period calls it.
func (t *turn) endHold() {
	if t.s.Held() {
		t.s.SetTakeover(func(k *billing.Takeover) { k.Stage, k.Waits = billing.TakeoverDone, civil.Date{} })
	}
}

// awaitOrigin reports the wait for the end of theirs. It parks the period after originDays, or at once if
// theirs ended early: its customer may have cancelled it.
func (t *turn) awaitOrigin(ctx context.Context, a action) (step, error) {
	s, k := t.s, *t.s.Takeover
	reason := fmt.Sprintf("%s is still %s at the processor", k.From, t.origin.Status)
	switch {
	case t.lost != nil:
		reason = fmt.Sprintf("whether %s has ended at the processor is not known: %s", k.From, secret.MaskCards(t.lost.Error()))
	case a == doParkOrigin:
		return t.e.park(ctx, s, t.today, t.goneReason())
	case t.origin.Renewal != "":
		reason = fmt.Sprintf("%s has the unpaid invoice %s at the processor", k.From, t.origin.Renewal)
	}
	if s.Status == billing.ParkedState {
		return t.e.report(ctx, s, t.today, OutcomeParked, reason)
	}
	if k.Waits.IsZero() {
		s.SetTakeover(func(k *billing.Takeover) { k.Waits = t.today })
	} else if !t.today.Before(k.Waits.AddDays(originDays)) {
		return t.e.park(ctx, s, t.today, reason)
	}
	s.NextPayment = t.e.waitDay(s, t.today)
	return step{result: resultOf(s, OutcomePending, reason), known: !k.Waits.IsZero()}, t.e.put(ctx, s)
}

// voidRenewed records the period as void, because theirs has charged it. The subscription stays held until
// the end of the period that theirs charged.
func (t *turn) voidRenewed(ctx context.Context) (step, error) {
	s, e, until := t.s, t.e, t.origin.Until
	due, err := s.Due()
	if err != nil {
		return step{}, err
	}
	if !due.Before(billing.TodayIn(s.TimeZone, until)) { // that period is over here: an operator has decided about it
		s.SetTakeover(func(k *billing.Takeover) { k.Boundary, k.Waits = until, civil.Date{} })
		return step{again: true}, e.put(ctx, s)
	}
	reason := fmt.Sprintf("the processor charged it: invoice %s of %s is paid", t.origin.Renewal, s.Takeover.From)
	r := resultOf(s, OutcomeSkipped, reason)
	others := []write{e.putRecord(e.ended(s, billing.EndVoid, reason, nil))}
	s.SetTakeover(func(k *billing.Takeover) { k.Boundary, k.Waits = until, civil.Date{} })
	if s.Status == billing.ParkedState {
		s.Status, s.Parked = billing.Active, ""
	}
	return step{result: r, again: goesOn(s, t.today)}, e.put(ctx, s, append(others, e.pass(s, t.today, false, e.Now())...)...)
}

// NoteTakeover commits that the takeover has reached the stage. The subscription must be held, or be undone.
func (e *Engine) NoteTakeover(ctx context.Context, n billing.Name, stage billing.TakeoverStage) (*billing.Subscription, error) {
	return e.change(ctx, n, func(s *billing.Subscription, _ civil.Date) ([]write, error) {
		switch k := s.Takeover; {
		case k != nil && k.Stage == stage:
			return nil, billing.ErrUnchanged
		case !s.Held() && stage == billing.TakeoverEnding || s.Over() && stage == billing.TakeoverEnding:
			return nil, refusal(s, " is not held for a takeover")
		case stage == billing.TakeoverUndone && (k == nil || k.Stage != billing.TakeoverUndoing && !(s.Held() && s.Over())):
			return nil, refusal(s, " is not being handed back")
		}
		s.SetTakeover(func(k *billing.Takeover) { k.Stage = stage })
		return nil, nil
	})
}

// UndoTakeover cancels a held subscription, so that the processor's may continue. No customer is told. It
// returns ErrState after the first period was opened: its charge cannot be undone.
func (e *Engine) UndoTakeover(ctx context.Context, n billing.Name) (*billing.Subscription, error) {
	return e.change(ctx, n, func(s *billing.Subscription, _ civil.Date) (others []write, err error) {
		switch k := s.Takeover; {
		case k == nil:
			return nil, refusal(s, " was not taken over")
		case k.Stage == billing.TakeoverUndoing || k.Stage == billing.TakeoverUndone:
			return nil, billing.ErrUnchanged
		case s.Over():
			return nil, wrongStatus(s)
		case !s.Held() || s.Open != nil:
			return nil, refusal(s, ": its period %d was opened here, so its takeover cannot be undone; to end it, use subscription cancel", s.AtHand())
		}
		if s.Status == billing.ParkedState {
			others = append(others, e.dropRecord(s, s.Period))
		}
		s.SetTakeover(func(k *billing.Takeover) { k.Stage = billing.TakeoverUndoing })
		s.RequestedAt = e.Now()
		s.Cancel()
		return others, nil
	})
}

// RetainTakeover parks a subscription, held again, whose undo came too late: theirs has ended. An operator decides
// whether the customer wants to continue.
func (e *Engine) RetainTakeover(ctx context.Context, n billing.Name) (*billing.Subscription, error) {
	return e.change(ctx, n, func(s *billing.Subscription, today civil.Date) ([]write, error) {
		if s.Takeover == nil || s.Takeover.Stage != billing.TakeoverUndoing {
			return nil, refusal(s, " is not being handed back")
		}
		s.SetTakeover(func(k *billing.Takeover) { k.Stage = billing.TakeoverEnding })
		reason := s.Takeover.From + " ended at the processor while it was handed back"
		s.Status, s.Parked, s.RequestedAt = billing.ParkedState, reason, time.Time{}
		s.NextPayment, s.NextReminder = e.agendaDay(s, today), civil.Date{}
		return []write{e.putRecord(e.ended(s, billing.EndParked, reason, nil))}, nil
	})
}
