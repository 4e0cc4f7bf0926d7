package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/locale"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/view"
)

// Group returns a command that has only subcommands and does nothing itself.
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

// Leaf returns a command that calls do. The command accepts exactly the arguments that use names,
// apart from its flags.
func Leaf(use string, do func(ctx context.Context, args []string) error) *cobra.Command {
	var names []string
	words := strings.Fields(use)[1:]
	for i := 0; i < len(words); i++ {
		switch {
		case strings.HasPrefix(words[i], "--"):
			i++ // skip the flag's value, too
		case words[i] != "|":
			names = append(names, words[i])
		}
	}
	return &cobra.Command{Use: use, Args: Arguments(names...),
		RunE: func(cmd *cobra.Command, args []string) error { return do(cmd.Context(), args) }}
}

// StoreLeaf returns a leaf command that opens the store as n requires and passes the session to do.
func (p *Program) StoreLeaf(use string, n Need,
	do func(ctx context.Context, s *Session, args []string) error) *cobra.Command {
	return Leaf(use, func(ctx context.Context, args []string) error {
		return p.With(ctx, n, func(s *Session) error { return do(ctx, s, args) })
	})
}

// Asked returns a context whose commits belong to a call of the operating system's user.
func Asked(ctx context.Context) context.Context {
	name := "uid " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return call.With(ctx, &call.Call{Actor: "user " + name})
}

// Keyed gives the context's call the idempotency key of a flag, or none if the key is empty.
func Keyed(ctx context.Context, key string) context.Context {
	if c := call.Of(ctx); c != nil {
		c.Key = key
	}
	return ctx
}

// Checked makes the command call check, which rejects invalid usage, before it opens anything.
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

// Arguments requires exactly the named arguments. If the last name ends in "...", such as
// "EVENT...", it accepts further arguments.
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

// NotFound returns an error that names the missing item if err is store.ErrNotFound. It returns
// other errors unchanged.
func NotFound(err error, what string) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no %s", what)
	}
	return err
}

// Ordered adds the flags --limit and --sort to a list command. Users can sort the list by the given
// columns.
func Ordered(c *cobra.Command, o *screen.ListOrder, by ...string) *cobra.Command {
	o.Flags(c, by...)
	return Checked(c, func([]string) error { return o.Check() })
}

// ByFlag converts an error about an invalid field to a UsageError that names the field's flag. It
// returns other errors unchanged.
func ByFlag(err error) error {
	if e, ok := errors.AsType[*field.Error](err); ok {
		return screen.Usagef("--%s: %s", strings.ReplaceAll(e.Field, "_", "-"), e.Problem)
	}
	return err
}

const yearsAhead = 10

// Walkable returns a UsageError if the flag's date is more than yearsAhead years in the future. A
// job walks day by day, so it would need minutes to get there.
func (p *Program) Walkable(flag string, d civil.Date) error {
	if last := civil.Of(p.Now().UTC().AddDate(yearsAhead, 0, 0)); d.After(last) {
		return screen.Usagef("--%s must be %s or earlier, %d years from today (got %s)", flag, last, yearsAhead, d)
	}
	return nil
}

// A BusinessDay holds the flags --date and --ahead of a run or a request.
type BusinessDay struct {
	screen.Flag[civil.Date]
	ahead bool
}

// Flags adds the flags --date, with the given usage text, and --ahead.
func (d *BusinessDay) Flags(f *pflag.FlagSet, usage string) {
	d.Flag = screen.DateFlag()
	f.Var(&d.Flag, "date", usage)
	f.BoolVar(&d.ahead, "ahead", false, "accept a --date that has not begun yet")
}

// AsOfRun is the help text for the --date flag of commands that act on a single request.
const AsOfRun = "business day, as for a run (default: today)"

// firstZone is the UTC offset of the time zone in which each day begins first.
const firstZone = 14 * time.Hour

// On returns the engine for the business day. It returns a UsageError if the day has not begun in
// any time zone, because the engine would charge or end periods before their day. The flag --ahead
// turns this check off.
func (s *Session) On(d *BusinessDay) (*engine.Engine, error) {
	if last := civil.Of(s.Now().UTC().Add(firstZone)); !d.ahead && d.Value.After(last) {
		return nil, screen.Usagef("--date %s has not begun in any time zone (it is %s), so periods would be charged or ended before their "+
			"day; add --ahead if you intend that", d, view.Stamp(s.Now()))
	}
	return s.Engine.On(d.Value), nil
}

// LocaleFlag adds the flag --locale. CheckLocale validates its value.
func LocaleFlag(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "locale", "", "`LANGUAGE` of the account's mail, such as pt-BR: one of "+
		strings.Join(locale.Languages(), ", ")+"; mail in any other language is sent in English")
}

// CheckLocale returns an error unless the locale is empty or a language tag.
func CheckLocale(locale string) error {
	if locale == "" {
		return nil
	}
	return billing.CheckLocale(locale)
}

// ListenHost returns the host of the flag's address. If the address is invalid, it returns a
// UsageError that shows the usual address as an example.
func ListenHost(flag, address, usual string) (string, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", screen.Usagef("%s must be HOST:PORT, such as %s (got %q)", flag, usual, address)
	}
	return host, nil
}

// ListenAt listens on the flag's address. Its errors name the flag and the address.
func ListenAt(ctx context.Context, flag, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, address, err)
	}
	return l, nil
}
