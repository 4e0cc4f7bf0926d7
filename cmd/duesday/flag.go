package main

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
)

// A valueFlag is a pflag.Value with a form of its own; zero when it is not given.
type valueFlag[T any] struct {
	value T
	text  string // as it was given
	form  string // of the value, in the help
	parse func(text string) (T, error)
}

func (f *valueFlag[T]) Set(text string) error {
	v, err := f.parse(text)
	if err == nil {
		f.value, f.text = v, text
	}
	return err
}

func (f *valueFlag[T]) String() string { return f.text }
func (f *valueFlag[T]) Type() string   { return f.form }

// The bounds of dates. A job would walk to a mistyped year, day by day, for minutes.
const (
	firstYear  = 1970 // of every date
	yearsAhead = 10   // after the clock's today, of a date to walk to
)

func dateFlag() valueFlag[civil.Date] {
	return valueFlag[civil.Date]{form: "DATE", parse: func(text string) (civil.Date, error) {
		d, err := civil.Parse(text)
		if err == nil && d.Year() < firstYear {
			err = usagef("must be %d-01-01 or later", firstYear)
		}
		return d, err
	}}
}

// monthFlag takes a month, as its first day.
func monthFlag() valueFlag[civil.Date] {
	return valueFlag[civil.Date]{form: "MONTH", parse: func(text string) (civil.Date, error) {
		d, err := civil.Parse(text + "-01")
		if err != nil || d.Year() < firstYear {
			return d, usagef("must be a month such as 2026-01, not before %d-01", firstYear)
		}
		return d, nil
	}}
}

func (p *program) walkable(flag string, d civil.Date) error {
	if last := civil.Of(p.now().UTC().AddDate(yearsAhead, 0, 0)); d.After(last) {
		return usagef("--%s must be %s or earlier, %d years from today (got %s)", flag, last, yearsAhead, d)
	}
	return nil
}

// A businessDay is the flag --date of a run or a request, with its --ahead.
type businessDay struct {
	valueFlag[civil.Date]
	ahead bool
}

func (d *businessDay) flags(f *pflag.FlagSet, usage string) {
	d.valueFlag = dateFlag()
	f.Var(&d.valueFlag, "date", usage)
	f.BoolVar(&d.ahead, "ahead", false, "accept a --date that has not begun yet")
}

// asOfRun describes --date of a request.
const asOfRun = "business day, as for a run (default: today)"

// firstZone is how far the time zone in which a day begins first is ahead of UTC.
const firstZone = 14 * time.Hour

// on returns the engine for the business day. It refuses one that has begun nowhere on earth by the
// session's clock, unless --ahead accepts it: periods would be charged or ended before their day.
func (s *session) on(d *businessDay) (*engine.Engine, error) {
	if last := civil.Of(s.now().UTC().Add(firstZone)); !d.ahead && d.value.After(last) {
		return nil, usagef("--date %s has not begun in any time zone (it is %s), so periods would be charged or ended before their "+
			"day; add --ahead if you intend that", d, stamp(s.now()))
	}
	return s.engine.On(d.value), nil
}

// instantFlag takes a time, or a date for its beginning; UTC.
func instantFlag() valueFlag[time.Time] {
	return valueFlag[time.Time]{form: "TIME", parse: func(text string) (time.Time, error) {
		for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
			if t, err := time.Parse(layout, text); err == nil && t.Year() >= firstYear {
				return t.UTC(), nil
			}
		}
		return time.Time{}, usagef(
			"must be a time such as 2026-03-15T10:30:00Z, or a date such as 2026-03-15 for its beginning in UTC")
	}}
}

// shareFlag takes a share of a whole: 0.2 or 20%.
func shareFlag() valueFlag[float64] {
	return valueFlag[float64]{form: "SHARE", parse: func(text string) (float64, error) {
		digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
		v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if percent {
			v /= 100
		}
		if err != nil || !(v > 0 && v <= 1) { // so that NaN fails too
			return 0, usagef("must be a share above 0 and at most 1, such as 0.2 or 20%%")
		}
		return v, nil
	}}
}

// choiceFlag takes one of a few words in lower case.
func choiceFlag[T ~string](choices ...T) valueFlag[T] {
	var words []string
	for _, choice := range choices {
		words = append(words, string(choice))
	}
	return valueFlag[T]{form: strings.ToUpper(strings.Join(words, "|")), parse: func(text string) (T, error) {
		if !slices.Contains(words, text) {
			return "", usagef("must be one of %s", strings.Join(words, ", "))
		}
		return T(text), nil
	}}
}

// given returns the value of the flag; nil if the command line does not have it.
func given[T any](flags *pflag.FlagSet, name string, value T) *T {
	if !flags.Changed(name) {
		return nil
	}
	return &value
}

func between(flag string, value, least, most int) error {
	if value < least || value > most {
		return usagef("--%s must be %d to %d (got %d)", flag, least, most, value)
	}
	return nil
}

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
		return usagef("--to %s must not be before --from %s", d.to.value, d.from.value)
	}
	return nil
}

func (d *daySpan) has(at time.Time) bool {
	day := civil.Of(at)
	return !day.Before(d.from.value) && (d.to.value.IsZero() || !day.After(d.to.value))
}

func accountFlag(c *cobra.Command, account *string) {
	c.Args = cobra.MaximumNArgs(1)
	c.Flags().StringVar(account, "account", "", "`ACCOUNT`, as an alternative to the argument")
}

// accountArgument takes the account from the argument, unless --account has it.
func accountArgument(account *string, args []string) error {
	if len(args) == 1 {
		if *account != "" && *account != args[0] {
			return usagef("the argument and --account name two accounts: %q and %q", args[0], *account)
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

func (f *listFilter) flags(c *cobra.Command, noun string) {
	f.status = choiceFlag(billing.Active, billing.Paused, billing.PastDue, billing.ParkedState, billing.CanceledSub,
		billing.Completed)
	c.Flags().StringVar(&f.email, "email", "", "only those with this email `ADDRESS`, ignoring case")
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
