package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/money"
)

// planOf reads the flags of a change of many subscriptions. The amount is in the currency of each.
func planOf(f *pflag.FlagSet, where []string, change billing.Change, amount string) (*engine.PlanChange, error) {
	c := &engine.PlanChange{SKU: change.SKU, From: change.From, Notify: change.Notify}
	for _, text := range where {
		name, value, _ := strings.Cut(text, "=")
		switch {
		case name == "sku" && c.Of == "" && value != "":
			c.Of = value
		case name == "currency" && c.Currency == "" && value != "":
			c.Currency = strings.ToUpper(value)
		default:
			return nil, usagef("--where %s: want sku=SKU once, and perhaps currency=CODE", text)
		}
	}
	for _, name := range [...]string{"payment-day", "payment-method", "reminder-days", "address"} {
		if f.Changed(name) {
			return nil, usagef("--%s is for one subscription, not for --where", name)
		}
	}
	switch {
	case c.Of == "":
		return nil, usagef("--where: want sku=SKU")
	case c.SKU == nil && !f.Changed("amount"):
		return nil, usagef("--where: want a new --amount, a new --sku, or both")
	case f.Changed("amount"):
		c.Amount = func(cur money.Currency) (money.Amount, error) { return parseMoney(amount, cur) }
	}
	return c, nil
}

// A planGroup sums the subscriptions that pay one amount before a change of the plan.
type planGroup struct {
	before, after           money.Amount // of a period
	monthBefore, monthAfter money.Amount
	count, mail             int
}

// planned gathers what the change would do: the subscriptions, their sums, and those left as they are.
func planned(ctx context.Context, s *session, c *engine.PlanChange) (names []billing.Name, groups []*planGroup,
	left []string, err error) {
	left = []string{}
	for x, err := range s.engine.Plan(ctx, c) {
		if err != nil {
			return nil, nil, nil, err
		}
		if x.Own != nil {
			left = append(left, x.Own.Error())
			continue
		}
		names = append(names, x.Before.Name)
		due, err := x.After.Begins()
		if err != nil {
			return nil, nil, nil, err
		}
		_, before := x.Before.PlanOn(due)
		_, after := x.After.PlanOn(due)
		i := slices.IndexFunc(groups, func(g *planGroup) bool { return g.before == before })
		if i < 0 {
			zero := money.New(0, before.Currency())
			i, groups = len(groups), append(groups, &planGroup{before: before, after: after, monthBefore: zero, monthAfter: zero})
		}
		g := groups[i]
		g.count++
		if x.Told {
			g.mail++
		}
		was, werr := g.monthBefore.Add(x.Before.AMonth(before))
		now, nerr := g.monthAfter.Add(x.After.AMonth(after))
		if err := errors.Join(werr, nerr); err != nil {
			return nil, nil, nil, err
		}
		g.monthBefore, g.monthAfter = was, now
	}
	slices.SortFunc(groups, func(a, b *planGroup) int {
		return cmp.Or(strings.Compare(a.before.Currency().Code(), b.before.Currency().Code()),
			cmp.Compare(a.before.Minor(), b.before.Minor()))
	})
	return names, groups, left, nil
}

// changePlans changes the plan of every subscription that is left to be changed, or shows what that would
// do. What has landed stays after an error, and the same command goes on from there.
func (p *program) changePlans(ctx context.Context, s *session, c *engine.PlanChange, yes bool) error {
	names, groups, left, err := planned(ctx, s, c)
	if err != nil {
		return err
	}
	section(p, "to be changed, of "+c.Of+":", []string{"AMOUNT", "NEW", "SUBSCRIPTIONS", "A MONTH", "NEW", "MAIL"}, groups,
		func(g *planGroup) []any {
			return []any{g.before, g.after, g.count, g.monthBefore, g.monthAfter, g.mail}
		})
	changed := 0
	for _, n := range names {
		if !yes {
			break
		}
		switch done, err := s.engine.ChangePlan(ctx, n, c); {
		case errors.Is(err, billing.ErrState):
			left = append(left, err.Error())
		case err != nil:
			p.warn("%d of %d are changed; the same command again changes the others", changed, len(names))
			return err
		case done:
			changed++
		}
	}
	p.deliver(ctx, s)
	for _, why := range left[:min(len(left), 20)] {
		p.warn("left as it is: %s", why)
	}
	if len(left) > 0 {
		p.code = exitPerson
	}
	what := plural(changed, "subscription") + " changed"
	if !yes {
		what = plural(len(names), "subscription") + " to be changed; nothing is yet: give --yes"
	}
	p.say("%s%s", what, prefixed(", left as they are: ", positive(len(left))))
	return p.json(object{"to_change", len(names), "changed", changed, "left", left, "plans", views(groups, viewGroup)})
}

func viewGroup(g *planGroup) object {
	return object{"currency", g.before.Currency().Code(), "amount_before", g.before.Decimal(), "amount", g.after.Decimal(),
		"subscriptions", g.count, "month_before", g.monthBefore.Decimal(), "month", g.monthAfter.Decimal(), "mail", g.mail}
}
