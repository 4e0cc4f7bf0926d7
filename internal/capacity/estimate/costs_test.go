package estimate

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/capacity"
)

// TestMeasure holds the costs of the protocol to what docs/performance.md says: who makes it
// cheaper or dearer changes both.
func TestMeasure(t *testing.T) {
	c, err := Measure(t.Context(), Options{Subscriptions: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		cost         Cost
		write, reads float64 // reads of single items, without the shares of pages
	}{
		{c.Created, 6, 0}, {c.Reminder, 7, 2}, {c.Paid, 13.2, 5}, {c.Declined, 9, 2}, {c.DeclinedAgain, 8, 2}, {c.Row, 0, 0},
		{c.Day, 10, 74}, {c.Lease, 2, 1},
	} {
		if u := w.cost.Units; u.Write != w.write || math.Floor(u.Read) != w.reads {
			t.Errorf("%s: %v; want %g write units and %g reads", w.cost.Name, u, w.write, w.reads)
		}
		var sum capacity.Units
		for _, l := range w.cost.Lines {
			sum = sum.Plus(l.Units)
			if l.Op == capacity.OpPut && (l.Bytes < 90 || l.Bytes > capacity.WriteUnitBytes) {
				t.Errorf("%s: %s of %g bytes", w.cost.Name, l.Item, l.Bytes)
			}
		}
		if rounded(sum) != w.cost.Units {
			t.Errorf("%s: %v, its lines %v", w.cost.Name, w.cost.Units, sum)
		}
	}
	var steps []string
	for _, l := range c.Paid.Lines {
		steps = append(steps, l.Step)
	}
	if want := []string{stepFind, stepRead, stepBind, stepSettle, stepMail,
		stepLookBack}; !slices.Equal(slices.Compact(steps), want) {
		t.Errorf("steps %v, want %v", slices.Compact(steps), want)
	}
	for _, l := range c.Day.Lines {
		if l.Item == itemSubscription {
			t.Errorf("a day on which nothing is due touches a subscription: %+v", l)
		}
	}
	if len(c.Dates) != 4 || slices.ContainsFunc(c.Dates, func(d DateUnits) bool { return d.Units.Write != 1 }) {
		t.Errorf("dates %+v, want four of one write unit each", c.Dates)
	}
}

func TestMeasure_AreAlwaysTheSame(t *testing.T) {
	first, err := Measure(t.Context(), Options{Subscriptions: 20})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Measure(t.Context(), Options{Subscriptions: 20})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(first, again) {
		t.Errorf("first %+v\nthen %+v", first, again)
	}
	more, err := Measure(t.Context(), Options{Subscriptions: 40})
	if err != nil {
		t.Fatal(err)
	}
	if first.Paid.Units.Write != more.Paid.Units.Write || first.Reminder.Units.Write != more.Reminder.Units.Write {
		t.Errorf("20: %v, 40: %v", first.Paid.Units, more.Paid.Units)
	}
}

// TestMeasure_SizeClasses: above 1 KB with its open period, a subscription costs a unit more at
// each write, two in a transaction.
func TestMeasure_SizeClasses(t *testing.T) {
	c, err := Measure(t.Context(), Options{Subscriptions: 20, ItemBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if n := c.SubscriptionBytes(); n < 1000 || n > 1030 {
		t.Errorf("%d bytes, want about 1,000", n)
	}
	if c.Paid.Units.Write != 16.2 || c.Created.Units.Write != 6 {
		t.Errorf("paid %v, created %v; want 16.2 and 6 write units", c.Paid.Units, c.Created.Units)
	}
	for _, o := range []Options{{}, {Subscriptions: 10, ItemBytes: 100}} {
		if _, err := Measure(t.Context(), o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

// costs are round figures, to follow the sums by hand.
func costs() *Costs {
	return &Costs{
		Paid: Cost{Units: capacity.Units{Read: 4, Write: 10}, Lines: []Line{
			{Step: stepRead, Item: itemSubscription, Units: capacity.Units{Read: 4}},
			{Step: stepBind, Item: itemSubscription, Units: capacity.Units{Write: 1}},
			{Step: stepSettle, Item: itemSubscription, Units: capacity.Units{Write: 4}},
			{Step: stepSettle, Item: itemMail, Units: capacity.Units{Write: 2}},
			{Step: stepSettle, Index: "GSI-2", Item: itemSubscription, Units: capacity.Units{Write: 3}}}},
		Reminder: Cost{Units: capacity.Units{Read: 1, Write: 5}},
		Day:      Cost{Units: capacity.Units{Read: 50, Write: 2}},
		Dates: []DateUnits{{"GSI-1", "a date", capacity.Units{Write: 1}},
			{"GSI-2", "another", capacity.Units{Write: 2, Read: 0.1}}},
	}
}

func TestPlanPeak(t *testing.T) {
	p := PlanPeak(costs(), PeakOptions{Subscriptions: 900_000, Share: 0.2, ChargeRate: 25})
	if p.Due != 180_000 || p.Hours != 2 || !p.Fits || p.Shards != 1 {
		t.Errorf("%+v", p)
	}
	if p.Day != (capacity.Units{Read: 720_050, Write: 1_800_002}) ||
		p.PerSecond != (capacity.Units{Read: 100, Write: 250}) {
		t.Errorf("day %v, a second %v", p.Day, p.PerSecond)
	}
	if p.Month != (capacity.Units{Read: 900_000*5 + 1500, Write: 900_000*15 + 60}) {
		t.Errorf("month %v", p.Month)
	}
	for what, want := range map[string]float64{"periods due on the peak day": 180_000,
		"  of these in the table recurring-payments": 125,
		"  of these in the table outbox":             50, "  of these in GSI-2": 75,
		"write units a second on GSI-2, another": 50} {
		if i := slices.IndexFunc(p.Sums, func(s Sum) bool { return s.What == what }); i < 0 || p.Sums[i].Value != want {
			t.Errorf("%q: want %g in %+v", what, want, p.Sums)
		}
	}
}

func TestPlanPeak_ShardsAndRates(t *testing.T) {
	for name, c := range map[string]struct {
		o      PeakOptions
		shards int
		fits   bool
		rate   float64 // needed
	}{
		"500/s fill a partition": {PeakOptions{Subscriptions: 1_800_000, Share: 1, ChargeRate: 500}, 1, true, 500},
		"one more does not fit":  {PeakOptions{Subscriptions: 1_800_000, Share: 1, ChargeRate: 501}, 2, true, 501},
		"the hours make the rate": {PeakOptions{Subscriptions: 18_000_000, Share: 0.5, ChargeRate: 5000, Hours: 1}, 5, true,
			2500},
		"more than is allowed": {PeakOptions{Subscriptions: 18_000_000, Share: 0.5, ChargeRate: 25, Hours: 1}, 5, false,
			2500},
		"more than a day": {PeakOptions{Subscriptions: 4_320_000, Share: 1, ChargeRate: 25}, 1, false, 50},
	} {
		p := PlanPeak(costs(), c.o)
		if p.Shards != c.shards || p.Fits != c.fits || math.Abs(p.RateNeeded()-c.rate) > 1e-6 {
			t.Errorf("%s: %d shards, fits %v, %g/s needed; want %+v", name, p.Shards, p.Fits, p.RateNeeded(), c)
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.5: "0.5", 12.345: "12.35", 999: "999", 1000: "1,000",
		1234567.1: "1,234,567.1", -1000: "-1,000", 100: "100"} {
		if got := Number(x); got != want {
			t.Errorf("Number(%v) = %q, want %q", x, got, want)
		}
	}
}
