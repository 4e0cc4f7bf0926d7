package engine_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
)

// meanwhile calls a function once, while a Confirm is under way.
type meanwhile struct {
	*wallet
	do *func()
}

func (m *meanwhile) Confirm(ctx context.Context, r processor.ConfirmRequest) (processor.Intent, error) {
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
	w.plant.proc = func(w *world, x processor.Charger) processor.Charger {
		return &meanwhile{inner(w, x).(*wallet), &during}
	}
	w.cfg.RetryDays = []int{1}
	n := w.create(one("2024-01-31", bare))
	p.give("", "cus_a", "pm_1", "pm_card_visa_chargeDeclined")
	p.give("", "cus_a", "pm_2", "pm_card_visa")
	w.attach(t, billing.Attachment{Customer: "cus_a", Method: "pm_1"})
	w.start().run(civil.Date{})
	w.tomorrow()
	worker := w.start()
	attached := make(chan error, 1)
	during = func() { // the account is written; its subscription waits for this worker's lock
		go func() {
			_, err := worker.Attach(context.WithoutCancel(t.Context()), "a1", billing.Attachment{Method: "pm_2"})
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

// A slowBank shows the intents that wait for their customer in another state, "" in their own. It
// does not cancel one that is processing.
type slowBank struct {
	processor.Charger
	state *processor.State
}

func (b slowBank) Lookup(ctx context.Context, ref string) (processor.Intent, error) {
	in, err := b.Charger.Lookup(ctx, ref)
	if *b.state != "" && in.State == processor.RequiresAction {
		in.State, in.Code = *b.state, "generic_decline"
	}
	return in, err
}

func (b slowBank) Cancel(ctx context.Context, ref string) (processor.Intent, error) {
	if *b.state == processor.Processing {
		return b.Lookup(ctx, ref)
	}
	return b.Charger.Cancel(ctx, ref)
}

// TestRequest_TakenBackWhileProcessing: a pause meets a payment that its customer has
// authenticated and the bank is still processing. After the pause has been taken back, the
// customer's days do not run any more: the bank's decline is retried like any other.
func TestRequest_TakenBackWhileProcessing(t *testing.T) {
	var state processor.State
	w := newWorld("2024-01-31T09:00", planted{proc: func(_ *world, x processor.Charger) processor.Charger {
		return slowBank{x, &state}
	}})
	w.cfg.ActionDays = 3
	n := w.create(one("2024-01-31", method("pm_card_authenticationRequired")))
	w.start().run(civil.Date{})
	if o := w.sub(n).Open; o == nil || o.State != processor.RequiresAction || o.Asked.IsZero() {
		t.Fatalf("got %s, want a period that waits for its customer", w.describe(n))
	}
	w.tomorrow()
	state = processor.Processing
	p := w.start()
	if _, err := p.Pause(t.Context(), n); !errors.Is(err, billing.ErrState) {
		t.Fatalf("got %v, want that the intent is not cancelled yet", err)
	}
	if _, err := p.Resume(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	w.goTo(w.today().AddDays(10))
	state = processor.Declined
	w.start().run(civil.Date{})
	s := w.sub(n)
	if s.Requested != billing.RequestNone || s.Open == nil || len(s.Open.Attempts) != 1 || s.Open.Retry.IsZero() {
		t.Errorf("got %s, want a decline with a retry day", w.describe(n))
	}
}
