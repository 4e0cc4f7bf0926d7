package takeover_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/stripe/sell"
	"github.com/duesday/duesday/internal/takeover"
	"github.com/duesday/duesday/internal/test/stripetest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
)

// TestTakeover: each request and answer fits Stripe's specification. A subscription is taken over, ends at Stripe, and is charged here from its boundary on.
func TestTakeover(t *testing.T) {
	w := newWorld(t, func(h http.Handler) http.Handler { return stripetest.Load(t).Watch(t, h) })
	customer, method := w.customer(1)
	sub := w.post("subscriptions", "customer="+customer, "items[0][price]="+w.price("lookup_key=gym"))
	w.pass(10 * 24 * time.Hour)
	taken, err := w.take(t.Context(), takeover.Filter{})
	w.must(err)
	e := taken[sub.id()]
	if e.Stays != "" || !e.Theirs.EndsWithPeriod || e.Ours.Takeover.Stage != billing.TakeoverEnding || e.Ours.Method != method {
		t.Fatalf("%+v", e)
	}
	if due := e.Ours.NextPayment.String(); due != "2026-04-02" || e.Ours.SKU != "gym" {
		t.Errorf("due on %s, %s", due, e.Ours.SKU)
	}
	w.days(25)
	s := w.ours(e.Ours.Name)
	if s.Period != 1 || s.Takeover.Stage != billing.TakeoverDone {
		t.Errorf("period %d, %+v", s.Period, s.Takeover)
	}
	if r := w.verify(); !r.OK {
		t.Errorf("%+v", r.Problems)
	}
}

// one makes a shop with one tracked subscription, ten days old.
func one(t *testing.T) (w *world, customer, id string) {
	t.Helper()
	w = newWorld(t)
	_, err := w.tracked.Register(t.Context(), merchant, w.own())
	w.must(err)
	customer, method := w.customer(1)
	c, err := w.tracked.CreatePurchase(t.Context(), tracking.Order{Merchant: merchant, Kind: tracking.Subscribe, Key: "k", Price: w.price(),
		Customer: customer, PaymentMethod: method})
	w.must(err)
	for id = range c.Purchase.Subscriptions {
		w.follow()
	}
	w.pass(10 * 24 * time.Hour)
	return w, customer, id
}

// charges returns how many charges of the customer succeeded.
func (w *world) charges(customer string) (n int) {
	w.Helper()
	for _, c := range w.list("charges", "customer="+customer) {
		if c["status"] == "succeeded" {
			n++
		}
	}
	return n
}

// during lets do run in a process that dies at its point, and then in one that does not, for each point.
func during(t *testing.T, do func(ctx context.Context, w *world, n billing.Name) error, taken bool, check func(*testing.T, *world, string, string)) {
	for at := int64(0); ; at++ {
		w, customer, id := one(t)
		n := billing.Name{Account: customer, ID: id}
		if taken {
			_, err := w.take(t.Context(), takeover.Filter{})
			w.must(err)
		}
		ctx, stop := context.WithCancelCause(t.Context())
		c := &crash{stop: stop}
		c.left.Store(at)
		w.start(c)
		err := do(ctx, w, n)
		if c.ended.Load() != (err != nil) {
			t.Fatalf("point %d: ended %v, %v", at, c.ended.Load(), err)
		}
		w.start(nil)
		w.must(do(t.Context(), w, n))
		check(t, w, customer, id)
		if err == nil {
			t.Logf("%d points", at)
			return
		}
	}
}

func takes(ctx context.Context, w *world, _ billing.Name) error {
	_, err := w.take(ctx, takeover.Filter{})
	return err
}

func undoes(ctx context.Context, w *world, n billing.Name) error {
	_, err := w.service().Undo(ctx, n)
	return err
}

// TestStart_EachPoint: a start that dies at any of its points continues, and the customer then pays once a month.
func TestStart_EachPoint(t *testing.T) {
	during(t, takes, false, func(t *testing.T, w *world, customer, id string) {
		w.days(40)
		w.follow()
		if n := w.charges(customer); n != 2 {
			t.Errorf("%d charges", n)
		}
		if r := w.verify(); !r.OK || w.done[tracking.ActionUnsubscribe] != 0 {
			t.Errorf("%+v, %v", r.Problems, w.done)
		}
		s, err := w.tracked.Subscription(t.Context(), w.own(), id)
		if err != nil || s.Ending != tracking.EndTakenOver {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// TestUndo_EachPoint: an undo that dies at any of its points continues, and the customer pays at Stripe. A later end
// there triggers an unsubscribe.
func TestUndo_EachPoint(t *testing.T) {
	during(t, undoes, true, func(t *testing.T, w *world, customer, id string) {
		w.days(40)
		if s := w.ours(billing.Name{Account: customer, ID: id}); s.Status != billing.CanceledSub || s.Takeover.Stage != billing.TakeoverUndone {
			t.Errorf("%s, %+v", s.Status, s.Takeover)
		}
		if n := w.charges(customer); n != 2 {
			t.Errorf("%d charges", n)
		}
		w.stripe(http.MethodDelete, "subscriptions/"+id)
		w.follow()
		if r := w.verify(); !r.OK || w.done[tracking.ActionUnsubscribe] != 1 {
			t.Errorf("%+v, %v", r.Problems, w.done)
		}
	})
}

// TestUndo_Refused: after the first charge, and after theirs has ended.
func TestUndo_Refused(t *testing.T) {
	w, customer, id := one(t)
	n := billing.Name{Account: customer, ID: id}
	w.must(takes(t.Context(), w, n))
	w.pass(20*24*time.Hour + time.Hour) // the boundary, before a run
	w.fake.SetNow(w.now().Add(24 * time.Hour))
	for range 2 {
		if err := undoes(t.Context(), w, n); !errors.Is(err, billing.ErrState) {
			t.Errorf("%v", err)
		}
		w.days(2)
	}
	if s := w.ours(n); s.Period != 1 {
		t.Errorf("period %d", s.Period)
	}
}

// TestStart_Again: what was handed back can be taken over again, under another id.
func TestStart_Again(t *testing.T) {
	w, customer, id := one(t)
	w.must(takes(t.Context(), w, billing.Name{}))
	w.must(undoes(t.Context(), w, billing.Name{Account: customer, ID: id}))
	w.must(takes(t.Context(), w, billing.Name{}))
	w.days(40)
	if s := w.ours(billing.Name{Account: customer, ID: id + "-2"}); s.Period != 1 || w.charges(customer) != 2 {
		t.Errorf("period %d, %d charges", s.Period, w.charges(customer))
	}
}

// TestRenewed: somebody had theirs continue, so it charges the period. Ours is void with that invoice, and waits for
// the next boundary, where theirs has ended.
func TestRenewed(t *testing.T) {
	w, customer, id := one(t)
	n := billing.Name{Account: customer, ID: id}
	w.must(takes(t.Context(), w, n))
	w.post("subscriptions/"+id, "cancel_at_period_end=false")
	w.days(30)
	s := w.ours(n)
	p, err := w.engine.RecordOf(t.Context(), s.Name, 0)
	if err != nil || p.Ending != billing.EndVoid || !strings.Contains(p.Reason, "invoice in_") || !s.Held() || s.Period != 1 {
		t.Fatalf("%+v, %v; %+v", p, err, s.Takeover)
	}
	w.post("subscriptions/"+id, "cancel_at_period_end=true")
	w.days(30)
	if s := w.ours(n); s.Period != 2 || s.Takeover.Stage != billing.TakeoverDone || w.charges(customer) != 3 {
		t.Errorf("period %d, %+v, %d charges", s.Period, s.Takeover, w.charges(customer))
	}
	if r := w.verify(); !r.OK {
		t.Errorf("%+v", r.Problems)
	}
}

// TestWaits: while Stripe does not answer the look-up, the period is pending, and parked after three days; an operator
// then charges it.
func TestWaits(t *testing.T) {
	w, customer, id := one(t)
	n := billing.Name{Account: customer, ID: id}
	w.must(takes(t.Context(), w, n))
	w.fake.SetNow(w.now())
	for range 22 {
		w.pass(24 * time.Hour)
		w.fake.SetNow(w.now())
	}
	w.fake.FailNext("GET /v1/subscriptions/"+id, http.StatusNotFound, "resource_missing", 6)
	for day := range 5 {
		r := w.run()
		want := map[bool]string{true: "pending", false: "parked"}[day < 3]
		if r.Counts[engine.Outcome(want)] != 1 {
			t.Errorf("day %d: %v", day, r.Counts)
		}
		w.pass(24 * time.Hour)
	}
	if s := w.ours(n); s.Status != billing.ParkedState || !strings.Contains(s.Parked, "is not known") {
		t.Errorf("%s: %s", s.Status, s.Parked)
	}
	if r, _, err := w.engine.ChargeParked(t.Context(), n); err != nil || len(r) != 1 || r[0].Outcome != engine.OutcomeParked || w.charges(customer) != 1 {
		t.Errorf("%+v, %v, %d charges", r, err, w.charges(customer)) // Stripe still does not answer
	}
	if _, s, err := w.engine.ChargeParked(t.Context(), n); err != nil || w.charges(customer) != 2 || s.Status != billing.Active {
		t.Errorf("%v, %d charges", err, w.charges(customer))
	}
}

// TestEndsEarly: the customer cancelled at Stripe, so an operator decides whether they wanted to go on here.
func TestEndsEarly(t *testing.T) {
	w, customer, id := one(t)
	n := billing.Name{Account: customer, ID: id}
	w.must(takes(t.Context(), w, n))
	w.stripe(http.MethodDelete, "subscriptions/"+id)
	w.days(25)
	if s := w.ours(n); s.Status != billing.ParkedState || !strings.Contains(s.Parked, "cancelled it") || w.charges(customer) != 1 {
		t.Errorf("%s: %s, %d charges", s.Status, s.Parked, w.charges(customer))
	}
	_, err := w.engine.SkipParked(t.Context(), n)
	w.must(err)
	w.days(31)
	if s := w.ours(n); s.Status != billing.ParkedState || s.Period != 1 || w.charges(customer) != 1 {
		t.Errorf("after a skip: %s, period %d, %d charges", s.Status, s.Period, w.charges(customer))
	}
	_, _, err = w.engine.ChargeParked(t.Context(), n)
	w.must(err)
	w.days(31)
	if s := w.ours(n); s.Status != billing.Active || s.Period != 3 || s.Takeover.Stage != billing.TakeoverDone || w.charges(customer) != 3 {
		t.Errorf("after a charge: %s, period %d, %d charges", s.Status, s.Period, w.charges(customer))
	}
}

// TestCustomerCancels: theirs ends at its boundary, but its customer has cancelled it meanwhile. Ours is parked.
func TestCustomerCancels(t *testing.T) {
	w, customer, id := one(t)
	w.must(takes(t.Context(), w, billing.Name{}))
	w.post("subscriptions/"+id, "cancel_at_period_end=true", "cancellation_details[feedback]=too_expensive")
	w.days(35)
	if s := w.ours(billing.Name{Account: customer, ID: id}); s.Status != billing.ParkedState || w.charges(customer) != 1 {
		t.Errorf("%s, %d charges", s.Status, w.charges(customer))
	}
}

// TestStart_ThenImport: a purchase that is imported after the start, before the boundary or after it, triggers no
// unsubscribe.
func TestStart_ThenImport(t *testing.T) {
	for _, late := range []bool{false, true} {
		w := newWorld(t)
		_, err := w.tracked.Register(t.Context(), merchant, w.own())
		w.must(err)
		customer, _ := w.customer(1)
		id := w.post("subscriptions", "customer="+customer, "items[0][price]="+w.price()).id()
		w.days(10)
		w.must(takes(t.Context(), w, billing.Name{}))
		if late {
			w.days(35)
		}
		_, err = poller.Import(t.Context(), w.own(), poller.ImportOptions{Ledger: w.tracked, Lister: sell.New(w.proc.API()), Now: w.now(),
			Payments: w.now().AddDate(-1, 0, 0), Each: func(poller.ImportRow) {}, Step: func() {}})
		w.must(err)
		w.days(35)
		w.follow()
		s, err := w.tracked.Subscription(t.Context(), w.own(), id)
		if err != nil || s.Ending != tracking.EndTakenOver || w.done[tracking.ActionUnsubscribe] > 0 || w.charges(customer) < 2 {
			t.Errorf("late %v: %+v, %v; did %v, %d charges", late, s, err, w.done, w.charges(customer))
		}
	}
}

// TestVerify_NamesTheSide: the audit names a subscription that continues on both sides, or on neither.
func TestVerify_NamesTheSide(t *testing.T) {
	w, customer, id := one(t)
	n := billing.Name{Account: customer, ID: id}
	w.must(takes(t.Context(), w, n))
	w.pass(2 * time.Hour)
	for _, tt := range []struct {
		do   func()
		kind string
	}{
		{func() {}, ""},
		{func() { w.post("subscriptions/"+id, "cancel_at_period_end=false") }, "alive on both sides"},
		{func() { _, err := w.engine.UndoTakeover(t.Context(), n); w.must(err) }, ""},
		{func() { w.post("subscriptions/"+id, "cancel_at_period_end=true") }, "alive on neither side"},
		{func() { w.must(undoes(t.Context(), w, n)) }, ""},
		{func() {
			w.must(takes(t.Context(), w, n))
			_, err := w.engine.Cancel(t.Context(), billing.Name{Account: customer, ID: id + "-2"}, false)
			w.must(err)
		}, ""},
		{func() { w.post("subscriptions/"+id, "cancel_at_period_end=false") }, "alive at the processor"},
	} {
		tt.do()
		var kind strings.Builder
		for _, p := range w.verify().Problems {
			kind.WriteString(p.Kind)
		}
		if kind.String() != tt.kind {
			t.Errorf("%q, want %q", kind.String(), tt.kind)
		}
	}
}
