package sales

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/view"
)

type purchaseFlags struct {
	order            tracking.Order
	kind             screen.Flag[tracking.Kind]
	amount, currency string
}

func (p *program) purchaseCreate() *cobra.Command {
	f := &purchaseFlags{kind: screen.ChoiceFlag(tracking.Legacy, tracking.Product, tracking.Subscribe, tracking.SplitPayment)}
	c := p.trackingLeaf("create", trackingNeed{stripe: true},
		func(ctx context.Context, t *tracking.Service, _ []string) error { return p.sell(ctx, t, f.order) })
	o, fs := &f.order, c.Flags()
	fs.StringVar(&o.Merchant, "account", "", "`UUID` of the merchant")
	fs.Var(&f.kind, "kind", "how the purchase is paid")
	fs.StringVar(&o.Key, "key", "", "`TEXT` of your choice that identifies this order")
	fs.StringVar(&f.amount, "amount", "", "`AMOUNT` such as 12.99, for kind legacy, and for product without --price")
	fs.StringVar(&f.currency, "currency", "", "ISO 4217 currency `CODE` of --amount")
	fs.StringVar(&o.Price, "price", "", "Stripe `PRICE`, for kinds subscription and split, and for product without --amount")
	fs.IntVar(&o.Payments, "payments", 0, "`NUMBER` of payments, for kind split")
	fs.StringVar(&o.Customer, "customer", "", "Stripe `CUSTOMER` (default: found by --email, or created)")
	fs.StringVar(&o.Email, "email", "", "email `ADDRESS` of the buyer")
	fs.StringVar(&o.Name, "name", "", "`NAME` of the buyer")
	fs.StringVar(&o.PaymentMethod, "payment-method", "", "payment `METHOD` that the buyer's client created, for every kind except legacy")
	fs.StringVar(&o.Description, "description", "", "`TEXT` that buyers see")
	session.Required(c, "account", "kind", "key")
	return session.Checked(c, func([]string) error { return f.fill() })
}

func (f *purchaseFlags) fill() error {
	o := &f.order
	o.Kind = f.kind.Value
	if f.amount == "" {
		if f.currency != "" {
			return screen.Usagef("--currency needs --amount, because a price has its own currency")
		}
		return session.ByFlag(o.Check())
	}
	amount, err := screen.ParseAmount(f.amount, f.currency)
	if err != nil {
		return err
	}
	o.Amount, o.Currency = amount.Minor(), amount.Currency().Code()
	return session.ByFlag(o.Check())
}

func (p *program) sell(ctx context.Context, t *tracking.Service, o tracking.Order) error {
	created, err := t.CreatePurchase(ctx, o)
	if errors.Is(err, tracking.ErrOther) {
		return fmt.Errorf("--key %s was used before for another order (%s); use a new key for a new order, or repeat "+
			"the old order unchanged", session.Quoted(o.Key), withoutOther(err))
	}
	if err != nil {
		return session.ByFlag(err)
	}
	sale := &created.Sale
	if sale.Declined != "" || sale.Action {
		p.Code = screen.ExitPerson
	}
	what := "made"
	if created.Repeated {
		what = "was created before, with the same key"
	}
	p.Say("purchase %s %s", created.Purchase.ID, what)
	p.purchaseFields(created.Purchase, "client secret", sale.ClientSecret.Reveal())
	p.Say("\nTo show the result, run: %s", p.Hint("purchase show "+created.Purchase.ID))
	return p.JSON(view.Ordered(created))
}

func (p *program) purchaseList() *cobra.Command {
	var order screen.ListOrder
	return p.merchantList(&order, []string{"purchase", "key", "kind", "created"},
		func(ctx context.Context, t *tracking.Service, account string) error {
			return screen.ListAll(p.Screen, order, "purchase", t.Purchases(ctx, account, tracking.Mark{}), view.Purchase,
				[]string{"PURCHASE", "KEY", "KIND", "CREATED", "FULFILLED", "UNSUBSCRIBE", "SUBSCRIPTIONS", "PROBLEM"},
				func(x *tracking.Purchase) []any {
					return []any{x.ID, x.Order.Key, x.Kind, x.Created, x.Fulfilled, x.Unsubscribe.State, coursesText(x), x.Problem}
				})
		})
}

func (p *program) purchaseShow() *cobra.Command {
	return p.trackingLeaf("show PURCHASE", trackingNeed{},
		func(ctx context.Context, t *tracking.Service, args []string) error {
			timeline, err := t.Timeline(ctx, strings.ToLower(args[0]))
			if err != nil {
				return session.NotFound(err, "purchase "+args[0])
			}
			if p.AsJSON {
				return p.JSON(view.Timeline(timeline))
			}
			return p.showTimeline(ctx, t, timeline)
		})
}

func (p *program) purchaseFields(x *tracking.Purchase, more ...any) {
	o := &x.Order
	p.Fields(append([]any{"purchase", x.ID, "key", o.Key, "account", x.Merchant, "Stripe account", x.StripeAccount,
		"kind", x.Kind, "amount", formatMinor(o.Amount, o.Currency), "price", o.Price, "payments", screen.Positive(o.Payments),
		"description", o.Description, "customer", cmp.Or(x.Customer, o.Customer), "email", o.Email, "name", o.Name,
		"fulfilled", x.Fulfilled, "fulfilment", effectText(x.Fulfilment), "unsubscribe", effectText(x.Unsubscribe),
		"automations", automationsText(x.Automations), "problem", x.Problem, "created", x.Created,
		"changed", x.Updated}, more...)...)
}

// effectText describes the progress of an effect. It returns "" if nothing requested the effect.
func effectText(e tracking.Effect) string {
	switch e.State {
	case tracking.NotAsked:
		return ""
	case tracking.Waits:
		return "waiting for the fulfilment" + screen.Prefixed(": ", e.Reason)
	case tracking.DoneWith:
		return "done at " + view.Stamp(e.Done) + screen.Prefixed(": ", e.Reason)
	}
	return "requested at " + view.Stamp(e.Asked) + screen.Prefixed(": ", e.Reason)
}

func automationsText(all []tracking.Done) string {
	var parts []string
	for _, d := range all {
		parts = append(parts, string(d.Action)+" by "+d.Automation+" at "+view.Stamp(d.At))
	}
	return strings.Join(parts, ", ")
}

// formatMinor returns an amount in minor units, formatted for human readers, or "" if there is
// none.
func formatMinor(minor int64, code string) string {
	if code == "" {
		return ""
	}
	currency, err := money.ParseCurrency(code)
	if err != nil { // Stripe supports this currency, but Duesday does not know it
		return strconv.FormatInt(minor, 10) + " minor units of " + code
	}
	return money.New(minor, currency).Format()
}

// trouble returns the purchase's failed jobs and their errors, as alternating names and values.
func trouble(ctx context.Context, t *tracking.Service, x *tracking.Purchase) ([]any, error) {
	asked := func(e tracking.Effect) bool { return e.State == tracking.Asked || e.State == tracking.Begun }
	if !asked(x.Fulfilment) && !asked(x.Unsubscribe) {
		return nil, nil
	}
	var pairs []any
	for j, err := range t.Jobs(ctx) {
		if err != nil {
			return nil, err
		}
		if j.Purchase != x.ID || j.Error == "" {
			continue
		}
		what := "next attempt at " + view.Stamp(j.Due)
		if j.Dead {
			what = "given up"
		}
		pairs = append(pairs, "job "+j.ID, what+": "+secret.Clean(j.Error))
	}
	return pairs, nil
}

func coursesText(x *tracking.Purchase) string {
	var parts []string
	for id, c := range x.Subscriptions {
		parts = append(parts, id+" "+string(c.Status)+screen.Prefixed(": ", string(c.Ending)))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func (p *program) showTimeline(ctx context.Context, t *tracking.Service, s *tracking.Timeline) error {
	trouble, err := trouble(ctx, t, s.Purchase)
	if err != nil {
		return err
	}
	p.purchaseFields(s.Purchase, trouble...)
	screen.Section(p.Screen, "\nPayments:", []string{"  PAYMENT", "STATUS", "AMOUNT", "REFUNDED", "DISPUTES", "CREATED", "INVOICE",
		"SUBSCRIPTION"}, s.Payments, func(x *tracking.Payment) []any {
		return []any{"  " + x.ID, paymentStatus(x), formatMinor(x.Amount, x.Currency), refundedText(x), disputesText(x),
			x.Created, x.Invoice, x.Subscription}
	})
	screen.Section(p.Screen, "\nSubscriptions:", []string{"  SUBSCRIPTION", "STATUS", "STRIPE STATUS", "ENDING", "SCHEDULE", "CREATED",
		"CHANGED"}, s.Subscriptions, func(x *tracking.Subscription) []any {
		return []any{"  " + x.ID, x.Status, x.Detail, x.Ending, x.Schedule, x.Created, x.Updated}
	})
	screen.Section(p.Screen, "\nTimeline:", []string{"  AT", "CHANGE", "OBJECT", "EVENT", "TYPE"}, s.Steps, func(x tracking.Step) []any {
		about := x.About
		if about == s.Purchase.ID {
			about = "the purchase"
		}
		return []any{"  " + view.Stamp(x.At), x.What, about, x.Event, x.Detail}
	})
	return nil
}
