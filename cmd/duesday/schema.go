package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/schema/cloudformation"
	"github.com/duesday/duesday/internal/schema/iam"
	"github.com/duesday/duesday/internal/schema/workbench"
)

func prefixFlag(c *cobra.Command, prefix *string) {
	c.Flags().StringVar(prefix, "prefix", schema.DefaultPrefix, "`TEXT` that the name of every table begins with")
}

// namedTables returns the tables with the prefix, or an error about an invalid one.
func namedTables(prefix string) (schema.Tables, error) {
	t := schema.New(prefix)
	if prefix == "" {
		return t, usagef("--prefix is empty: want letters, digits and _ . -, such as %s", schema.DefaultPrefix)
	}
	if err := t.CheckNames(); err != nil {
		return t, usagef("--prefix %q: %w", prefix, err)
	}
	return t, nil
}

func (p *program) workbenchCommand() *cobra.Command {
	var prefix, csvTable string
	c := leaf("nosql-workbench", "Print a NoSQL Workbench model of all tables, with sample data",
		func(context.Context, []string) error {
			t, err := namedTables(prefix)
			if err != nil {
				return err
			}
			if csvTable == "" {
				return workbench.Write(p.stdout, t)
			}
			if p.cfg.JSON {
				return usagef("--csv prints CSV: leave out --json")
			}
			d, err := described(t, prefix, csvTable)
			if err != nil {
				return err
			}
			return workbench.WriteCSV(p.stdout, d)
		})
	prefixFlag(c, &prefix)
	c.Flags().StringVar(&csvTable, "csv", "",
		"print the sample data of this `TABLE` as CSV, with or without the prefix in its name")
	return c
}

func described(t schema.Tables, prefix, name string) (schema.Description, error) {
	var names []string
	for _, d := range t.Describe() {
		if name == d.Table.Name || prefix+name == d.Table.Name {
			return d, nil
		}
		names = append(names, strings.TrimPrefix(d.Table.Name, prefix))
	}
	return schema.Description{}, usagef("--csv %q: there is no such table; there are %s", name, strings.Join(names, ", "))
}

func (p *program) cloudformationCommand() *cobra.Command {
	var prefix string
	var s cloudformation.Settings
	c := leaf("cloudformation", "Print an AWS CloudFormation template of the tables that store create makes",
		func(context.Context, []string) error {
			if _, err := namedTables(prefix); err != nil {
				return err
			}
			return cloudformation.Write(p.stdout, prefix, s)
		})
	prefixFlag(c, &prefix)
	c.Flags().BoolVar(&s.Provisioned, "provisioned", false,
		"provisioned capacity with autoscaling, 5 units, 1 to 10 at 70 %, instead of on demand")
	c.Flags().BoolVar(&s.DeletionProtection, "deletion-protection", false,
		"refuse to delete a table until this is switched off")
	c.Flags().BoolVar(&s.PointInTimeRecovery, "point-in-time-recovery", false,
		"keep continuous backups of the last 35 days")
	return c
}

func (p *program) iamCommand() *cobra.Command {
	var o iam.Options
	var prefix string
	c := leaf("iam ["+strings.Join(iam.Names(), "|")+"]",
		"Print AWS IAM policies: the published one and least-privilege ones",
		func(_ context.Context, args []string) error { return p.printPolicies(o, args) })
	c.Args = cobra.MaximumNArgs(1)
	prefixFlag(c, &prefix)
	c.Flags().StringVar(&o.Account, "account", "123456789012", "`NUMBER` of the AWS account, 12 digits")
	c.Flags().StringVar(&o.Region, "region", "*", "`REGION` such as eu-west-1, or * for all")
	c.Flags().StringVar(&o.RecurringTable, "recurring-table", "",
		"`NAME` of the recurring-payments table, if it has one of its own")
	return checked(c, func([]string) (err error) {
		if c.Flags().Changed("prefix") {
			o.Prefix = prefix
			_, err = namedTables(prefix)
		}
		return err
	})
}

// printPolicies prints the policy of the argument, or an object with all of them.
func (p *program) printPolicies(o iam.Options, args []string) error {
	all := make(map[string]iam.Policy)
	names := args
	if len(args) == 0 {
		names = iam.Names()
	}
	for _, name := range names {
		policy, err := iam.New(name, o)
		if err != nil {
			return &usageError{err}
		}
		all[name] = policy
	}
	if len(args) > 0 {
		return p.printJSON(all[args[0]])
	}
	return p.printJSON(all)
}
