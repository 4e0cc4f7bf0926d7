package bookkeeping

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/billing/tax"
	"github.com/duesday/duesday/internal/billing/taxchange"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

// taxFlags holds the flags of a subscription's tax.
type taxFlags struct {
	set              *pflag.FlagSet
	rate, mode, note string
}

func (t *taxFlags) add(f *pflag.FlagSet, none string) {
	t.set = f
	f.StringVar(&t.rate, "tax-rate", "", "tax `RATE` in percent, such as 19 or 8.1"+none)
	f.StringVar(&t.mode, "tax", "", "`inclusive` if the amount includes the tax, or exclusive (default: the setting tax-mode)")
	f.StringVar(&t.note, "tax-note", "", "`TEXT` about the tax on receipts, such as reverse charge")
}

// change returns the change that the flags ask for, or nil if none is set.
func (t *taxFlags) change() *tax.Change {
	c := &tax.Change{Rate: screen.Given(t.set, "tax-rate", t.rate), Mode: price.Mode(t.mode), Note: screen.Given(t.set, "tax-note", t.note)}
	if *c == (tax.Change{}) {
		return nil
	}
	return c
}

// create creates the subscription with the tax of the flags, or else with its country's.
func (t *taxFlags) create(ctx context.Context, s *session.Session, n billing.NewSubscription) (*billing.Subscription, error) {
	now, err := settings.Read(ctx, s.Engine.Records)
	if err != nil {
		return nil, err
	}
	n.Taxes = now.Taxes()
	if c := t.change(); c != nil {
		n.Terms.Tax, err = c.New(price.Mode(now.TaxMode))
	}
	if err = cmp.Or(err, n.Check()); err != nil {
		return nil, err
	}
	return s.Engine.CreateSubscription(ctx, n)
}

// taxWhere reads --where for a change of the tax only.
func taxWhere(where []string) (w taxchange.Where, err error) {
	for _, text := range where {
		name, value, _ := strings.Cut(text, "=")
		field := map[string]*string{"sku": &w.SKU, "currency": &w.Currency, "country": &w.Country, "tax-rate": &w.Rate}[name]
		if field == nil || *field != "" || value == "" {
			return w, screen.Usagef("--where must be sku=SKU, currency=CODE, country=CODE or tax-rate=RATE, each at most once (got %s)", text)
		}
		*field = value
	}
	w.Currency, w.Country = strings.ToUpper(w.Currency), strings.ToUpper(w.Country)
	if _, err := price.ParsePercent(w.Rate); err != nil && w.Rate != "" && w.Rate != tax.None {
		return w, screen.Usagef("--where tax-rate=%s: %w, or none", w.Rate, err)
	}
	if !party.IsCountry(w.Country) {
		return w, screen.Usagef("--where country=%s: must be an ISO 3166-1 code such as DE", w.Country)
	}
	return w, nil
}

// changeTaxes changes the tax of every selected subscription that does not have it yet, from its next period. Without
// yes, it only shows what it would do. If it fails, the same command continues with the rest.
func (p *program) changeTaxes(ctx context.Context, u *updateFlags, c billing.Change) error {
	t := *c.Tax
	if c.Tax = nil; c != (billing.Change{}) || u.terms.discount != "" || u.prices != "" || u.set.Changed("amount") {
		return screen.Usagef("--tax-rate, --tax and --tax-note with --where cannot be combined with another change")
	}
	w, err := taxWhere(u.where)
	if err != nil {
		return err
	}
	return p.With(ctx, session.Need{}, func(s *session.Session) error { return p.applyTaxes(ctx, s, w, t, u.yes) })
}

func (p *program) applyTaxes(ctx context.Context, s *session.Session, w taxchange.Where, c tax.Change, yes bool) error {
	now, err := settings.Read(ctx, s.Engine.Records)
	if err != nil {
		return err
	}
	plan, err := taxchange.Make(ctx, s.Engine.Records, w, c, price.Mode(now.TaxMode))
	if err != nil {
		return err
	}
	screen.Section(p.Screen, "Changes of the tax:", []string{"TAX", "NEW", "SUBSCRIPTIONS"}, plan.Sums, func(x taxchange.Sum) []any {
		return []any{cmp.Or(view.TaxText(x.Before), "none"), cmp.Or(view.TaxText(x.After), "none"), x.Count}
	})
	what, changed, left := "to change; nothing is changed yet, so add --yes to change them", 0, plan.Left
	for _, n := range plan.Names {
		if !yes {
			break
		}
		switch _, err := s.Engine.UpdateSubscription(ctx, n, billing.Change{Tax: &c}); {
		case errors.Is(err, billing.ErrState): // it has ended meanwhile
		case errors.As(err, new(*billing.IllegibleError)), errors.As(err, new(*billing.FieldError)):
			left = append(left, fmt.Sprintf("subscription %s: %v", n, err))
		case err != nil:
			p.Warn("%d of %d are changed; run the same command again to change the others", changed, len(plan.Names))
			return err
		default:
			changed++
		}
	}
	shown := len(plan.Names)
	if yes {
		what, shown = "changed", changed
	}
	p.warnLeft(left)
	p.Say("%s %s%s%s", screen.Plural(shown, "subscription"), what, screen.Prefixed(", changed already: ", screen.Positive(plan.Already)),
		screen.Prefixed(", not changed: ", screen.Positive(len(left))))
	return p.JSON(view.Object{"to_change", len(plan.Names), "changed", changed, "already", plan.Already, "left", left,
		"taxes", view.List(plan.Sums, view.TaxChange)})
}
