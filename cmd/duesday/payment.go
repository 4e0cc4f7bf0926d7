package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/tracking"
)

func (p *program) paymentCommand() *cobra.Command {
	return group("payment", "List and show the payments of purchases", p.paymentList(), p.paymentShow())
}

func (p *program) paymentList() *cobra.Command {
	var f backendFlags
	var account string
	c := &cobra.Command{
		Use:   "list --account UUID",
		Short: "List an account's payments, the newest first",
		Args:  want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkAccountFlag(account, false); err != nil {
				return err
			}
			return p.withBackend(cmd.Context(), &f, backendNeed{}, func(b *backend) error {
				columns := []string{"PAYMENT", "STATUS", "AMOUNT", "REFUNDED", "DISPUTES", "CREATED", "PURCHASE"}
				n, err := list(p, b.shop.Payments(cmd.Context(), strings.ToLower(account)), as[*tracking.Payment], columns,
					func(x *tracking.Payment) []string {
						return []string{x.StripeAccount + "/" + x.ID, paymentStatus(x), formatMinor(x.Amount, x.Currency),
							refundedText(x), disputesText(x), stamp(x.Created), x.Purchase}
					})
				if err == nil {
					p.say("\n%s", plural(n, "payment"))
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&account, "account", "", "`UUID` of the customer account")
	c.MarkFlagRequired("account")
	return f.on(c)
}

func (p *program) paymentShow() *cobra.Command {
	var f backendFlags
	c := &cobra.Command{
		Use:   "show STRIPE_ACCOUNT/PAYMENT",
		Short: "Show a payment, its refunds, disputes and timeline",
		Args:  want("STRIPE_ACCOUNT/PAYMENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, id, ok := strings.Cut(args[0], "/")
			if !ok || at == "" || id == "" || strings.Contains(id, "/") {
				return usagef("payment %q: want STRIPE_ACCOUNT/PAYMENT, such as acct_123/pi_456", args[0])
			}
			return p.withBackend(cmd.Context(), &f, backendNeed{}, func(b *backend) error {
				x, err := b.shop.Payment(cmd.Context(), at, id)
				if err != nil {
					return notFound(err, "payment "+args[0])
				}
				if p.cfg.JSON {
					return p.object(x)
				}
				return p.showPayment(x)
			})
		},
	}
	return f.on(c)
}

func (p *program) showPayment(x *tracking.Payment) error {
	fields(p.stdout, "payment", x.ID, "Stripe account", x.StripeAccount, "account", x.Merchant, "purchase", x.Purchase,
		"status", paymentStatus(x),
		"amount", formatMinor(x.Amount, x.Currency), "refunded", refundedText(x), "invoice", x.Invoice, "subscription",
		x.Subscription,
		"created", stamp(x.Created), "changed", stamp(x.Updated))
	if len(x.Refunds)+len(x.Disputes) > 0 {
		p.say("")
		t := newTable(p.stdout, "KIND", "ID", "AMOUNT", "STATUS")
		for _, id := range slices.Sorted(maps.Keys(x.Refunds)) {
			r := x.Refunds[id]
			t.row("refund", id, formatMinor(r.Amount, x.Currency), r.Status)
		}
		for _, id := range slices.Sorted(maps.Keys(x.Disputes)) {
			d := x.Disputes[id]
			t.row("dispute", id, formatMinor(d.Amount, x.Currency), d.Status)
		}
		t.flush()
	}
	if len(x.History) == 0 {
		return nil
	}
	p.say("\nTimeline:")
	t := newTable(p.stdout, "  AT", "WHAT", "EVENT")
	for _, h := range x.History {
		t.row("  "+stamp(h.At), h.What, h.Event)
	}
	return t.flush()
}

// paymentStatus is the status, and of a failed payment why.
func paymentStatus(x *tracking.Payment) string {
	if x.Status != tracking.PaymentFailed {
		return string(x.Status)
	}
	return string(x.Status) + prefixed(": ", strings.Join(x.Codes, ", "))
}

func refundedText(x *tracking.Payment) string {
	if x.Refunded == 0 {
		return ""
	}
	return formatMinor(x.Refunded, x.Currency)
}

func disputesText(x *tracking.Payment) string {
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(x.Disputes)) {
		parts = append(parts, x.Disputes[id].Status)
	}
	return strings.Join(parts, ", ")
}
