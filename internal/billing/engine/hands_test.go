package engine_test

import (
	"context"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
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
		rep, err := w.start().RunPayments(t.Context(), engine.RunOptions{Workers: 1, Each: func(r engine.Result) {
			if r.Outcome == engine.OutcomeUnreadable {
				named[r.Name.String()] = r.Reason
			}
		}})
		mustNot(t, err)
		if rep.Counts[engine.OutcomeUnreadable] != 2 || !rep.NeedsPerson() || !rep.Completed ||
			named["a1/s1"] != "PaymentAmount is no amount in the subscription's currency" ||
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
	r := w.adopt(t, nil)
	if r.Unreadable.Count != 2 {
		t.Errorf("adoption %+v", r)
	}
}
