package engine

import (
	"context"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/cardupdate"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
)

// This file contains the policy for failed periods, which the settings after-failure and
// collect-days control. The policy decides whether a new payment method collects a failed period,
// or only makes the subscription active again. The settings at the time of the failure apply. The
// period's record keeps the decision, because the failure mail announces it to the customer.

// collectUntil returns the last day on which a new method collects a period that failed today, or
// zero if none does.
func (e *Engine) collectUntil(today civil.Date) civil.Date {
	if e.cfg.AfterFailure != settings.Collect || e.Shared && e.Opened.Format < billing.PastFormat {
		return civil.Date{}
	}
	return today.AddDays(e.cfg.CollectDays)
}

// failed returns the notice of the open period's failure. until is the record's CollectUntil.
func (e *Engine) failed(s *billing.Subscription, o *billing.OpenPeriod, until civil.Date) []write {
	f := e.effect(outbox.KindFailed, s, o, nil)
	if !until.IsZero() {
		f.Data[outbox.DataCollect] = until.String()
	}
	return e.mail(s, f)
}

// revive reactivates the subscription for a new payment method. The method also collects the
// previously failed period if the period's record allowed this on the day the account received the
// method. The run that handles the method may be later.
func (e *Engine) revive(ctx context.Context, s *billing.Subscription, c cardupdate.Choice, today civil.Date) ([]write, error) {
	p, err := e.RecordOf(ctx, s.Name, s.Period-1)
	if billing.IgnoreNotFound(err) != nil {
		return nil, err
	}
	given := today
	if p != nil && c.Given.After(p.Ended) {
		given = civil.Earlier(today, billing.TodayIn(s.TimeZone, c.Given))
	}
	writes, err := e.reactivate(s, today)
	if p != nil && !p.CollectUntil.Before(given) && s.Status == billing.Active && s.Open == nil && s.Collect == 0 {
		s.MarkCollect(p.Period, today)
	}
	return writes, err
}
