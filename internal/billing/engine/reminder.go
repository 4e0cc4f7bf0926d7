package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
)

// outcomeSent counts reminders that were committed to the outbox.
const outcomeSent Outcome = "sent"

// remind commits the reminder of the next payment: the outbox row, and the subscription
// without its NextReminderDate, so that the row has left the index. The settling of the
// payment sets the next one. Nothing is sent for what is paid, open, paused or cancelled, or
// when the due date is not ahead any more. It says which card will be charged, where the
// processor tells.
func (e *Engine) remind(ctx context.Context, n billing.Name, day civil.Date, dry bool, report func(Result)) error {
	var card *billing.Card
	asked := false
	for range store.MaxTries {
		s, err := e.Load(ctx, n)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		today := s.Today(day, e.Now())
		if s.NextReminder.IsZero() || s.NextReminder.After(today) {
			return nil
		}
		due, err := s.Due()
		if err != nil {
			return err
		}
		r := resultOf(s, OutcomeSkipped, "nothing to remind of")
		var others []store.Write
		if s.Status == billing.Active && s.Open == nil && !s.CancelAtEnd && due.After(today) {
			r.Outcome, r.Reason = outcomeSent, ""
			if !asked && !dry && s.Email != "" {
				if c, ok := e.cardOf(ctx, s); ok {
					card = &c
				}
				asked = true
			}
			method, _, err := e.methodOf(ctx, s)
			if err != nil {
				return err
			}
			others = e.reminder(s, due, card, method == "")
			s.LastReminder = e.Now()
		}
		if s.NextReminder = (civil.Date{}); dry {
			report(*r)
			return nil
		}
		if err = e.Put(ctx, s, others...); err == nil {
			report(*r)
			return nil
		}
		if !store.Retryable(err) {
			return err
		}
	}
	return fmt.Errorf("subscription %s: overtaken by others %d times", n, store.MaxTries)
}

// StillWanted is the outbox's guard: asked right before a delivery, it drops a reminder of
// a period that has been paid, paused or cancelled since, or is due on another day now; and
// the request to authenticate a payment that waits for it no more.
func (e *Engine) StillWanted(ctx context.Context, f outbox.Effect) (bool, error) {
	if f.Kind != noticeReminder && (f.Kind != noticeAction || f.Data[outbox.DataRef] == "") {
		return true, nil
	}
	s, err := e.Load(ctx, billing.Name{Account: f.Data[outbox.DataAccount], ID: f.Data[outbox.DataSubscription], SKU: f.Data[outbox.DataSKU]})
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if f.Kind == noticeAction {
		return s.Open != nil && s.Open.Ref == f.Data[outbox.DataRef] && s.Open.State == billing.RequiresAction, nil
	}
	due, err := s.Due()
	if err != nil || s.Status != billing.Active || s.Open != nil || s.CancelAtEnd {
		return false, err
	}
	return strconv.Itoa(s.Period) == f.Data[outbox.DataPeriod] && due.String() == f.Data[outbox.DataDueDate], nil
}
