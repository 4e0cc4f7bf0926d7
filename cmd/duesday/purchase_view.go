package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

// purchaseFields prints a purchase, and more pairs of names and values.
func (p *program) purchaseFields(x *tracking.Purchase, more ...any) {
	o := &x.Order
	p.fields(append([]any{"purchase", x.ID, "key", o.Key, "account", x.Merchant, "Stripe account", x.StripeAccount,
		"kind", x.Kind, "amount", formatMinor(o.Amount, o.Currency), "price", o.Price, "payments", positive(o.Payments),
		"description", o.Description, "customer", cmp.Or(x.Customer, o.Customer), "email", o.Email, "name", o.Name,
		"fulfilled", x.Fulfilled, "fulfilment", effectText(x.Fulfilment), "unsubscribe", effectText(x.Unsubscribe),
		"automations", automationsText(x.Automations), "problem", x.Problem, "created", x.Created,
		"changed", x.Updated}, more...)...)
}

// effectText says how far an effect is, or "" when nothing asked for it.
func effectText(e tracking.Effect) string {
	switch e.State {
	case tracking.NotAsked:
		return ""
	case tracking.Waits:
		return "waits for the fulfilment" + prefixed(": ", e.Reason)
	case tracking.DoneWith:
		return "done at " + stamp(e.Done) + prefixed(": ", e.Reason)
	}
	return "asked for at " + stamp(e.Asked) + prefixed(": ", e.Reason)
}

func automationsText(all []tracking.Done) string {
	var parts []string
	for _, d := range all {
		parts = append(parts, string(d.Action)+" by "+d.Automation+" at "+stamp(d.At))
	}
	return strings.Join(parts, ", ")
}

// formatMinor returns an amount of minor units as people write it, or "" for none.
func formatMinor(minor int64, code string) string {
	if code == "" {
		return ""
	}
	currency, err := money.ParseCurrency(code)
	if err != nil { // a currency of Stripe's, unknown here
		return strconv.FormatInt(minor, 10) + " minor units of " + code
	}
	return money.New(minor, currency).Format()
}

// trouble returns the failed jobs of the purchase with their errors: names and values.
func (b *backend) trouble(ctx context.Context, x *tracking.Purchase) ([]any, error) {
	asked := func(e tracking.Effect) bool { return e.State == tracking.Asked || e.State == tracking.Begun }
	if !asked(x.Fulfilment) && !asked(x.Unsubscribe) {
		return nil, nil
	}
	var pairs []any
	for j, err := range b.backlog.Jobs(ctx) {
		if err != nil {
			return nil, err
		}
		if j.Purchase != x.ID || j.Error == "" {
			continue
		}
		what := "tried again at " + stamp(j.Due)
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
		parts = append(parts, id+" "+string(c.Status)+prefixed(": ", string(c.Ending)))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func (p *program) showTimeline(ctx context.Context, b *backend, s *tracking.Timeline) error {
	trouble, err := b.trouble(ctx, s.Purchase)
	if err != nil {
		return err
	}
	p.purchaseFields(s.Purchase, trouble...)
	if len(s.Payments) > 0 {
		p.say("\nPayments:")
		t := p.table("  PAYMENT", "STATUS", "AMOUNT", "REFUNDED", "DISPUTES", "CREATED", "INVOICE", "SUBSCRIPTION")
		for _, x := range s.Payments {
			t.row("  "+x.ID, paymentStatus(x), formatMinor(x.Amount, x.Currency), refundedText(x), disputesText(x),
				x.Created, x.Invoice, x.Subscription)
		}
		t.flush()
	}
	if len(s.Subscriptions) > 0 {
		p.say("\nSubscriptions:")
		t := p.table("  SUBSCRIPTION", "STATUS", "AT STRIPE", "ENDING", "SCHEDULE", "CREATED", "CHANGED")
		for _, x := range s.Subscriptions {
			t.row("  "+x.ID, x.Status, x.Detail, x.Ending, x.Schedule, x.Created, x.Updated)
		}
		t.flush()
	}
	if len(s.Steps) == 0 {
		return nil
	}
	p.say("\nTimeline:")
	t := p.table("  AT", "WHAT", "OF", "EVENT", "TYPE")
	for _, x := range s.Steps {
		about := x.About
		if about == s.Purchase.ID {
			about = "the purchase"
		}
		t.row("  "+stamp(x.At), x.What, about, x.Event, x.Detail)
	}
	return t.flush()
}
