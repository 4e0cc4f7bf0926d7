package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitPerson = 3 // a run is done, but something needs a person
)

// A usageError is invalid usage.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// run executes the command line and returns the exit code.
func (p *program) run(ctx context.Context, args []string) (code int) {
	root := p.root()
	root.SetArgs(args)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if flushing := p.stdout.Flush(); err == nil && flushing != nil {
		err = fmt.Errorf("writing the output: %w", flushing)
	}
	if err == nil {
		return p.code
	}
	if !p.working { // flags may not have been read to the end
		end := slices.Index(args, "--")
		if end < 0 {
			end = len(args)
		}
		p.cfg.JSON = p.flags.JSON || slices.Contains(args[:end], "--json")
		if _, ok := errors.AsType[*usageError](err); !ok {
			err = &usageError{err}
		}
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted; what had begun is recorded, and the next run goes on from there")
	}
	return p.fail(err, cmd.CommandPath())
}

// fail reports the error and returns its exit code.
func (p *program) fail(err error, command string) int {
	_, usage := errors.AsType[*usageError](err)
	if _, wrong := errors.AsType[*field.Error](err); wrong {
		usage = true
	}
	message := secret.Clean(err.Error())
	if p.cfg.JSON {
		p.problem("error", message)
	} else {
		fmt.Fprintf(p.stderr, "%s %s\n", p.painted(p.stderr, errorColour, "duesday:"), message)
		if usage {
			fmt.Fprintf(p.stderr, "see %s --help\n", command)
		}
	}
	if usage {
		return exitUsage
	}
	return exitFailed
}

// problem writes one JSON object to standard error.
func (p *program) problem(key, message string) {
	b, err := json.Marshal(map[string]string{key: message})
	if err != nil {
		b = []byte(`{"error":"unprintable"}`) // unreachable: strings have a JSON form
	}
	fmt.Fprintf(p.stderr, "%s\n", b)
}

// warn prints a warning.
func (p *program) warn(format string, args ...any) {
	message := secret.Clean(fmt.Sprintf(format, args...))
	if p.cfg.JSON {
		p.problem("warning", message)
		return
	}
	fmt.Fprintf(p.stderr, "%s %s\n", p.painted(p.stderr, warnColour, "duesday:"), message)
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "duesday",
		Short: "Take recurring payments and keep the record of them",
		Long: `Duesday takes recurring payments and keeps the record of them: import a book of
subscriptions, run the two daily jobs, and let the audit prove that every period
was charged once. Start with: duesday demo`,
		Example:       indented("demo\nimport book.csv\nrun payments\nverify"),
		Version:       buildVersion().text(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			p.command = cmd.CommandPath()
			if p.cfg, err = config.New(p.flags, p.env); err != nil {
				return &usageError{err}
			}
			return p.readKey()
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&p.flags.Store, "store", "", "`URL` of the store: pebble:DIR, dynamodb:?region=REGION or mem: (default "+
		config.DefaultStore+", or $"+config.EnvStore+")")
	f.StringVar(&p.flags.Processor, "processor", "",
		"`URL` of the payment processor: stripe, sandbox:FILE or sandbox:http://HOST:PORT (default "+config.DefaultProcessor+
			", or $"+config.EnvProcessor+")")
	f.StringVar(&p.flags.Mail, "mail", "", "`FOLDER` that mail is written to (default "+config.DefaultMail+", or $"+
		config.EnvMail+")")
	f.StringVar(&p.flags.LogLevel, "log-level", "",
		"`LEVEL` of the log on standard error: debug, info, warn or error (default "+config.DefaultLogLevel+")")
	f.StringVar(&p.flags.ReceiptMonths, "receipt-months", "",
		"`MONTHS` until a receipt expires, 0 for never (default 6, or $"+config.EnvReceiptMonths+")")
	f.StringVar(&p.flags.RetryDays, "retry-days", "",
		"`DAYS` after the first decline it is tried again on, or none (default 1,3,5,7, or $"+config.EnvRetryDays+")")
	f.StringVar(&p.flags.CatchUp, "catch-up", "",
		"`NUMBER` of missed periods charged in one run before a person is asked (default 3, or $"+config.EnvCatchUp+")")
	f.StringVar(&p.flags.ActionDays, "action-days", "",
		"`DAYS` that a customer has to authenticate a payment before it has failed, 0 for no end (default 14, or $"+
			config.EnvActionDays+")")
	f.BoolVar(&p.flags.JSON, "json", false, "print JSON, for programs")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.SetVersionTemplate("duesday {{.Version}}\n")
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
	p.groups(root)
	p.finish(root)
	p.noteWork(root)
	return root
}

// noteWork makes every command note its beginning. Errors before that are invalid usage: cobra
// refuses missing flags and arguments.
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
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			var names []string
			for _, c := range cmd.Commands() {
				names = append(names, c.Name())
			}
			if len(args) == 0 {
				return usagef("%s: which one? %s", cmd.CommandPath(), strings.Join(names, ", "))
			}
			return usagef("unknown command %q for %q: there are %s", args[0], cmd.CommandPath(), strings.Join(names, ", "))
		},
	}
	g.AddCommand(commands...)
	return g
}

// want requires exactly the named arguments.
func want(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == len(names):
			return nil
		case len(args) < len(names):
			return usagef("%s: %s is missing", cmd.CommandPath(), strings.Join(names[len(args):], " "))
		case len(names) == 0:
			return usagef("%s takes no argument, and there is %q", cmd.CommandPath(), args[0])
		}
		return usagef("%s: one argument too many: %q", cmd.CommandPath(), args[len(names)])
	}
}

// notFound gives store.ErrNotFound the name of the missing item.
func notFound(err error, what string) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no %s", what)
	}
	return err
}
