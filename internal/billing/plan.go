package billing

import (
	"cmp"
	"errors"
	"time"

	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
)

// A Plan is an SKU with its unit amount and quantity, for the periods due on a day or later.
type Plan struct {
	SKU      string
	Amount   money.Amount
	Quantity int // 0: it stays
	From     civil.Date
}

func (p *Plan) attributes(c *codec) {
	c.amount(schema.Amount, "pending change", &p.Amount)
	c.date(schema.FromDate, &p.From)
	c.count(schema.Quantity, &p.Quantity, 0)
	text(c, schema.SKU, &p.SKU)
}

// sku reads or writes what is subscribed to: the SKU of the key, until a change of the plan.
func (s *Subscription) sku(c *codec) {
	s.SKU = cmp.Or(s.SKU, s.Name.SKU)
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
	p := Plan{SKU: *cmp.Or(c.SKU, &s.SKU), Amount: *cmp.Or(c.Amount, &s.Amount), From: c.From, Quantity: *cmp.Or(c.Quantity, new(int))}
	if err := errors.Join(checkYear("from", p.From), CheckID("sku", p.SKU)); err != nil {
		return err
	}
	was := s.Pending
	switch s.Pending = &p; {
	case s.has(&p):
		s.Pending = nil
	case p.From.IsZero() && was != nil && was.SKU == p.SKU && was.Amount == p.Amount && was.Quantity == p.Quantity:
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
	s.SKU, s.Amount, s.Terms.Quantity, s.Pending = s.Pending.SKU, s.Pending.Amount, s.Pending.quantity(s), nil
}

// quantity returns the subscription's quantity in the plan.
func (p *Plan) quantity(s *Subscription) int { return stored(cmp.Or(p.Quantity, s.Terms.Quantity)) }

// stored returns the quantity as Terms have it.
func stored(quantity int) int {
	if quantity == 1 {
		return 0
	}
	return quantity
}

// has reports whether the plan is in force.
func (s *Subscription) has(p *Plan) bool {
	return s.SKU == p.SKU && s.Amount == p.Amount && s.Terms.Quantity == p.quantity(s)
}

// Replaced returns the plan that was pending before a change if that has dropped it: it is neither
// pending nor in force now. Otherwise it returns nil.
func (s *Subscription) Replaced(before *Plan) *Plan {
	if before == nil || s.Over() || s.Pending != nil && *s.Pending == *before || s.has(before) {
		return nil
	}
	return before
}

// SKUOf returns what the open period is for.
func (s *Subscription) SKUOf(o *OpenPeriod) string { return cmp.Or(o.SKU, s.SKU) }

// Begins returns the due date of the pending change's first period, not open; else of the plan's.
func (s *Subscription) Begins() (period int, due civil.Date, err error) {
	for period = s.Period; ; period++ {
		if s.Open != nil && s.Open.Period == period {
			continue // the schedule may begin after it
		}
		due, err = s.Schedule().Due(period)
		if err != nil || s.Pending == nil || !due.Before(s.Pending.From) {
			return period, due, err
		}
	}
}

// PlanOn returns the SKU and the amount of a period to be opened that is due on the day.
func (s *Subscription) PlanOn(period int, due civil.Date) (sku string, amount money.Amount) {
	if p := s.Pending; p != nil && !due.Before(p.From) {
		terms := s.Terms
		terms.Quantity = p.quantity(s)
		x, _ := price.Of(p.Amount, terms, period)
		return p.SKU, x.Gross
	}
	return s.SKU, s.AmountOf(period)
}

// AmountOf returns what the period costs, or zero if it cannot be charged: then NewPeriod returns an error. The
// period is not open, and the plan in force is its plan.
func (s *Subscription) AmountOf(period int) money.Amount {
	x, _ := price.Of(s.Amount, s.Terms, period)
	return x.Gross
}

// PriceOf returns what makes AmountOf, or nil if that is the unit amount or zero.
func (s *Subscription) PriceOf(period int) *price.Price {
	if x, err := price.Of(s.Amount, s.Terms, period); err == nil && !x.IsPlain() {
		return new(x)
	}
	return nil
}

// NewPeriod puts a pending change into force, and returns the period to be paid next as it is opened. It returns
// a FieldError if its terms leave nothing to pay, which another tool can bring about.
func (s *Subscription) NewPeriod(due civil.Date, now time.Time) (*OpenPeriod, error) {
	s.TakeEffect()
	_, err := price.Of(s.Amount, s.Terms, s.Period)
	return &OpenPeriod{Period: s.Period, Amount: s.AmountOf(s.Period), Price: s.PriceOf(s.Period), Due: due,
		Generation: s.NextGeneration(), Attempt: 1, Opened: now}, err
}

// Explain sets the receipt's Price to that of its period, if that is what was paid, unless the charge itself has told
// it. was is a past period's record, or nil.
func (s *Subscription) Explain(r *Receipt, was *EndedPeriod) {
	switch {
	case r.Price != nil:
	case s.Open != nil && s.Open.Period == r.Period:
		r.Price = s.Open.Price
	case was != nil:
		r.Price = was.Price
	case r.Period == s.Period:
		r.Price = s.PriceOf(r.Period)
	}
	if r.Price != nil && r.Price.Gross != r.Amount {
		r.Price = nil
	}
}

// An Upcoming is a period to be paid, as the subscription stands.
type Upcoming struct {
	Period int
	Due    civil.Date
	SKU    string
	Amount money.Amount
}

// Upcoming returns the next n periods to be paid at most, the open one too; none if nobody charges. An upgrade
// under way is taken to be paid.
func (s *Subscription) Upcoming(n int) (list []Upcoming) {
	charged := (s.Status == Active || s.Status == ParkedState) && s.Requested != RequestCancel && s.Requested != RequestPause
	if s.Upgrading() {
		s = s.AfterUpgrade()
	}
	for period := s.Period; charged && len(list) < n; period++ {
		open := s.Open != nil && s.Open.Period == period
		due, err := s.Schedule().Due(period)
		if err != nil && !open || s.Installments > 0 && s.Paid+period-s.Period >= s.Installments {
			break
		}
		u := Upcoming{Period: period, Due: due}
		u.SKU, u.Amount = s.PlanOn(period, due)
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
