package storing

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/capacity"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/schema/cloudformation"
	"github.com/duesday/duesday/internal/schema/iam"
	"github.com/duesday/duesday/internal/schema/workbench"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
)

func prefixFlag(c *cobra.Command, prefix *string) {
	c.Flags().StringVar(prefix, "prefix", schema.DefaultPrefix, "`TEXT` that every table name begins with")
}

// namedTables returns the tables with the prefix, or an error if the prefix is invalid.
func namedTables(prefix string) (schema.Tables, error) {
	t := schema.New(prefix)
	if prefix == "" {
		return t, screen.Usagef("--prefix must be letters, digits and _ . -, such as %s (got an empty value)", schema.DefaultPrefix)
	}
	if err := t.CheckNames(); err != nil {
		return t, screen.Usagef("--prefix %q: %w", prefix, err)
	}
	return t, nil
}

func (p *program) workbenchCommand() *cobra.Command {
	var prefix, csvTable string
	c := session.Leaf("nosql-workbench", func(context.Context, []string) error {
		t, err := namedTables(prefix)
		if err != nil {
			return err
		}
		if csvTable == "" {
			return workbench.Write(p.Out, t)
		}
		if p.AsJSON {
			return screen.Usagef("--csv and --json cannot be combined")
		}
		d, err := described(t, prefix, csvTable)
		if err != nil {
			return err
		}
		return workbench.WriteCSV(p.Out, d)
	})
	prefixFlag(c, &prefix)
	c.Flags().StringVar(&csvTable, "csv", "", "print this `TABLE`'s sample data as CSV; the prefix in the name is optional")
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
	return schema.Description{}, screen.Usagef("--csv must be one of the tables %s (got %q)", strings.Join(names, ", "), name)
}

func (p *program) cloudformationCommand() *cobra.Command {
	var prefix string
	var s cloudformation.Settings
	c := session.Leaf("cloudformation", func(context.Context, []string) error {
		if _, err := namedTables(prefix); err != nil {
			return err
		}
		return cloudformation.Write(p.Out, prefix, s)
	})
	prefixFlag(c, &prefix)
	c.Flags().BoolVar(&s.Provisioned, "provisioned", false, "use provisioned instead of on-demand capacity: 5 units, with autoscaling from 1 to 10 at 70 %")
	c.Flags().BoolVar(&s.DeletionProtection, "deletion-protection", false, "refuse to delete a table until this is turned off")
	c.Flags().BoolVar(&s.PointInTimeRecovery, "point-in-time-recovery", false, "keep continuous backups of the last 35 days")
	return c
}

func (p *program) iamCommand() *cobra.Command {
	var o iam.Options
	var prefix string
	c := session.Leaf("iam ["+strings.Join(iam.Names(), "|")+"]", func(_ context.Context, args []string) error {
		all := make(map[string]iam.Policy)
		names := args
		if len(args) == 0 {
			names = iam.Names()
		}
		for _, name := range names {
			policy, err := iam.New(name, o)
			if err != nil {
				return screen.Invalid(err)
			}
			all[name] = policy
		}
		if len(args) > 0 {
			return p.PrintJSON(all[args[0]])
		}
		return p.PrintJSON(all)
	})
	c.Args = cobra.MaximumNArgs(1)
	prefixFlag(c, &prefix)
	c.Flags().StringVar(&o.Account, "account", "123456789012", "12-digit `NUMBER` of the AWS account")
	c.Flags().StringVar(&o.Region, "region", "*", "AWS `REGION` such as eu-west-1, or * for all")
	c.Flags().StringVar(&o.RecurringTable, "recurring-table", "", "`NAME` of the recurring-payments table, if it has its own name")
	return session.Checked(c, func([]string) (err error) {
		if c.Flags().Changed("prefix") {
			o.Prefix = prefix
			_, err = namedTables(prefix)
		}
		return err
	})
}

func (p *program) capacityCommand() *cobra.Command {
	var o capacity.PeakOptions
	var itemBytes int
	share := screen.ShareFlag()
	c := session.Leaf("capacity", func(context.Context, []string) error {
		costs, err := capacity.Table(itemBytes)
		if err != nil {
			return fmt.Errorf("--item-bytes: %w", err)
		}
		return p.showPeak(capacity.PlanPeak(costs, o), o, costs.Bytes)
	})
	f := c.Flags()
	f.IntVar(&o.Subscriptions, "subscriptions", 0, "number `N` of subscriptions in the book (required)")
	f.Var(&share, "peak-share", "`SHARE` of the subscriptions that are due on the busiest day, such as 0.2 or 20% (required)")
	f.Float64Var(&o.Hours, "hours", 0, "`H` hours in which that day must be done (default: as long as the processor takes)")
	f.Float64Var(&o.ChargeRate, "charge-rate", 25, "`R` charges per second that the processor allows")
	f.IntVar(&itemBytes, "item-bytes", 0, "size of a subscription between its payments, in `BYTES` (default: a typical size)")
	return session.Checked(c, func([]string) error {
		o.Share = share.Value
		if err := checkPeak(f.Changed, o); err != nil {
			return err
		}
		return screen.Between("item-bytes", itemBytes, 0, 300_000) // below DynamoDB's item limit
	})
}

func checkPeak(given func(flag string) bool, o capacity.PeakOptions) error {
	const most = 10_000_000_000
	finite := func(x float64) bool { return x > 0 && !math.IsInf(x, 0) } // also false for NaN
	switch {
	case !given("subscriptions"):
		return screen.Usagef("--subscriptions is missing; set it to the number of subscriptions in the book")
	case o.Subscriptions < 1 || o.Subscriptions > most:
		return screen.Between("subscriptions", o.Subscriptions, 1, most)
	case !given("peak-share"):
		return screen.Usagef("--peak-share is missing; set it to the share of the book that is due on the busiest day, such as 0.2 or 20%%")
	case math.Round(float64(o.Subscriptions)*o.Share) < 1:
		return screen.Usagef("--peak-share %v is too small: none of %d subscriptions would be due", o.Share, o.Subscriptions)
	case given("hours") && (!finite(o.Hours) || o.Hours > 24):
		return screen.Usagef("--hours must be more than 0 and at most 24, when the next day begins (got %v)", o.Hours)
	case !finite(o.ChargeRate) || o.ChargeRate > 1_000_000:
		return screen.Usagef("--charge-rate must be more than 0 and at most 1000000 charges per second (got %v)", o.ChargeRate)
	}
	return nil
}

func (p *program) showPeak(peak *capacity.Peak, o capacity.PeakOptions, itemBytes int) error {
	t := p.Table("what", "value", "how")
	for _, s := range peak.Sums {
		t.Row(s.What, capacity.Number(s.Value), s.How)
	}
	t.Flush()
	p.Say("\nMeasured on %d subscriptions of %d bytes, assuming that each is due, reminded and mailed once a month.",
		capacity.Subscriptions, itemBytes)
	if peak.Shards > billing.MaxShards {
		p.Say("This does not fit: a store can have at most %d shards per date.", billing.MaxShards)
	}
	if peak.RateNeeded() > o.ChargeRate {
		p.Say("This does not fit: the processor must allow %s charges per second, but allows %s.",
			capacity.Number(math.Ceil(peak.RateNeeded())), capacity.Number(o.ChargeRate))
	}
	return p.JSON(peak)
}
