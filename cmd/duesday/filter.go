package main

import (
	"context"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
)

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
