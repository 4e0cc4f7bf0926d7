package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
)

// parking returns a world whose settings park, with one subscription that was charged for period 0.
func parking(change ...func(*billing.NewSubscription)) (*world, billing.Name) {
	w := newWorld("2024-01-31T09:00", planted{proc: gives})
	w.cfg.AfterReversal = settings.Park
	n := w.create(one("2024-01-31", change...))
	w.start().run(civil.Date{})
	return w, n
}

// takeBack makes the bank take the subscription's latest payment back, and records it.
func (w *world) takeBack(t *testing.T, n billing.Name) processor.Reversal {
	t.Helper()
	r := w.makeReturn(t, processor.Disputed, w.sub(n).LastCharge, 1299, processor.ReversalSucceeded)
	w.mustCollect(t, 1)
	w.mustCollect(t, 0) // the second look finds nothing new
	return r
}

func (w *world) wantParked(t *testing.T, n billing.Name, period int) {
	t.Helper()
	s := w.sub(n)
	p, err := w.start().RecordOf(t.Context(), n, period)
	mustNot(t, err)
	if s.Status != billing.ParkedState || s.Period != period || p.Ending != billing.EndParked || p.Reason != s.Parked ||
		!strings.HasPrefix(s.Parked, "taken back: period 0 by dispute dp_sandbox_") {
		t.Errorf("not parked: %s, %+v", w.describe(n), p)
	}
}

// TestTakenBack_Nothing: by default, the subscription goes on.
func TestTakenBack_Nothing(t *testing.T) {
	w, n := charged(planted{})
	w.takeBack(t, n)
	w.daily("2024-02-29")
	if s := w.sub(n); s.Status != billing.Active || s.Period != 2 {
		t.Errorf("is %s", w.describe(n))
	}
	w.report(t)
}

// TestTakenBack_Park: nothing is charged until an operator decides.
func TestTakenBack_Park(t *testing.T) {
	ctx := context.Background()
	for name, test := range map[string]struct {
		decide func(p *process, n billing.Name) error
		on     string // the day of the decision
		paid   int
	}{
		"resume": {func(p *process, n billing.Name) error { _, err := p.Resume(ctx, n); return err }, "2024-02-10", 2},
		"charge": {func(p *process, n billing.Name) error { _, _, err := p.ChargeParked(ctx, n); return err }, "2024-02-10", 2},
		"charge the due period": {func(p *process, n billing.Name) error { _, _, err := p.ChargeParked(ctx, n); return err },
			"2024-03-01", 2},
		"skip":   {func(p *process, n billing.Name) error { _, err := p.SkipParked(ctx, n); return err }, "2024-03-01", 1},
		"cancel": {func(p *process, n billing.Name) error { _, err := p.Cancel(ctx, n, false); return err }, "2024-03-01", 1},
		"a manual payment of the due period": {func(p *process, n billing.Name) error {
			_, err := p.CreateReceipt(ctx, n, engine.ManualPayment{Period: new(1)})
			return err
		}, "2024-03-01", 2},
	} {
		t.Run(name, func(t *testing.T) {
			w, n := parking()
			w.takeBack(t, n)
			w.wantParked(t, n, 1)
			w.daily(test.on)
			w.wantParked(t, n, 1)
			mustNot(t, test.decide(w.start(), n))
			w.daily("2024-03-30")
			if s := w.sub(n); s.Status == billing.ParkedState || s.Paid != test.paid {
				t.Errorf("after the decision: %s", w.describe(n))
			}
			w.report(t)
		})
	}
}

// TestTakenBack_ResumeIsNotABackCharge: an overdue period is charged or skipped, and never becomes void unsaid.
func TestTakenBack_ResumeIsNotABackCharge(t *testing.T) {
	w, n := parking()
	w.takeBack(t, n)
	w.daily("2024-03-01")
	_, err := w.start().Resume(t.Context(), n)
	wantErr(t, err, billing.ErrState)
	wantText(t, err, "period 1 was due on 2024-02-29; charge or skip it first")
	w.wantParked(t, n, 1)
	w.report(t)
}

// TestTakenBack_WhileThePeriodIsOpen: the open period may still be paid, and the one after it is parked.
func TestTakenBack_WhileThePeriodIsOpen(t *testing.T) {
	w, n := parking()
	w.newMethod(n, "pm_sandbox_processing")
	charge := w.sub(n).LastCharge
	w.daily("2024-02-29")
	w.makeReturn(t, processor.Disputed, charge, 1299, processor.ReversalSucceeded)
	w.mustCollect(t, 1)
	w.wantParked(t, n, 1)
	mustNot(t, w.box.Finish(w.sub(n).Open.Ref, true))
	w.tomorrow()
	w.start().run(civil.Date{})
	w.wantParked(t, n, 2)
	_, err := w.start().Resume(t.Context(), n)
	mustNot(t, err)
	if s := w.sub(n); s.Status != billing.Active || s.Paid != 2 {
		t.Errorf("after the decision: %s", w.describe(n))
	}
	w.report(t)
}

// TestTakenBack_BeforeTheSettle: the bank is faster than the commit of the receipt.
func TestTakenBack_BeforeTheSettle(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{proc: gives})
	w.cfg.AfterReversal = settings.Park
	n := w.create(one("2024-01-31", method("pm_sandbox_processing")))
	w.start().run(civil.Date{})
	ref := w.sub(n).Open.Ref
	mustNot(t, w.box.Finish(ref, true))
	w.makeReturn(t, processor.Disputed, ref, 1299, processor.ReversalSucceeded)
	w.mustCollect(t, 1)
	w.wantParked(t, n, 0)
	w.tomorrow()
	w.start().run(civil.Date{})
	w.wantParked(t, n, 1)
	w.report(t)
}

// TestTakenBack_EveryCrashPoint: the subscription is parked if, and only if, the reversal is recorded.
func TestTakenBack_EveryCrashPoint(t *testing.T) {
	for point, more := 1, true; more; point++ {
		for _, crash := range []bool{true, false} {
			w, n := parking()
			w.makeReturn(t, processor.Disputed, w.sub(n).LastCharge, 1299, processor.ReversalSucceeded)
			p := w.start(fault{point, crash})
			_, _ = p.collect()
			more = p.faults.struck()
			if recorded, parked := w.states(t) != "", w.sub(n).Status == billing.ParkedState; recorded != parked {
				t.Errorf("point %d, crash %t: recorded %t, parked %t", point, crash, recorded, parked)
			}
			_, err := w.start().collect()
			mustNot(t, err)
			w.wantParked(t, n, 1)
			w.report(t)
		}
	}
}
