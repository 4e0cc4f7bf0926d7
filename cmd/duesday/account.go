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
	c := p.storeLeaf("create ACCOUNT --email ADDRESS", "Create an account without a subscription", need{create: true},
		func(ctx context.Context, s *session, args []string) error {
			a, err := s.engine.CreateAccount(ctx, args[0], email, zone)
			return p.showAccount(a, err, args[0], "created")
		})
	c.Flags().StringVar(&email, "email", "", "`ADDRESS` that reminders and receipts go to")
	c.Flags().StringVar(&zone, "time-zone", "", "IANA `NAME`, decides what day it is for the account (default UTC)")
	required(c, "email")
	return checked(c, func(args []string) error { // a store is not made for invalid values
		if err := billing.CheckID("account", args[0]); err != nil {
			return err
		}
		if err := billing.CheckEmail(email); err != nil {
			return err
		}
		return checkZone(zone, zone != "")
	})
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
	c := leaf("show ACCOUNT", "Show an account and its subscriptions", func(ctx context.Context, args []string) error {
		return p.with(ctx, need{read: true, processor: card}, func(s *session) error {
			a, err := s.engine.Account(ctx, args[0])
			if err != nil {
				return notFound(err, "account "+args[0])
			}
			var shown *billing.Card
			if card {
				if shown, err = cardOf(ctx, s, a); err != nil {
					return err
				}
			}
			return p.showFullAccount(ctx, s, a, shown)
		})
	})
	c.Flags().BoolVar(&card, "card", false, "ask the processor for the card, too")
	return c
}

// showFullAccount shows an account with its subscriptions, and the card if it was asked for and
// there is one.
func (p *program) showFullAccount(ctx context.Context, s *session, a *billing.Account, card *billing.Card) error {
	subscriptions := s.engine.GetSubscriptionsByAccount(ctx, a.ID)
	if !p.cfg.JSON {
		p.accountFields(a, card)
		p.say("")
		_, err := p.subscriptionTable(subscriptions)
		return err
	}
	list := []object{}
	for sub, err := range subscriptions {
		if err != nil {
			return err
		}
		list = append(list, viewSubscription(sub))
	}
	return p.json(append(viewAccount(a), "card?", viewCard(card), "subscriptions", list))
}

func (p *program) accountFields(a *billing.Account, card *billing.Card) {
	v := viewAccount(a)
	p.fields("account", a.ID, "email", a.Email, "time zone", v.text("time_zone"), "customer", a.Payer.Customer,
		"connected account", a.Payer.At, "application fee", v.text("application_fee"), "payment method", a.Method,
		"given", a.Given, "card", cardText(card), "created", a.Created, "change", v.text("change"))
}

// showAccount shows a changed account.
func (p *program) showAccount(a *billing.Account, err error, id, what string) error {
	if err != nil {
		return notFound(err, "account "+id)
	}
	p.say("account %s %s", id, what)
	p.accountFields(a, nil)
	return p.json(viewAccount(a))
}

func (p *program) accountList() *cobra.Command {
	return p.storeLeaf("list", "List all accounts", need{read: true},
		func(ctx context.Context, s *session, _ []string) error {
			return listAll(p, "account", s.engine.Accounts(ctx), viewAccount,
				[]string{"ACCOUNT", "EMAIL", "TIME ZONE", "METHOD", "CREATED"}, func(a *billing.Account) []any {
					return []any{a.ID, a.Email, viewAccount(a).text("time_zone"), a.Method, a.Created}
				})
		})
}

func (p *program) accountUpdate() *cobra.Command {
	var email, zone string
	var change engine.AccountChange
	c := p.storeLeaf("update ACCOUNT", "Change an account's address or time zone, and every copy of it", need{},
		func(ctx context.Context, s *session, args []string) error {
			a, err := s.engine.UpdateAccount(ctx, args[0], change)
			return p.showAccount(a, err, args[0], "updated")
		})
	c.Long = `Change an account's address, on its subscriptions and receipts too, or its time zone, on
its subscriptions too: it decides what day it is for them from now on.`
	c.Flags().StringVar(&email, "email", "", "the new `ADDRESS`")
	c.Flags().StringVar(&zone, "time-zone", "", "the new IANA `NAME`")
	return checked(c, func([]string) error {
		if c.Flags().Changed("email") {
			change.Email = &email
		}
		if c.Flags().Changed("time-zone") {
			change.TimeZone = &zone
		}
		if change == (engine.AccountChange{}) {
			return usagef("%s: nothing to change: give a flag", p.command)
		}
		return checkZone(zone, change.TimeZone != nil)
	})
}
