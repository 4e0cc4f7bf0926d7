package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/civil"
)

// TestRun_MarksTheNew: each result that a run has made is marked as new, and a wait from before it
// is not. Only the first kind, and what a person can act on, needs a person. A recorded run tells
// the same.
func TestRun_MarksTheNew(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	for id, token := range map[string]string{"1": "pm_card_visa", "2": "pm_card_visa_chargeDeclined",
		"3": "pm_card_visa_chargeDeclinedLostCard", "4": "pm_card_authenticationRequired"} {
		w.create(one("2024-01-31", method(token), func(n *billing.NewSubscription) { n.ID = id }))
	}
	run := func(needsPerson bool, want ...string) {
		t.Helper()
		var got []string
		report, err := job.Payments(t.Context(), w.start().Engine, job.Options{Workers: 1, Each: func(r engine.Result) {
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
		recorded, err := job.Find(t.Context(), w.start().Engine, billing.Payments, report.ID)
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

// TestRun_MarksTheNewOfAKilledRun: no run has told of a wait that a killed run has made, whatever
// its point of death; the next one marks it as new, and those after that do not.
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
			report, err := job.Payments(t.Context(), w.start().Engine, job.Options{Workers: 1, Each: func(r engine.Result) {
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

// TestRun_Ahead: a run by a date ahead that leaves nothing has completed, and decides nothing for
// later runs. The wait that it has told of is new in no run before that day.
func TestRun_Ahead(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.create(one("2024-02-05", func(n *billing.NewSubscription) { n.ID = "1" }))
	w.create(one("2024-02-05", method("pm_card_authenticationRequired"), func(n *billing.NewSubscription) { n.ID = "2" }))
	run := func(day civil.Date) (r *job.Report, isNew bool) {
		t.Helper()
		r, err := job.Payments(t.Context(), w.start().Engine, job.Options{Date: day, Workers: 1, Each: func(r engine.Result) {
			isNew = isNew || r.Outcome == engine.OutcomePending && r.New
		}})
		mustNot(t, err)
		return r, isNew
	}
	r, isNew := run(date("2024-02-05"))
	recorded, err := job.Find(t.Context(), w.start().Engine, billing.Payments, r.ID)
	mustNot(t, err)
	if !isNew || recorded.State != job.Completed || recorded.Completed || r.Counts[engine.OutcomePaid] != 1 {
		t.Errorf("ahead: new %v, %s, completed %v, %v", isNew, recorded.State, recorded.Completed, r.Counts)
	}
	if last, err := w.start().LastDailyRun(t.Context(), billing.Payments); err != nil || !last.Started.IsZero() {
		t.Errorf("it is a daily run: %+v, %v", last, err)
	}
	for range 3 {
		if r, isNew := run(civil.Date{}); isNew || r.NeedsPerson() || r.Counts[engine.OutcomePending] != 1 {
			t.Errorf("today: new %v, %v", isNew, r.Counts)
		}
	}
}

// TestRun_MarksTheNewOnce: a clock that is a little behind the last run makes nothing new that the
// run has told of.
func TestRun_MarksTheNewOnce(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.create(one("2023-09-28"))
	begun := w.clock.Load()
	for i, want := range []bool{true, false, false, false} {
		w.ticks = i == 0
		w.clock.Store(begun)
		isNew := false
		_, err := job.Payments(t.Context(), w.start().Engine, job.Options{Workers: 1, Each: func(r engine.Result) {
			isNew = isNew || r.Outcome == engine.OutcomeParked && r.New
		}})
		mustNot(t, err)
		if isNew != want {
			t.Errorf("run %d: new %v", i, isNew)
		}
	}
}
