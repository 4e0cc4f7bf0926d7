package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
)

func (p *program) accountCommand() *cobra.Command {
	return group("account", "Create, show, list and update accounts, and set their payment methods",
		p.accountCreate(), p.accountShow(), p.accountList(), p.accountUpdate(), p.accountAttach(), p.accountCardLink())
}

func (p *program) accountCreate() *cobra.Command {
	var email, zone string
	c := &cobra.Command{
		Use:   "create ACCOUNT --email ADDRESS",
		Short: "Create an account without a subscription",
		Args:  want("ACCOUNT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkAccount(args[0], email, zone); err != nil {
				return err
			}
			return p.with(cmd.Context(), need{create: true}, func(s *session) error {
				a, err := s.engine.CreateAccount(cmd.Context(), args[0], email, zone)
				if err != nil {
					return err
				}
				return p.showAccount(a, "created")
			})
		},
	}
	c.Flags().StringVar(&email, "email", "", "`ADDRESS` that reminders and receipts go to")
	c.Flags().StringVar(&zone, "time-zone", "", "IANA `NAME`, decides what day it is for the account (default UTC)")
	c.MarkFlagRequired("email")
	return c
}

// checkAccount refuses invalid values before a store is made for them.
func checkAccount(id, email, zone string) error {
	if err := billing.CheckID("account", id); err != nil {
		return err
	}
	if err := billing.CheckEmail(email); err != nil {
		return err
	}
	return checkZone(zone, zone != "")
}

func checkZone(zone string, given bool) error {
	if !given {
		return nil
	}
	if _, err := civil.Zone(zone); err != nil {
		return usagef("--time-zone: %w", err)
	}
	return nil
}

func (p *program) accountShow() *cobra.Command {
	card := false
	c := &cobra.Command{
		Use:   "show ACCOUNT",
		Short: "Show an account and its subscriptions",
		Args:  want("ACCOUNT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return p.with(ctx, need{read: true, processor: card}, func(s *session) error {
				a, err := s.engine.Account(ctx, args[0])
				if err != nil {
					return notFound(err, "account "+args[0])
				}
				v := fullAccountView{accountView: viewAccount(a)}
				if card {
					if v.Card, err = cardOf(ctx, s, a); err != nil {
						return err
					}
				}
				return p.showFullAccount(ctx, s, &v)
			})
		},
	}
	c.Flags().BoolVar(&card, "card", false, "ask the processor for the card, too")
	return c
}

// A fullAccountView is an account with its subscriptions.
type fullAccountView struct {
	accountView
	Card          *cardView          `json:"card,omitempty"` // asked for, and there is one
	Subscriptions []subscriptionView `json:"subscriptions"`
}

func (p *program) showFullAccount(ctx context.Context, s *session, v *fullAccountView) error {
	if p.cfg.JSON {
		v.Subscriptions = []subscriptionView{}
		for sub, err := range s.engine.GetSubscriptionsByAccount(ctx, v.Account) {
			if err != nil {
				return err
			}
			v.Subscriptions = append(v.Subscriptions, viewSubscription(sub))
		}
		return p.object(v)
	}
	p.accountFields(&v.accountView, v.Card)
	p.say("")
	_, err := p.subscriptionTable(s.engine.GetSubscriptionsByAccount(ctx, v.Account))
	return err
}

func (p *program) accountFields(v *accountView, card *cardView) {
	fields(p.stdout, "account", v.Account, "email", v.Email, "time zone", v.TimeZone, "customer", v.Customer,
		"connected account", v.At,
		"application fee", v.Fee, "payment method", v.Method, "given", v.Given, "card", card.text(), "created", v.Created,
		"change", v.Change)
}

// showAccount shows a changed account.
func (p *program) showAccount(a *billing.Account, what string) error {
	v := viewAccount(a)
	if p.cfg.JSON {
		return p.object(v)
	}
	p.say("account %s %s", a.ID, what)
	p.accountFields(&v, nil)
	return nil
}

func (p *program) accountList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all accounts",
		Args:  want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.with(cmd.Context(), need{read: true}, func(s *session) error {
				n, err := list(p, s.engine.Accounts(cmd.Context()), viewAccount,
					[]string{"ACCOUNT", "EMAIL", "TIME ZONE", "METHOD", "CREATED"},
					func(a *billing.Account) []string {
						v := viewAccount(a)
						return []string{v.Account, v.Email, v.TimeZone, v.Method, v.Created}
					})
				if err == nil {
					p.say("\n%s", plural(n, "account"))
				}
				return err
			})
		},
	}
}

func (p *program) accountUpdate() *cobra.Command {
	var email, zone string
	c := &cobra.Command{
		Use:   "update ACCOUNT",
		Short: "Change an account's address or time zone, and every copy of it",
		Long: `Change an account's address, on its subscriptions and receipts too, or its time zone, on
its subscriptions too: it decides what day it is for them from now on.`,
		Args: want("ACCOUNT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var change engine.AccountChange
			if cmd.Flags().Changed("email") {
				change.Email = &email
			}
			if cmd.Flags().Changed("time-zone") {
				change.TimeZone = &zone
			}
			if change.Email == nil && change.TimeZone == nil {
				return usagef("%s: nothing to change: give a flag", cmd.CommandPath())
			}
			if err := checkZone(zone, change.TimeZone != nil); err != nil {
				return err
			}
			return p.with(cmd.Context(), need{}, func(s *session) error {
				a, err := s.engine.UpdateAccount(cmd.Context(), args[0], change)
				if err != nil {
					return notFound(err, "account "+args[0])
				}
				return p.showAccount(a, "updated")
			})
		},
	}
	c.Flags().StringVar(&email, "email", "", "the new `ADDRESS`")
	c.Flags().StringVar(&zone, "time-zone", "", "the new IANA `NAME`")
	return c
}
