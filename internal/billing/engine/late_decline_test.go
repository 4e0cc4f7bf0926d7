package engine_test

import (
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
)

// killedAfterDecline returns a world whose worker was killed after its attempt was declined, and before
// the decline was recorded: rows 7 and 8 of the crash matrix.
func killedAfterDecline(t *testing.T) (*world, billing.Name) {
	t.Helper()
	for point := 1; ; point++ {
		w := newWorld("2024-01-31T09:00", planted{})
		n := w.create(one("2024-01-31", method("pm_card_visa_chargeDeclined")))
		p := w.start(fault{point, true})
		p.run(civil.Date{})
		if !p.faults.struck() {
			t.Fatal("no worker died after the decline")
		}
		o := w.sub(n).Open
		if o == nil || len(o.Attempts) > 0 {
			continue
		}
		if in, err := w.box.Lookup(t.Context(), o.Ref); err == nil && in.State == processor.Declined {
			return w, n
		}
	}
}

// TestLateDecline: a decline that only a later look-up shows is noted, whatever that look-up is for, so
// that the receipt tells that the payment was recovered, and the period's record has the attempt.
func TestLateDecline(t *testing.T) {
	good := "pm_card_visa"
	newMethod := func(t *testing.T, p *process, n billing.Name) {
		_, err := p.UpdateSubscription(t.Context(), n, billing.Change{Method: &good})
		mustNot(t, err)
		p.run(civil.Date{})
	}
	for what, x := range map[string]struct {
		do     func(t *testing.T, p *process, n billing.Name)
		ending billing.Ending // "": paid
	}{
		"a retry": {func(t *testing.T, p *process, n billing.Name) {
			p.run(civil.Date{})
			newMethod(t, p, n)
		}, ""},
		"a new method": {newMethod, ""},
		"a manual payment": {func(t *testing.T, p *process, n billing.Name) {
			_, err := p.CreateReceipt(t.Context(), n, engine.ManualPayment{Note: "cash"})
			mustNot(t, err)
		}, ""},
		"canceled at the processor": {func(t *testing.T, p *process, n billing.Name) {
			_, err := p.w.box.Cancel(t.Context(), p.w.sub(n).Open.Ref)
			mustNot(t, err)
			newMethod(t, p, n)
		}, ""},
		"a cancellation": {func(t *testing.T, p *process, n billing.Name) {
			_, err := p.Cancel(t.Context(), n, false)
			mustNot(t, err)
		}, billing.EndVoid},
		"a pause": {func(t *testing.T, p *process, n billing.Name) {
			_, err := p.Pause(t.Context(), n)
			mustNot(t, err)
		}, billing.EndVoid},
	} {
		t.Run(what, func(t *testing.T) {
			w, n := killedAfterDecline(t)
			w.pass(1e9)
			x.do(t, w.start(), n)
			proved, err := w.start().Prove(t.Context(), n, 0)
			mustNot(t, err)
			if x.ending != "" {
				if proved.Ended == nil || proved.Ended.Ending != x.ending || len(proved.Attempts) != 1 ||
					proved.Attempts[0].Code != "generic_decline" || proved.Attempts[0].Method != "pm_card_visa_chargeDeclined" {
					t.Errorf("proof: ended %+v, attempts %+v", proved.Ended, proved.Attempts)
				}
			} else if len(proved.Receipts) != 1 || proved.Receipts[0].Recovered != billing.RecoveredDecline {
				t.Errorf("receipts %+v, want one that recovered a declined payment", proved.Receipts)
			}
			w.report(t)
		})
	}
}

// TestLateDecline_Overtaken: a worker is killed while its confirm is under way, a person gives another
// method, and then the confirm is declined: it does not count against that method, and is noted.
func TestLateDecline_Overtaken(t *testing.T) {
	w, p := newPurse("2024-01-31T09:00")
	var during func()
	inner := w.plant.proc
	w.plant.proc = func(w *world, x processor.Charger) processor.Charger {
		return &meanwhile{inner(w, x).(*wallet), &during}
	}
	w.cfg.RetryDays = []int{1}
	n := w.create(one("2024-01-31", bare))
	p.give("", "cus_a", "pm_1", "pm_card_visa_chargeDeclined")
	p.give("", "cus_a", "pm_2", "pm_card_visa")
	w.attach(t, billing.Attachment{Customer: "cus_a", Method: "pm_1"})
	during = func() { w.attach(t, billing.Attachment{Method: "pm_2"}) } // by another process
	w.start().run(civil.Date{})
	s := w.sub(n)
	receipts, err := w.start().ReceiptsOf(t.Context(), n, 0)
	mustNot(t, err)
	if s.Paid != 1 || len(receipts) != 1 || receipts[0].Recovered != billing.RecoveredDecline {
		t.Errorf("%s, receipts %+v, want a recovered payment", w.describe(n), receipts)
	}
	w.report(t)
}
