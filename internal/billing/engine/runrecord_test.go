package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// TestRunRecord_Killed kills a run before and after each of its commits and requests. A run that
// never ended is recorded from its start, and counts neither as ended nor as completed: the next
// runs look as far back as if it had not been.
func TestRunRecord_Killed(t *testing.T) {
	ctx := context.Background()
	unfinished := 0
	for point := 1; ; point++ {
		w := newWorld("2024-01-31T09:00", planted{})
		w.records = true
		w.create(one("2024-01-31"))
		w.start().run(civil.Date{})
		reader := w.start()
		ended, err := reader.LastRunEnded(ctx)
		mustNot(t, err)
		w.set("2024-03-01T09:00") // a month without a run: the walk begins at the last completed day
		from, err := reader.WalkStart(ctx, billing.Payments)
		mustNot(t, err)

		p := w.start(fault{point, true})
		p.run(civil.Date{})
		if !p.faults.died() {
			break
		}
		runs, err := job.Latest(ctx, reader.Engine, billing.Payments, 10)
		mustNot(t, err)
		last := runs[0]
		switch {
		case point == 1 && len(runs) != 1:
			t.Errorf("killed before the first commit, and %d runs", len(runs))
		case point > 1 && len(runs) != 2:
			t.Errorf("killed at %d: %d runs", point, len(runs))
		case point > 1 && last.Ended.IsZero():
			unfinished++
			if last.State != job.Running || last.Completed || last.Process == "" || last.From.IsZero() {
				t.Errorf("killed at %d: %+v", point, last)
			}
			now, err := reader.LastRunEnded(ctx)
			mustNot(t, err)
			again, err := reader.WalkStart(ctx, billing.Payments)
			mustNot(t, err)
			if !now.Equal(ended) || again != from {
				t.Errorf("killed at %d: the last run ended at %s, was %s; walks begin on %s, was %s", point, now, ended, again,
					from)
			}
		}
		w.pass(time.Hour)
		r := w.start().run(civil.Date{})
		runs, err = job.Latest(ctx, reader.Engine, "", 10)
		mustNot(t, err)
		if runs[0].State != job.Completed || runs[0].Due() != r.Due() || runs[1].State == job.Running {
			t.Errorf("killed at %d, then: %+v", point, runs)
		}
		w.report(t)
	}
	if unfinished < 5 {
		t.Errorf("%d runs were killed between their first and their last commit", unfinished)
	}
}

// TestRunRecord_ClockAhead: a run recorded by a clock that was ahead neither counts as the last daily
// run nor moves the start of walks.
func TestRunRecord_ClockAhead(t *testing.T) {
	ctx := context.Background()
	w := newWorld("2024-01-31T09:00", planted{})
	w.records = true
	w.start().run(civil.Date{})
	before, err := w.start().WalkStart(ctx, billing.Payments)
	mustNot(t, err)
	w.set("2024-03-31T09:00")
	w.start().run(civil.Date{})
	w.set("2024-02-01T09:00")
	last, err := w.start().LastDailyRun(ctx, billing.Payments)
	mustNot(t, err)
	from, err := w.start().WalkStart(ctx, billing.Payments)
	mustNot(t, err)
	if got := last.Started.Format("2006-01-02"); got != "2024-01-31" || from != before {
		t.Errorf("the last run began on %s, and walks on %s, not %s", got, from, before)
	}
}

// TestRunRecord_PartlyUnreadable: what a run's record has and this build cannot read, such as a newer
// currency, stops no later run, and leaves the day done.
func TestRunRecord_PartlyUnreadable(t *testing.T) {
	ctx := context.Background()
	w := newWorld("2024-01-31T09:00", planted{})
	w.records = true
	w.start().run(civil.Date{})
	e := w.start()
	for it, err := range e.LatestRuns(ctx, billing.Payments, 1) {
		mustNot(t, err)
		it = it.Clone()
		it.Set(schema.Amounts, store.M(store.Item{{Name: "QQQ", Value: store.S("1.00")}}))
		it.Set(schema.FromDate, store.S("soon"))
		mustNot(t, e.Store.Commit(ctx, store.Put(e.Table, it)))
		if _, err := e.Run(ctx, billing.Payments, it.Str(schema.SK)); err == nil {
			t.Error("the record is whole")
		}
	}
	last, err := e.LastDailyRun(ctx, billing.Payments)
	if err != nil || !last.Completed {
		t.Errorf("the last run: %+v, %v", last, err)
	}
	if _, err := e.WalkStart(ctx, billing.Payments); err != nil {
		t.Error(err)
	}
	_, _, err = e.AcceptClock(ctx)
	mustNot(t, err)
	mustNot(t, e.Store.Commit(ctx, store.Update(e.Table, billing.MetaKey, nil, []string{schema.EndedDate})))
	if ended, err := e.LastRunEnded(ctx); err != nil || ended.IsZero() { // of a store that an older build has kept
		t.Errorf("the last run ended at %v, %v", ended, err)
	}
	w.start().run(civil.Date{})
}

// TestForget: records of runs are kept for 400 days before the run before the last one. Runs by
// a clock that is far ahead delete nothing before a person has looked at it.
func TestForget(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.records = true
	w.create(one("2024-01-31"))
	w.start().run(civil.Date{})
	e := w.start()
	left := func(want int) {
		t.Helper()
		_, err := job.Forget(t.Context(), e.Records)
		mustNot(t, err)
		runs, err := job.Latest(t.Context(), e.Engine, billing.Payments, 10)
		mustNot(t, err)
		if len(runs) != want {
			t.Errorf("%d records are left, want %d", len(runs), want)
		}
	}
	left(1)
	w.set("2024-02-29T09:00")
	e = w.start()
	e.run(civil.Date{})
	left(2)
	w.set("2025-06-30T09:00")
	e = w.start()
	e.run(civil.Date{})
	left(3)
	w.set("2025-07-01T09:00")
	e = w.start()
	e.run(civil.Date{})
	left(4) // nor does a second one
	mustNot(t, e.SetCharging(t.Context(), true, ""))
	left(2)
}

// TestRunRecord_Amounts: the record has the count and the amounts of each outcome, and of the pending periods that
// wait for the customer. An older build's record has no amounts but those paid.
func TestRunRecord_Amounts(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.records = true
	for id, method := range map[string]string{"paid": "pm_card_visa", "retry": "pm_card_visa_chargeDeclined", "failed": "pm_card_visa_chargeDeclinedLostCard",
		"action": "pm_card_authenticationRequired", "none": "", "bank": "pm_sandbox_processing"} {
		w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Account, n.ID, n.Method = "a-"+id, id, method }))
	}
	w.create(one("2024-01-31", func(n *billing.NewSubscription) {
		n.Account, n.Amount, n.Collection = "a-wire", usd(700), billing.ByWire
	}))
	w.start().run(civil.Date{})
	e := w.start()
	runs, err := job.Latest(t.Context(), e.Engine, billing.Payments, 1)
	mustNot(t, err)
	r := runs[0]
	for outcome, want := range map[engine.Outcome]string{engine.OutcomeRetry: "1 [12.99 USD]", engine.OutcomeFailed: "1 [12.99 USD]", engine.OutcomePending: "3 [38.97 USD]",
		billing.AwaitsCustomer: "0 [25.98 USD]", engine.OutcomeAsked: "1 [7.00 USD]", engine.OutcomePaid: "1 []"} {
		sums := r.Unpaid[outcome]
		if got := fmt.Sprint(r.Counts[outcome], slices.Collect(sums.All())); got != want {
			t.Errorf("%s: %s, want %s", outcome, got, want)
		}
	}
	if r.Due() != 7 || r.Awaited != 2 || fmt.Sprint(slices.Collect(r.Amounts.All())) != "[12.99 USD]" {
		t.Errorf("%d due: %+v", r.Due(), r)
	}
	if a, err := e.Audit(t.Context(), func(int64) {}); err != nil || !a.OK {
		t.Errorf("the audit: %+v, %v", a, err)
	}
	for it, err := range e.LatestRuns(t.Context(), billing.Payments, 1) {
		mustNot(t, err)
		mustNot(t, e.Store.Commit(t.Context(), store.Update(e.Table, store.Key{PK: it.Str(schema.PK), SK: it.Str(schema.SK)}, nil, []string{schema.UnpaidAmounts})))
	}
	if old, err := e.Run(t.Context(), billing.Payments, r.ID); err != nil || old.Unpaid != nil || old.Counts[engine.OutcomeRetry] != 1 {
		t.Errorf("a record without them: %+v, %v", old, err)
	}
}

// TestUnpaid_EachFault: the process dies, or an answer is lost, at each point of a run. The list of the run whose end is recorded,
// which may be the next one, has each period that the run counts as unpaid.
func TestUnpaid_EachFault(t *testing.T) {
	ctx, listed := context.Background(), 0
	for _, crash := range []bool{true, false} {
		for point := 1; ; point++ {
			w := newWorld("2024-01-31T09:00", planted{})
			w.records = true
			sub := one("2024-01-31")
			sub.Method = "pm_card_visa_chargeDeclined"
			w.create(sub)
			p := w.start(fault{point, crash})
			p.run(civil.Date{})
			struck := p.faults.struck()
			p = w.start()
			runs, err := job.Latest(ctx, p.Engine, billing.Payments, 1)
			mustNot(t, err)
			if len(runs) == 0 || runs[0].Ended.IsZero() {
				w.set("2024-01-31T10:00")
				p.run(civil.Date{})
				runs, err = job.Latest(ctx, p.Engine, billing.Payments, 1)
				mustNot(t, err)
			}
			unpaid := 0
			for outcome, n := range runs[0].Counts {
				if outcome != engine.OutcomePaid {
					unpaid += n
				}
			}
			list := 0
			for u, err := range job.ListUnpaid(ctx, p.Records, runs[0].ID, "") {
				mustNot(t, err)
				if u.Outcome != engine.OutcomeRetry || u.Amount.String() != "12.99 USD" || u.Retry != date("2024-02-01") {
					t.Errorf("crash %t at %d: %+v", crash, point, u)
				}
				list++
			}
			if list != unpaid {
				t.Errorf("crash %t at %d: %d periods in the list, and %d counted", crash, point, list, unpaid)
			}
			listed += list
			if !struck {
				break
			}
		}
	}
	if listed < 5 {
		t.Errorf("only %d periods listed", listed)
	}
}
