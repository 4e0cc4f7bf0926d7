package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/command/rehearsal"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store"
)

func (p *program) run(ctx context.Context, args []string) (code int) {
	root := p.root()
	root.SetArgs(args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if flushing := p.Out.Flush(); err == nil && flushing != nil {
		err = fmt.Errorf("writing the output: %w", flushing)
	}
	if err == nil {
		return p.Code
	}
	if !p.Working { // flags may not have been read to the end
		i := slices.IndexFunc(args, func(arg string) bool { return arg == "--" || arg == "--json" })
		p.AsJSON = p.AsJSON || i >= 0 && args[i] == "--json"
		p.LogJSON = cmp.Or(p.Flag("log-format"), p.Env("DUESDAY_LOG_FORMAT")) == "json"
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
		return screen.ExitDamage
	}
	_, usage := errors.AsType[*screen.UsageError](err)
	if _, wrong := errors.AsType[*field.Error](err); !usage && !wrong {
		return screen.ExitFailed
	}
	if !p.AsJSON && !p.LogJSON {
		fmt.Fprintf(p.Err, "see %s --help\n", command)
	}
	return screen.ExitUsage
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "duesday",
		Version:       session.BuildVersion().Text(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			p.Command = cmd.CommandPath()
			cmd.SetContext(session.Asked(cmd.Context()))
			if p.Config, err = config.New(p.Flag, p.Setting); err != nil {
				return screen.Invalid(err)
			}
			p.LogJSON = p.Config.LogJSON
			if err = p.Config.Stripe.Key.Read(); err != nil { // only then is it known whether the processor is a live one
				return screen.Invalid(err)
			}
			text := p.Env(config.EnvClock)
			if text == session.ProcessorClock && cmd.Name() == rehearsal.StripeFakeName {
				text = "" // the fake is the processor
			}
			return p.SetClock(cmd.Context(), config.EnvClock, text)
		},
	}
	f := root.PersistentFlags()
	for _, flag := range config.Flags() {
		f.String(flag.Name, "", flag.Help())
	}
	f.BoolVar(&p.AsJSON, "json", false, "print JSON for programs")
	p.Flag = func(name string) string { return f.Lookup(name).Value.String() }
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
			p.Working = true
			return do(cmd, args)
		}
	}
}

// A program is one invocation, with its tree of commands.
type program struct{ *session.Program }

func newProgram(env func(string) string, stdin io.Reader, stdout, stderr io.Writer, now func() time.Time) *program {
	return &program{session.New(env, stdin, stdout, stderr, now)}
}
