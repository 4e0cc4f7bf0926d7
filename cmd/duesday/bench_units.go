package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/bench"
)

func (p *program) benchUnitsCommand() *cobra.Command {
	var o bench.UnitOptions
	c := &cobra.Command{
		Use:   "units",
		Short: "Read and write units of DynamoDB per paid period, reminder and due row",
		Long: `Runs the engine over a store in memory and counts what DynamoDB would consume, by
its documented rules. The same flags always give the same figures; no disk, no
network and no clock has a part in them. What a unit costs differs by region.`,
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			costs, err := p.measureUnits(cmd.Context(), o)
			if err != nil {
				return err
			}
			if p.cfg.JSON {
				return p.object(costs)
			}
			return p.printUnits(costs)
		},
	}
	c.Flags().IntVar(&o.Subscriptions, "subscriptions", 1000, "`N` subscriptions, all due on one day")
	itemBytesFlag(c, &o)
	return c
}

func itemBytesFlag(c *cobra.Command, o *bench.UnitOptions) {
	c.Flags().IntVar(&o.ItemBytes, "item-bytes", 0, "`BYTES` of a subscription between its payments (default what an ordinary one has)")
}

// measureUnits keeps to sizes that fit into memory and into an item.
func (p *program) measureUnits(ctx context.Context, o bench.UnitOptions) (*bench.UnitCosts, error) {
	const most, largest = 200_000, 300_000
	switch {
	case o.Subscriptions < 1 || o.Subscriptions > most:
		return nil, usagef("--subscriptions %d: want 1 to %d, they are held in memory", o.Subscriptions, most)
	case o.ItemBytes < 0 || o.ItemBytes > largest:
		return nil, usagef("--item-bytes %d: want 0 to %d", o.ItemBytes, largest)
	}
	costs, err := bench.MeasureUnits(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("measuring units: %w", err)
	}
	return costs, nil
}

// printUnits shows what each thing costs, and below it where that comes from.
func (p *program) printUnits(c *bench.UnitCosts) error {
	t := newTable(p.stdout, "", "item", "index", "bytes", "times", "write", "read")
	for _, u := range c.All() {
		t.row(u.Name, "", "", "", "", units(u.Units.Write), units(u.Units.Read))
		for _, l := range u.Lines {
			what := string(l.Op)
			if l.Transaction && l.Index == "" {
				what += ", in a transaction"
			}
			t.row("  "+l.Step+" "+what, l.Item, l.Index, units(l.Bytes), units(l.Times), units(l.Units.Write), units(l.Units.Read))
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	p.say("\nA subscription has %d bytes between its payments. On the partitions of one date a period consumes:", c.SubscriptionBytes())
	t = newTable(p.stdout, "index", "partition", "write", "read")
	for _, d := range c.Dates {
		t.row(d.Index, d.Date, units(d.Units.Write), units(d.Units.Read))
	}
	return t.flush()
}

// units writes a figure with as many decimals as it has, four at most.
func units(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
