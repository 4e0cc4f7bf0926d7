package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

func (p *program) purchaseCommand() *cobra.Command {
	g := group("purchase", "Sell through Stripe, and show the results", p.purchaseCreate(), p.purchaseList(),
		p.purchaseShow())
	g.Long = `Sell through Stripe, and show the results: a purchase is paid by Stripe,
by one payment or by a subscription of Stripe's, and its events say when it is to be
fulfilled and when it has ended. What Duesday charges itself is under subscription.`
	return g
}

// purchaseFlags are those of purchase create.
type purchaseFlags struct {
	backendFlags
	order            tracking.Order
	kind             choiceFlag
	amount, currency string
}

func (p *program) purchaseCreate() *cobra.Command {
	f := &purchaseFlags{kind: choiceFlag{choices: []string{string(tracking.Legacy), string(tracking.Product),
		string(tracking.Subscribe), string(tracking.SplitPayment)}}}
	c := &cobra.Command{
		Use:   "create",
		Short: "Sell something: make the payment, subscription or schedule at Stripe",
		Long: `Sell something: make the payment, subscription or schedule at Stripe.

  legacy        a payment intent that the buyer's client completes, of an --amount
  product       one payment, taken at once: of an --amount or a --price
  subscription  a subscription of Stripe's, of a --price
  split         a --price that is paid in a fixed number of --payments

The same --key of the same account is the same purchase: repeat the command when it is not
known whether it worked. The client secret, which the buyer's client needs to complete a
payment, is printed and kept nowhere. Exits 3 when the payment was declined, or when the
bank wants the buyer to confirm it.

A subscription or split is fulfilled when its subscription is active. That of a split is
active at once: Stripe takes the first payment about an hour later. In JSON amounts are whole
numbers of minor units, as Stripe has them: 500 is 5.00 EUR.`,
		Example: `  duesday purchase create --account UUID --kind legacy --key order-1 --amount 12.99 --currency USD
  duesday purchase create --account UUID --kind split --key 2 --price price_123 --payments 3 --payment-method pm_123`,
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.fill(); err != nil {
				return err
			}
			return p.withBackend(cmd.Context(), &f.backendFlags, backendNeed{stripe: true},
				func(b *backend) error { return p.sell(cmd.Context(), b, f) })
		},
	}
	o, fs := &f.order, c.Flags()
	fs.StringVar(&o.Merchant, "account", "", "`UUID` of the customer account that sells")
	fs.Var(&f.kind, "kind", "how it is paid")
	fs.StringVar(&o.Key, "key", "", "`TEXT` of your own that tells this order from others")
	fs.StringVar(&f.amount, "amount", "", "`AMOUNT` such as 12.99: of legacy, and of product without a price")
	fs.StringVar(&f.currency, "currency", "", "ISO 4217 `CODE`, with an amount")
	fs.StringVar(&o.Price, "price", "", "`PRICE` at Stripe: of subscription and split, and of product without an amount")
	fs.IntVar(&o.Payments, "payments", 0, "`NUMBER` of payments, of split")
	fs.StringVar(&o.Customer, "customer", "", "`CUSTOMER` at Stripe (default: found by --email, or made)")
	fs.StringVar(&o.Email, "email", "", "`ADDRESS` of the buyer")
	fs.StringVar(&o.Name, "name", "", "`NAME` of the buyer")
	fs.StringVar(&o.PaymentMethod, "payment-method", "", "`METHOD` that the buyer's client has made: of all but legacy")
	fs.StringVar(&o.Description, "description", "", "`TEXT` that buyers see")
	for _, name := range []string{"account", "kind", "key"} {
		c.MarkFlagRequired(name)
	}
	return f.on(c)
}

// fill makes the order of the flags.
func (f *purchaseFlags) fill() error {
	o := &f.order
	o.Kind = tracking.Kind(f.kind.value)
	for _, text := range [...]struct{ flag, value string }{{"description", o.Description}, {"email", o.Email},
		{"name", o.Name},
		{"customer", o.Customer}, {"price", o.Price}, {"payment-method", o.PaymentMethod}} {
		if secret.HasCardNumber(text.value) {
			return usagef("--%s: this looks like a card number, which must never come here: it is given to Stripe alone",
				text.flag)
		}
	}
	if f.amount == "" {
		if f.currency != "" {
			return usagef("--currency is for --amount: a price has its own")
		}
		return byFlag(o.Check())
	}
	currency, err := money.ParseCurrency(f.currency)
	if err != nil {
		return usagef("--currency: %w", err)
	}
	amount, err := money.Parse(f.amount, currency)
	if err != nil {
		return usagef("--amount: %w", err)
	}
	o.Amount, o.Currency = amount.Minor(), currency.Code()
	return byFlag(o.Check())
}

// A soldObject is an object at Stripe of a new purchase.
type soldObject struct {
	Kind   string `json:"kind"` // in Stripe's words: payment_intent, …
	ID     string `json:"id"`
	Status string `json:"status,omitempty"` // Stripe's word
}

// A soldView is a new purchase, with the secrets for the buyer's client.
type soldView struct {
	Purchase     *tracking.Purchase `json:"purchase"`
	Objects      []soldObject       `json:"objects"`                 // the payment, subscription, schedule at Stripe
	Customer     string             `json:"customer,omitempty"`      // at Stripe
	ClientSecret string             `json:"client_secret,omitempty"` // for the buyer's client
	Declined     string             `json:"declined,omitempty"`
	Action       bool               `json:"action_required,omitempty"`
	Repeated     bool               `json:"repeated,omitempty"`
}

func (p *program) sell(ctx context.Context, b *backend, f *purchaseFlags) error {
	created, err := b.shop.CreatePurchase(ctx, f.order)
	if errors.Is(err, tracking.ErrOther) {
		return fmt.Errorf("--key %s was used before, for another order (%s): give a new order a key of its own, or repeat "+
			"the old one as it was", quoted(f.order.Key), withoutOther(err))
	}
	if err != nil {
		return byFlag(err)
	}
	sale := &created.Sale
	if sale.Declined != "" || sale.Action {
		p.code = exitPerson
	}
	v := soldView{Purchase: created.Purchase, Customer: sale.Customer, ClientSecret: sale.ClientSecret.Reveal(),
		Declined: sale.Declined,
		Action:   sale.Action, Repeated: created.Repeated, Objects: []soldObject{}}
	for _, o := range sale.Objects {
		v.Objects = append(v.Objects, soldObject{o.Kind, o.ID, o.Status})
	}
	if p.cfg.JSON {
		return p.object(v)
	}
	what := "made"
	if v.Repeated {
		what = "was made before, with the same key"
	}
	p.say("purchase %s %s", v.Purchase.ID, what)
	p.purchaseFields(v.Purchase, "client secret", v.ClientSecret)
	p.say("\nShow the result: %s", f.hint(p, "purchase show "+v.Purchase.ID))
	return nil
}

func (p *program) purchaseList() *cobra.Command {
	var f backendFlags
	var account string
	c := &cobra.Command{
		Use:   "list --account UUID",
		Short: "List an account's purchases, the newest first",
		Args:  want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkAccountFlag(account, false); err != nil {
				return err
			}
			return p.withBackend(cmd.Context(), &f, backendNeed{}, func(b *backend) error {
				columns := []string{"PURCHASE", "KEY", "KIND", "CREATED", "FULFILLED", "UNSUBSCRIBE", "SUBSCRIPTIONS", "PROBLEM"}
				n, err := list(p, b.shop.Purchases(cmd.Context(), strings.ToLower(account)), as[*tracking.Purchase], columns,
					func(x *tracking.Purchase) []string {
						return []string{x.ID, x.Order.Key, string(x.Kind), stamp(x.Created), yesNo(x.Fulfilled),
							string(x.Unsubscribe.State), coursesText(x), x.Problem}
					})
				if err == nil {
					p.say("\n%s", plural(n, "purchase"))
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&account, "account", "", "`UUID` of the customer account")
	c.MarkFlagRequired("account")
	return f.on(c)
}

func (p *program) purchaseShow() *cobra.Command {
	var f backendFlags
	c := &cobra.Command{
		Use:   "show PURCHASE",
		Short: "Show a purchase, its payments, subscriptions and timeline",
		Args:  want("PURCHASE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withBackend(cmd.Context(), &f, backendNeed{}, func(b *backend) error {
				timeline, err := b.shop.Timeline(cmd.Context(), args[0])
				if err != nil {
					return notFound(err, "purchase "+args[0])
				}
				if p.cfg.JSON {
					return p.object(timeline)
				}
				return p.showTimeline(cmd.Context(), b, timeline)
			})
		},
	}
	return f.on(c)
}
