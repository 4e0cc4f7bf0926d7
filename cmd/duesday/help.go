package main

import (
	"cmp"
	"context"
	_ "embed" // of help.txt
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/command/bookkeeping"
	"github.com/duesday/duesday/internal/command/rehearsal"
	"github.com/duesday/duesday/internal/command/runs"
	"github.com/duesday/duesday/internal/command/sales"
	"github.com/duesday/duesday/internal/command/serving"
	"github.com/duesday/duesday/internal/command/storing"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/manual"
	"github.com/duesday/duesday/internal/session"
)

func (p *program) commands() []*cobra.Command {
	return slices.Concat(bookkeeping.Commands(p.Program), runs.Commands(p.Program), sales.Commands(p.Program),
		serving.Commands(p.Program), storing.Commands(p.Program), rehearsal.Commands(p.Program, serving.Pages(p.Program)), []*cobra.Command{
			session.Leaf("version", p.showVersion), p.manCommand(),
			{Use: "flags"}, // a topic of the help
		})
}

// setHelp has the root's help end with its text, and the topic flags list the global flags.
func setHelp(root *cobra.Command) {
	const inherited, end = "{{if .HasAvailableInheritedFlags}}", "{{end}}"
	usual := root.UsageTemplate()
	if before, rest, found := strings.Cut(usual, inherited); found {
		if _, after, closed := strings.Cut(rest, end); closed {
			usual = before + inherited + "\n\nGlobal flags, such as --store and --json: {{.Root.Name}} help flags" + end + after
		}
	}
	root.SetUsageTemplate("{{if .HasParent}}" + usual + "{{else}}See: {{.Name}} help\n{{end}}")
	root.SetHelpTemplate(`{{with or .Long .Short}}{{trimTrailingWhitespaces .}}
{{end}}{{if eq .Name "flags"}}
{{.Root.PersistentFlags.FlagUsages}}{{else if .HasParent}}
{{.UsageString}}{{end}}`)
}

// help.txt has the texts of the commands: a section begins with == and the path of its command,
// followed by its short text; an example begins with $. A command without one has its path for it.
//
//go:embed help.txt
var helpText string

// helpTexts returns the sections of help.txt by the path of their command.
func helpTexts() map[string]string {
	texts := map[string]string{}
	for section := range strings.SplitSeq("\n"+helpText, "\n== ") {
		path, text, _ := strings.Cut(section, "\n")
		texts[path] = text
	}
	return texts
}

// finish completes the texts and the completion of c and of every command below it.
func (p *program) finish(c *cobra.Command, texts map[string]string) {
	for _, child := range c.Commands() {
		p.finish(child, texts)
	}
	short, text, _ := strings.Cut(texts[c.CommandPath()], "\n")
	var long strings.Builder
	var examples strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		if example, ok := strings.CutPrefix(line, "$ "); ok {
			examples.WriteString("\n  " + example)
		} else {
			long.WriteString(line + "\n")
		}
	}
	c.Short, c.Long = short, cmp.Or(c.Long, strings.TrimSpace(long.String()))
	if c.Example = strings.TrimPrefix(examples.String(), "\n"); c.Example == "" && !c.HasSubCommands() {
		c.Example = "  " + c.CommandPath()
	}
	if c.ValidArgsFunction == nil && c.ValidArgs == nil {
		c.ValidArgsFunction = p.completion(c.Use)
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if values := valuesOf(f); values != nil {
			// the flag is there
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	})
}

// valuesOf returns the values of a flag; nil if it takes any.
func valuesOf(f *pflag.Flag) []string {
	if form := f.Value.Type(); strings.Contains(form, "|") { // of a screen.ChoiceFlag
		return strings.Split(strings.ToLower(form), "|")
	}
	switch f.Name {
	case "log-level":
		return []string{"debug", "info", "warn", "error"}
	case "log-format":
		return []string{"text", "json"}
	case "store":
		return []string{"pebble:./duesday-data", "dynamodb:?region=", "mem:"}
	case "processor":
		return []string{"stripe", config.DefaultProcessor}
	case "interval":
		return []string{"weekly", "monthly", "quarterly", "yearly"}
	}
	return nil
}

// The bounds of a completion: it must answer at once, in a book of any size.
const (
	completedRows = 2000 // read
	completedIDs  = 50   // offered
)

// completion returns how the arguments of a command are completed, by its usage.
func (p *program) completion(use string) cobra.CompletionFunc {
	_, arguments, _ := strings.Cut(use, " ")
	switch word, _, _ := strings.Cut(arguments, " "); word {
	case "ACCOUNT/SUBSCRIPTION":
		return completeIDs(p, (*engine.Engine).Subscriptions, func(s *billing.Subscription) string { return s.Name.String() })
	case "ACCOUNT", "[ACCOUNT]", "ACCOUNT[/SUBSCRIPTION]", "[ACCOUNT[/SUBSCRIPTION]]":
		return completeIDs(p, (*engine.Engine).Accounts, func(a *billing.Account) string { return a.ID })
	case "FILE":
		return nil // the shell completes file names
	}
	return cobra.NoFileCompletions
}

// completeIDs offers the first ids of an embedded store with the word as prefix. It offers none
// if another process has the store open: a completion waits for nobody.
func completeIDs[T any](p *program, all func(*engine.Engine, context.Context) iter.Seq2[T, error],
	id func(T) string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
		var err error
		if p.Config, err = config.New(p.Flag, p.Setting); err != nil || len(args) > 0 || session.FolderOf(p.Config.Store) == "" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		_ = p.With(cmd.Context(), session.Need{Read: true}, func(s *session.Session) error { // a failure offers nothing
			rows := 0
			for v, err := range all(s.Engine, cmd.Context()) {
				if rows++; err != nil || rows > completedRows || len(found) >= completedIDs {
					return err
				}
				if strings.HasPrefix(id(v), word) {
					found = append(found, id(v))
				}
			}
			return nil
		})
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// manCommand writes the man pages, for packages.
func (p *program) manCommand() (c *cobra.Command) {
	c = session.Leaf("man FOLDER", func(_ context.Context, args []string) error {
		folder := p.Path(args[0])
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		pages := manual.Pages(c.Root(), session.BuildVersion().Number)
		for name, page := range pages {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(page), 0o644); err != nil {
				return err
			}
		}
		p.Say("%d man pages were written to %s", len(pages), args[0])
		return nil
	})
	c.Args, c.Hidden = cobra.ExactArgs(1), true
	return c
}
