package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/mail"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/store"
)

// Group returns a command with subcommands and no action.
func Group(name string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: name, Args: cobra.ArbitraryArgs}
	g.RunE = func(cmd *cobra.Command, args []string) error {
		var names []string
		for _, c := range cmd.Commands() {
			names = append(names, c.Name())
		}
		if len(args) == 0 {
			return screen.Usagef("%s needs a subcommand: %s", cmd.CommandPath(), strings.Join(names, ", "))
		}
		return screen.Usagef("unknown command %q for %q; available commands: %s", args[0], cmd.CommandPath(), strings.Join(names, ", "))
	}
	g.AddCommand(commands...)
	return g
}

// Leaf returns a command with an action. It takes the arguments that its usage names outside of flags.
func Leaf(use string, do func(ctx context.Context, args []string) error) *cobra.Command {
	var names []string
	words := strings.Fields(use)[1:]
	for i := 0; i < len(words); i++ {
		switch {
		case strings.HasPrefix(words[i], "--"):
			i++ // and its value
		case words[i] != "|":
			names = append(names, words[i])
		}
	}
	return &cobra.Command{Use: use, Args: Arguments(names...),
		RunE: func(cmd *cobra.Command, args []string) error { return do(cmd.Context(), args) }}
}

// StoreLeaf returns a leaf that works on the open store.
func (p *Program) StoreLeaf(use string, n Need,
	do func(ctx context.Context, s *Session, args []string) error) *cobra.Command {
	return Leaf(use, func(ctx context.Context, args []string) error {
		return p.With(ctx, n, func(s *Session) error { return do(ctx, s, args) })
	})
}

// Checked has the command refuse invalid usage before it opens anything.
func Checked(c *cobra.Command, check func(args []string) error) *cobra.Command {
	do := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := check(args); err != nil {
			return err
		}
		return do(cmd, args)
	}
	return c
}

// Required marks the flags as required.
func Required(c *cobra.Command, flags ...string) *cobra.Command {
	for _, name := range flags {
		if err := c.MarkFlagRequired(name); err != nil {
			panic(err) // unreachable: the command has the flag
		}
	}
	return c
}

// Arguments requires exactly the named arguments, and allows more of a last one such as "EVENT...".
func Arguments(names ...string) cobra.PositionalArgs {
	all := strings.Join(names, " ")
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == len(names), len(args) > len(names) && strings.HasSuffix(all, "..."):
			return nil
		case len(args) < len(names):
			missing := strings.TrimSuffix(strings.Join(names[len(args):], " "), "...")
			return screen.Usagef("%s: %s is missing", cmd.CommandPath(), missing)
		case len(names) == 0:
			return screen.Usagef("%s takes no arguments (got %q)", cmd.CommandPath(), args[0])
		}
		return screen.Usagef("%s: too many arguments (got %q)", cmd.CommandPath(), args[len(names)])
	}
}

// NotFound gives store.ErrNotFound the name of the missing item.
func NotFound(err error, what string) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no %s", what)
	}
	return err
}

// Ordered adds the flags --limit and --sort to a list, which can be sorted by these columns.
func Ordered(c *cobra.Command, o *screen.ListOrder, by ...string) *cobra.Command {
	o.Flags(c, by...)
	return Checked(c, func([]string) error { return o.Check() })
}

// ByFlag names the flag of an invalid field.
func ByFlag(err error) error {
	if e, ok := errors.AsType[*field.Error](err); ok {
		return screen.Usagef("--%s: %s", strings.ReplaceAll(e.Field, "_", "-"), e.Problem)
	}
	return err
}

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

// ListenHost returns the host of the flag's address. A UsageError shows the usual address.
func ListenHost(flag, address, usual string) (string, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", screen.Usagef("%s must be HOST:PORT, such as %s (got %q)", flag, usual, address)
	}
	return host, nil
}

// ListenAt listens at the flag's address, which its errors name.
func ListenAt(ctx context.Context, flag, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, address, err)
	}
	return l, nil
}
