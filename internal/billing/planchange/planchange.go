// Package planchange changes the plans of all subscriptions with an SKU, and shows beforehand what
// the change would do.
//
// It does not check a subscription's new terms, and does not commit: the engine does both.
package planchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/store"
)

// A Decision changes a subscription in memory, and returns the other writes of the commit.
type Decision func(s *billing.Subscription, today civil.Date) ([]store.Write, error)

// Terms applies a change to a subscription in memory, and returns the customer's mail.
type Terms func(s *billing.Subscription, c billing.Change, today civil.Date) ([]store.Write, error)

// A Service plans and applies changes.
type Service struct {
	*billing.Records
	Today  func(*billing.Subscription) civil.Date // the business day of a request
	Terms  Terms
	Commit func(context.Context, billing.Name, Decision) error // commits a decision once
}

// Same reports whether both subscriptions have the same plan and the same pending plan.
func Same(a, b *billing.Subscription) bool {
	if a.SKU != b.SKU || a.Amount != b.Amount || a.Terms != b.Terms || (a.Pending == nil) != (b.Pending == nil) {
		return false
	}
	return a.Pending == nil || *a.Pending == *b.Pending
}

// ErrCurrencies is returned when one amount is given for subscriptions in several currencies.
var ErrCurrencies = errors.New("the subscriptions have different currencies, so one amount cannot fit all of them")

// A Change changes the plan of every subscription with an SKU. A repeated Change changes
// the subscriptions that are left.
type Change struct {
	Of       string // current SKU of the subscriptions
	Currency string // currency of the subscriptions; "" for any, or for the only one if Amount is set
	SKU      *string
	Amount   func(money.Currency) (money.Amount, error) // nil keeps the amount
	Quantity *int
	Discount func(money.Currency) (*price.Discount, error) // nil keeps it
	From     civil.Date
	Notify   bool

	first *billing.Subscription // first subscription to change, as Plan found it
}

// concerns reports whether the change applies to the subscription, or has already been applied.
func (p *Change) concerns(s *billing.Subscription) bool {
	return !s.Over() && s.SKU == p.Of && (p.Currency == "" || s.Amount.Currency().Code() == p.Currency)
}

// apply changes the subscription in memory. It returns ErrUnchanged if the change does not apply or
// has already been applied, and ErrState if the subscription has a pending change of its own.
func (p *Change) apply(terms Terms, s *billing.Subscription, today civil.Date) ([]store.Write, error) {
	if !p.concerns(s) {
		return nil, billing.ErrUnchanged
	}
	was, own := *s, s.Pending != nil && s.Pending.SKU != s.SKU
	c := billing.Change{SKU: p.SKU, Quantity: p.Quantity, From: p.From, Notify: p.Notify}
	if c.SKU == nil && (p.Amount != nil || p.Quantity != nil) {
		c.SKU = new(s.SKU)
	}
	if p.Discount != nil {
		var err error
		if c.Discount, err = p.Discount(s.Amount.Currency()); err != nil {
			return nil, fmt.Errorf("subscription %s, in %s: %w", s.Name, s.Amount.Currency().Code(), err)
		}
	}
	if p.Amount != nil {
		amount, err := p.Amount(s.Amount.Currency())
		if err != nil {
			return nil, fmt.Errorf("subscription %s, in %s: %w", s.Name, s.Amount.Currency().Code(), err)
		}
		c.Amount = &amount
	}
	writes, err := terms(s, c, today)
	switch {
	case err != nil:
	case Same(&was, s):
		err = billing.ErrUnchanged
	case own && c.SKU != nil:
		err = fmt.Errorf("subscription %s already changes to %s on %s: %w", s.Name, was.Pending.SKU, was.Pending.From, billing.ErrState)
	}
	return writes, err
}

// A Planned describes what a Change would do.
type Planned struct {
	Names  []billing.Name // subscriptions to change
	By     []*Change      // the change for each of Names
	Left   []string       // reasons why other subscriptions stay unchanged
	Unused []string       // SKUs that no subscription has
	Sums   []*Sum         // sorted by currency and previous amount

	Replaces map[billing.Plan]int // number of subscriptions by pending plan that the change would drop
}

// A Sum adds up the subscriptions that paid the same amount.
type Sum struct {
	Before, After           money.Amount // amount per period of each subscription
	MonthBefore, MonthAfter money.Amount // monthly total of all subscriptions
	Count, Mail             int

	months *big.Rat // periods per month of all subscriptions
}

// Plan returns what the changes would do. It scans the store, and changes nothing. At most one of
// the changes may apply to a subscription. A new amount has one currency, so Plan stores the
// currency in the change, and returns ErrCurrencies if there are several.
func (v *Service) Plan(ctx context.Context, all ...*Change) (*Planned, error) {
	plan, sums := &Planned{Left: []string{}, Replaces: map[billing.Plan]int{}}, map[[2]money.Amount]*Sum{}
	of := map[string][]*Change{}
	for _, p := range all {
		p.first, of[p.Of] = nil, append(of[p.Of], p)
	}
	for s, err := range v.Subscriptions(ctx) {
		if bad, is := errors.AsType[*billing.ItemError](err); is {
			plan.Left = append(plan.Left, bad.Error())
			continue
		}
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(of[s.SKU], func(p *Change) bool { return p.concerns(s) })
		if at < 0 {
			continue
		}
		was, p := *s, of[s.SKU][at]
		p.first = cmp.Or(p.first, &was)
		writes, err := p.apply(v.Terms, s, v.Today(s))
		inAmount := p.Amount != nil || p.Discount != nil && !s.Terms.Discount.Amount.IsZero()
		if inAmount && p.first.Amount.Currency() != was.Amount.Currency() {
			return nil, fmt.Errorf("%w: %s is in %s, but %s is in %s", ErrCurrencies, p.first.Name,
				p.first.Amount.Currency().Code(), s.Name, was.Amount.Currency().Code())
		}
		switch tooMuch, is := errors.AsType[*billing.FieldError](err); {
		case is && tooMuch.Field == "discount":
			plan.Left = append(plan.Left, fmt.Sprintf("subscription %s: %v", s.Name, err))
			continue
		case errors.Is(err, billing.ErrUnchanged):
			continue
		case errors.Is(err, billing.ErrState):
			plan.Left = append(plan.Left, err.Error())
			continue
		}
		period, due, dueErr := s.Begins()
		if err = cmp.Or(err, dueErr); err != nil {
			return nil, err
		}
		if was.Pending != nil && s.Pending == nil { // the change withdraws the pending plan
			due = civil.Later(due, was.Pending.From)
		}
		if r := s.Replaced(was.Pending); r != nil {
			plan.Replaces[*r]++
		}
		_, before := was.PlanOn(period, due)
		_, after := s.PlanOn(period, due)
		g := sums[[2]money.Amount{before, after}]
		if g == nil {
			g = &Sum{Before: before, After: after, months: new(big.Rat)}
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

// sumMonths sorts the sums and computes their monthly totals.
func sumMonths(all []*Sum) (wrong error) {
	slices.SortFunc(all, func(a, b *Sum) int {
		return cmp.Or(cmp.Compare(a.Before.Currency().Code(), b.Before.Currency().Code()),
			cmp.Compare(a.Before.Minor(), b.Before.Minor()), cmp.Compare(a.After.Minor(), b.After.Minor()))
	})
	monthly := func(g *Sum, each money.Amount) money.Amount {
		sum, err := money.Round(new(big.Rat).Mul(g.months, big.NewRat(each.Minor(), 1)), each.Currency())
		wrong = cmp.Or(wrong, err)
		return sum
	}
	for _, g := range all {
		g.MonthBefore, g.MonthAfter = monthly(g, g.Before), monthly(g, g.After)
	}
	return wrong
}

// Apply applies the change to one of its subscriptions. changed is false if the change was
// already applied.
func (v *Service) Apply(ctx context.Context, n billing.Name, p *Change) (changed bool, err error) {
	if p.Quantity != nil || p.Discount != nil {
		if err := v.NeedFormat(ctx, billing.TermsFormat); err != nil {
			return false, err
		}
	}
	err = v.Commit(ctx, n, func(s *billing.Subscription, today civil.Date) ([]store.Write, error) {
		return p.apply(v.Terms, s, today)
	})
	if errors.Is(err, billing.ErrUnchanged) {
		return false, nil
	}
	return err == nil, err
}
