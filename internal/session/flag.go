package session

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/mail"
	"github.com/duesday/duesday/internal/screen"
)

const yearsAhead = 10

// Walkable returns a UsageError if the flag's date is years ahead: a job would walk there, day by day, for
// minutes.
func (p *Program) Walkable(flag string, d civil.Date) error {
	if last := civil.Of(p.Now().UTC().AddDate(yearsAhead, 0, 0)); d.After(last) {
		return screen.Usagef("--%s must be %s or earlier, %d years from today (got %s)", flag, last, yearsAhead, d)
	}
	return nil
}

// A BusinessDay is the flag --date of a run or a request, with its --ahead.
type BusinessDay struct {
	screen.Flag[civil.Date]
	ahead bool
}

// Flags adds --date with its usage, and --ahead.
func (d *BusinessDay) Flags(f *pflag.FlagSet, usage string) {
	d.Flag = screen.DateFlag()
	f.Var(&d.Flag, "date", usage)
	f.BoolVar(&d.ahead, "ahead", false, "accept a --date that has not begun yet")
}

// AsOfRun describes --date of a request.
const AsOfRun = "business day, as for a run (default: today)"

// firstZone is how far the time zone in which a day begins first is ahead of UTC.
const firstZone = 14 * time.Hour

// On returns the engine for the business day. It refuses one that has begun nowhere on earth by the
// session's clock, unless --ahead accepts it: periods would be charged or ended before their day.
func (s *Session) On(d *BusinessDay) (*engine.Engine, error) {
	if last := civil.Of(s.Now().UTC().Add(firstZone)); !d.ahead && d.Value.After(last) {
		return nil, screen.Usagef("--date %s has not begun in any time zone (it is %s), so periods would be charged or ended before their "+
			"day; add --ahead if you intend that", d, screen.Stamp(s.Now()))
	}
	return s.Engine.On(d.Value), nil
}

// LocaleFlag adds --locale, which CheckLocale checks.
func LocaleFlag(c *cobra.Command, locale *string) {
	c.Flags().StringVar(locale, "locale", "", "`LANGUAGE` of the account's mail, such as pt-BR: one of "+
		strings.Join(mail.Languages(), ", ")+"; mail in any other language is sent in English")
}

// CheckLocale returns an error if the locale is neither empty nor a language tag.
func CheckLocale(locale string) error {
	if locale == "" {
		return nil
	}
	return billing.CheckLocale(locale)
}
