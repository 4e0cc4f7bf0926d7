package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/capacity/estimate"
)

// measuredForCapacity is how many subscriptions the figures per period are measured with. More
// give the same write units, and read units that differ by the rounding of pages.
const measuredForCapacity = 200

// maxItemBytes keeps a subscription within an item of DynamoDB.
const maxItemBytes = 300_000

func (p *program) capacityCommand() *cobra.Command {
	var o estimate.PeakOptions
	measured := estimate.Options{Subscriptions: measuredForCapacity}
	var share shareFlag
	c := &cobra.Command{
		Use:   "capacity",
		Short: "Compute the units, hours and shards of a book's peak day on DynamoDB",
		Long: `Computes what the busiest day of a book consumes on DynamoDB, how long it takes at
the processor's rate, and how many shards a date needs so that no index partition
is throttled. The figures per period are measured on the engine first, over a store
in memory. AWS is not asked.`,
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Share = share.value
			if err := checkPeak(cmd, o); err != nil {
				return err
			}
			if measured.ItemBytes < 0 || measured.ItemBytes > maxItemBytes {
				return usagef("--item-bytes %d: want 0 to %d", measured.ItemBytes, maxItemBytes)
			}
			costs, err := estimate.Measure(cmd.Context(), measured)
			if err != nil {
				return fmt.Errorf("measuring units: %w", err)
			}
			return p.printPeak(estimate.PlanPeak(costs, o), o, costs.SubscriptionBytes())
		},
	}
	f := c.Flags()
	f.IntVar(&o.Subscriptions, "subscriptions", 0, "`N` subscriptions in the book (required)")
	f.Var(&share, "peak-share", "`SHARE` of them due on the busiest day, such as 0.2 or 20% (required)")
	f.Float64Var(&o.Hours, "hours", 0,
		"`H` hours in which that day shall be done (default as long as the processor takes)")
	f.Float64Var(&o.ChargeRate, "charge-rate", 25, "`R` charges a second that the processor allows")
	f.IntVar(&measured.ItemBytes, "item-bytes", 0,
		"`BYTES` of a subscription between its payments (default the size of an ordinary one)")
	return c
}

func checkPeak(cmd *cobra.Command, o estimate.PeakOptions) error {
	const most = 10_000_000_000
	finite := func(x float64) bool { return x > 0 && !math.IsInf(x, 0) } // false for NaN
	switch {
	case !cmd.Flags().Changed("subscriptions"):
		return usagef("--subscriptions is missing: how many are in the book?")
	case o.Subscriptions < 1 || o.Subscriptions > most:
		return usagef("--subscriptions %d: want 1 to %d", o.Subscriptions, most)
	case !cmd.Flags().Changed("peak-share"):
		return usagef("--peak-share is missing: which share of the book is due on the busiest day? 0.2 or 20%%, for example")
	case math.Round(float64(o.Subscriptions)*o.Share) < 1:
		return usagef("--peak-share %v: not one of %d subscriptions would be due", o.Share, o.Subscriptions)
	case cmd.Flags().Changed("hours") && (!finite(o.Hours) || o.Hours > 24):
		return usagef("--hours %v: want more than 0 and at most 24, the next day comes then", o.Hours)
	case !finite(o.ChargeRate) || o.ChargeRate > 1_000_000:
		return usagef("--charge-rate %v: want charges a second, more than 0 and at most 1000000", o.ChargeRate)
	}
	return nil
}

// printPeak shows the sums, one a line.
func (p *program) printPeak(peak *estimate.Peak, o estimate.PeakOptions, itemBytes int) error {
	if p.cfg.JSON {
		return p.object(peak)
	}
	t := newTable(p.stdout, "what", "value", "how")
	for _, s := range peak.Sums {
		t.row(s.What, estimate.Number(s.Value), s.How)
	}
	if err := t.flush(); err != nil {
		return err
	}
	p.say("\nMeasured on %d subscriptions of %d bytes; each is taken to be due once a month, reminded and mailed.",
		measuredForCapacity, itemBytes)
	if peak.Shards > billing.MaxShards {
		p.say("This does not fit: a store has %d shards per date at most.", billing.MaxShards)
	}
	if peak.RateNeeded() > o.ChargeRate {
		p.say("This does not fit: the processor has to allow %s charges a second, not %s.",
			estimate.Number(math.Ceil(peak.RateNeeded())), estimate.Number(o.ChargeRate))
	}
	return nil
}

// A shareFlag takes a share of a whole: 0.2 or 20%.
type shareFlag struct {
	value float64
	text  string
}

var _ pflag.Value = (*shareFlag)(nil)

// Set implements pflag.Value.
func (s *shareFlag) Set(text string) error {
	digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v > 0 && v <= 1) { // so that NaN fails too
		return usagef("want a share above 0 and at most 1, such as 0.2 or 20%%")
	}
	s.value, s.text = v, text
	return nil
}

func (s *shareFlag) String() string { return s.text }

// Type implements pflag.Value.
func (s *shareFlag) Type() string { return "SHARE" }
