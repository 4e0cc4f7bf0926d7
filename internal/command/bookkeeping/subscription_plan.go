package bookkeeping

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/planchange"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/book"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

// plan builds the plan change for many subscriptions from the flags. It parses amounts in each
// subscription's currency.
func (u *updateFlags) plan(change billing.Change) (*planChanges, error) {
	f := u.set
	c := &planchange.Change{SKU: change.SKU, Quantity: change.Quantity, From: change.From, Notify: change.Notify}
	for _, text := range u.where {
		name, value, _ := strings.Cut(text, "=")
		switch {
		case name == "sku" && c.Of == "" && value != "":
			c.Of = value
		case name == "currency" && c.Currency == "" && value != "":
			c.Currency = strings.ToUpper(value)
		default:
			return nil, screen.Usagef("--where must be sku=SKU once, and optionally currency=CODE once (got %s)", text)
		}
	}
	for _, name := range [...]string{"payment-day", "payment-method", "reminder-days", "address"} {
		if f.Changed(name) {
			return nil, screen.Usagef("--%s is for one subscription and cannot be combined with --where", name)
		}
	}
	switch {
	case c.Of == "":
		return nil, screen.Usagef("--where must include sku=SKU")
	case c.SKU == nil && c.Quantity == nil && u.terms.discount == "" && !f.Changed("amount"):
		return nil, screen.Usagef("--where needs a new --amount, --sku, --quantity or --discount")
	case f.Changed("amount"):
		c.Amount = func(cur money.Currency) (money.Amount, error) { return screen.ParseMoney(u.amount, cur) }
	}
	if u.terms.discount != "" {
		c.Discount = u.terms.in
	}
	return &planChanges{list: []*planchange.Change{c}, of: "with SKU " + c.Of, source: "--where sku=" + c.Of,
		hint: "--where currency=CODE"}, nil
}

// planChanges holds a command's plan changes, and the product names to store with them.
type planChanges struct {
	list             []*planchange.Change
	names            map[string]string
	of, source, hint string // in messages: the subscriptions, the flag or file, and how to name a currency
}

// readPrices reads a price list, and prints the problems in it.
func (p *program) readPrices(name string, change billing.Change) (*planChanges, error) {
	text, err := os.ReadFile(p.Path(name))
	if err != nil {
		return nil, err
	}
	bad := p.Table("LINE", "COLUMN", "REASON")
	all := &planChanges{names: map[string]string{}, of: "in " + name, source: name, hint: "a currency to these rows"}
	for rec, wrong := range book.Read(bytes.NewReader(text), book.Prices, book.Options{}) {
		if wrong != nil {
			bad.Row(wrong.Line, wrong.Column, wrong.Reason)
			continue
		}
		x := rec.Price
		all.list = append(all.list, &planchange.Change{Of: x.SKU, Currency: x.Currency, From: change.From, Notify: change.Notify,
			Amount: func(c money.Currency) (money.Amount, error) { return screen.ParseMoney(x.Amount, c) }})
		if x.Name != "" {
			all.names[x.SKU] = x.Name
		}
	}
	if bad.Rows > 0 {
		bad.Flush()
		return nil, fmt.Errorf("%s has %s, so no price was changed; correct the file", name, screen.Plural(bad.Rows, "problem"))
	}
	return all, nil
}

// changePlans changes the plan of every subscription that does not have the change yet. Without
// yes, it only shows what it would do. If it fails, changes that were made remain, and the same
// command continues with the rest.
func (p *program) changePlans(ctx context.Context, s *session.Session, all *planChanges, yes bool) error {
	plan, err := s.Engine.Plans().Plan(ctx, all.list...)
	if errors.Is(err, planchange.ErrCurrencies) {
		return screen.Usagef("%s: %w; add %s", all.source, err, all.hint)
	}
	if err == nil && yes {
		err = settings.NameProducts(ctx, s.Engine.Records, all.names)
	}
	if err != nil {
		return err
	}
	for _, sku := range plan.Unused {
		p.Warn("no subscription has SKU %s", sku)
	}
	screen.Section(p.Screen, "Changes to subscriptions "+all.of+":", []string{"AMOUNT", "NEW", "SUBSCRIPTIONS", "PER MONTH", "NEW", "MAIL"}, plan.Sums,
		func(g *planchange.Sum) []any {
			return []any{g.Before, g.After, g.Count, g.MonthBefore, g.MonthAfter, g.Mail}
		})
	replaces := slices.SortedFunc(maps.Keys(plan.Replaces), func(a, b billing.Plan) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Amount.String(), b.Amount.String()))
	})
	for _, was := range replaces {
		p.sayReplaced(&was, " of "+screen.Plural(plan.Replaces[was], "subscription"))
	}
	what, changed, left := "to change; nothing is changed yet, so add --yes to change them", 0, plan.Left
	for i, n := range plan.Names {
		if !yes {
			break
		}
		switch done, err := s.Engine.Plans().Apply(ctx, n, plan.By[i]); {
		case errors.Is(err, billing.ErrState):
			left = append(left, err.Error())
		case errors.As(err, new(*billing.IllegibleError)):
			left = append(left, fmt.Sprintf("subscription %s: %v", n, err))
		case err != nil:
			p.Warn("%d of %d are changed; run the same command again to change the others", changed, len(plan.Names))
			return err
		case done:
			changed++
		}
	}
	p.Deliver(ctx, s)
	p.warnLeft(left)
	shown := len(plan.Names)
	if yes {
		what, shown = "changed", changed
	}
	p.Say("%s %s%s", screen.Plural(shown, "subscription"), what, screen.Prefixed(", not changed: ", screen.Positive(len(left))))
	return p.JSON(view.Object{"to_change", len(plan.Names), "changed", changed, "left", left, "unused?", plan.Unused,
		"plans", view.List(plan.Sums, view.PlanChange), "replaces", view.List(replaces, func(was billing.Plan) view.Object {
			return append(view.Pending(&was), "currency", was.Amount.Currency().Code(), "subscriptions", plan.Replaces[was])
		})})
}

// warnLeft prints why subscriptions stay unchanged, and sets the exit code to ExitPerson if there are any.
func (p *program) warnLeft(left []string) {
	for _, why := range left[:min(len(left), 20)] {
		p.Warn("not changed: %s", why)
	}
	if len(left) > 0 {
		p.Code = screen.ExitPerson
	}
}

func (p *program) subscriptionCharge() *cobra.Command {
	var r engine.PeriodCharge
	var key string
	var c *cobra.Command
	c = p.subscriptionLeaf("charge",
		session.Need{Processor: true}, func(ctx context.Context, s *session.Session, n billing.Name) error {
			var a engine.PeriodCharged
			var err error
			if c.Flags().Changed("period") {
				a, err = s.Engine.ChargePeriod(session.Keyed(ctx, key), n, r)
			} else {
				a.Results, a.Subscription, err = s.Engine.ChargeParked(ctx, n)
			}
			p.Deliver(ctx, s)
			if err != nil {
				return session.NotFound(err, "subscription "+n.String())
			}
			return p.showCharged(s, n, r.Period, a)
		})
	f := c.Flags()
	f.IntVar(&r.Period, "period", 0, "`NUMBER` of the period, counted from 0")
	f.StringVar(&r.Reopen, "reopen", "", "with --period: `REASON` to charge a void or skipped period after all")
	f.StringVar(&key, "key", "", "with --period: `TEXT` that identifies this request; using the same key again charges nothing more")
	return session.Checked(c, func([]string) error {
		if (f.Changed("reopen") || f.Changed("key")) && !f.Changed("period") {
			return screen.Usagef("--reopen and --key need --period")
		}
		return nil
	})
}

// showCharged prints the result of charging a period. If the period is not paid, it sets the exit
// code to ExitPerson.
func (p *program) showCharged(s *session.Session, n billing.Name, period int, a engine.PeriodCharged) error {
	sub := a.Subscription
	p.sayResults(a.Results)
	number := ""
	if a.Receipt != nil {
		number = a.Receipt.Number(s.Engine.Opened.Installation)
	}
	switch {
	case a.Repeated && !a.Paid && len(a.Results) == 0:
		p.Say("the key was already used, so period %d is not tried again", period)
	case a.Paid:
		p.Say("period %d of %s is already paid%s", period, n, screen.Prefixed(": receipt ", number))
	}
	for _, r := range a.Results {
		switch {
		case r.Outcome != engine.OutcomePaid:
			p.Code = screen.ExitPerson
		case r.Outcome == engine.OutcomePaid && sub.Status == billing.PastDue:
			p.Warn("a due date has passed in the meantime, so the subscription is still past_due; to resume it, run: %s", p.Hint("subscription resume "+
				n.String()))
		}
	}
	p.sayChanged(nil, sub, "is "+statusNote(sub))
	return p.JSON(view.Charged(a, s.Engine.Opened.Installation))
}
