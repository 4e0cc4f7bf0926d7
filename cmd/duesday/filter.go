package main

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
)

// A daySpan has the flags of the days of a list, both inclusive, in UTC.
type daySpan struct{ from, to valueFlag[civil.Date] }

// flags adds the flags to a list of what has happened so.
func (d *daySpan) flags(c *cobra.Command, happened string) {
	d.from, d.to = dateFlag(), dateFlag()
	c.Flags().Var(&d.from, "from", "only those that "+happened+" on this day or later")
	c.Flags().Var(&d.to, "to", "only those that "+happened+" on this day or earlier")
}

func (d *daySpan) check() error {
	if !d.to.value.IsZero() && d.to.value.Before(d.from.value) {
		return usagef("--to %s is before --from %s", d.to.value, d.from.value)
	}
	return nil
}

func (d *daySpan) has(at time.Time) bool {
	day := civil.Of(at)
	return !day.Before(d.from.value) && (d.to.value.IsZero() || !day.After(d.to.value))
}

// accountFlag adds --account, in the place of the argument of a list.
func accountFlag(c *cobra.Command, account *string) {
	c.Args = cobra.MaximumNArgs(1)
	c.Flags().StringVar(account, "account", "", "the `ACCOUNT`, instead of the argument")
}

// accountArgument takes the account from the argument, unless --account has it.
func accountArgument(account *string, args []string) error {
	if len(args) == 1 {
		if *account != "" && *account != args[0] {
			return usagef("two accounts: %q and %q", args[0], *account)
		}
		*account = args[0]
	}
	if *account == "" {
		return nil
	}
	return billing.CheckID("account", *account)
}

// A listFilter has the flags that narrow a list of subscriptions or accounts.
type listFilter struct {
	email, sku string
	status     valueFlag[billing.Status]
}

// flags adds the flags to a list of the noun.
func (f *listFilter) flags(c *cobra.Command, noun string) {
	f.status = choiceFlag(billing.Active, billing.Paused, billing.PastDue, billing.ParkedState, billing.CanceledSub,
		billing.Completed)
	c.Flags().StringVar(&f.email, "email", "", "only those with the `ADDRESS`, in any case")
	c.Flags().StringVar(&f.sku, "sku", "", "only "+noun+" this `SKU`")
	c.Flags().Var(&f.status, "status", "only "+noun+" this status")
}

func (f *listFilter) hasEmail(email string) bool {
	return f.email == "" || strings.EqualFold(email, f.email)
}

func (f *listFilter) subscription(s *billing.Subscription) bool {
	return (f.sku == "" || s.SKU == f.sku) && (f.status.value == "" || s.Status == f.status.value)
}

// accounts yields the accounts with the address and, for a SKU or status, with a subscription of it.
func (f *listFilter) accounts(ctx context.Context, p *program, s *session) iter.Seq2[*billing.Account, error] {
	return func(yield func(*billing.Account, error) bool) {
		for a, err := range s.engine.Accounts(ctx) {
			keep := err != nil || f.hasEmail(a.Email)
			if keep && err == nil && f.sku+f.status.text != "" {
				keep, err = billing.AnyItem(filtered(readable(p, s.engine.GetSubscriptionsByAccount(ctx, a.ID)), f.subscription))
			}
			if (keep || err != nil) && !yield(a, err) {
				return
			}
		}
	}
}
