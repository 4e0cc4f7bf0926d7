package main

import (
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"

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
	share := shareFlag()
	c := leaf("capacity", "Compute the units, hours and shards of a book's peak day on DynamoDB",
		func(ctx context.Context, _ []string) error {
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
		return between("item-bytes", measured.ItemBytes, 0, maxItemBytes)
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
