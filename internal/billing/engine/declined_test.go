package engine_test

import (
	"maps"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// The amount of a period is in the declined sums once, in the quarter of its first declined attempt, whatever
// becomes of the period afterwards.

// firstDecline returns a world with a declined period of 31 January that waits for its retry day, the next one.
func firstDecline(t *testing.T) (*world, billing.Name) {
	t.Helper()
	w := newWorld("2024-01-31T09:00", planted{})
	t.Cleanup(w.end)
	n := w.create(one("2024-01-31", method(declined)))
	w.start().run(civil.Date{})
	if o := w.sub(n).Open; o == nil || o.Retry != date("2024-02-01") {
		t.Fatal(w.describe(n))
	}
	return w, n
}

// wantDeclined wants the period of firstDecline in the declined sums, and the other sums.
func wantDeclined(t *testing.T, w *world, more map[string]string) {
	t.Helper()
	want := map[string]string{"2024-01-31 declined": "12.99 USD"}
	maps.Copy(want, more)
	wantSums(t, w, want)
}

func TestDeclined_Sums(t *testing.T) {
	good := "pm_card_visa"
	for what, x := range map[string]struct {
		do   func(t *testing.T, w *world, n billing.Name)
		want map[string]string
	}{
		"paid": {func(t *testing.T, w *world, n billing.Name) {
			w.newMethod(n, good)
			w.start().run(civil.Date{})
		}, map[string]string{"2024-02-01 collected": "12.99 USD", "2024-02-01 recovered": "12.99 USD"}},
		"declined again, and failed": {func(_ *testing.T, w *world, _ billing.Name) { w.daily("2024-02-10") },
			map[string]string{"2024-02-07 failed": "12.99 USD"}},
		"failed, declined again, and collected": {func(t *testing.T, w *world, n billing.Name) {
			w.daily("2024-02-10")
			w.newMethod(n, declined)
			w.chargePeriod(t, n, engine.PeriodCharge{})
			w.tomorrow()
			w.newMethod(n, good)
			w.chargePeriod(t, n, engine.PeriodCharge{})
		}, map[string]string{"2024-02-07 failed": "12.99 USD", "2024-02-12 collected": "12.99 USD", "2024-02-12 recovered": "12.99 USD"}},
		"paid outside, with more": {func(t *testing.T, w *world, n billing.Name) {
			_, err := w.start().CreateReceipt(t.Context(), n, engine.ManualPayment{Amount: usd(1500), Overpaid: true, Note: "cash"})
			mustNot(t, err)
		}, map[string]string{"2024-02-01 outside": "15.00 USD", "2024-02-01 recovered": "15.00 USD"}},
		"failed, and paid outside": {func(t *testing.T, w *world, n billing.Name) {
			w.daily("2024-02-10")
			_, err := w.start().CreateReceipt(t.Context(), n, engine.ManualPayment{Period: new(0), Note: "cash"})
			mustNot(t, err)
		}, map[string]string{"2024-02-07 failed": "12.99 USD", "2024-02-11 outside": "12.99 USD", "2024-02-11 recovered": "12.99 USD"}},
		"canceled": {func(t *testing.T, w *world, n billing.Name) {
			_, err := w.start().Cancel(t.Context(), n, false)
			mustNot(t, err)
		}, nil},
		"void, reopened and declined": {func(t *testing.T, w *world, n billing.Name) {
			_, err := w.start().Pause(t.Context(), n)
			mustNot(t, err)
			_, err = w.start().Resume(t.Context(), n)
			mustNot(t, err)
			w.chargePeriod(t, n, engine.PeriodCharge{Reopen: "she used it"})
		}, map[string]string{"2024-02-01 failed": "12.99 USD"}},
		"parked": {parkDeclined, nil},
		"parked, and skipped": {func(t *testing.T, w *world, n billing.Name) {
			parkDeclined(t, w, n)
			_, err := w.start().SkipParked(t.Context(), n)
			mustNot(t, err)
		}, nil},
		"parked, declined again, and paid": {func(t *testing.T, w *world, n billing.Name) {
			parkDeclined(t, w, n)
			_, _, err := w.start().ChargeParked(t.Context(), n)
			mustNot(t, err)
			wantDeclined(t, w, nil)
			w.newMethod(n, good)
			_, _, err = w.start().ChargeParked(t.Context(), n)
			mustNot(t, err)
			_, err = w.start().AnswerDoubts(t.Context(), w.sub(n).Name)
			mustNot(t, err)
		}, map[string]string{"2024-02-29 collected": "12.99 USD", "2024-02-29 recovered": "12.99 USD"}},
	} {
		t.Run(what, func(t *testing.T) {
			w, n := firstDecline(t)
			wantDeclined(t, w, nil)
			w.tomorrow()
			x.do(t, w, n)
			wantDeclined(t, w, x.want)
		})
	}
}

// parkDeclined parks the declined period.
func parkDeclined(t *testing.T, w *world, n billing.Name) {
	t.Helper()
	w.alter(t, "SUB#s1#SKU#gold", "NextPaymentDate", "2024-02-29")
	w.goTo(date("2024-02-29"))
	w.start().run(civil.Date{})
	if s := w.sub(n); s.Status != billing.ParkedState || s.Open == nil {
		t.Fatal(w.describe(n))
	}
}

// TestDeclined_FirstWhenCollected: a void period that is first declined when it is charged again is in the quarter
// of that decline, and stays in it.
func TestDeclined_FirstWhenCollected(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", method("")))
	w.start().run(civil.Date{})
	_, err := w.start().SkipParked(t.Context(), n)
	mustNot(t, err)
	wantSums(t, w, map[string]string{})
	w.goTo(date("2024-02-05"))
	w.newMethod(n, lostCard)
	w.chargePeriod(t, n, engine.PeriodCharge{Reopen: "she used it"})
	want := map[string]string{"2024-02-05 declined": "12.99 USD", "2024-02-05 failed": "12.99 USD"}
	wantSums(t, w, want)
	w.tomorrow()
	w.newMethod(n, "pm_card_visa")
	w.chargePeriod(t, n, engine.PeriodCharge{})
	maps.Copy(want, map[string]string{"2024-02-06 collected": "12.99 USD", "2024-02-06 recovered": "12.99 USD"})
	wantSums(t, w, want)
}

// TestDeclined_Fallback: the first method was declined, also if the fallback pays the period at once.
func TestDeclined_Fallback(t *testing.T) {
	w, _ := withFallback(t, lostCard, "pm_card_visa")
	w.start().run(civil.Date{})
	wantSums(t, w, map[string]string{"2024-01-31 declined": "12.99 USD", "2024-01-31 collected": "12.99 USD", "2024-01-31 recovered": "12.99 USD"})
}

// TestDeclined_Upgrade: an upgrade that is declined leaves nothing to be paid, so it is in no sum.
func TestDeclined_Upgrade(t *testing.T) {
	w, n := upgradable(planted{})
	w.newMethod(n, lostCard)
	w.upgradeNow(t, n)
	w.drain(t)
	for day := range w.sums(t) {
		if day[len("2024-01-31 "):] == "declined" {
			t.Errorf("declined: %s", day)
		}
	}
	w.report(t)
}

// TestDeclined_OfAnOlderBuild: an older Duesday has opened the period, and added nothing when it was declined. The
// audit asks for nothing while the period is open, and its payment adds the decline to the decline's own day.
func TestDeclined_OfAnOlderBuild(t *testing.T) {
	w, n := firstDecline(t)
	for it, err := range w.spy.mem.Scan(t.Context(), store.Scan{Table: w.tables.Outbox.Name}) {
		mustNot(t, err)
		it = it.Clone()
		it.Remove(schema.Sums)
		mustNot(t, w.spy.mem.Commit(t.Context(), store.Put(w.tables.Outbox.Name, it)))
	}
	it := w.rawOf(n).Clone()
	open := it.Get(schema.OpenPeriod).Map().Clone()
	if open.Str(schema.DeclinedSum) != "declined 12.99 USD 2024-01-31T09:00" {
		t.Errorf("open period %v", open)
	}
	open.Remove(schema.DeclinedSum)
	it.Set(schema.OpenPeriod, store.M(open))
	w.write(it)
	wantSums(t, w, map[string]string{})
	w.tomorrow()
	w.newMethod(n, "pm_card_visa")
	w.start().run(civil.Date{})
	wantDeclined(t, w, map[string]string{"2024-02-01 collected": "12.99 USD", "2024-02-01 recovered": "12.99 USD"})
}

// TestDeclined_TwoOfOneAccount: the rows of two subscriptions of an account without an address do not meet.
func TestDeclined_TwoOfOneAccount(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.create(one("2024-01-31", method(declined)))
	w.create(one("2024-01-31", method(declined), func(n *billing.NewSubscription) { n.ID, n.Email = "s2", "" }))
	for _, id := range []string{"s1", "s2"} {
		w.alter(t, "SUB#"+id+"#SKU#gold", schema.Email, "")
	}
	w.start().run(civil.Date{})
	equal(t, w.mails(), []string{"sum 2", "sum 2"})
	w.drain(t)
	if got := w.sums(t)["2024-01-31 declined"]; got != "25.98 USD" {
		t.Errorf("declined %s", got)
	}
}

// TestDeclined_AClockThatWasAhead: a decline is dated after the payment if the clock was ahead. The receipt is kept for as
// long as the audit compares the decline's sum.
func TestDeclined_AClockThatWasAhead(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.cfg.ReceiptMonths = 1
	n := w.create(one("2024-03-31", method(declined)))
	w.goTo(date("2024-03-31"))
	w.start().run(civil.Date{})
	w.goTo(date("2024-02-01"))
	mustNot(t, w.start().SetCharging(t.Context(), true, ""))
	w.newMethod(n, "pm_card_visa")
	w.start().run(civil.Date{})
	w.goTo(date("2024-04-10"))
	wantSums(t, w, map[string]string{"2024-03-31 declined": "12.99 USD", "2024-02-01 collected": "12.99 USD", "2024-02-01 recovered": "12.99 USD"})
}

// TestDeclined_Adopted: the restored store knows of the decline, and not of the intent with which the lost store was paid
// afterwards. Its receipt has the decline of the period, which was added before.
func TestDeclined_Adopted(t *testing.T) {
	w, n := firstDecline(t)
	wantDeclined(t, w, nil)
	backup := w.spy.snapshot()
	_, err := w.box.Cancel(t.Context(), w.sub(n).Open.Ref)
	mustNot(t, err)
	w.tomorrow()
	w.newMethod(n, "pm_card_visa")
	w.start().run(civil.Date{})
	if s := w.sub(n); s.Paid != 1 {
		t.Fatal(w.describe(n))
	}
	w.spy = backup
	adopted, err := w.start().Reconcile(t.Context())
	if err != nil || adopted != 1 {
		t.Fatal(adopted, err)
	}
	wantDeclined(t, w, map[string]string{"2024-02-01 collected": "12.99 USD", "2024-02-01 recovered": "12.99 USD"})
}

// TestDeclined_Repaired: the audit finds a wrong sum of an open period's decline, and its correction makes it right.
func TestDeclined_Repaired(t *testing.T) {
	w, _ := firstDecline(t)
	w.drain(t)
	for it, err := range report.Items(t.Context(), w.start().Records, w.now(), w.now()) {
		mustNot(t, err)
		it = it.Clone()
		it.Set(schema.Amounts, store.M(store.NewItem(store.Attribute{Name: string(report.Declined), Value: store.S("99.00")})))
		mustNot(t, w.spy.mem.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, it)))
	}
	r, err := w.start().Verify(t.Context())
	mustNot(t, err)
	if len(r.Problems) != 1 || len(r.Corrections) != 1 {
		t.Fatalf("problems %+v, corrections %+v", r.Problems, r.Corrections)
	}
	correct(t, w, r)
	wantDeclined(t, w, nil)
}
