package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
)

// changeTerms changes the terms, and returns the notice of the new plan if there is to be one.
func (e *Engine) changeTerms(s *billing.Subscription, c billing.Change, today civil.Date) ([]write, error) {
	was := *s
	if err := s.ChangeTerms(c, today); err != nil || !c.Notify || samePlan(&was, s) || s.Email == "" || s.CancelAtEnd ||
		s.Requested == billing.RequestCancel {
		return nil, err
	}
	due, err := s.Begins()
	if err != nil {
		return nil, err
	}
	f := e.effect(outbox.KindPriceChange, s, nil, nil)
	f.ID += "/" + strconv.FormatInt(s.Version+1, 10) // each change is told of
	var amount money.Amount
	f.Data[outbox.DataKeySKU] = s.Name.SKU
	f.Data[outbox.DataSKU], amount = s.PlanOn(due)
	setAmount(f.Data, amount)
	f.Data[outbox.DataDueDate] = civil.Later(due, today).String()
	if amount != was.Amount {
		f.Data[outbox.DataBefore] = was.Amount.Decimal()
	}
	return e.mail(s, f), nil
}

// samePlan reports whether both have the same plan, and the same pending one.
func samePlan(a, b *billing.Subscription) bool {
	if a.SKU != b.SKU || a.Amount != b.Amount || (a.Pending == nil) != (b.Pending == nil) {
		return false
	}
	return a.Pending == nil || *a.Pending == *b.Pending
}

// ErrCurrencies: an amount for subscriptions in several currencies, of which it can be in one alone.
var ErrCurrencies = errors.New("the subscriptions have different currencies, so one amount cannot fit all of them")

// A PlanChange changes the plan of every subscription of an SKU; again, of those that are left.
type PlanChange struct {
	Of       string // the SKU that they have
	Currency string // and the currency; "": any, and with an amount the only one
	SKU      *string
	Amount   func(money.Currency) (money.Amount, error) // nil: as it is
	From     civil.Date
	Notify   bool

	first *billing.Subscription // that it concerns, as Plan has found it
}

// concerns reports whether the subscription is one of those to be changed, or changed already.
func (p *PlanChange) concerns(s *billing.Subscription) bool {
	return !s.Over() && s.SKU == p.Of && (p.Currency == "" || s.Amount.Currency().Code() == p.Currency)
}

// apply changes the subscription, in memory. It returns ErrUnchanged if it is not concerned, or
// changed already, and ErrState if a change of its own waits.
func (p *PlanChange) apply(e *Engine, s *billing.Subscription, today civil.Date) ([]write, error) {
	if !p.concerns(s) {
		return nil, billing.ErrUnchanged
	}
	was, own := *s, s.Pending != nil && s.Pending.SKU != s.SKU
	c := billing.Change{SKU: p.SKU, From: p.From, Notify: p.Notify}
	if c.SKU == nil {
		c.SKU = new(s.SKU)
	}
	if p.Amount != nil {
		amount, err := p.Amount(s.Amount.Currency())
		if err != nil {
			return nil, fmt.Errorf("subscription %s, in %s: %w", s.Name, s.Amount.Currency().Code(), err)
		}
		c.Amount = &amount
	}
	writes, err := e.changeTerms(s, c, today)
	switch {
	case err != nil:
	case samePlan(&was, s):
		err = billing.ErrUnchanged
	case own:
		err = refusal(s, " already changes to %s on %s", was.Pending.SKU, was.Pending.From)
	}
	return writes, err
}

// A Planned is what a PlanChange would do.
type Planned struct {
	Names  []billing.Name // of those to be changed
	By     []*PlanChange  // by which each of them is changed
	Left   []string       // why others stay as they are
	Unused []string       // SKUs that no subscription has
	Sums   []*PlanSum     // by currency and amount before

	Replaces map[billing.Plan]int // the pending plans that it would drop, with the number of subscriptions
}

// A PlanSum sums the subscriptions that paid one amount.
type PlanSum struct {
	Before, After           money.Amount // of a period of each
	MonthBefore, MonthAfter money.Amount // of all
	Count, Mail             int

	months *big.Rat // periods in a month, of all
}

// Plan tells what the changes, of which one concerns a subscription at most, would do. It scans, and
// changes nothing. A new amount is of one currency: Plan notes it in the change, and returns
// ErrCurrencies if there are several.
func (e *Engine) Plan(ctx context.Context, all ...*PlanChange) (*Planned, error) {
	plan, sums := &Planned{Left: []string{}, Replaces: map[billing.Plan]int{}}, map[[2]money.Amount]*PlanSum{}
	of := map[string][]*PlanChange{}
	for _, p := range all {
		p.first, of[p.Of] = nil, append(of[p.Of], p)
	}
	for s, err := range e.Subscriptions(ctx) {
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(of[s.SKU], func(p *PlanChange) bool { return p.concerns(s) })
		if at < 0 {
			continue
		}
		was, p := *s, of[s.SKU][at]
		p.first = cmp.Or(p.first, &was)
		if p.Amount != nil && p.first.Amount.Currency() != s.Amount.Currency() {
			return nil, fmt.Errorf("%w: %s is in %s, but %s is in %s", ErrCurrencies, p.first.Name,
				p.first.Amount.Currency().Code(), s.Name, s.Amount.Currency().Code())
		}
		writes, err := p.apply(e, s, s.Today(e.day, e.Now()))
		switch {
		case errors.Is(err, billing.ErrUnchanged):
			continue
		case errors.Is(err, billing.ErrState):
			plan.Left = append(plan.Left, err.Error())
			continue
		}
		due, dueErr := s.Begins()
		if err = cmp.Or(err, dueErr); err != nil {
			return nil, err
		}
		if was.Pending != nil && s.Pending == nil { // it is taken back
			due = civil.Later(due, was.Pending.From)
		}
		if r := s.Replaced(was.Pending); r != nil {
			plan.Replaces[*r]++
		}
		_, before := was.PlanOn(due)
		_, after := s.PlanOn(due)
		g := sums[[2]money.Amount{before, after}]
		if g == nil {
			g = &PlanSum{Before: before, After: after, months: new(big.Rat)}
			sums[[2]money.Amount{before, after}], plan.Sums = g, append(plan.Sums, g)
		}
		g.Count, g.Mail = g.Count+1, g.Mail+len(writes)
		plan.Names, plan.By = append(plan.Names, s.Name), append(plan.By, p)
		g.months.Add(g.months, s.Interval.PerMonth())
	}
	for _, p := range all {
		switch {
		case p.first == nil:
			plan.Unused = append(plan.Unused, p.Of)
		case p.Amount != nil:
			p.Currency = p.first.Amount.Currency().Code()
		}
	}
	return plan, sumMonths(plan.Sums)
}

// sumMonths orders the sums, and computes what they are in a month.
func sumMonths(all []*PlanSum) (wrong error) {
	slices.SortFunc(all, func(a, b *PlanSum) int {
		return cmp.Or(cmp.Compare(a.Before.Currency().Code(), b.Before.Currency().Code()),
			cmp.Compare(a.Before.Minor(), b.Before.Minor()), cmp.Compare(a.After.Minor(), b.After.Minor()))
	})
	monthly := func(g *PlanSum, each money.Amount) money.Amount {
		sum, err := money.Round(new(big.Rat).Mul(g.months, big.NewRat(each.Minor(), 1)), each.Currency())
		wrong = cmp.Or(wrong, err)
		return sum
	}
	for _, g := range all {
		g.MonthBefore, g.MonthAfter = monthly(g, g.Before), monthly(g, g.After)
	}
	return wrong
}

// ChangePlan makes the change for one of its subscriptions. It reports whether it was still to do.
func (e *Engine) ChangePlan(ctx context.Context, n billing.Name, p *PlanChange) (changed bool, err error) {
	_, err = e.change(ctx, n, func(s *billing.Subscription, today civil.Date) ([]write, error) {
		return p.apply(e, s, today)
	})
	if errors.Is(err, billing.ErrUnchanged) {
		return false, nil
	}
	return err == nil, err
}
