package engine

import (
	"context"
	"strconv"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/notice"
	"github.com/duesday/duesday/internal/billing/planchange"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
)

// changeTerms changes the terms, and returns the notice of the new plan if the customer must be
// notified.
func (e *Engine) changeTerms(s *billing.Subscription, c billing.Change, today civil.Date) ([]write, error) {
	if plan := c; s.Upgrading() {
		plan.Method, plan.Address, plan.ReminderDays = nil, nil, nil
		if plan != (billing.Change{}) {
			return nil, upgrading(s)
		}
	}
	was := *s
	if err := s.ChangeTerms(c, today); err != nil || !c.Notify || planchange.Same(&was, s) || s.Email == "" || s.CancelAtEnd ||
		s.Requested == billing.RequestCancel {
		return nil, err
	}
	period, due, err := s.Begins()
	if err != nil {
		return nil, err
	}
	f := e.effect(outbox.KindPriceChange, s, nil, nil)
	f.ID += "/" + strconv.FormatInt(s.Version+1, 10) // each change has its own notice
	var amount money.Amount
	f.Data[outbox.DataKeySKU], f.Data[outbox.DataPeriod] = s.Name.SKU, strconv.Itoa(period)
	f.Data[outbox.DataSKU], amount = s.PlanOn(period, due)
	notice.SetAmount(f.Data, amount)
	f.Data[outbox.DataDueDate] = civil.Later(due, today).String()
	if before := was.AmountOf(period); amount != before {
		f.Data[outbox.DataBefore] = before.Decimal()
	}
	return e.mail(s, f), nil
}

// Plans returns the service that changes the plans of all subscriptions with an SKU.
func (e *Engine) Plans() *planchange.Service {
	return &planchange.Service{Records: e.Records, Today: func(s *billing.Subscription) civil.Date { return s.Today(e.day, e.Now()) },
		Terms: func(s *billing.Subscription, c billing.Change, today civil.Date) ([]store.Write, error) {
			mail, err := e.changeTerms(s, c, today)
			return e.withSums(mail, nil, nil), err
		},
		Commit: func(ctx context.Context, n billing.Name, decide planchange.Decision) error {
			_, err := e.change(ctx, n, func(s *billing.Subscription, today civil.Date) ([]write, error) {
				writes, err := decide(s, today)
				return plain(writes...), err
			})
			return err
		}}
}
