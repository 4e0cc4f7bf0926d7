package engine

import (
	"context"
	"strconv"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
)

// outcomeSent counts reminders committed to the outbox.
const outcomeSent Outcome = "sent"

// remind commits the reminder of the next payment: the outbox row, and the subscription without its
// NextReminderDate, which takes its row out of the index. Settling the payment sets the next date.
// No reminder is sent for a paid or open period, for a paused or cancelled subscription, or if the
// due date has come. The reminder names the card if the processor shows it.
func (e *Engine) remind(ctx context.Context, n billing.Name, day civil.Date, dry bool, report func(Result)) error {
	var card *billing.Card
	asked := false
	err := e.reload(ctx, n, func(s *billing.Subscription) error {
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
		if s.NextReminder = (civil.Date{}); !dry {
			if err := e.Put(ctx, s, others...); err != nil {
				return err
			}
		}
		report(*r)
		return nil
	})
	return billing.IgnoreNotFound(err)
}

// StillWanted reports, right before its delivery, whether an effect is to be delivered. It drops a
// reminder of a period paid, paused or cancelled since, or now due on another day. It drops a
// request to authenticate if the payment no longer waits for the customer.
func (e *Engine) StillWanted(ctx context.Context, f outbox.Effect) (bool, error) {
	if f.Kind != noticeReminder && (f.Kind != noticeAction || f.Data[outbox.DataRef] == "") {
		return true, nil
	}
	s, err := e.Load(ctx, nameIn(f))
	if err != nil {
		return false, billing.IgnoreNotFound(err)
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
