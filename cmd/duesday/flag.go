package main

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/screen"
)

// yearsAhead bounds a date to walk to: a job would walk to a mistyped year, day by day, for minutes.
const yearsAhead = 10

func (p *program) walkable(flag string, d civil.Date) error {
	if last := civil.Of(p.now().UTC().AddDate(yearsAhead, 0, 0)); d.After(last) {
		return screen.Usagef("--%s must be %s or earlier, %d years from today (got %s)", flag, last, yearsAhead, d)
	}
	return nil
}

// A businessDay is the flag --date of a run or a request, with its --ahead.
type businessDay struct {
	screen.Flag[civil.Date]
	ahead bool
}

func (d *businessDay) flags(f *pflag.FlagSet, usage string) {
	d.Flag = screen.DateFlag()
	f.Var(&d.Flag, "date", usage)
	f.BoolVar(&d.ahead, "ahead", false, "accept a --date that has not begun yet")
}

// asOfRun describes --date of a request.
const asOfRun = "business day, as for a run (default: today)"

// firstZone is how far the time zone in which a day begins first is ahead of UTC.
const firstZone = 14 * time.Hour

// on returns the engine for the business day. It refuses one that has begun nowhere on earth by the
// session's clock, unless --ahead accepts it: periods would be charged or ended before their day.
func (s *session) on(d *businessDay) (*engine.Engine, error) {
	if last := civil.Of(s.now().UTC().Add(firstZone)); !d.ahead && d.Value.After(last) {
		return nil, screen.Usagef("--date %s has not begun in any time zone (it is %s), so periods would be charged or ended before their "+
			"day; add --ahead if you intend that", d, screen.Stamp(s.now()))
	}
	return s.engine.On(d.Value), nil
}

func accountFlag(c *cobra.Command, account *string) {
	c.Args = cobra.MaximumNArgs(1)
	c.Flags().StringVar(account, "account", "", "`ACCOUNT`, as an alternative to the argument")
}

// accountArgument takes the account from the argument, unless --account has it.
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

// ordered adds --limit and --sort to a list, which can be sorted by these columns.
func ordered(c *cobra.Command, o *screen.ListOrder, by ...string) *cobra.Command {
	o.Flags(c, by...)
	return checked(c, func([]string) error { return o.Check() })
}

// A listFilter has the flags that narrow a list of subscriptions or accounts.
type listFilter struct {
	email, sku string
	status     screen.Flag[billing.Status]
}

func (f *listFilter) flags(c *cobra.Command, noun string) {
	f.status = screen.ChoiceFlag(billing.Active, billing.Paused, billing.PastDue, billing.ParkedState, billing.CanceledSub,
		billing.Completed)
	c.Flags().StringVar(&f.email, "email", "", "only those with this email `ADDRESS`, ignoring case")
	c.Flags().StringVar(&f.sku, "sku", "", "only "+noun+" this `SKU`")
	c.Flags().Var(&f.status, "status", "only "+noun+" this status")
}

func (f *listFilter) hasEmail(email string) bool {
	return f.email == "" || strings.EqualFold(email, f.email)
}

func (f *listFilter) subscription(s *billing.Subscription) bool {
	return (f.sku == "" || s.SKU == f.sku) && (f.status.Value == "" || s.Status == f.status.Value)
}

// accounts yields the accounts with the address and, for a SKU or status, with a subscription of it.
func (f *listFilter) accounts(ctx context.Context, p *program, s *session) iter.Seq2[*billing.Account, error] {
	return func(yield func(*billing.Account, error) bool) {
		for a, err := range s.engine.Accounts(ctx) {
			keep := err != nil || f.hasEmail(a.Email)
			if keep && err == nil && f.sku+f.status.Text != "" {
				keep, err = billing.AnyItem(screen.Filtered(screen.Readable(p.Screen, s.engine.GetSubscriptionsByAccount(ctx, a.ID)), f.subscription))
			}
			if (keep || err != nil) && !yield(a, err) {
				return
			}
		}
	}
}
