package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/test/consumption"
)

// The sizes that fit into memory and into an item.
const (
	maxUnitSubscriptions = 200_000
	maxItemBytes         = 300_000
)

func (b *benchmark) unitsCommand() *cobra.Command {
	var o consumption.Options
	c := &cobra.Command{
		Use:   "units",
		Short: "Count read and write units of DynamoDB per paid period, reminder and due row",
		Long: `Runs the engine over a store in memory and counts the units of DynamoDB by its documented
rules. The same flags always give the same figures, on every machine. Prices per unit
differ by region.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Subscriptions < 1 || o.Subscriptions > maxUnitSubscriptions {
				return fmt.Errorf("--subscriptions must be 1 to %d, because all of them are in memory (got %d)",
					maxUnitSubscriptions, o.Subscriptions)
			}
			if o.ItemBytes < 0 || o.ItemBytes > maxItemBytes {
				return fmt.Errorf("--item-bytes must be 0 to %d (got %d)", maxItemBytes, o.ItemBytes)
			}
			costs, err := consumption.Measure(cmd.Context(), o)
			switch {
			case err != nil:
				return fmt.Errorf("measuring units: %w", err)
			case b.json:
				return b.object(costs)
			}
			return b.printUnits(costs)
		},
	}
	c.Flags().IntVar(&o.Subscriptions, "subscriptions", 1000, "`N` subscriptions, all due on one day")
	c.Flags().IntVar(&o.ItemBytes, "item-bytes", 0,
		"`BYTES` of a subscription between its payments (default the size of an ordinary one)")
	return c
}

// printUnits prints the cost of each action, and below it its steps.
func (b *benchmark) printUnits(c *consumption.Costs) error {
	t := newTable(b.stdout, "", "item", "index", "bytes", "times", "write", "read")
	for _, u := range c.All() {
		t.row(u.Name, "", "", "", "", units(u.Units.Write), units(u.Units.Read))
		for _, l := range u.Lines {
			what := string(l.Op)
			if l.Transaction && l.Index == "" {
				what += ", in a transaction"
			}
			t.row("  "+l.Step+" "+what, l.Item, l.Index, units(l.Bytes), units(l.Times), units(l.Units.Write),
				units(l.Units.Read))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(b.stdout, "\nA subscription has %d bytes between its payments. On the partitions of one date a period "+
		"consumes:\n", c.SubscriptionBytes())
	t = newTable(b.stdout, "index", "partition", "write", "read")
	for _, d := range c.Dates {
		t.row(d.Index, d.Date, units(d.Units.Write), units(d.Units.Read))
	}
	return t.Flush()
}

// units writes a figure with as many decimals as it has, four at most.
func units(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
