// Package taxchange selects the subscriptions whose tax an operator changes together. It does not change
// them.
package taxchange

import (
	"cmp"
	"context"
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
	Names []billing.Name
	Sums  []Sum // by country, then by rate before
}

// Make returns the plan of a change. usual is the mode of new subscriptions. It scans the store.
func Make(ctx context.Context, e *billing.Records, w Where, c tax.Change, usual price.Mode) (*Plan, error) {
	if c.Rate == nil && w.Rate == "" {
		w.Rate = anyRate // a mode or note without a rate is for those that have one
	}
	plan, sums := &Plan{}, map[[2]price.Tax]*Sum{}
	holder := new(billing.Account) // the previous subscription's
	for s, err := range e.Subscriptions(ctx) {
		if err != nil {
			return nil, err
		}
		if s.Over() || w.SKU != "" && s.SKU != w.SKU || w.Currency != "" && s.Amount.Currency().Code() != w.Currency || !w.hasRate(s.Terms.Tax) {
			continue
		}
		if holder.ID != s.Account {
			holder, err = e.Account(ctx, s.Account)
			if billing.IgnoreNotFound(err) != nil {
				return nil, err
			}
			holder = cmp.Or(holder, &billing.Account{ID: s.Account})
		}
		country := holder.Details.Address.Country
		if w.Country != "" && country != w.Country {
			continue
		}
		now, err := c.In(country, usual).Of(s.Terms.Tax)
		if err != nil {
			return nil, err
		}
		terms := s.Terms
		if terms.Tax = now; now == s.Terms.Tax {
			continue
		}
		if all := price.Check(s.Amount, terms, billing.CheckText); all != nil {
			return nil, fmt.Errorf("subscription %s: %w", s.Name, all[0])
		}
		plan.Names = append(plan.Names, s.Name)
		of := [2]price.Tax{s.Terms.Tax, now}
		sums[of] = cmp.Or(sums[of], &Sum{of[0], of[1], 0})
		sums[of].Count++
	}
	for _, x := range sums {
		plan.Sums = append(plan.Sums, *x)
	}
	slices.SortFunc(plan.Sums, func(a, b Sum) int {
		return cmp.Or(cmp.Compare(a.After.Country, b.After.Country), cmp.Compare(a.Before.Mode, b.Before.Mode), cmp.Compare(a.Before.Rate, b.Before.Rate),
			cmp.Compare(a.Before.Note, b.Before.Note), cmp.Compare(a.Before.Country, b.Before.Country))
	})
	return plan, nil
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
