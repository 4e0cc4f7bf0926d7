package consumption

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/capacity"
	"github.com/duesday/duesday/internal/test/metering"
)

// TestMeasure holds the costs of the protocol to what docs/performance.md says: who makes it
// cheaper or dearer changes both.
func TestMeasure(t *testing.T) {
	c, err := Measure(t.Context(), Options{Subscriptions: 128}) // four full batches of mail
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		cost         Cost
		write, reads float64 // reads of single items, without the shares of pages; a run's list has batches of less than two units an item
	}{
		{c.Created, 10, 0}, {c.Changed, 8, 5}, {c.Reminder, 10, 2}, {c.Paid, 20.1875, 6}, {c.Declined, 15.125, 2}, {c.DeclinedAgain, 13, 2}, {c.Row, 0, 0},
		{c.Day, 16, 83}, {c.Outlook, 0, 1}, {c.Lease, 2, 1},
	} {
		if u := w.cost.Units; math.Abs(u.Write-w.write) > 0.01 || math.Floor(u.Read) != w.reads {
			t.Errorf("%s: %v; want %g write units and %g reads", w.cost.Name, u, w.write, w.reads)
		}
		var sum metering.Units
		for _, l := range w.cost.Lines {
			sum = sum.Plus(l.Units)
			if l.Op == metering.OpPut && (l.Bytes < 90 && l.Item != itemLookup && l.Item != itemCounter || l.Bytes > capacity.WriteUnitBytes) {
				t.Errorf("%s: %s of %g bytes", w.cost.Name, l.Item, l.Bytes)
			}
		}
		if sum.Rounded() != w.cost.Units {
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
	if c.Paid.Units.Write != 23.3 || c.Created.Units.Write != 10 {
		t.Errorf("paid %v, created %v; want 23.3 and 10 write units", c.Paid.Units, c.Created.Units)
	}
	for _, o := range []Options{{}, {Subscriptions: 10, ItemBytes: 100}} {
		if _, err := Measure(t.Context(), o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

// TestTableIsMeasured holds the figures of duesday capacity to the engine's consumption, for each
// step of a paid period in each table and index.
func TestTableIsMeasured(t *testing.T) {
	for _, bytes := range []int{0, 1100, 2500, 5000} {
		table, err := capacity.Table(bytes)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Measure(t.Context(), Options{Subscriptions: capacity.Subscriptions, ItemBytes: bytes})
		if err != nil {
			t.Fatal(err)
		}
		if off := table.Bytes - c.SubscriptionBytes(); off < -1 || off > 1 {
			t.Errorf("the table has a subscription of %d bytes, %d are measured", table.Bytes, c.SubscriptionBytes())
		}
		compare(t, fmt.Sprintf("paid period, %d bytes", bytes), table.Paid, &c.Paid)
		compare(t, fmt.Sprintf("reminder, %d bytes", bytes), table.Reminder, &c.Reminder)
		if table.Create != c.Created.Units.Write || table.Change != c.Changed.Units.Write {
			t.Errorf("%d bytes: the table has %g and %g, created %v, changed %v", bytes, table.Create, table.Change, c.Created.Units, c.Changed.Units)
		}
		if table.Day != c.Day.Units || table.Lease != c.Lease.Units {
			t.Errorf("the table has %v for a day and %v for a lease, measured %v and %v", table.Day, table.Lease, c.Day.Units,
				c.Lease.Units)
		}
		if read := c.Outlook.Units.Read; math.Abs(read-table.Outlook) > 0.02 || c.Outlook.Units.Write > 0 { // the rounding of pages
			t.Errorf("%d bytes: the table has %g for the outlook, measured %v", bytes, table.Outlook, c.Outlook.Units)
		}
		var dates []capacity.Date
		for _, d := range c.Dates {
			dates = append(dates, capacity.Date{Index: d.Index, Name: d.Date, Write: d.Units.Write})
		}
		if !slices.Equal(dates, table.Dates) {
			t.Errorf("the table has dates %v, measured %v", table.Dates, dates)
		}
	}
}

// compare allows reads to differ by the rounding of a page.
func compare(t *testing.T, name string, lines []capacity.Line, c *Cost) {
	t.Helper()
	type at struct{ step, place string }
	want, got := make(map[at]metering.Units), make(map[at]metering.Units)
	for _, l := range lines {
		want[at{l.Step, l.Place}] = want[at{l.Step, l.Place}].Plus(l.Units)
	}
	for _, l := range c.Lines {
		place := capacity.Recurring
		switch {
		case l.Index != "":
			place = l.Index
		case l.Item == itemMail:
			place = capacity.Outbox
		}
		got[at{l.Step, place}] = got[at{l.Step, place}].Plus(l.Units)
	}
	if len(want) != len(got) {
		t.Errorf("%s: the table has %d lines, %d are measured", name, len(want), len(got))
	}
	for a, w := range want {
		if g := got[a]; math.Abs(g.Write-w.Write) > 1e-9 || math.Abs(g.Read-w.Read) > 0.0101 {
			t.Errorf("%s: %s in %s: the table has %v, measured %v", name, a.step, a.place, w, g)
		}
	}
}
