package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/tracking"
)

func (p *program) connectCommand() *cobra.Command {
	g := group("connect", "Register the Stripe accounts of merchants, and list them",
		p.connectAdd(), p.connectList(), p.connectShow())
	g.Long = `Register the Stripe accounts of merchants, and list them. Events of an unregistered Stripe
account are put aside until it is registered. The account of the key itself is registered
the same way, if buyers pay there.`
	return g
}

func (p *program) connectAdd() *cobra.Command {
	var f backendFlags
	var account string
	c := &cobra.Command{
		Use:   "add --account UUID ACCT",
		Short: "Register a Stripe account for a merchant",
		Args:  want("ACCT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withBackend(cmd.Context(), &f, backendNeed{create: true, stripe: true}, func(b *backend) error {
				a, err := b.registry.Register(cmd.Context(), account, args[0])
				if errors.Is(err, tracking.ErrOther) {
					return fmt.Errorf("%s, and is that one's for good: its purchases and payments are", withoutOther(err))
				}
				if e, ok := errors.AsType[*tracking.FieldError](err); ok && e.Field == "stripe_account" {
					return usagef("ACCT %q: %s", args[0], e.Problem)
				}
				if err != nil {
					return byFlag(err)
				}
				return p.showConnected(a, "registered")
			})
		},
	}
	c.Flags().StringVar(&account, "account", "", "`UUID` of the customer account that it is of")
	c.MarkFlagRequired("account")
	return f.on(c)
}

func (p *program) connectList() *cobra.Command {
	var f backendFlags
	c := &cobra.Command{
		Use:   "list",
		Short: "List the registered Stripe accounts",
		Args:  want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withBackend(cmd.Context(), &f, backendNeed{}, func(b *backend) error {
				columns := []string{"STRIPE ACCOUNT", "ACCOUNT", "STATUS", "VERIFIED THROUGH", "CHECKED", "ERROR"}
				n, err := list(p, b.registry.ConnectedAccounts(cmd.Context()), as[*tracking.ConnectedAccount], columns,
					func(a *tracking.ConnectedAccount) []string {
						return []string{a.StripeAccount, a.Merchant, string(a.Status), stamp(a.Polled.Through), stamp(a.Polled.Checked),
							a.Polled.Error}
					})
				if err == nil {
					p.say("\n%s", plural(n, "Stripe account"))
				}
				return err
			})
		},
	}
	return f.on(c)
}

// as shows a value as it is: it has a JSON form.
func as[T any](v T) T { return v }

func (p *program) connectShow() *cobra.Command {
	var f backendFlags
	c := &cobra.Command{
		Use:   "show ACCT",
		Short: "Show a registered Stripe account and how far its events are known",
		Args:  want("ACCT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withBackend(cmd.Context(), &f, backendNeed{}, func(b *backend) error {
				a, err := b.connected(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return p.showConnected(a, "")
			})
		},
	}
	return f.on(c)
}

// connected returns the registered Stripe account. tracking.ErrUnregistered: there is none.
func (b *backend) connected(ctx context.Context, stripeAccount string) (*tracking.ConnectedAccount, error) {
	for a, err := range b.registry.ConnectedAccounts(ctx) {
		if err != nil {
			return nil, err
		}
		if a.StripeAccount == stripeAccount {
			return a, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", stripeAccount, tracking.ErrUnregistered)
}

func (p *program) showConnected(a *tracking.ConnectedAccount, what string) error {
	if p.cfg.JSON {
		return p.object(a)
	}
	if what != "" {
		p.say("Stripe account %s %s", a.StripeAccount, what)
	}
	own, polled := "", a.Polled
	if a.Own {
		own = "the account of our key"
	}
	fields(p.stdout, "Stripe account", a.StripeAccount, "account", a.Merchant, "own", own, "status", string(a.Status),
		"verified through", stamp(polled.Through), "checked", stamp(polled.Checked), "next check", stamp(polled.Next),
		"compared", stamp(polled.Swept),
		"error", polled.Error, "registered", stamp(a.Created), "changed", stamp(a.Updated))
	return nil
}
