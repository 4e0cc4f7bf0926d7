package engine_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
)

// meanwhile calls a function once, while a Confirm is under way.
type meanwhile struct {
	*wallet
	do *func()
}

func (m *meanwhile) Confirm(ctx context.Context, r billing.ConfirmRequest) (billing.Intent, error) {
	if do := *m.do; do != nil {
		*m.do = nil
		do()
	}
	return m.wallet.Confirm(ctx, r)
}

// TestConfirm_NewMethodMeanwhile: a method given while the last retry is under way is tried before
// the period may fail.
func TestConfirm_NewMethodMeanwhile(t *testing.T) {
	w, p := newPurse("2024-01-31T09:00")
	var during func()
	inner := w.plant.proc
	w.plant.proc = func(w *world, x billing.Processor) billing.Processor {
		return &meanwhile{inner(w, x).(*wallet), &during}
	}
	w.cfg.RetryDays = []int{1}
	n := w.create(one("2024-01-31", bare))
	p.give("", "cus_a", "pm_1", "pm_card_visa_chargeDeclined")
	p.give("", "cus_a", "pm_2", "pm_card_visa")
	w.attach(t, engine.Attachment{Customer: "cus_a", Method: "pm_1"})
	w.start().run(civil.Date{})
	w.tomorrow()
	worker := w.start()
	attached := make(chan error, 1)
	during = func() { // the account is written; its subscription waits for this worker's lock
		go func() {
			_, err := worker.Attach(context.WithoutCancel(t.Context()), "a1", engine.Attachment{Method: "pm_2"})
			attached <- err
		}()
		for w.account("a1").Method != "pm_2" {
			runtime.Gosched()
		}
	}
	worker.run(civil.Date{})
	mustNot(t, <-attached)
	if s := w.sub(n); s.Paid != 1 || s.Status != billing.Active {
		t.Errorf("got %s, want period 0 paid with the new method", w.describe(n))
	}
	w.report(t)
}

// TestHeard_LostAnswer: while a retry day is ahead, an event whose look-up is not answered is an
// error, so that the event is applied again; nothing is stored.
func TestHeard_LostAnswer(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", method("pm_card_visa_chargeDeclined")))
	w.start().run(civil.Date{})
	before := w.describe(n)
	lost := 0
	for point := 1; ; point++ {
		p := w.start(fault{point, false})
		err := p.Heard(context.Background(), n.Account, n.ID, w.sub(n).Open.Ref)
		if !p.faults.struck() {
			break
		}
		if lost++; err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("point %d: got %v, want the lost answer", point, err)
		}
	}
	if lost == 0 {
		t.Error("no answer was lost")
	}
	if after := w.describe(n); after != before {
		t.Errorf("got %s, want %s", after, before)
	}
	w.report(t)
}
