package bookkeeping

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/lookup"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/session"
)

func accountFlag(c *cobra.Command, account *string) {
	c.Args = cobra.MaximumNArgs(1)
	c.Flags().StringVar(account, "account", "", "`ACCOUNT`, as an alternative to the argument")
}

// accountArgument sets the account from the argument, unless the flag --account sets it.
func accountArgument(account *string, args []string) error {
	if len(args) == 1 {
		if *account != "" && *account != args[0] {
			return screen.Usagef("the argument and --account name two accounts: %q and %q", args[0], *account)
		}
		*account = args[0]
	}
	if *account == "" {
		return nil
	}
	return billing.CheckID("account", *account)
}

// A listFilter holds the flags that filter a list of subscriptions or accounts.
type listFilter struct {
	email, sku, customer string
	status               screen.Flag[billing.Status]
}

func (f *listFilter) flags(c *cobra.Command, noun string) {
	f.status = screen.ChoiceFlag(billing.Active, billing.Paused, billing.PastDue, billing.ParkedState, billing.CanceledSub,
		billing.Completed)
	c.Flags().StringVar(&f.email, "email", "", "email `ADDRESS` to look for, ignoring case")
	c.Flags().StringVar(&f.sku, "sku", "", "only "+noun+" this `SKU`")
	c.Flags().Var(&f.status, "status", "only "+noun+" this status")
}

func (f *listFilter) hasEmail(email string) bool {
	return f.email == "" || strings.EqualFold(email, f.email)
}

func (f *listFilter) subscription(s *billing.Subscription) bool {
	return (f.sku == "" || s.SKU == f.sku) && (f.status.Value == "" || s.Status == f.status.Value)
}

// subscriptions yields the subscriptions that fit: of the account, if it is not empty. It reads the lookup
// rows, or scans a store in which they are not complete yet.
func (f *listFilter) subscriptions(ctx context.Context, s *session.Session, account string) (iter.Seq2[*billing.Subscription, error], error) {
	var all iter.Seq2[*billing.Subscription, error]
	switch err := lookup.Ready(ctx, s.Engine.Records); {
	case account != "":
		all = s.Engine.GetSubscriptionsByAccount(ctx, account)
	case f.sku+f.status.Text+f.email == "", errors.Is(err, lookup.ErrIncomplete):
		all = s.Engine.Subscriptions(ctx)
	case err != nil:
		return nil, err
	default:
		return lookup.Subscriptions(ctx, s.Engine.Records, lookup.Filter{Status: f.status.Value, SKU: f.sku, Email: f.email}, ""), nil
	}
	return sequence.Filter(all, func(s *billing.Subscription) bool { return f.hasEmail(s.Email) && f.subscription(s) }), nil
}

// listed yields the accounts with the address or customer, or if neither is given, all accounts.
func (f *listFilter) listed(ctx context.Context, s *session.Session) iter.Seq2[*billing.Account, error] {
	at, customer, connected := strings.Cut(f.customer, "/")
	if !connected {
		at, customer = "", f.customer
	}
	p := processor.Payer{At: at, Customer: customer}
	all := s.Engine.Accounts(ctx)
	if f.email+f.customer != "" && lookup.Ready(ctx, s.Engine.Records) == nil {
		all = lookup.Accounts(ctx, s.Engine.Records, f.email, p, "")
	}
	return sequence.Filter(all, func(a *billing.Account) bool {
		return f.hasEmail(a.Email) && (f.customer == "" || a.Payer.At == p.At && a.Payer.Customer == p.Customer)
	})
}

// accounts yields the accounts with the email address and customer. If the filter has a SKU or status, it yields
// only accounts that have a subscription with this SKU or status.
func (f *listFilter) accounts(ctx context.Context, p *program, s *session.Session) iter.Seq2[*billing.Account, error] {
	return func(yield func(*billing.Account, error) bool) {
		for a, err := range f.listed(ctx, s) {
			keep := true
			if err == nil && f.sku+f.status.Text != "" {
				keep, err = billing.AnyItem(sequence.Filter(screen.Readable(p.Screen, s.Engine.GetSubscriptionsByAccount(ctx, a.ID)), f.subscription))
			}
			if (keep || err != nil) && !yield(a, err) {
				return
			}
		}
	}
}
