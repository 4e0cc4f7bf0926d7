package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/capacity/estimate"
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
	c := leaf("nosql-workbench", func(context.Context, []string) error {
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
	c := leaf("cloudformation", func(context.Context, []string) error {
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
	c := leaf("iam ["+strings.Join(iam.Names(), "|")+"]", func(_ context.Context, args []string) error {
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
	})
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

// measuredForCapacity is how many subscriptions the figures per period are measured with. More
// give the same write units, and read units that differ by the rounding of pages.
const measuredForCapacity = 200

func (p *program) capacityCommand() *cobra.Command {
	var o estimate.PeakOptions
	measured := estimate.Options{Subscriptions: measuredForCapacity}
	share := shareFlag()
	c := leaf("capacity", func(ctx context.Context, _ []string) error {
		costs, err := estimate.Measure(ctx, measured)
		if err != nil {
			return fmt.Errorf("measuring units: %w", err)
		}
		return p.showPeak(estimate.PlanPeak(costs, o), o, costs.SubscriptionBytes())
	})
	f := c.Flags()
	f.IntVar(&o.Subscriptions, "subscriptions", 0, "`N` subscriptions in the book (required)")
	f.Var(&share, "peak-share", "`SHARE` of them due on the busiest day, such as 0.2 or 20% (required)")
	f.Float64Var(&o.Hours, "hours", 0,
		"`H` hours in which that day shall be done (default as long as the processor takes)")
	f.Float64Var(&o.ChargeRate, "charge-rate", 25, "`R` charges a second that the processor allows")
	f.IntVar(&measured.ItemBytes, "item-bytes", 0,
		"`BYTES` of a subscription between its payments (default the size of an ordinary one)")
	return checked(c, func([]string) error {
		o.Share = share.value
		if err := checkPeak(f.Changed, o); err != nil {
			return err
		}
		return between("item-bytes", measured.ItemBytes, 0, 300_000) // within an item of DynamoDB
	})
}

func checkPeak(given func(flag string) bool, o estimate.PeakOptions) error {
	const most = 10_000_000_000
	finite := func(x float64) bool { return x > 0 && !math.IsInf(x, 0) } // false for NaN
	switch {
	case !given("subscriptions"):
		return usagef("--subscriptions is missing: how many are in the book?")
	case o.Subscriptions < 1 || o.Subscriptions > most:
		return between("subscriptions", o.Subscriptions, 1, most)
	case !given("peak-share"):
		return usagef("--peak-share is missing: which share of the book is due on the busiest day? 0.2 or 20%%, for example")
	case math.Round(float64(o.Subscriptions)*o.Share) < 1:
		return usagef("--peak-share %v: not one of %d subscriptions would be due", o.Share, o.Subscriptions)
	case given("hours") && (!finite(o.Hours) || o.Hours > 24):
		return usagef("--hours %v: want more than 0 and at most 24, the next day comes then", o.Hours)
	case !finite(o.ChargeRate) || o.ChargeRate > 1_000_000:
		return usagef("--charge-rate %v: want charges a second, more than 0 and at most 1000000", o.ChargeRate)
	}
	return nil
}

func (p *program) showPeak(peak *estimate.Peak, o estimate.PeakOptions, itemBytes int) error {
	t := p.table("what", "value", "how")
	for _, s := range peak.Sums {
		t.row(s.What, estimate.Number(s.Value), s.How)
	}
	t.flush()
	p.say("\nMeasured on %d subscriptions of %d bytes; each is taken to be due once a month, reminded and mailed.",
		measuredForCapacity, itemBytes)
	if peak.Shards > billing.MaxShards {
		p.say("This does not fit: a store has %d shards per date at most.", billing.MaxShards)
	}
	if peak.RateNeeded() > o.ChargeRate {
		p.say("This does not fit: the processor has to allow %s charges a second, not %s.",
			estimate.Number(math.Ceil(peak.RateNeeded())), estimate.Number(o.ChargeRate))
	}
	return p.json(peak)
}
