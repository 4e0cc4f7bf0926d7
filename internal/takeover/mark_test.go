package takeover_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/lookup"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/takeover"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/tracking"
)

// problems returns the kinds of the audit's problems.
func (w *world) problems() (kinds string) {
	w.Helper()
	for _, p := range w.verify().Problems {
		kinds += p.Kind + "; "
	}
	return kinds
}

// unsubscribed reports whether the tracked subscription has ended, and its buyer lost access once.
func (w *world) unsubscribed(id string) bool {
	w.Helper()
	w.follow()
	s, err := w.tracked.Subscription(w.Context(), w.own(), id)
	w.must(err)
	return s.Ending == tracking.EndCanceled && w.done[tracking.ActionUnsubscribe] == 1
}

// diesAfterUndo lets an undo end while a start is about to set the flag. The start dies when it has.
func diesAfterUndo(t *testing.T) (w *world, customer, id string) {
	w, customer, id = one(t)
	ctx, die := context.WithCancel(t.Context())
	set := false
	w.before = func(r *http.Request) {
		switch own := strings.HasSuffix(r.URL.Path, id); {
		case own && set:
			w.before = nil
			die()
		case own && r.Method == http.MethodPost:
			set = true
			before := w.before
			w.before = nil
			w.must(undoes(t.Context(), w, billing.Name{Account: customer, ID: id}))
			w.before = before
		}
	}
	if err := takes(ctx, w, billing.Name{}); err == nil {
		t.Error("no error")
	}
	return w, customer, id
}

// TestStart_DiesAfterUndo: nobody would charge what a start has made end after its undo. The audit names it, also after
// its end, until another start takes it over, an undo lets it continue, or somebody removes the mark.
func TestStart_DiesAfterUndo(t *testing.T) {
	const named = "handed back, but marked; "
	for name, do := range map[string]func(w *world, customer, id string) string{
		"nothing": func(w *world, _, id string) string { return named },
		"start": func(w *world, customer, id string) string {
			w.must(takes(t.Context(), w, billing.Name{}))
			w.must(undoes(t.Context(), w, billing.Name{Account: customer, ID: id})) // of the first one changes nothing
			return ""
		},
		"undo": func(w *world, customer, id string) string {
			w.must(undoes(t.Context(), w, billing.Name{Account: customer, ID: id}))
			return ""
		},
		"continue": func(w *world, _, id string) string {
			w.post("subscriptions/"+id, "cancel_at_period_end=false")
			return named
		},
		"refused": func(w *world, customer, id string) string {
			w.post("subscriptions/"+id, "cancel_at_period_end=true", "cancellation_details[feedback]=too_expensive")
			w.must(undoes(t.Context(), w, billing.Name{Account: customer, ID: id}))
			return ""
		},
		"unmark": func(w *world, _, id string) string {
			w.post("subscriptions/"+id, "metadata[duesday_takeover]=")
			return ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, customer, id := diesAfterUndo(t)
			if got := w.problems(); got != named {
				t.Errorf("at first %q", got)
			}
			want := do(w, customer, id)
			charges := map[string]int{"nothing": 1, "unmark": 1, "refused": 1}[name]
			if charges == 0 {
				charges = 2
			}
			for range 2 {
				if got := w.problems(); got != want {
					t.Errorf("%q, want %q", got, want)
				}
				w.days(25)
			}
			if got := w.charges(customer); got != charges {
				t.Errorf("%d charges, want %d", got, charges)
			}
			if (name == "unmark" || name == "refused") && !w.unsubscribed(id) {
				t.Errorf("did %v", w.done)
			}
			err := undoes(t.Context(), w, billing.Name{Account: customer, ID: id})
			if ended := name == "nothing"; errors.Is(err, billing.ErrState) != ended || err != nil && !ended {
				t.Error(err)
			}
		})
	}
}

// TestStart_OfAnotherCustomer: the account of a held subscription gets another customer, with another method. A start
// finds the subscription all the same, and does not take theirs over twice.
func TestStart_OfAnotherCustomer(t *testing.T) {
	w, customer, id := one(t)
	w.must(takes(t.Context(), w, billing.Name{}))
	n := billing.Name{Account: customer, ID: id}
	second, method := w.customer(2)
	_, err := w.engine.Attach(t.Context(), customer, billing.Attachment{Customer: second, Method: method})
	w.must(err)
	_, err = w.engine.UpdateSubscription(t.Context(), n, billing.Change{Method: &method, SKU: new("other"), From: w.ours(n).NextPayment})
	w.must(err)
	_, err = w.engine.CreateSubscription(t.Context(), billing.NewSubscription{Account: "alice", Email: "a@example.com", ID: "other", SKU: "x",
		Customer: customer, Amount: w.ours(n).Amount, TrialDays: 300, ReminderDays: 3, Interval: civil.Interval{N: 1, Unit: civil.Year}})
	w.must(err)
	w.must(takes(t.Context(), w, billing.Name{}))
	w.days(30)
	if r := w.verify(); !r.OK || w.charges(customer) != 1 || w.charges(second) != 1 {
		t.Errorf("%+v; %d and %d charges", r.Problems, w.charges(customer), w.charges(second))
	}
	found := 0
	for s, err := range lookup.Continuing(t.Context(), w.engine.Records, id) {
		if w.must(err); s.SKU == "other" {
			found++
		}
	}
	if found != 1 {
		t.Errorf("found %d subscriptions", found)
	}
}

// TestCanceledThere: theirs is canceled before a start has made it end. Its customer is not charged any more, and loses
// access.
func TestCanceledThere(t *testing.T) {
	for _, tt := range []struct {
		name   string
		do     func(ctx context.Context, w *world, n billing.Name) error
		status billing.Status
	}{
		{"nothing", func(context.Context, *world, billing.Name) error { return nil }, billing.ParkedState},
		{"start", takes, billing.ParkedState},
		{"undo", undoes, billing.CanceledSub},
		{"cancel", func(ctx context.Context, w *world, n billing.Name) error {
			_, err := w.engine.Cancel(ctx, n, false)
			if got := w.problems(); got != "" {
				t.Errorf("after a cancellation: %q", got)
			}
			return err
		}, billing.CanceledSub},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, customer, id := one(t)
			n := billing.Name{Account: customer, ID: id}
			w.fake.FailNext("POST /v1/subscriptions/"+id, http.StatusNotFound, "resource_missing", 1)
			if err := takes(t.Context(), w, n); err == nil {
				t.Error("no error")
			}
			w.post("subscriptions/"+id, "cancel_at_period_end=true")
			if got := w.problems(); got != "canceled at the processor; " {
				t.Errorf("%q", got)
			}
			w.must(tt.do(t.Context(), w, n))
			w.days(35)
			if s := w.ours(n); s.Status != tt.status || w.charges(customer) != 1 || !w.unsubscribed(id) {
				t.Errorf("%s: %s, %d charges, did %v", s.Status, s.Parked, w.charges(customer), w.done)
			} else if parked := s.Status == billing.ParkedState; parked != strings.Contains(s.Parked, "not by a start") {
				t.Errorf("parked because %q", s.Parked)
			}
			if got := w.problems(); got != "" {
				t.Errorf("in the end %q", got)
			}
		})
	}
}

// TestUndo_MeetsStart: a start makes theirs end, and dies, after the undo has read it. It continues, without a mark.
func TestUndo_MeetsStart(t *testing.T) {
	w, customer, id := one(t)
	w.fake.FailNext("POST /v1/subscriptions/"+id, http.StatusNotFound, "resource_missing", 1)
	if err := takes(t.Context(), w, billing.Name{}); err == nil {
		t.Error("no error")
	}
	met := false
	w.store.Hook = func(o storetest.Operation, p storetest.Phase) error {
		if o.Kind == storetest.Commit && p == storetest.Before && !met {
			met = true
			w.post("subscriptions/"+id, "cancel_at_period_end=true", "metadata[duesday_takeover]="+w.engine.Opened.Installation)
		}
		return nil
	}
	w.must(undoes(t.Context(), w, billing.Name{Account: customer, ID: id}))
	if theirs := w.stripe(http.MethodGet, "subscriptions/"+id); !met || theirs["cancel_at_period_end"] == true || w.problems() != "" {
		t.Errorf("%v, %q", theirs, w.problems())
	}
}

// TestUndo_Canceled: ours is canceled while it is held, and its customer changes their mind. An undo is refused until a
// person lets theirs continue. Then it hands the subscription back, which can be taken over again.
func TestUndo_Canceled(t *testing.T) {
	for _, held := range []bool{false, true} {
		w, customer, id := one(t)
		n := billing.Name{Account: customer, ID: id}
		if held {
			w.fake.FailNext("POST /v1/subscriptions/"+id, http.StatusNotFound, "resource_missing", 1)
		}
		if err := takes(t.Context(), w, n); (err != nil) != held {
			t.Error(err)
		}
		_, err := w.engine.Cancel(t.Context(), n, false)
		w.must(err)
		if !held {
			if err := undoes(t.Context(), w, n); !errors.Is(err, billing.ErrState) || !strings.Contains(err.Error(), "let it continue at the processor") {
				t.Error(err)
			}
			w.post("subscriptions/"+id, "cancel_at_period_end=false")
		}
		if got := w.problems(); got != "alive at the processor; " {
			t.Errorf("%q", got)
		}
		w.must(undoes(t.Context(), w, n))
		w.days(35)
		if got := w.problems(); got != "" || w.charges(customer) != 2 {
			t.Errorf("held %v: %q, %d charges", held, got, w.charges(customer))
		}
		w.must(takes(t.Context(), w, n))
		w.must(undoes(t.Context(), w, billing.Name{Account: customer, ID: id + "-2"}))
		w.post("subscriptions/"+id, "cancel_at_period_end=true")
		w.days(35)
		if !w.unsubscribed(id) {
			t.Errorf("held %v: did %v", held, w.done)
		}
	}
}

// TestMark_Removed: somebody removes the mark of what is held, which its customer may have canceled. Start and undo leave
// it, until a person lets it continue.
func TestMark_Removed(t *testing.T) {
	for _, back := range []bool{false, true} {
		w, customer, id := one(t)
		n := billing.Name{Account: customer, ID: id}
		w.must(takes(t.Context(), w, n))
		w.post("subscriptions/"+id, "metadata[duesday_takeover]=")
		w.must(takes(t.Context(), w, n))
		if got := w.problems(); got != "canceled at the processor; " || w.mark(id) != "" {
			t.Errorf("%q, mark %q", got, w.mark(id))
		}
		w.post("subscriptions/"+id, "cancel_at_period_end=false")
		if back {
			w.must(undoes(t.Context(), w, n))
		} else {
			w.must(takes(t.Context(), w, n))
		}
		for range 2 {
			if got := w.problems(); got != "" {
				t.Errorf("undone %v: %q", back, got)
			}
			w.days(17)
		}
		if n := w.charges(customer); n != 2 {
			t.Errorf("undone %v: %d charges", back, n)
		}
	}
}

// TestStart_RestoredAfterUndo: a store of a backup between a start and its undo, after which the customer has canceled at
// Stripe. Neither a start nor an undo takes that back.
func TestStart_RestoredAfterUndo(t *testing.T) {
	for name, do := range map[string]func(context.Context, *world, billing.Name) error{"start": takes, "undo": undoes} {
		w, customer, id := one(t)
		n := billing.Name{Account: customer, ID: id}
		w.must(takes(t.Context(), w, n))
		before := w.copied()
		w.must(undoes(t.Context(), w, n))
		w.post("subscriptions/"+id, "cancel_at_period_end=true")
		w.inner = before
		w.start(nil)
		w.must(do(t.Context(), w, n))
		w.days(35)
		if got := w.charges(customer); got != 1 {
			t.Errorf("%s: %d charges", name, got)
		}
	}
}

// TestRefused_Meanwhile: a customer cancels, with a reason, after a start has looked theirs up. The start does not erase the
// reason.
func TestRefused_Meanwhile(t *testing.T) {
	w, customer, id := one(t)
	w.before = func(r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, id) {
			w.before = nil
			w.post("subscriptions/"+id, "cancel_at_period_end=true", "cancellation_details[feedback]=too_expensive")
		}
	}
	w.must(takes(t.Context(), w, billing.Name{}))
	if got := w.problems(); got != "canceled at the processor; " {
		t.Errorf("%q", got)
	}
	w.days(30)
	if s := w.ours(billing.Name{Account: customer, ID: id}); s.Status != billing.ParkedState || w.charges(customer) != 1 {
		t.Errorf("%s, %d charges", s.Status, w.charges(customer))
	}
}

// TestUndo_Renewed: a customer has canceled with a reason, and renews after an undo has looked theirs up. It continues.
func TestUndo_Renewed(t *testing.T) {
	w, customer, id := one(t)
	n := billing.Name{Account: customer, ID: id}
	w.must(takes(t.Context(), w, n))
	w.post("subscriptions/"+id, "cancel_at_period_end=true", "cancellation_details[feedback]=too_expensive")
	w.before = func(r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, id) {
			w.before = nil
			w.post("subscriptions/"+id, "cancel_at_period_end=false")
		}
	}
	w.must(undoes(t.Context(), w, n))
	w.days(35)
	if got := w.problems(); got != "" || w.before != nil || w.charges(customer) != 2 {
		t.Errorf("%q, %d charges", got, w.charges(customer))
	}
}

// TestRefused: a customer cancels what is held, with a reason. The audit says so at once, neither a start nor an undo
// takes it back, also in a store of an older backup, and nobody charges the customer.
func TestRefused(t *testing.T) {
	for name, do := range map[string]func(context.Context, *world, billing.Name) error{"start": takes, "undo": undoes, "restored": nil} {
		w, customer, id := one(t)
		n, before := billing.Name{Account: customer, ID: id}, w.copied()
		w.must(takes(t.Context(), w, n))
		w.post("subscriptions/"+id, "cancel_at_period_end=true", "cancellation_details[feedback]=too_expensive")
		if got := w.problems(); got != "canceled at the processor; " {
			t.Errorf("%q", got)
		}
		if do == nil {
			w.inner = before
			w.start(nil)
			if all, err := w.take(t.Context(), takeover.Filter{}); err != nil || all[id].Stays != "it ends with its period" {
				t.Errorf("%v, %+v", err, all[id])
			}
			continue
		}
		w.must(do(t.Context(), w, n))
		w.days(35)
		if s := w.ours(n); s.Status != map[string]billing.Status{"start": billing.ParkedState, "undo": billing.CanceledSub}[name] || w.charges(customer) != 1 {
			t.Errorf("%s: %s, %d charges", name, s.Status, w.charges(customer))
		}
		if back := name == "undo"; w.unsubscribed(id) != back {
			t.Errorf("%s: did %v", name, w.done)
		}
	}
}

// TestRefused_Before: a reason that a customer gave for an earlier cancellation does not count.
func TestRefused_Before(t *testing.T) {
	w, customer, id := one(t)
	w.post("subscriptions/"+id, "cancel_at_period_end=true", "cancellation_details[feedback]=too_expensive", "cancellation_details[comment]=no")
	w.post("subscriptions/"+id, "cancel_at_period_end=false", "cancellation_details[feedback]=too_expensive", "cancellation_details[comment]=no")
	w.must(takes(t.Context(), w, billing.Name{}))
	if got := w.problems(); got != "" {
		t.Errorf("%q", got)
	}
	w.days(30)
	if s := w.ours(billing.Name{Account: customer, ID: id}); s.Takeover.Stage != billing.TakeoverDone || w.charges(customer) != 2 {
		t.Errorf("%s: %s, %d charges", s.Status, s.Parked, w.charges(customer))
	}
}

// TestVerify_Decided: a person has skipped the period of theirs, which has ended early, or has ours end, too. The audit is
// silent.
func TestVerify_Decided(t *testing.T) {
	w, customer, id := one(t)
	n := billing.Name{Account: customer, ID: id}
	w.must(takes(t.Context(), w, n))
	w.stripe(http.MethodDelete, "subscriptions/"+id)
	w.days(25)
	_, err := w.engine.SkipParked(t.Context(), n)
	w.must(err)
	w.days(2)
	if got := w.problems(); got != "" {
		t.Errorf("after a skip: %q", got)
	}
	w, customer, id = one(t)
	n = billing.Name{Account: customer, ID: id}
	w.must(takes(t.Context(), w, n))
	w.post("subscriptions/"+id, "cancel_at_period_end=true", "cancellation_details[feedback]=too_expensive")
	_, err = w.engine.Cancel(t.Context(), n, true)
	w.must(err)
	for range 2 {
		if got := w.problems(); got != "" {
			t.Errorf("after a cancellation: %q", got)
		}
		w.days(35)
	}
	if s := w.ours(n); s.Status != billing.CanceledSub || w.charges(customer) != 1 {
		t.Errorf("%s, %d charges", s.Status, w.charges(customer))
	}
}

// TestPlan_FullMetadata: Stripe has no room for the mark. Theirs stays.
func TestPlan_FullMetadata(t *testing.T) {
	w, _, id := one(t)
	var pairs []string
	for i := len(w.stripe(http.MethodGet, "subscriptions/"+id)["metadata"].(map[string]any)); i < 50; i++ {
		pairs = append(pairs, fmt.Sprintf("metadata[k%d]=v", i))
	}
	w.post("subscriptions/"+id, pairs...)
	if all, err := w.take(t.Context(), takeover.Filter{}); err != nil || !strings.Contains(all[id].Stays, "50 keys of metadata") {
		t.Errorf("%v, %+v", err, all[id])
	}
}

// waiting makes a period that is parked because Stripe did not answer, although theirs was canceled meanwhile.
func waiting(t *testing.T) (w *world, customer string, n billing.Name) {
	w, customer, id := one(t)
	n = billing.Name{Account: customer, ID: id}
	w.must(takes(t.Context(), w, n))
	w.post("subscriptions/"+id, "cancel_at_period_end=true", "cancellation_details[feedback]=too_expensive")
	w.idle(20)
	w.fake.FailNext("GET /v1/subscriptions/"+id, http.StatusNotFound, "resource_missing", 5)
	w.days(5)
	return w, customer, n
}

// TestCharge_TellsFirst: a person's charge of such a period parks it with the reason, and a second one charges it. The
// repetition of the first one, and another one at the same time, do not.
func TestCharge_TellsFirst(t *testing.T) {
	w, customer, n := waiting(t)
	for charges := 1; charges <= 2; charges++ {
		if s := w.ours(n); s.Status != billing.ParkedState || w.charges(customer) != 1 {
			t.Errorf("%s, %d charges", s.Status, w.charges(customer))
		}
		_, _, err := w.engine.ChargeParked(t.Context(), n)
		w.must(err)
		if got := w.charges(customer); got != charges {
			t.Errorf("%d charges, want %d: %s", got, charges, w.ours(n).Parked)
		}
	}
	if got := w.problems(); got != "" {
		t.Errorf("%q", got)
	}

	w, customer, n = waiting(t)
	for range 3 {
		ctx := call.With(t.Context(), &call.Call{Actor: "key shop", Key: "k1", Table: w.engine.Table, Now: w.now})
		if _, err := w.engine.ChargePeriod(ctx, n, engine.PeriodCharge{Period: w.ours(n).AtHand()}); err != nil || w.charges(customer) != 1 {
			t.Errorf("repeated: %v, %d charges", err, w.charges(customer))
		}
	}

	w, customer, n = waiting(t)
	o, met := w.other(), false
	w.store.Hook = func(op storetest.Operation, p storetest.Phase) error {
		if op.Kind == storetest.Commit && p == storetest.Before && !met {
			met = true
			_, _, err := o.engine.ChargeParked(t.Context(), n)
			w.must(err)
		}
		return nil
	}
	_, _, err := w.engine.ChargeParked(t.Context(), n)
	if w.must(err); !met || w.charges(customer) != 1 {
		t.Errorf("two persons: met %v, %d charges", met, w.charges(customer))
	}
}

// TestVerify_EndsEarly: theirs is canceled at once, before its boundary. The audit says so until a run has parked ours.
func TestVerify_EndsEarly(t *testing.T) {
	w, _, id := one(t)
	w.must(takes(t.Context(), w, billing.Name{}))
	w.stripe(http.MethodDelete, "subscriptions/"+id)
	for _, want := range []string{"canceled at the processor; ", ""} {
		if got := w.problems(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		w.days(30)
	}
}

// TestStart_OfLostStore: a new store takes over what a lost one had taken over, once its charges are accepted. If the
// lost store comes back, it does not charge: the mark is of the new one.
func TestStart_OfLostStore(t *testing.T) {
	w, customer, id := one(t)
	n := billing.Name{Account: customer, ID: id}
	w.must(takes(t.Context(), w, n))
	lost, old := w.inner, w.engine.Opened.Installation
	fresh, err := memstore.Open(w.tables.All(), w.now)
	w.must(err)
	w.inner = fresh
	w.start(nil)
	w.must(w.engine.Charging().Accept(t.Context(), old))
	w.start(nil)
	w.must(takes(t.Context(), w, n))
	began := w.now()
	w.days(35)
	if s := w.ours(n); s.Takeover.Stage != billing.TakeoverDone || w.charges(customer) != 2 {
		t.Errorf("%s, %d charges", s.Takeover.Stage, w.charges(customer))
	}
	w.inner = lost
	w.at.Store(&began)
	w.start(nil)
	w.must(w.engine.Charging().Accept(t.Context(), w.mark(id)))
	w.start(nil)
	w.days(35)
	if s := w.ours(n); s.Status != billing.ParkedState || w.charges(customer) != 2 {
		t.Errorf("the lost store: %s, %d charges", s.Status, w.charges(customer))
	}
}

// mark returns the installation that has marked the subscription.
func (w *world) mark(id string) string {
	w.Helper()
	by, _ := w.stripe(http.MethodGet, "subscriptions/"+id)["metadata"].(map[string]any)["duesday_takeover"].(string)
	return by
}

// TestMark_OfAnother: a mark of another installation, or one that an undo has removed, does not make an end a takeover.
func TestMark_OfAnother(t *testing.T) {
	w, _, id := one(t)
	w.post("subscriptions/"+id, "cancel_at_period_end=true", "metadata[duesday_takeover]=dd_other")
	w.days(35)
	if !w.unsubscribed(id) {
		t.Errorf("did %v", w.done)
	}
	w, customer, id := one(t)
	w.must(takes(t.Context(), w, billing.Name{}))
	w.follow()
	n := billing.Name{Account: customer, ID: id}
	w.must(undoes(t.Context(), w, n))
	w.post("subscriptions/"+id, "cancel_at_period_end=true")
	w.must(undoes(t.Context(), w, n)) // it leaves what its customer has canceled
	w.days(35)
	if !w.unsubscribed(id) {
		t.Errorf("after an undo: did %v", w.done)
	}
}

// TestRebuild: the events tell that a subscription was taken over, and a row that says otherwise differs.
func TestRebuild(t *testing.T) {
	w := newWorld(t)
	_, err := w.tracked.Register(t.Context(), merchant, w.own())
	w.must(err)
	customer, method := w.customer(1)
	c, err := w.tracked.CreatePurchase(t.Context(), tracking.Order{Merchant: merchant, Kind: tracking.Subscribe, Key: "k", Price: w.price(),
		Customer: customer, PaymentMethod: method})
	w.must(err)
	w.pass(10 * 24 * time.Hour)
	w.must(takes(t.Context(), w, billing.Name{}))
	w.days(22)
	w.follow()
	differences := func() int {
		t.Helper()
		list, err := w.tracked.Rebuild(t.Context(), []string{w.own()}, tracking.RebuildSteps{Read: func() {}, Folded: func(int, int) {}})
		if w.must(err); list[0].Compared == 0 || list[0].Partial > 0 {
			t.Errorf("%+v", list[0])
		}
		return len(list[0].Differences)
	}
	if n := differences(); n != 0 {
		t.Errorf("%d differences", n)
	}
	table := w.tables.Tracking.Subscriptions
	for it, err := range w.inner.Scan(t.Context(), store.Scan{Table: table.Name}) {
		w.must(err)
		set := store.NewItem(store.Attribute{Name: schema.TrackedEnding, Value: store.S(string(tracking.EndCanceled))})
		w.must(w.inner.Commit(t.Context(), store.Update(table.Name, table.KeyOf(it), set, []string{schema.TrackedTakenOver})))
	}
	if n := differences(); n != len(c.Purchase.Subscriptions) {
		t.Errorf("%d differences without the mark", n)
	}
}
