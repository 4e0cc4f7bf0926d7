package replaced

import (
	"context"
	"errors"
	"slices"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// A Mailed notes what the kept store has sent about a subscription: the topics of mail, when the
// customer was last asked again to act, and the month of the card whose end was told of. A
// subscription that is not in the restored store is store.ErrNotFound.
type Mailed func(ctx context.Context, n billing.Name, topics []string, told civil.Date, card string) error

// note notes the topics but those of mail that waits in the kept store, unsent.
func (c *Comparison) note(ctx context.Context, n billing.Name, told civil.Date, card string, topics ...string) error {
	topics = slices.DeleteFunc(topics, func(topic string) bool { return c.waiting[about(n.Account, n.ID, topic)] })
	if len(topics) == 0 && told.IsZero() && card == "" {
		return nil
	}
	return ignoreUnreadable(c.mailed(ctx, n, topics, told, card))
}

// about names a topic of a subscription. Neither id has a slash.
func about(account, id, topic string) string { return account + "/" + id + "/" + topic }

// ofSubscription notes the mail about the period that the kept store was at, and the one that it
// has open, and what that store has noted of the one before it.
func (c *Comparison) ofSubscription(ctx context.Context, old *billing.Subscription) error {
	topics := slices.Clone(old.Mailed)
	due, err := old.Due()
	if err == nil && old.NextReminder.IsZero() && !civil.Of(old.LastReminder).Before(due.AddDays(-old.ReminderDays-1)) {
		topics = append(topics, outbox.Topic(outbox.KindReminder, old.Period, due.String()))
	}
	if old.Status == billing.CanceledSub {
		topics = append(topics, outbox.Topic(outbox.KindCancelled, old.Period, ""))
	}
	if o := old.Open; o != nil {
		if n := len(o.Attempts); n > 1 { // the mail about the attempt before told of its day, at the latest
			topics = append(topics, outbox.Topic(outbox.KindDeclined, o.Period, civil.Of(o.Attempts[n-1].At).String()))
		}
		if !o.Retry.IsZero() {
			topics = append(topics, outbox.Topic(outbox.KindDeclined, o.Period, o.Retry.String()))
		}
		switch {
		case o.ByWire():
			topics = append(topics, outbox.Topic(outbox.KindPaymentRequest, o.Period, ""))
		case o.State == processor.RequiresAction:
			topics = append(topics, outbox.Topic(outbox.KindActionRequired, o.Period, o.Ref))
		}
	}
	told := old.Told
	if c.waiting[about(old.Account, old.ID, told.String())] {
		told = civil.Date{}
	}
	return c.note(ctx, old.Name, told, old.CardTold, topics...)
}

// ofPeriod notes the mail about a period that ended in the kept store alone. Who was told that it
// has failed is told of no decline any more.
func (c *Comparison) ofPeriod(ctx context.Context, p *billing.EndedPeriod) error {
	var topics []string
	switch {
	case p.Ending == billing.EndFailed:
		topics = append(topics, outbox.Topic(outbox.KindFailed, p.Period, ""),
			outbox.Topic(outbox.KindDeclined, p.Period, "9999-12-31"))
		if p.Ref == "" { // by wire
			topics = append(topics, outbox.Topic(outbox.KindPaymentRequest, p.Period, ""))
		}
	case p.Reason == billing.NoMethod:
		topics = append(topics, outbox.Topic(outbox.KindReminder, p.Period, outbox.NoMethodTopic))
	}
	return c.note(ctx, p.Name, civil.Date{}, "", topics...)
}

// reversal notes the mail about a refund that the restored store does not have.
func (c *Comparison) reversal(ctx context.Context, it store.Item) error {
	r, err := billing.DecodeReversal(it)
	if err != nil || r.Kind != processor.Refunded || r.State != processor.ReversalSucceeded {
		return nil
	}
	now, err := c.now.Store.Get(ctx, c.now.Table, billing.KeyOf(it))
	if err == nil {
		if was, err := billing.DecodeReversal(now); err != nil || was.State == r.State {
			return nil
		}
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return c.note(ctx, r.Name, civil.Date{}, "", outbox.Topic(outbox.KindRefund, r.Period, r.ReversalID))
}
