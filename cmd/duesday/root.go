package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitPerson = screen.ExitPerson
	exitDamage = 4 // store.ErrDamaged
)

func (p *program) run(ctx context.Context, args []string) (code int) {
	root := p.root()
	root.SetArgs(args)
	root.SetIn(p.stdin)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if flushing := p.Out.Flush(); err == nil && flushing != nil {
		err = fmt.Errorf("writing the output: %w", flushing)
	}
	if err == nil {
		return p.Code
	}
	if !p.working { // flags may not have been read to the end
		i := slices.IndexFunc(args, func(arg string) bool { return arg == "--" || arg == "--json" })
		p.AsJSON = p.AsJSON || i >= 0 && args[i] == "--json"
		p.LogJSON = cmp.Or(p.flag("log-format"), p.env("DUESDAY_LOG_FORMAT")) == "json"
		err = screen.Invalid(err)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted; work that had begun is recorded, and the next run continues from there")
	}
	return p.fail(err, cmd.CommandPath())
}

func (p *program) fail(err error, command string) int {
	p.Problem("error", screen.ErrorColour, secret.Clean(err.Error()))
	if errors.Is(err, store.ErrDamaged) {
		return exitDamage
	}
	_, usage := errors.AsType[*screen.UsageError](err)
	if _, wrong := errors.AsType[*field.Error](err); !usage && !wrong {
		return exitFailed
	}
	if !p.AsJSON && !p.LogJSON {
		fmt.Fprintf(p.Err, "see %s --help\n", command)
	}
	return exitUsage
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "duesday",
		Version:       buildVersion().text(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			p.command = cmd.CommandPath()
			if p.cfg, err = config.New(p.flag, p.setting); err != nil {
				return screen.Invalid(err)
			}
			p.LogJSON = p.cfg.LogJSON
			if err = p.cfg.Stripe.Key.Read(); err != nil { // only then is it known whether the processor is a live one
				return screen.Invalid(err)
			}
			text := p.env(config.EnvClock)
			if text == processorClock && cmd.Name() == stripeFakeName {
				text = "" // the fake is the processor
			}
			return p.setClock(cmd.Context(), config.EnvClock, text)
		},
	}
	f := root.PersistentFlags()
	for _, flag := range config.Flags() {
		f.String(flag.Name, "", flag.Help())
	}
	f.BoolVar(&p.AsJSON, "json", false, "print JSON for programs")
	p.flag = func(name string) string { return f.Lookup(name).Value.String() }
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return screen.Invalid(err) })
	root.SetVersionTemplate("duesday {{.Version}}\n")
	setHelp(root)
	root.AddCommand(p.commands()...)
	p.finish(root, helpTexts())
	p.noteWork(root)
	return root
}

// noteWork makes every command note its beginning: errors before it are invalid usage, also cobra's.
func (p *program) noteWork(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		p.noteWork(c)
	}
	if do := cmd.RunE; do != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			p.working = true
			return do(cmd, args)
		}
	}
}

// group is a command with subcommands and no action.
func group(name string, commands ...*cobra.Command) *cobra.Command {
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

// leaf is a command with an action. It takes the arguments that its usage names outside of flags.
func leaf(use string, do func(ctx context.Context, args []string) error) *cobra.Command {
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
	return &cobra.Command{Use: use, Args: want(names...),
		RunE: func(cmd *cobra.Command, args []string) error { return do(cmd.Context(), args) }}
}

// storeLeaf is a leaf that works on the open store.
func (p *program) storeLeaf(use string, n need,
	do func(ctx context.Context, s *session, args []string) error) *cobra.Command {
	return leaf(use, func(ctx context.Context, args []string) error {
		return p.with(ctx, n, func(s *session) error { return do(ctx, s, args) })
	})
}

// checked has the command refuse invalid usage before it opens anything.
func checked(c *cobra.Command, check func(args []string) error) *cobra.Command {
	do := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := check(args); err != nil {
			return err
		}
		return do(cmd, args)
	}
	return c
}

func required(c *cobra.Command, flags ...string) *cobra.Command {
	for _, name := range flags {
		if err := c.MarkFlagRequired(name); err != nil {
			panic(err) // unreachable: the command has the flag
		}
	}
	return c
}

// want requires exactly the named arguments, and allows more of a last one such as "EVENT...".
func want(names ...string) cobra.PositionalArgs {
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

// notFound gives store.ErrNotFound the name of the missing item.
func notFound(err error, what string) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no %s", what)
	}
	return err
}
