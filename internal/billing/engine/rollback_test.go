package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// TestRestoredStore restores an old copy of the store beside the current ledger: nothing
// may be charged before the successes that the copy does not know have been adopted.
func TestRestoredStore(t *testing.T) {
	for _, lost := range []int{1, 40, 70} { // days between the copy and its restoration
		w := newWorld("2024-01-20T09:00", planted{})
		n := w.create(one("2024-01-31"))
		week := w.create(one("2024-01-26", func(n *billing.NewSubscription) {
			n.ID, n.Interval, n.PaymentDay = "s2", civil.Interval{N: 1, Unit: civil.Week}, 5
		}))
		for w.today() != date("2024-01-31") {
			w.start().run(civil.Date{})
			w.tomorrow()
		}
		backup := w.spy.snapshot()
		for range lost {
			w.start().run(civil.Date{})
			w.tomorrow()
		}
		successes := len(w.paidOn(n)) + len(w.paidOn(week))
		w.spy = backup
		ctx := context.Background()
		p := w.start()
		_, err := job.Payments(ctx, p.Engine, job.Options{})
		wantErr(t, err, charging.ErrWentBack)
		if m, err := p.Meta(ctx); err != nil || m.Charging || m.Reason == "" {
			t.Errorf("charging is still on: %+v, %v", m, err)
		}
		rep, err := job.Payments(ctx, p.Engine, job.Options{})
		mustNot(t, err)
		if !rep.Off || len(w.paidOn(n))+len(w.paidOn(week)) != successes {
			t.Errorf("a run charged while charging is off: %v", rep.Counts)
		}
		adopted, err := p.Reconcile(ctx)
		mustNot(t, err)
		if adopted == 0 {
			t.Error("nothing was adopted")
		}
		if again, err := p.Reconcile(ctx); err != nil || again != 0 {
			t.Errorf("reconciling again adopted %d, %v", again, err)
		}
		mustNot(t, p.SetCharging(ctx, true, ""))
		for range 40 {
			w.start().run(civil.Date{})
			w.tomorrow()
		}
		if !w.settled(n) || w.sub(n).Period < 2 {
			t.Errorf("%s", w.describe(n))
		}
		w.report(t)
	}
}

// TestRestoredStoreCrash: reconciling may be cut off anywhere, and done again.
func TestRestoredStoreCrash(t *testing.T) {
	for point := 1; ; point++ {
		w := newWorld("2024-01-30T09:00", planted{})
		w.create(one("2024-01-31"))
		w.start().run(civil.Date{})
		backup := w.spy.snapshot()
		for range 40 {
			w.tomorrow()
			w.start().run(civil.Date{})
		}
		w.spy = backup
		p, ctx := w.start(fault{point, true}), context.Background()
		_, err := job.Payments(ctx, p.Engine, job.Options{})
		if err == nil {
			t.Fatal("the run did not refuse")
		}
		_, _ = p.Reconcile(ctx)
		done := !p.faults.died()
		p = w.start()
		_, err = p.Reconcile(ctx)
		mustNot(t, err)
		mustNot(t, p.SetCharging(ctx, true, ""))
		p.run(civil.Date{})
		w.report(t)
		if done {
			return
		}
	}
}

// TestRestoredStoreParked: a person's charge of a parked period is held to the same gate.
func TestRestoredStoreParked(t *testing.T) {
	w := newWorld("2024-01-20T09:00", planted{})
	n := w.create(one("2024-01-31"))
	w.start().run(civil.Date{})
	w.set("2024-05-15T09:00")
	w.start().run(civil.Date{})
	backup, ctx := w.spy.snapshot(), context.Background()
	_, _, err := w.start().ChargeParked(ctx, n)
	mustNot(t, err)
	w.spy = backup
	w.pass(3 * 24 * time.Hour) // the key is forgotten
	_, _, err = w.start().ChargeParked(ctx, n)
	wantErr(t, err, charging.ErrWentBack)
	_, err = w.start().Reconcile(ctx)
	mustNot(t, err)
	w.report(t)
}

func TestChargingOff(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31"))
	p, ctx := w.start(), context.Background()
	mustNot(t, p.SetCharging(ctx, false, "audit"))
	rep, err := job.Payments(ctx, p.Engine, job.Options{})
	mustNot(t, err)
	if !rep.Off || rep.Counts[engine.OutcomeSkipped] != 1 || rep.Due() != 1 || len(w.ledger()) != 0 {
		t.Errorf("off: %+v, %d lines", rep.Counts, len(w.ledger()))
	}
	w.goTo(date("2024-04-20"))
	mustNot(t, p.SetCharging(ctx, true, ""))
	p.run(civil.Date{})
	equal(t, w.dues(n), []string{"2024-01-31", "2024-02-29", "2024-03-31"})
	w.report(t)
}

// TestRefusedCredentials stops the job and touches nobody's state.
func TestRefusedCredentials(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31"))
	before := w.sub(n).Version
	w.script.left = []scripted{{"refused", "open", 1}}
	_, err := job.Payments(context.Background(), w.start().Engine, job.Options{Workers: 1})
	if _, ok := errors.AsType[*charging.StopError](err); !ok || !errors.Is(err, processor.ErrRefused) {
		t.Errorf("error %v", err)
	}
	if s := w.sub(n); s.Version != before || s.Open != nil {
		t.Errorf("was touched: %s", w.describe(n))
	}
	w.start().run(civil.Date{})
	equal(t, w.dues(n), []string{"2024-01-31"})
	w.report(t)
}

func TestClockWentBack(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.create(one("2024-01-31"))
	w.start().run(civil.Date{})
	w.set("2024-01-31T08:50")
	_, err := job.Payments(context.Background(), w.start().Engine, job.Options{})
	wantErr(t, err, billing.ErrClock)
}

// TestIDsAreNeverReused: not even by a cancelled subscription's successor.
func TestIDsAreNeverReused(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n, p, ctx := w.create(one("2024-02-10")), w.start(), context.Background()
	_, err := p.Cancel(ctx, n, false)
	mustNot(t, err)
	_, err = p.CreateSubscription(ctx, one("2024-02-10"))
	wantErr(t, err, billing.ErrExists)
	_, err = p.CreateSubscription(ctx, one("2024-02-10", func(n *billing.NewSubscription) { n.SKU = "tin" }))
	if _, ok := errors.AsType[*billing.FieldError](err); !ok {
		t.Errorf("another SKU: %v", err)
	}
	w.report(t)
}

// TestSetEmailCrash: an address reaches every copy, however often the change is cut off.
func TestSetEmailCrash(t *testing.T) {
	for point := 1; ; point++ {
		w := newWorld("2024-01-31T09:00", planted{})
		w.create(one("2024-01-31"))
		w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.ID = "s2" }))
		w.start().run(civil.Date{})
		p, ctx := w.start(fault{point, true}), context.Background()
		_, err := p.SetEmail(ctx, "a1", "new@example.com")
		done := !p.faults.died()
		if !done {
			wantAny(t, err)
			a, err := w.start().Account(ctx, "a1")
			mustNot(t, err)
			if a.Email == "new@example.com" && a.Copying {
				audit, err := w.start().Verify(ctx)
				mustNot(t, err)
				if audit.OK {
					t.Errorf("point %d: verify does not see the unfinished change", point)
				}
			}
			_, err = w.start().SetEmail(ctx, "a1", "new@example.com")
			mustNot(t, err)
		}
		for it, err := range w.spy.Query(ctx, store.Query{Table: w.tables.RecurringPayments.Name, Partition: "ACC#a1"}) {
			mustNot(t, err)
			if has := it.Str("Email"); has != "" && has != "new@example.com" {
				t.Errorf("point %d: %s still has %s", point, it.Str("SK"), has)
			}
		}
		w.report(t)
		if done {
			return
		}
	}
}

// TestSetEmailTwice: of two changes at one time, one address wins everywhere.
func TestSetEmailTwice(t *testing.T) {
	for seed := range uint64(50) {
		w := newWorld("2024-01-31T09:00", planted{})
		w.create(one("2024-01-31"))
		w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.ID = "s2" }))
		w.start().run(civil.Date{})
		var threads []func(func())
		for _, email := range []string{"x@example.com", "y@example.com"} {
			p := w.start()
			threads = append(threads, func(edge func()) {
				p.edge = edge
				if _, err := p.SetEmail(context.Background(), "a1", email); err != nil && !errors.Is(err, billing.ErrState) {
					t.Error(err)
				}
			})
		}
		interleave(seeded(seed), threads)
		a, err := w.start().Account(context.Background(), "a1")
		mustNot(t, err)
		if a.Copying {
			t.Logf("seed %d: left unfinished, and says so", seed)
			continue
		}
		for _, v := range w.audit() {
			if strings.Contains(v, "address") {
				t.Errorf("seed %d: %s", seed, v)
			}
		}
	}
}
