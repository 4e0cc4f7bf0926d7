package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
)

// TestRun_MarksTheNew: each result that a run has made is marked as new, and a wait from before it is not. Only
// the first kind, and what a person can act on, needs a person. A recorded run tells the same.
func TestRun_MarksTheNew(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	for id, token := range map[string]string{"1": "pm_card_visa", "2": "pm_card_visa_chargeDeclined",
		"3": "pm_card_visa_chargeDeclinedLostCard", "4": "pm_card_authenticationRequired"} {
		w.create(one("2024-01-31", method(token), func(n *billing.NewSubscription) { n.ID = id }))
	}
	run := func(needsPerson bool, want ...string) {
		t.Helper()
		var got []string
		report, err := w.start().RunPayments(t.Context(), engine.RunOptions{Workers: 1, Each: func(r engine.Result) {
			text := fmt.Sprintf("%s %s", r.ID, r.Outcome)
			if r.New {
				text += " new"
			}
			if !r.Retry.IsZero() {
				text += " " + r.Retry.String()
			}
			got = append(got, text)
		}})
		mustNot(t, err)
		slices.Sort(got)
		equal(t, got, want)
		recorded, err := w.start().FindRun(t.Context(), billing.Payments, report.ID)
		mustNot(t, err)
		if report.NeedsPerson() != needsPerson || recorded.NeedsPerson() != needsPerson {
			t.Errorf("needs a person: %v, recorded %v, want %v", report.NeedsPerson(), recorded.NeedsPerson(), needsPerson)
		}
	}
	run(true, "1 paid new", "2 retry new 2024-02-01", "3 failed new", "4 pending new")
	run(false, "4 pending")
	w.tomorrow()
	run(false, "2 retry new 2024-02-03", "4 pending")

	five := w.create(one("2023-09-28", method("pm_card_visa"), func(n *billing.NewSubscription) { n.ID = "5" }))
	run(true, "4 pending", "5 paid new", "5 paid new", "5 paid new", "5 parked new")
	run(true, "4 pending", "5 parked") // a person can act on it
	_, err := w.start().SkipParked(t.Context(), five)
	mustNot(t, err)
	w.goTo(date("2024-02-14"))
	run(true, "2 failed new", "4 failed new", "5 parked")
}

// TestRun_MarksTheNewOfAKilledRun: no run has told of a wait that a killed run has made, whatever its point of
// death; the next one marks it as new, and those after that do not.
func TestRun_MarksTheNewOfAKilledRun(t *testing.T) {
	for point := 1; ; point++ {
		w := newWorld("2024-01-30T09:00", planted{})
		w.create(one("2024-01-31", method("pm_card_authenticationRequired")))
		w.create(one("2023-09-28", func(n *billing.NewSubscription) { n.ID = "2"; n.Method = "" }))
		w.tomorrow()
		p := w.start(fault{point, true})
		p.run(civil.Date{})
		if !p.faults.struck() {
			break
		}
		if ended, err := w.start().LastRunEnded(t.Context()); err != nil || !ended.IsZero() {
			mustNot(t, err)
			continue // it has told of them, and died in its maintenance
		}
		for _, isNew := range []bool{true, false} {
			w.tomorrow()
			var got []string
			report, err := w.start().RunPayments(t.Context(), engine.RunOptions{Workers: 1, Each: func(r engine.Result) {
				got = append(got, fmt.Sprintf("%s %s %v", r.ID, r.Outcome, r.New))
			}})
			mustNot(t, err)
			slices.Sort(got)
			if want := []string{fmt.Sprintf("2 pending %v", isNew), fmt.Sprintf("s1 pending %v", isNew)}; !slices.Equal(got, want) ||
				report.Waits > 0 != isNew {
				t.Errorf("point %d: %q, want %q; %d wait", point, got, want, report.Waits)
			}
		}
		w.report(t)
	}
}
