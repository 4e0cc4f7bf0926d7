package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// paidOn returns the days, in UTC, on which the subscription's charges succeeded.
func (w *world) paidOn(n billing.Name) []string {
	var days []string
	for _, e := range w.ledger() {
		if e.State == processor.Succeeded && e.Tag.Account == n.Account && e.Tag.Subscription == n.ID {
			days = append(days, civil.Of(e.Changed).String())
		}
	}
	return days
}

// dues returns the due dates of the subscription's receipts, expired ones included.
func (w *world) dues(n billing.Name) []string {
	var days []string
	for p := 0; ; p++ {
		list := w.spy.receipts[fmt.Sprintf("ACC#%s/%s/%d", n.Account, n.ID, p)]
		if len(list) == 0 && p >= w.sub(n).Period {
			return days
		}
		for _, r := range list {
			days = append(days, r.Str(schema.DueDate))
		}
	}
}

func equal(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// monthEnds charges a subscription of the 31st for fourteen months, each day at nine.
func monthEnds(p planted) []string {
	w := newWorld("2023-10-31T09:00", p)
	n := w.create(one("2023-10-31"))
	for range 14 * 31 {
		w.start().run(civil.Date{})
		w.tomorrow()
	}
	want := []string{"2023-10-31", "2023-11-30", "2023-12-31", "2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30",
		"2024-05-31", "2024-06-30", "2024-07-31", "2024-08-31", "2024-09-30", "2024-10-31", "2024-11-30", "2024-12-31"}
	if got := w.paidOn(n); !slices.Equal(got, want[:min(len(want), len(got))]) || len(got) < len(want)-1 {
		w.violate("charged on %v, want %v", got, want)
	}
	return w.audit()
}

func TestMonthEnds(t *testing.T) {
	for _, v := range monthEnds(planted{}) {
		t.Error(v)
	}
}

func TestIntervals(t *testing.T) {
	tests := []struct {
		name, first, interval string
		day                   int
		want                  []string
	}{
		{"leap day, yearly", "2024-02-29", "year", 29,
			[]string{"2024-02-29", "2025-02-28", "2026-02-28", "2027-02-28", "2028-02-29"}},
		{"30th in common years", "2025-01-30", "month", 30, []string{"2025-01-30", "2025-02-28", "2025-03-30"}},
		{"29th", "2025-01-29", "month", 29, []string{"2025-01-29", "2025-02-28", "2025-03-29"}},
		{"every 2 weeks", "2024-12-27", "2 weeks", 5, []string{"2024-12-27", "2025-01-10", "2025-01-24"}},
		{"every 10 days", "2024-02-20", "10 days", 0, []string{"2024-02-20", "2024-03-01", "2024-03-11", "2024-03-21"}},
		{"quarterly on the 31st", "2024-08-31", "3 months", 31,
			[]string{"2024-08-31", "2024-11-30", "2025-02-28", "2025-05-31"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(test.first+"T09:00", planted{})
			interval, err := civil.ParseInterval(test.interval)
			mustNot(t, err)
			n := w.create(one(test.first, func(n *billing.NewSubscription) { n.Interval, n.PaymentDay = interval, test.day }))
			for len(w.paidOn(n)) < len(test.want) {
				w.start().run(civil.Date{})
				w.goTo(w.sub(n).NextPayment)
			}
			equal(t, w.paidOn(n), test.want)
			w.report(t)
		})
	}
}

// TestZones: due is when it is the day where the customer is, whatever day it is in UTC.
func TestZones(t *testing.T) {
	tests := []struct {
		zone, at string
		due      bool
	}{
		{"UTC", "2024-05-14T23:59", false},
		{"UTC", "2024-05-15T00:00", true},
		{"Pacific/Kiritimati", "2024-05-14T09:59", false},
		{"Pacific/Kiritimati", "2024-05-14T10:00", true}, // UTC+14
		{"Pacific/Honolulu", "2024-05-15T09:59", false},  // UTC-10
		{"Pacific/Honolulu", "2024-05-15T10:00", true},
		{"America/New_York", "2024-05-15T03:59", false},
		{"America/New_York", "2024-05-15T04:00", true},
	}
	for _, test := range tests {
		t.Run(test.zone+" "+test.at, func(t *testing.T) {
			w := newWorld("2024-05-10T09:00", planted{})
			n := w.create(one("2024-05-15", func(n *billing.NewSubscription) { n.TimeZone = test.zone }))
			w.set(test.at)
			w.start().run(civil.Date{})
			if got := len(w.paidOn(n)) == 1; got != test.due {
				t.Errorf("charged: %t, want %t", got, test.due)
			}
			w.report(t)
		})
	}
}

// TestBusinessDayIsForEveryZone: --date is the business day of every account, and of
// nothing else.
func TestBusinessDayIsForEveryZone(t *testing.T) {
	for _, zone := range []string{"UTC", "Pacific/Kiritimati", "Pacific/Honolulu"} {
		w := newWorld("2024-05-20T09:00", planted{})
		n := w.create(one("2024-05-25", func(n *billing.NewSubscription) { n.TimeZone = zone }))
		w.early = true // the day is in the future
		w.start().run(date("2024-05-24"))
		equal(t, w.paidOn(n), nil)
		w.start().run(date("2024-05-25"))
		equal(t, w.paidOn(n), []string{"2024-05-20"}) // the ledger's clock
		if s := w.sub(n); s.LastPayment.Format("2006-01-02") != "2024-05-20" {
			t.Errorf("LastPaymentDate %s is not the clock's", s.LastPayment)
		}
		w.report(t)
	}
}

// downtime creates a subscription, lets the service be down for so many days, and charges
// daily from then on.
func downtime(days int, p planted) []string {
	w := newWorld("2024-01-20T09:00", p)
	n := w.create(one("2024-01-31"))
	w.start().run(civil.Date{})
	w.goTo(w.today().AddDays(days))
	w.start().run(civil.Date{})
	if !w.settled(n) {
		w.violate("down for %d days: period %d is due and not dealt with", days, w.sub(n).Period)
	}
	return w.audit()
}

func TestDowntime(t *testing.T) {
	for _, days := range []int{12, 60, 100, 400} {
		for _, v := range downtime(days, planted{}) {
			t.Error(v)
		}
	}
}

// TestFirstRunEver: a store in which no run has ever been completed has no day to look
// back from, and what fell due long before its first run must be found all the same.
func TestFirstRunEver(t *testing.T) {
	for _, days := range []int{12, 60, 400} {
		w := newWorld("2024-01-20T09:00", planted{})
		n := w.create(one("2024-01-31"))
		w.goTo(w.today().AddDays(days))
		w.start().remind()
		w.start().run(civil.Date{})
		if !w.settled(n) {
			t.Errorf("first run after %d days: nothing was found", days)
		}
		w.report(t)
	}
}

// TestFirstRunEverInThePast: the same, when the first run's business day is an old one and
// that run does not come to its end.
func TestFirstRunEverInThePast(t *testing.T) {
	w := newWorld("2024-06-20T09:00", planted{})
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Start = date("2024-01-31") }))
	for point := 1; point <= 14; point++ {
		w.start(fault{point, true}).run(date("2024-02-01"))
	}
	w.set("2024-09-20T09:00")
	for range 3 {
		w.start().run(civil.Date{})
	}
	if !w.settled(n) {
		t.Errorf("not found again: %+v", w.sub(n))
	}
	w.report(t)
}

// TestCatchUp: three missed periods are charged, oldest first; the others wait for a
// person, who charges or skips them one by one.
func TestCatchUp(t *testing.T) {
	w := newWorld("2024-01-20T09:00", planted{})
	n := w.create(one("2024-01-31"))
	w.start().run(civil.Date{})
	w.set("2024-07-15T09:00")
	rep := w.start().run(civil.Date{})
	equal(t, w.dues(n), []string{"2024-01-31", "2024-02-29", "2024-03-31"})
	if rep.Counts[engine.OutcomePaid] != 3 || rep.Counts[engine.OutcomeParked] != 1 || rep.Due() != 4 {
		t.Errorf("report %v", rep.Counts)
	}
	if s := w.sub(n); s.Status != billing.ParkedState || s.NextPayment != w.today() {
		t.Errorf("is %s, next on %s", s.Status, s.NextPayment)
	}
	w.tomorrow()
	if rep := w.start().run(civil.Date{}); rep.Due() != 1 || rep.Counts[engine.OutcomeParked] != 1 {
		t.Errorf("the next run does not show what is parked: %v", rep.Counts)
	}
	ctx := context.Background()
	results, s, err := w.start().ChargeParked(ctx, n)
	mustNot(t, err)
	if len(results) != 1 || results[0].Outcome != engine.OutcomePaid || s.Status != billing.ParkedState || s.Period != 4 {
		t.Errorf("charge: %v, then %s at %d", results, s.Status, s.Period)
	}
	s, err = w.start().SkipParked(ctx, n)
	mustNot(t, err)
	if s.Status != billing.ParkedState || s.Period != 5 {
		t.Errorf("skip: %s at %d", s.Status, s.Period)
	}
	_, s, err = w.start().ChargeParked(ctx, n)
	mustNot(t, err)
	if s.Status != billing.Active || s.Period != 6 || s.NextPayment != date("2024-07-31") {
		t.Errorf("after the last: %s at %d, next on %s", s.Status, s.Period, s.NextPayment)
	}
	equal(t, w.dues(n), []string{"2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30", "2024-06-30"})
	w.report(t)
}

// TestChargeParkedCrash: a person charges a parked period and the process dies: the next
// run finds what was bound, and settles what was taken.
func TestChargeParkedCrash(t *testing.T) {
	for point := 1; ; point++ {
		w := newWorld("2024-01-20T09:00", planted{})
		n := w.create(one("2024-01-31"))
		w.start().run(civil.Date{})
		w.set("2024-05-15T09:00") // four are due
		w.start().run(civil.Date{})
		p := w.start(fault{point, true})
		_, _, err := p.ChargeParked(context.Background(), n)
		if !p.faults.died() {
			mustNot(t, err)
			if point < 8 {
				t.Errorf("only %d points", point)
			}
			return
		}
		w.pass(25 * time.Hour)
		w.start().run(civil.Date{})
		w.tomorrow()
		if s := w.sub(n); s.Period == 3 {
			if _, _, err := w.start().ChargeParked(context.Background(), n); err != nil {
				t.Errorf("point %d: %v", point, err)
			}
		}
		if s := w.sub(n); s.Period != 4 || s.Status != billing.Active {
			t.Errorf("point %d: %s at %d", point, s.Status, s.Period)
		}
		w.report(t)
	}
}

// TestRecordRemoved: another tool removed the record of a parked period. What a person asks for happens
// as if the record were there.
func TestRecordRemoved(t *testing.T) {
	for name, ask := range map[string]func(*engine.Engine, billing.Name) error{
		"charge": func(e *engine.Engine, n billing.Name) error { _, _, err := e.ChargeParked(t.Context(), n); return err },
		"skip":   func(e *engine.Engine, n billing.Name) error { _, err := e.SkipParked(t.Context(), n); return err },
		"cancel": func(e *engine.Engine, n billing.Name) error { _, err := e.Cancel(t.Context(), n, false); return err },
		"receipt": func(e *engine.Engine, n billing.Name) error {
			_, err := e.CreateReceipt(t.Context(), n, engine.ManualPayment{Note: "cash"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var after [2]string
			for i, removed := range []bool{false, true} {
				w := newWorld("2024-01-20T09:00", planted{})
				n := w.create(one("2024-01-31"))
				w.start().run(civil.Date{})
				w.set("2024-05-15T09:00") // four are due
				w.start().run(civil.Date{})
				s := w.sub(n)
				if s.Status != billing.ParkedState {
					t.Fatal(w.describe(n))
				}
				if removed {
					mustNot(t, w.spy.mem.Commit(t.Context(),
						store.Delete(w.tables.RecurringPayments.Name, billing.PeriodKey(n, s.Period))))
				}
				if err := ask(w.start().Engine, n); err != nil {
					t.Errorf("removed %t: %v", removed, err)
				}
				w.tomorrow()
				w.start().run(civil.Date{})
				after[i] = fmt.Sprint(w.describe(n), w.paidOn(n))
			}
			if after[0] != after[1] {
				t.Errorf("with the record:\n%s\nwithout it:\n%s", after[0], after[1])
			}
		})
	}
}

// TestTenYears runs both jobs on every day of ten years. The charges of each subscription are on
// the days of a calendar made without package civil. -short has two years.
func TestTenYears(t *testing.T) {
	t.Parallel()
	w := newWorld("2024-01-01T09:00", planted{})
	begin, end := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2024+soaktest.Cases(t, 2, 10, 10), 1, 1, 0, 0, 0, 0, time.UTC)
	var monthEnds, leapDays, fortnights []string
	for d := begin; d.Before(end); d = d.AddDate(0, 0, 1) {
		day, next := d.Format(time.DateOnly), d.AddDate(0, 0, 1)
		if next.Day() == 1 {
			monthEnds = append(monthEnds, day)
		}
		if next.Day() == 1 && next.Month() == time.March {
			leapDays = append(leapDays, day)
		}
		if days := int(d.Sub(begin).Hours()) / 24; days%14 == 4 {
			fortnights = append(fortnights, day)
		}
	}
	create := func(id, first, interval string, day int) billing.Name {
		every, err := civil.ParseInterval(interval)
		mustNot(t, err)
		return w.create(one(first, func(n *billing.NewSubscription) { n.ID, n.Interval, n.PaymentDay = id, every, day }))
	}
	wants := []struct {
		name billing.Name
		days []string
	}{
		{create("days", "2024-01-05", "14 days", 31), fortnights}, // whatever its payment day is
		{create("month", "2024-01-31", "month", 31), monthEnds},
		{create("leap", "2024-02-29", "year", 29), leapDays},
		{create("weeks", "2024-01-05", "2 weeks", 5), fortnights},
	}
	for w.now().Before(end) {
		p := w.start()
		p.run(civil.Date{})
		p.remind()
		w.tomorrow()
	}
	for _, want := range wants {
		equal(t, w.paidOn(want.name), want.days)
	}
	w.report(t)
}
