package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/config"
)

// groups adds the commands to the root, each to its group of the help.
func (p *program) groups(root *cobra.Command) {
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"billing", "Billing:", []*cobra.Command{p.importCommand(), p.runCommand(), p.dueCommand(), p.accountCommand(),
			p.subscriptionCommand(),
			p.receiptCommand(), p.exportCommand()}},
		{"tracking", "Tracking of Stripe:", []*cobra.Command{p.serveCommand(), p.connectCommand(), p.purchaseCommand(),
			p.paymentCommand(),
			p.eventCommand(), p.replayCommand(), p.jobCommand(), p.rebuildCommand(), p.pollCommand()}},
		{"store", "Store:", []*cobra.Command{p.storeCommand(), p.schemaCommand(), p.capacityCommand()}},
		{"operating", "Operating:", []*cobra.Command{p.verifyCommand(), p.reconcileCommand(), p.chargingCommand(),
			p.outboxCommand(), p.versionCommand()}},
		{"testing", "Trying out and testing:", []*cobra.Command{p.demoCommand(), p.sandboxCommand(), p.stripeFakeCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID("operating")
	root.SetCompletionCommandGroupID("operating")
}

// usageTemplate is cobra's, but for global flags, which the help of the root alone lists.
func usageTemplate(usual string) string {
	const begin, end = "{{if .HasAvailableInheritedFlags}}", "{{end}}"
	before, rest, found := strings.Cut(usual, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return usual
	}
	return before + begin + "\n\nGlobal flags, such as --store and --json: {{.Root.Name}} --help" + end + after
}

// finish completes every command below c: its examples, and the completion of its arguments and
// flags.
func (p *program) finish(c *cobra.Command) {
	for _, child := range c.Commands() {
		p.finish(child)
	}
	_, path, _ := strings.Cut(c.CommandPath(), " ")
	if lines := examples[path]; lines != "" {
		c.Example = indented(lines)
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

// indented returns the lines as the help shows examples.
func indented(lines string) string {
	return "  duesday " + strings.ReplaceAll(lines, "\n", "\n  duesday ")
}

// valuesOf returns the values of a flag; nil if it takes any.
func valuesOf(f *pflag.Flag) []string {
	if choice, ok := f.Value.(*choiceFlag); ok {
		return choice.choices
	}
	switch f.Name {
	case "log-level":
		return []string{"debug", "info", "warn", "error"}
	case "store":
		return []string{"pebble:./duesday-data", "dynamodb:?region=", "mem:"}
	case "processor":
		return []string{"stripe", config.DefaultProcessor}
	case "interval":
		return []string{"weekly", "monthly", "quarterly", "yearly"}
	case "ended-by":
		return endedByStatuses()
	}
	return nil
}
