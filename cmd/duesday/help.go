package main

import (
	"cmp"
	"context"
	_ "embed" // of help.txt
	"iter"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/config"
)

// groups adds the commands to the root, each to its group of the help.
func (p *program) groups(root *cobra.Command) {
	add := func(id, title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: id, Title: title})
		for _, c := range commands {
			c.GroupID = id
		}
		root.AddCommand(commands...)
	}
	add("billing", "Billing:", p.importCommand(), p.runCommand(), p.dueCommand(),
		group("account", "Create, show, list and update accounts, and set their payment methods", p.accountCreate(),
			p.accountShow(), p.accountList(), p.accountUpdate(), p.accountAttach(), p.accountCardLink()),
		group("subscription", "Create, show, list and change subscriptions", p.subscriptionCreate(),
			p.subscriptionShow(), p.subscriptionList(), p.subscriptionUpdate(),
			p.subscriptionAction("pause", "Stop charging until resume; an open period ends first",
				(*engine.Engine).Pause),
			p.subscriptionAction("resume",
				"Charge a paused or past_due subscription again, or undo cancel --at-period-end",
				(*engine.Engine).Resume), p.subscriptionCancel(), p.subscriptionCharge(),
			p.subscriptionAction("skip", "End a parked period without a charge", (*engine.Engine).SkipParked)),
		group("receipt", "List receipts, record manual payments and refund charges", p.receiptList(),
			p.receiptCreate(), p.receiptRefund()),
		group("period", "List periods that did not end paid", p.periodList()), p.reportCommand(),
		p.exportCommand())
	add("tracking", "Tracking of Stripe:", p.serveCommand(),
		group("connect", "Register the Stripe accounts of merchants, and list them", p.connectAdd(),
			p.connectList(), p.connectShow()),
		group("purchase", "Sell through Stripe, and show the results", p.purchaseCreate(),
			p.purchaseList(), p.purchaseShow()),
		group("payment", "List and show the payments of purchases", p.paymentList(), p.paymentShow()),
		group("event", "List and show the events of Stripe", p.eventList(), p.eventShow()),
		p.replayCommand(), p.jobCommand(), p.rebuildCommand(), p.pollCommand())
	add("store", "Store:", group("store", "Make, describe, adopt, copy, back up and restore a store",
		p.storeCreate(), p.storeDescribe(), p.storeDrop(), p.storeAdopt(), p.storeCopy(), p.storeBackup(),
		p.storeRestore(), p.storeCheck(), p.storeMigrate()),
		group("settings", "Show and change the settings of a store", p.settingsShow(), p.settingsSet()),
		group("schema", "Print the tables as files for other tools: NoSQL Workbench, CloudFormation, IAM",
			p.workbenchCommand(), p.cloudformationCommand(), p.iamCommand()), p.capacityCommand())
	add("operating", "Operating:", p.statusCommand(), p.verifyCommand(), p.proveCommand(), p.reconcileCommand(), p.chargingCommand(),
		p.outboxCommand(), p.mailCommand(), p.versionCommand())
	add("testing", "Trying out and testing:", p.demoCommand(), p.sandboxCommand(), p.stripeFakeCommand())
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

// help.txt has the long texts and the examples of the commands: a section begins with == and the
// path of its command, an example with $. A command without an example has its path for one.
//
//go:embed help.txt
var helpText string

// helpTexts returns the lines of help.txt by the path of their command.
func helpTexts() map[string][]string {
	texts := map[string][]string{}
	for section := range strings.SplitSeq("\n"+helpText, "\n== ") {
		path, text, _ := strings.Cut(section, "\n")
		texts[path] = strings.Split(text, "\n")
	}
	return texts
}

// finish completes c and every command below it: its texts, and the completion of its arguments and
// flags.
func (p *program) finish(c *cobra.Command, texts map[string][]string) {
	for _, child := range c.Commands() {
		p.finish(child, texts)
	}
	long, examples := "", ""
	for _, line := range texts[c.CommandPath()] {
		if example, ok := strings.CutPrefix(line, "$ "); ok {
			examples += "\n  " + example
		} else {
			long += line + "\n"
		}
	}
	c.Long = cmp.Or(c.Long, strings.TrimSpace(long))
	if c.Example = strings.TrimPrefix(examples, "\n"); c.Example == "" && !c.HasSubCommands() {
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
	if form := f.Value.Type(); strings.Contains(form, "|") { // of a choiceFlag
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
	case "ended-by":
		return endedByStatuses()
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
	case subscriptionName:
		return completeIDs(p, (*engine.Engine).Subscriptions, func(s *billing.Subscription) string { return s.Name.String() })
	case "ACCOUNT", "ACCOUNT[/SUBSCRIPTION]":
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
		if p.cfg, err = config.New(p.flag, p.env); err != nil || len(args) > 0 || folderOf(p.cfg.Store) == "" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		_ = p.with(cmd.Context(), need{read: true}, func(s *session) error { // a failure offers nothing
			rows := 0
			for v, err := range all(s.engine, cmd.Context()) {
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
