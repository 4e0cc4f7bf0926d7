package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/test/storetest"
)

// TestHeard: what the processor tells of a bound intent settles the period it is bound to, once,
// and charges nothing, whatever is due.
func TestHeard(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", method("pm_card_authenticationRequired")))
	w.start().run(civil.Date{})
	ref := w.sub(n).Open.Ref
	heard := func(subscription, intent string) {
		t.Helper()
		mustNot(t, w.start().Heard(t.Context(), n.Account, subscription, intent))
	}
	heard(n.ID, ref) // nothing has happened to it yet
	if s := w.sub(n); s.Open == nil || s.Open.Ref != ref || s.Period != 0 {
		t.Fatalf("nothing had happened, and now: %s", w.describe(n))
	}
	w.set("2024-03-15T09:00") // the next period is due, too
	mustNot(t, w.box.Authenticate(ref))
	heard(n.ID, "pi_another")
	heard("another", ref)
	if s := w.sub(n); s.Open == nil {
		t.Fatal("an event about something else has settled it")
	}
	heard(n.ID, ref)
	heard(n.ID, ref)
	if s := w.sub(n); s.Open != nil || s.Period != 1 || s.LastCharge != ref {
		t.Fatalf("heard of the payment: %s", w.describe(n))
	}
	equal(t, w.attempts(), []string{"2024-01-31", "2024-03-15"}) // asked for, and authenticated: and no other
	w.report(t)
}

// TestHeardOfADecline: a decline that was recorded stays as it is, and its retry keeps its day;
// one that nobody has recorded is.
func TestHeardOfADecline(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", method("pm_card_visa_chargeDeclined")))
	w.start().run(civil.Date{})
	before := w.describe(n)
	mustNot(t, w.start().Heard(t.Context(), n.Account, n.ID, w.sub(n).Open.Ref))
	equal(t, []string{w.describe(n)}, []string{before})
	equal(t, w.attempts(), []string{"2024-01-31"})

	w = newWorld("2024-01-31T09:00", planted{})
	n = w.create(one("2024-01-31", method("pm_sandbox_processing")))
	w.start().run(civil.Date{})
	ref := w.sub(n).Open.Ref
	mustNot(t, w.box.Finish(ref, false))
	mustNot(t, w.start().Heard(t.Context(), n.Account, n.ID, ref))
	if s := w.sub(n); s.Open == nil || len(s.Open.Attempts) != 1 || s.Open.Retry.IsZero() {
		t.Fatalf("heard of the decline: %s", w.describe(n))
	}
	w.report(t)
}

// TestHeard_CrashAtEveryPoint: with a crash, or a lost answer, before and after every commit and
// every call, and whoever comes next, another event or the next run, the period is paid once.
func TestHeard_CrashAtEveryPoint(t *testing.T) {
	for _, crash := range []bool{true, false} {
		for _, byEvent := range []bool{true, false} {
			hits := 0
			for point := 1; ; point++ {
				w := newWorld("2024-01-31T09:00", planted{})
				n := w.create(one("2024-01-31", method("pm_card_authenticationRequired")))
				w.start().run(civil.Date{})
				ref := w.sub(n).Open.Ref
				mustNot(t, w.box.Authenticate(ref))
				p := w.start(fault{point, crash})
				err := p.Heard(context.Background(), n.Account, n.ID, ref)
				if !p.faults.struck() {
					break
				}
				hits++
				if crash && err != nil && !errors.Is(err, storetest.ErrCrash) {
					t.Errorf("point %d: %v", point, err)
				}
				w.pass(25 * time.Hour)
				if byEvent {
					mustNot(t, w.start().Heard(t.Context(), n.Account, n.ID, ref))
				} else {
					w.start().run(civil.Date{})
				}
				if s := w.sub(n); s.Open != nil || s.Period != 1 || s.LastCharge != ref || s.Status != billing.Active {
					t.Errorf("crash %v at point %d, then an event %v: %s", crash, point, byEvent, w.describe(n))
				}
				w.report(t)
			}
			if hits < 3 {
				t.Errorf("only %d points were hit", hits)
			}
		}
	}
}

// TestProcessingForDays: while the bank decides, neither the daily runs, nor a person, nor a new method
// charges again, over the next due date too. Paid then, the next period is charged; bounced, the retry is.
func TestProcessingForDays(t *testing.T) {
	for ok, after := range map[bool][]string{true: {"2024-03-06", "2024-03-06"}, // paid, and the next period
		false: {"2024-03-06", "2024-03-06", "2024-03-06"}} { // bounced, by the new card, and the next period
		w := newWorld("2024-01-31T09:00", planted{})
		n := w.create(one("2024-01-31", method("pm_sandbox_processing")))
		w.start().run(civil.Date{})
		ref := w.sub(n).Open.Ref
		for day := range 35 {
			w.tomorrow()
			w.start().run(civil.Date{})
			mustNot(t, w.start().Heard(t.Context(), n.Account, n.ID, ref))
			_, _, _ = w.start().CollectNow(t.Context(), n)
			_, _, _ = w.start().ChargeParked(t.Context(), n)
			_, _ = w.start().ChargePeriod(t.Context(), n, engine.PeriodCharge{})
			if day == 5 {
				w.newMethod(n, "pm_card_visa")
			}
		}
		equal(t, w.attempts(), []string{"2024-01-31"})
		mustNot(t, w.box.Finish(ref, ok))
		for range 10 {
			w.start().run(civil.Date{})
			w.tomorrow()
		}
		equal(t, w.attempts(), append([]string{"2024-01-31"}, after...))
		w.report(t)
	}
}
