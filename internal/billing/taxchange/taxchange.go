// Package taxchange selects the subscriptions whose tax an operator changes together. It does not change
// them.
package taxchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/tax"
)

// A Where selects subscriptions. An empty text selects any.
type Where struct {
	SKU, Currency string
	Country       string // of the account
	Rate          string // digits, or tax.None
}

// A Sum counts the subscriptions that have the same tax before and after a change.
type Sum struct {
	Before, After price.Tax
	Count         int
}

// A Plan contains the subscriptions to change: those that are selected and do not have the new tax yet. The same
// change planned again contains those that are left.
type Plan struct {
	Names   []billing.Name
	Sums    []Sum    // by country, then by rate before
	Already int      // subscriptions that have the new tax, whatever rate the Where selects
	Left    []string // names items that cannot be read, whose subscriptions stay unchanged
}

// Make returns the plan of a change. usual is the mode of new subscriptions. It scans the store.
func Make(ctx context.Context, e *billing.Records, w Where, c tax.Change, usual price.Mode) (*Plan, error) {
	if c.Rate == nil && w.Rate == "" {
		w.Rate = anyRate // a mode or note without a rate is for those that have one
	}
	p := planner{Records: e, where: w, change: c, usual: usual, plan: &Plan{Left: []string{}}, sums: map[[2]price.Tax]*Sum{}}
	for s, err := range e.Subscriptions(ctx) {
		if bad, is := errors.AsType[*billing.ItemError](err); is {
			p.plan.Left = append(p.plan.Left, bad.Error())
			continue
		}
		if err == nil && w.concerns(s) {
			err = p.add(ctx, s)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, x := range p.sums {
		p.plan.Sums = append(p.plan.Sums, *x)
	}
	slices.SortFunc(p.plan.Sums, func(a, b Sum) int {
		return cmp.Or(cmp.Compare(a.After.Country, b.After.Country), cmp.Compare(a.Before.Mode, b.Before.Mode), cmp.Compare(a.Before.Rate, b.Before.Rate),
			cmp.Compare(a.Before.Note, b.Before.Note), cmp.Compare(a.Before.Country, b.Before.Country))
	})
	return p.plan, nil
}

// A planner makes one plan.
type planner struct {
	*billing.Records
	where  Where
	change tax.Change
	usual  price.Mode
	plan   *Plan
	sums   map[[2]price.Tax]*Sum

	holder *billing.Account // of the previous subscription
	wrong  error            // why the holder cannot be read
}

// add adds the subscription to the plan if its account is selected and its tax would change.
func (p *planner) add(ctx context.Context, s *billing.Subscription) error {
	if p.holder == nil || p.holder.ID != s.Account {
		a, err := p.Account(ctx, s.Account)
		if p.wrong = nil; errors.As(err, new(*billing.IllegibleError)) {
			p.wrong, err = err, nil
		}
		if billing.IgnoreNotFound(err) != nil {
			return err
		}
		p.holder = cmp.Or(a, &billing.Account{ID: s.Account})
	}
	selected := p.where.hasRate(s.Terms.Tax)
	if p.wrong != nil {
		if selected {
			p.plan.Left = append(p.plan.Left, fmt.Sprintf("subscription %s: %v", s.Name, p.wrong))
		}
		return nil
	}
	country := p.holder.Details.Address.Country
	if p.where.Country != "" && country != p.where.Country || !selected && p.change.Rate == nil {
		return nil
	}
	now, err := p.change.In(country, p.usual).Of(s.Terms.Tax)
	if err != nil {
		return err
	}
	was, terms := s.Terms.Tax, s.Terms
	switch terms.Tax = now; {
	case now == was:
		p.plan.Already++
		return nil
	case !selected:
		return nil
	}
	terms.Discount = terms.Discount.Left(s.Period) // one that is over need not fit
	if all := price.Check(s.Amount, terms, billing.CheckText); all != nil {
		if e, ok := errors.AsType[*billing.FieldError](all[0]); ok && (e.Field == "tax_note" || e.Field == "tax") { // is wrong for every subscription
			return all[0]
		}
		p.plan.Left = append(p.plan.Left, fmt.Sprintf("subscription %s: %v", s.Name, all[0]))
		return nil
	}
	p.plan.Names = append(p.plan.Names, s.Name)
	of := [2]price.Tax{was, now}
	p.sums[of] = cmp.Or(p.sums[of], &Sum{was, now, 0})
	p.sums[of].Count++
	return nil
}

// concerns reports whether the subscription itself is selected, whatever its tax.
func (w *Where) concerns(s *billing.Subscription) bool {
	return !s.Over() && (w.SKU == "" || s.SKU == w.SKU) && (w.Currency == "" || s.Amount.Currency().Code() == w.Currency)
}

const anyRate = "any"

func (w *Where) hasRate(t price.Tax) bool {
	switch w.Rate {
	case "":
		return true
	case tax.None:
		return t.Mode == price.Untaxed
	case anyRate:
		return t.Mode != price.Untaxed
	}
	rate, err := price.ParsePercent(w.Rate)
	return err == nil && t.Mode != price.Untaxed && t.Rate == rate
}
