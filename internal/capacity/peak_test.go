package capacity

import (
	"math"
	"slices"
	"testing"
)

// costs are round figures, to follow the sums by hand.
func costs() *Costs {
	return &Costs{
		Paid: []Line{{"READ", Recurring, Units{Read: 4}}, {"BIND", Recurring, Units{Write: 1}},
			{"SETTLE", Recurring, Units{Write: 4}}, {"SETTLE", Outbox, Units{Write: 2}}, {"SETTLE", Payments, Units{Write: 3}}},
		Reminder: []Line{{"REMIND", Recurring, Units{Read: 1, Write: 5}}},
		Day:      Units{Read: 50, Write: 2},
		Outlook:  0.5,
		Dates:    []Date{{Reminders, "a date", 1}, {Payments, "another", 2}},
	}
}

func TestPlanPeak(t *testing.T) {
	p := PlanPeak(costs(), PeakOptions{Subscriptions: 900_000, Share: 0.2, ChargeRate: 25})
	if p.Due != 180_000 || p.Hours != 2 || !p.Fits || p.Shards != 1 {
		t.Errorf("%+v", p)
	}
	if p.Day != (Units{Read: 720_050 + 450_000, Write: 1_800_002}) ||
		p.PerSecond != (Units{Read: 100, Write: 250}) {
		t.Errorf("day %v, a second %v", p.Day, p.PerSecond)
	}
	if p.Month != (Units{Read: 900_000*5 + 1500 + 30*450_000, Write: 900_000*15 + 60}) {
		t.Errorf("month %v", p.Month)
	}
	for what, want := range map[string]float64{"periods due on the peak day": 180_000, "read units of a day's scan for the outlook": 450_000,
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

func TestTable_TooSmall(t *testing.T) {
	if _, err := Table(natural - 1); err == nil {
		t.Error("no error")
	}
}
