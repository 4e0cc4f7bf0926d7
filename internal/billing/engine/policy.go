package engine

import (
	"context"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
)

// What a new payment method does about a failed period is decided by the settings at the failure, and
// stands in the period's record: the mail about the failure tells the customer.

// collectUntil returns the last day on which a new method collects a period failed today, or zero.
func (e *Engine) collectUntil(today civil.Date) civil.Date {
	if e.cfg.AfterFailure != billing.Collect {
		return civil.Date{}
	}
	return today.AddDays(e.cfg.CollectDays)
}

// failed returns the notice of the open period's failure. until is CollectUntil of its record.
func (e *Engine) failed(s *billing.Subscription, o *billing.OpenPeriod, until civil.Date) []store.Write {
	if s.Email == "" {
		return nil
	}
	f := e.effect(outbox.KindFailed, s, o, nil)
	if !until.IsZero() {
		f.Data[outbox.DataCollect] = until.String()
	}
	return []store.Write{outbox.Write(e.Tables.Outbox.Name, f)}
}

// lastFailed returns the record of the latest failed period, or nil.
func (e *Engine) lastFailed(ctx context.Context, n billing.Name) (*billing.EndedPeriod, error) {
	for p, err := range e.LatestEndedPeriods(ctx, n) {
		if err != nil || p.Ending == billing.EndFailed {
			return p, err
		}
	}
	return nil, nil
}

// stillCollects returns CollectUntil of the record if the next new method collects its period, which
// fails again today: the subscription waits for a method, and no later period has failed.
func (e *Engine) stillCollects(ctx context.Context, s *billing.Subscription, p *billing.EndedPeriod,
	today civil.Date) (civil.Date, error) {
	if s.Status != billing.PastDue || p.CollectUntil.Before(today) {
		return civil.Date{}, nil
	}
	last, err := e.lastFailed(ctx, s.Name)
	if err != nil || last == nil || last.Period > p.Period {
		return civil.Date{}, err
	}
	return p.CollectUntil, nil
}

// revive is reactivate for a new payment method, which collects the latest failed period if its
// record says so.
func (e *Engine) revive(ctx context.Context, s *billing.Subscription, today civil.Date) ([]store.Write, error) {
	writes, err := e.reactivate(s, today)
	if err != nil || s.Status != billing.Active || s.Open != nil || s.Collect > 0 {
		return writes, err
	}
	p, err := e.lastFailed(ctx, s.Name)
	if err == nil && p != nil && !p.CollectUntil.Before(today) {
		s.MarkCollect(p.Period, today)
	}
	return writes, err
}
