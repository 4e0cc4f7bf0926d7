package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// alter changes attributes of an item beside the engine, as the update of another tool does: everything
// else stays, Duesday's version among it.
func (w *world) alter(t *testing.T, sk string, pairs ...any) {
	t.Helper()
	key := store.Key{PK: "ACC#a1", SK: sk}
	mustNot(t, w.spy.mem.Commit(context.Background(),
		store.Update(w.tables.RecurringPayments.Name, key, attributes(pairs...), nil)))
}

// wantProblem wants the audit to find each of the kinds.
func (w *world) wantProblem(t *testing.T, kinds ...string) {
	t.Helper()
	r, err := w.start().Verify(t.Context())
	mustNot(t, err)
	for _, p := range r.Problems {
		if i := slices.Index(kinds, p.Kind); i >= 0 {
			kinds = slices.Delete(kinds, i, i+1)
		}
	}
	if len(kinds) > 0 {
		t.Errorf("no problem %v in %+v", kinds, r.Problems)
	}
}

// TestOtherHands_MovedNextPaymentDate: a tool that takes a payment itself moves NextPaymentDate to the
// next period's day. Neither period is charged before a person has decided.
func TestOtherHands_MovedNextPaymentDate(t *testing.T) {
	for name, c := range map[string]struct {
		method, to string
		days       int // of runs before the move
	}{
		"closed":           {"pm_card_visa", "2024-02-29", 0},
		"by some days":     {"pm_card_visa", "2024-02-03", 0},
		"open, in retry":   {"pm_card_visa_chargeDeclined", "2024-02-29", 2},
		"open, processing": {"pm_sandbox_processing", "2024-02-29", 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("2024-01-30T09:00", planted{})
			n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Method = c.method }))
			for range c.days {
				w.start().run(civil.Date{})
				w.tomorrow()
			}
			w.alter(t, "SUB#s1#SKU#gold", "NextPaymentDate", c.to)
			w.wantProblem(t, "changed by another tool")
			before := w.dealings()
			_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{ReminderDays: new(3)})
			mustNot(t, err)
			if name == "closed" { // a new day takes no payment that the tool may have taken
				_, err = w.start().UpdateSubscription(t.Context(), n, billing.Change{PaymentDay: new(3)})
				mustNot(t, err)
				_, err = w.start().Pause(t.Context(), n) // to resume it would charge the period
				wantErr(t, err, billing.ErrState)
			}
			_, err = w.start().UpdateSubscription(t.Context(), n, billing.Change{Method: new(c.method + "_2")})
			mustNot(t, err)
			for w.today().Before(date(c.to)) {
				w.start().remind()
				w.start().run(civil.Date{})
				w.tomorrow()
			}
			var dry *job.Report
			dry, err = job.Payments(t.Context(), w.start().Engine, job.Options{DryRun: true, Workers: 1})
			mustNot(t, err)
			rep := w.start().run(civil.Date{})
			s := w.sub(n)
			if s.Status != billing.ParkedState || !strings.HasPrefix(s.Parked, "changed by another tool: NextPaymentDate") ||
				rep.Counts[engine.OutcomeParked] != 1 || rep.Due() != 1 || dry.Counts[engine.OutcomeParked] != 1 ||
				w.dealings() != before {
				t.Fatalf("report %v, dry run %v: %s", rep.Counts, dry.Counts, w.describe(n))
			}
			if c.days > 0 {
				return
			}
			_, err = w.start().SkipParked(t.Context(), n)
			mustNot(t, err)
			w.verify()
			w.start().run(civil.Date{})
			if w.sub(n).Status == billing.ParkedState { // its date has come too: a person decides about it
				_, _, err = w.start().ChargeParked(t.Context(), n)
				mustNot(t, err)
			}
			for range 40 {
				w.tomorrow()
				w.start().run(civil.Date{})
			}
			w.report(t)
		})
	}
}

// TestOtherHands_FullOrMarked: an item that another tool has filled up to the limit, or has given
// the mark of a copy, is named, and the others are paid.
func TestOtherHands_FullOrMarked(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31"))
	w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.ID = "s2" }))
	size, err := store.Size(w.item(t, n))
	mustNot(t, err)
	w.alter(t, "SUB#s1#SKU#gold", "Notes", strings.Repeat("x", store.MaxItemBytes-size-len("Notes")))
	if r := w.start().run(civil.Date{}); r.Counts[engine.OutcomeUnreadable] != 1 || r.Counts[engine.OutcomePaid] != 1 {
		t.Errorf("report %v", r.Counts)
	}
	w.alter(t, "SUB#s1#SKU#gold", "Notes", "")
	if r := w.start().run(civil.Date{}); r.Counts[engine.OutcomePaid] != 1 {
		t.Errorf("afterwards: %v", r.Counts)
	}
	w.alter(t, "SUB#s1#SKU#gold", "Moved", "theirs") // the mark of a copy that there is not
	for w.today().Before(date("2024-02-29")) {
		w.tomorrow()
	}
	if r := w.start().run(civil.Date{}); r.Counts[engine.OutcomeUnreadable] != 1 || r.Counts[engine.OutcomePaid] != 1 {
		t.Errorf("with a mark: %v", r.Counts)
	}
	w.wantProblem(t, "unreadable subscription")
}

// TestOtherHands_PaymentDay: the schedule goes on by the new day, as after a person's change.
func TestOtherHands_PaymentDay(t *testing.T) {
	w := newWorld("2024-01-20T09:00", planted{})
	n := w.create(one("2024-01-31"))
	w.alter(t, "SUB#s1#SKU#gold", "PaymentDay", "15")
	if s := w.sub(n); !strings.Contains(s.Redone, "from 31 to 15") {
		t.Errorf("redone %q", s.Redone)
	}
	w.wantProblem(t, "invalid schedule")
	var charged []string
	for w.today().Before(date("2024-04-20")) {
		w.start().run(civil.Date{})
		w.tomorrow()
	}
	for _, r := range w.spy.receipts["ACC#a1/s1/0"] {
		charged = append(charged, r.Str(schema.DueDate))
	}
	if s := w.sub(n); s.Period != 3 || len(charged) != 1 || charged[0] != "2024-02-15" || s.Redone != "" {
		t.Errorf("charged %v: %s", charged, w.describe(n))
	}
	w.report(t)
	for day, readable := range map[string]bool{"45": false, "0": false, "x": false, "31": true} {
		w.alter(t, "SUB#s1#SKU#gold", "PaymentDay", day)
		_, err := w.start().Subscription(t.Context(), n)
		if (err == nil) != readable {
			t.Errorf("PaymentDay %s: %v", day, err)
		}
	}
}

// TestOtherHands_TextKey: an item under the key of the model's text is charged, reminded, found and
// settled like one under the JSON's, and keeps its key.
func TestOtherHands_TextKey(t *testing.T) {
	w := newWorld("2023-06-28T09:00", planted{})
	it := foreign("a1", "1", "SK", "SUB#1#SKU999")
	w.write(it)
	if r := w.adopt(t, map[string]string{"a1": "pm_card_visa"}); r.Subscriptions != 1 || r.NeedsPerson() {
		t.Fatalf("report %+v", r)
	}
	n := billing.Name{Account: "a1", ID: "1"}
	for range 70 {
		w.start().remind()
		w.start().run(civil.Date{})
		w.tomorrow()
	}
	if s := w.sub(n); s.Period != 3 || s.Key().SK != "SUB#1#SKU999" || s.SKU != "999" || s.Raw.Str(schema.SKU) != "999" {
		t.Errorf("%s under %v", w.describe(n), s.Key())
	}
	_, err := w.start().CreateSubscription(t.Context(), one("2023-10-01", func(n *billing.NewSubscription) {
		n.Account, n.Email, n.ID, n.SKU = "a1", "", "1", "999"
	}))
	wantErr(t, err, billing.ErrExists)
	w.verify()
	for _, v := range w.violations {
		t.Error(v)
	}
}

// TestOtherHands_Unreadable: a due row whose key or amount cannot be read is counted, named and found
// again by every run; everybody else is charged.
func TestOtherHands_Unreadable(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Account, n.ID = "a2", "s2" }))
	w.create(one("2024-01-31"))
	w.alter(t, "SUB#s1#SKU#gold", "PaymentAmount", "twelve")
	w.write(foreign("a1", "key", "SK", "SUBSCRIPTION#1", "NextPaymentDate", "2024-01-31"))
	rows := 0
	for row, err := range w.start().GetDuePaymentsByDate(t.Context(), date("2024-01-31")) {
		if mustNot(t, err); (row.Problem == "") != (row.Account == "a2") {
			t.Errorf("row %+v", row)
		}
		rows++
	}
	if rows != 3 {
		t.Errorf("%d rows", rows)
	}
	run := func() {
		t.Helper()
		named := map[string]string{}
		rep, err := job.Payments(t.Context(), w.start().Engine, job.Options{Workers: 1, Each: func(r engine.Result) {
			if r.Outcome == engine.OutcomeUnreadable {
				named[r.Name.String()] = r.Reason
			}
		}})
		mustNot(t, err)
		if rep.Counts[engine.OutcomeUnreadable] != 2 || !rep.NeedsPerson() || !rep.Completed ||
			named["a1/s1"] != "PaymentAmount is not an amount in the subscription's currency" ||
			named["a1/SUBSCRIPTION#1"] != "SK is not SUB#<subscription>#SKU#<sku>" {
			t.Fatalf("on %s: %+v, named %v", w.today(), rep.Run, named)
		}
	}
	for range 45 { // longer than a walk looks back
		run()
		w.tomorrow()
	}
	if s := w.sub(n); s.Period != 2 {
		t.Error(w.describe(n))
	}
	w.wantProblem(t, "unreadable subscription", "unreadable subscription")
	r := w.adopt(t, nil)
	if len(r.Unreadable) != 2 {
		t.Errorf("adoption %+v", r)
	}
}

// TestCharge_ParkedToBeCancelled: a parked period that is cancelled instead of charged waits for nobody.
func TestCharge_ParkedToBeCancelled(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Method = "pm_sandbox_processing" }))
	w.start().run(civil.Date{})
	_, err := w.start().Cancel(t.Context(), n, true)
	mustNot(t, err)
	w.alter(t, "SUB#s1#SKU#gold", "NextPaymentDate", "2024-03-05")
	w.set("2024-03-05T09:00")
	w.start().run(civil.Date{}) // parks the open period
	for range 3 {
		_, _, err = w.start().ChargeParked(t.Context(), n)
		if s := w.sub(n); err != nil || s.Status == billing.CanceledSub {
			break
		}
		if _, err = w.start().SkipParked(t.Context(), n); err == nil { // the next one is at the end: the next run cancels it
			w.start().run(civil.Date{})
			break
		}
		w.tomorrow()
	}
	if s := w.sub(n); s.Status != billing.CanceledSub {
		t.Fatalf("%v: %s", err, w.describe(n))
	}
	w.report(t)
}
