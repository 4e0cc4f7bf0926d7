package sales

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/view"
)

// merchantList returns a leaf command that lists a merchant's items, with the newest first.
func (p *program) merchantList(order *screen.ListOrder, by []string,
	do func(ctx context.Context, t *tracking.Service, account string) error) *cobra.Command {
	var account string
	c := p.trackingLeaf("list --account UUID", trackingNeed{},
		func(ctx context.Context, t *tracking.Service, _ []string) error {
			return do(ctx, t, strings.ToLower(account))
		})
	c.Flags().StringVar(&account, "account", "", "`UUID` of the merchant")
	session.Required(c, "account")
	return session.Ordered(session.Checked(c, func([]string) error { return checkAccountFlag(account, false) }), order, by...)
}

func (p *program) paymentList() *cobra.Command {
	var order screen.ListOrder
	return p.merchantList(&order, []string{"payment", "status", "created", "purchase"},
		func(ctx context.Context, t *tracking.Service, account string) error {
			return screen.ListAll(p.Screen, order, "payment", t.Payments(ctx, account, tracking.Mark{}), view.Payment,
				[]string{"PAYMENT", "STATUS", "AMOUNT", "REFUNDED", "DISPUTES", "CREATED", "PURCHASE"},
				func(x *tracking.Payment) []any {
					return []any{x.StripeAccount + "/" + x.ID, paymentStatus(x), formatMinor(x.Amount, x.Currency),
						refundedText(x), disputesText(x), x.Created, x.Purchase}
				})
		})
}

func (p *program) paymentShow() *cobra.Command {
	var at, id string
	c := p.trackingLeaf("show STRIPE_ACCOUNT/PAYMENT", trackingNeed{},
		func(ctx context.Context, t *tracking.Service, args []string) error {
			x, err := t.Payment(ctx, at, id)
			if err != nil {
				return session.NotFound(err, "payment "+args[0])
			}
			p.sayPayment(x)
			return p.JSON(view.Payment(x))
		})
	return session.Checked(c, func(args []string) (err error) {
		var ok bool
		if at, id, ok = strings.Cut(args[0], "/"); !ok || at == "" || id == "" || strings.Contains(id, "/") {
			return screen.Usagef("payment must be STRIPE_ACCOUNT/PAYMENT, such as acct_123/pi_456 (got %q)", args[0])
		}
		return nil
	})
}

func (p *program) sayPayment(x *tracking.Payment) {
	p.Fields("payment", x.ID, "Stripe account", x.StripeAccount, "account", x.Merchant, "purchase", x.Purchase,
		"status", paymentStatus(x), "amount", formatMinor(x.Amount, x.Currency), "refunded", refundedText(x),
		"invoice", x.Invoice, "subscription", x.Subscription, "created", x.Created, "changed", x.Updated)
	if len(x.Refunds)+len(x.Disputes) > 0 {
		p.Say("")
		t := p.Table("KIND", "ID", "AMOUNT", "STATUS")
		for _, id := range slices.Sorted(maps.Keys(x.Refunds)) {
			t.Row("refund", id, formatMinor(x.Refunds[id].Amount, x.Currency), x.Refunds[id].Status)
		}
		for _, id := range slices.Sorted(maps.Keys(x.Disputes)) {
			t.Row("dispute", id, formatMinor(x.Disputes[id].Amount, x.Currency), x.Disputes[id].Status)
		}
		t.Flush()
	}
	screen.Section(p.Screen, "\nTimeline:", []string{"  AT", "CHANGE", "EVENT"}, x.History,
		func(h tracking.Change) []any { return []any{"  " + view.Stamp(h.At), h.What, h.Event} })
}

// paymentStatus returns the payment's status and, for a failed payment, the reason.
func paymentStatus(x *tracking.Payment) string {
	if x.Status != tracking.PaymentFailed {
		return string(x.Status)
	}
	return string(x.Status) + screen.Prefixed(": ", strings.Join(x.Codes, ", "))
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
