package billing

import (
	"cmp"
	"errors"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
)

// A Plan is an SKU and its amount, for the periods due on a day or later.
type Plan struct {
	SKU    string
	Amount money.Amount
	From   civil.Date
}

func (p *Plan) attributes(c *codec) {
	c.amount(schema.Amount, "pending change", &p.Amount)
	c.date(schema.FromDate, &p.From)
	text(c, schema.SKU, &p.SKU)
}

// sku reads or writes what is subscribed to: the SKU of the key, until a change of the plan.
func (s *Subscription) sku(c *codec) {
	if s.SKU == "" {
		s.SKU = s.Name.SKU
	}
	if text(c, schema.SKU, &s.SKU); c.writing || s.SKU == s.Name.SKU {
		return
	}
	if !s.Ours() || CheckID("sku", s.SKU) != nil {
		s.SKU = s.Name.SKU
	}
}

// changePlan makes the change pending, and puts it into force at once if the period to be paid next is
// one of its periods. Without a day it begins with the first period due after today. A change to what
// is in force takes back the pending one.
func (s *Subscription) changePlan(c Change, today civil.Date) error {
	p := Plan{SKU: s.SKU, Amount: s.Amount, From: c.From}
	if c.SKU != nil {
		p.SKU = *c.SKU
	}
	if c.Amount != nil {
		p.Amount = *c.Amount
	}
	if err := errors.Join(checkYear("from", p.From), CheckID("sku", p.SKU)); err != nil {
		return err
	}
	was := s.Pending
	switch s.Pending = &p; {
	case p.SKU == s.SKU && p.Amount == s.Amount:
		s.Pending = nil
	case p.From.IsZero() && was != nil && was.SKU == p.SKU && was.Amount == p.Amount:
		p.From = civil.Earlier(was.From, today.AddDays(1)) // perhaps the same request again
	case p.From.IsZero():
		p.From = today.AddDays(1)
	}
	s.TakeEffect()
	return nil
}

// TakeEffect puts the pending change into force if the period to be paid next is one of its periods,
// and is not open. Every commit that moves the subscription on to another period, or a period to
// another day, calls it, and so does OPEN.
func (s *Subscription) TakeEffect() {
	due, err := s.Schedule().Due(s.Period)
	if s.Pending == nil || err != nil || due.Before(s.Pending.From) || s.NextOpen() != nil {
		return
	}
	s.SKU, s.Amount, s.Pending = s.Pending.SKU, s.Pending.Amount, nil
}

// Replaced returns the plan that was pending before a change if that has dropped it: it is neither
// pending nor in force now. Otherwise it returns nil.
func (s *Subscription) Replaced(before *Plan) *Plan {
	if before == nil || s.Over() || s.Pending != nil && *s.Pending == *before ||
		s.SKU == before.SKU && s.Amount == before.Amount {
		return nil
	}
	return before
}

// SKUOf returns what the open period is for.
func (s *Subscription) SKUOf(o *OpenPeriod) string { return cmp.Or(o.SKU, s.SKU) }

// Begins returns the due date of the pending change's first period, not open; else of the plan's.
func (s *Subscription) Begins() (due civil.Date, err error) {
	for period := s.Period; ; period++ {
		if s.Open != nil && s.Open.Period == period {
			continue // the schedule may begin after it
		}
		due, err = s.Schedule().Due(period)
		if err != nil || s.Pending == nil || !due.Before(s.Pending.From) {
			return due, err
		}
	}
}

// PlanOn returns the SKU and the amount of a period to be opened that is due on the day.
func (s *Subscription) PlanOn(due civil.Date) (sku string, amount money.Amount) {
	if s.Pending != nil && !due.Before(s.Pending.From) {
		return s.Pending.SKU, s.Pending.Amount
	}
	return s.SKU, s.Amount
}

// An Upcoming is a period to be paid, as the subscription stands.
type Upcoming struct {
	Period int
	Due    civil.Date
	SKU    string
	Amount money.Amount
}

// Upcoming returns the next n periods to be paid at most, the open one too; none if nobody charges.
func (s *Subscription) Upcoming(n int) (list []Upcoming) {
	charged := (s.Status == Active || s.Status == ParkedState) && s.Requested != RequestCancel && s.Requested != RequestPause
	for period := s.Period; charged && len(list) < n; period++ {
		open := s.Open != nil && s.Open.Period == period
		due, err := s.Schedule().Due(period)
		if err != nil && !open || s.Installments > 0 && s.Paid+period-s.Period >= s.Installments {
			break
		}
		u := Upcoming{Period: period, Due: due}
		u.SKU, u.Amount = s.PlanOn(due)
		if open {
			u.Due, u.SKU, u.Amount = s.Open.Due, s.SKUOf(s.Open), s.Open.Amount
		}
		if s.EndsBefore(due) && !open {
			break
		}
		list = append(list, u)
	}
	return list
}
