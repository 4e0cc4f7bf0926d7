package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/stripefake"
)

// stripeWorld is a world that is charged at Stripe's fake over HTTP.
func stripeWorld(t *testing.T, at string, faults stripefake.Faults) (*world, *stripeBank) {
	var b *stripeBank
	w := newWorld(at, planted{bank: func(w *world) bank {
		b = newStripeBank(t, w, faults)
		return b
	}})
	t.Cleanup(b.close)
	return w, b
}

// engine is one that knows all that Stripe can do, where a world's processes see a
// processor.Charger alone.
func (b *stripeBank) engine(w *world) (*engine.Engine, error) {
	return engine.Open(b.t.Context(),
		engine.Options{Store: w.spy, Tables: w.tables, Processor: b, Now: w.now, Config: w.cfg})
}

func (b *stripeBank) mustEngine(w *world) *engine.Engine {
	b.t.Helper()
	e, err := b.engine(w)
	if err != nil {
		b.t.Fatal(err)
	}
	return e
}

func run(t *testing.T, e *engine.Engine) *job.Report {
	t.Helper()
	r, err := job.Payments(t.Context(), e, job.Options{Workers: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, missed := range r.Missed {
		if !errors.Is(missed, processor.ErrAccountRefused) {
			t.Error(missed)
		}
	}
	return r
}

// charges counts the fake's successes, by account, subscription and period.
func (b *stripeBank) charges() map[string]int {
	n := map[string]int{}
	for e := range b.fake.Ledger() {
		if e.Type == "charge" {
			m := e.Metadata
			n[m["duesday_account"]+"/"+m["duesday_subscription"]+"/"+m["duesday_period"]]++
		}
	}
	return n
}

// TestStripeForgottenKey: the reply to a confirm was lost, the process died, and it is more
// than a day until anybody looks again: Stripe has forgotten the key, and nobody is charged
// twice. The price was changed in between: what is open keeps its own.
func TestStripeForgottenKey(t *testing.T) {
	for _, delay := range []time.Duration{25 * time.Hour, 10 * 24 * time.Hour} {
		for point := 1; point <= 8; point++ {
			for _, crash := range []bool{true, false} {
				w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
				n := w.create(one("2024-01-31"))
				w.start(fault{point, crash}, fault{point + 1, true}).run(civil.Date{})
				w.pass(delay)
				open := w.sub(n).Open
				_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Amount: new(usd(1999))})
				mustNot(t, err)
				w.start().run(civil.Date{})
				s := w.sub(n)
				if s.Open != nil || s.Period != 1 {
					t.Fatalf("point %d, %s: %s", point, delay, w.describe(n))
				}
				for e := range b.fake.Ledger() {
					want := int64(1299)
					if open == nil && s.LastPayment.After(date("2024-02-01").In(time.UTC)) {
						want = 1999 // it had not been opened when the price changed
					}
					if e.Amount != want {
						t.Errorf("point %d, %s: charged %d, want %d", point, delay, e.Amount, want)
					}
				}
				w.report(t)
			}
		}
	}
}

// TestStripeIntentCanceledThere: somebody cancels the intent in Stripe's dashboard; the
// period goes on with another one, and is charged once.
func TestStripeIntentCanceledThere(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	n := w.create(one("2024-01-31", method("pm_card_visa_chargeDeclined")))
	w.start().run(civil.Date{})
	ref := w.sub(n).Open.Ref
	if _, err := b.Processor.Cancel(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Method: new("pm_card_visa")})
	mustNot(t, err)
	w.start().run(civil.Date{})
	if s := w.sub(n); s.Period != 1 || s.LastCharge == ref || b.charges()["a1/s1/0"] != 1 {
		t.Errorf("%s; charges %v", w.describe(n), b.charges())
	}
	w.report(t)
}

// TestStripeRevokedKey: the job stops, and nobody's state is touched, whether the key dies
// before the run or in the middle of it.
func TestStripeRevokedKey(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	e := b.mustEngine(w)
	for i := range 20 {
		w.create(one("2024-01-31", func(n *billing.NewSubscription) {
			n.Account, n.Email = fmt.Sprintf("a%d", i), fmt.Sprintf("a%d@example.com", i)
		}))
	}
	before := w.spy.mem.Snapshot()
	if err := b.fake.Revoke(fakeKey); err != nil {
		t.Fatal(err)
	}
	_, err := job.Payments(t.Context(), e, job.Options{Workers: 4})
	wantErr(t, err, processor.ErrRefused)
	same(t, w, before, w.spy.mem)
	if _, err := b.engine(w); !errors.Is(err, processor.ErrRefused) {
		t.Errorf("opened with a revoked key: %v", err)
	}
	mustNot(t, b.fake.Restore(fakeKey))
	stopping := 0
	_, err = job.Payments(t.Context(), e, job.Options{Workers: 1, Each: func(engine.Result) {
		if stopping++; stopping == 5 {
			mustNot(t, b.fake.Revoke(fakeKey))
		}
	}})
	wantErr(t, err, processor.ErrRefused)
	mustNot(t, b.fake.Restore(fakeKey))
	if r := run(t, b.mustEngine(w)); r.Counts[engine.OutcomePaid] != 15 || len(b.charges()) != 20 {
		t.Errorf("then paid %d, %d in all", r.Counts[engine.OutcomePaid], len(b.charges()))
	}
	w.report(t)
}

// same compares the subscriptions of two stores: a run that was stopped records itself.
func same(t *testing.T, w *world, before, after store.Store) {
	t.Helper()
	is := map[store.Key]store.Item{}
	for it, err := range after.Scan(t.Context(), store.Scan{Table: w.tables.RecurringPayments.Name}) {
		mustNot(t, err)
		is[w.tables.RecurringPayments.KeyOf(it)] = it
	}
	n := 0
	for it, err := range before.Scan(t.Context(), store.Scan{Table: w.tables.RecurringPayments.Name}) {
		mustNot(t, err)
		if !strings.HasPrefix(it.Str(schema.PK), "ACC#") {
			continue
		}
		n++
		if now := is[w.tables.RecurringPayments.KeyOf(it)]; !now.Equal(it) {
			t.Errorf("was %v, is %v", it, now)
		}
	}
	if n == 0 {
		t.Error("nothing was compared")
	}
}

// TestStripeOneOf860 has 860 connected accounts, of which one has disconnected: the others
// are charged, its own stay open, and go on when it has come back. -short has 43 accounts.
func TestStripeOneOf860(t *testing.T) {
	t.Parallel()
	connected := soaktest.Cases(t, 43, 215, 860)
	gone, place := fmt.Sprintf("acct_c%d", connected/2), fmt.Sprintf("a%d/s1/0", connected/2)
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	e := b.mustEngine(w)
	for i := range connected {
		at, id := fmt.Sprintf("acct_c%d", i), fmt.Sprintf("a%d", i)
		mustNot(t, b.fake.Connect(at, ""))
		_, err := e.CreateSubscription(t.Context(),
			one("2024-01-31", func(n *billing.NewSubscription) { n.Account, n.Email = id, id+"@example.com" }))
		mustNot(t, err)
		_, err = e.Attach(t.Context(), id, billing.Attachment{Connected: &at, Fee: new(250)})
		mustNot(t, err)
	}
	mustNot(t, b.fake.Disconnect(gone))
	r := run(t, e)
	if r.Counts[engine.OutcomePaid] != connected-1 || r.Counts[engine.OutcomePending] != 1 {
		t.Errorf("counts %v", r.Counts)
	}
	if charges := b.charges(); len(charges) != connected-1 || charges[place] != 0 {
		t.Errorf("%d charges, %d at the one that is gone", len(charges), charges[place])
	}
	mustNot(t, b.fake.Connect(gone, ""))
	w.pass(time.Hour)
	if r = run(t, e); r.Counts[engine.OutcomePaid] != 1 || b.charges()[place] != 1 {
		t.Errorf("after it came back: %v", r.Counts)
	}
	for at, n := range b.accounts() {
		if want := 1; n != want {
			t.Errorf("%s has %d charges", at, n)
		}
	}
	a, err := e.Verify(t.Context())
	if err != nil || !a.OK {
		t.Errorf("audit %+v, %v", a, err)
	}
}

// accounts counts the charges at each of Stripe's accounts.
func (b *stripeBank) accounts() map[string]int {
	n := map[string]int{}
	for e := range b.fake.Ledger() {
		n[e.Account]++
	}
	return n
}

// TestStripeIsPinned: a store that was charged at one account, in one mode, is charged at no
// other, and not at a sandbox.
func TestStripeIsPinned(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	e := b.mustEngine(w)
	meta, err := e.Meta(t.Context())
	if err != nil || meta.Processor != "stripe acct_duesday test" {
		t.Fatalf("noted %q, %v", meta.Processor, err)
	}
	b.mustEngine(w) // the same again
	for _, other := range []processor.Charger{identified{b, "stripe acct_duesday live"},
		identified{b, "stripe acct_other test"}, struct{ processor.Charger }{b}} {
		_, err := engine.Open(t.Context(), engine.Options{Store: w.spy, Tables: w.tables, Processor: other, Now: w.now})
		wantErr(t, err, charging.ErrOtherProcessor)
	}
}

type identified struct {
	processor.Charger
	identity string
}

func (p identified) Identity(ctx context.Context) (string, error) { return p.identity, nil }

// TestStripeOrphans: what was opened and never bound is cancelled after two days, and nothing
// else is.
func TestStripeOrphans(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	e := b.mustEngine(w)
	w.create(one("2024-01-31"))
	waiting := w.create(one("2024-01-31", func(n *billing.NewSubscription) {
		n.Account, n.Email, n.Method = "a2", "b@example.com", "pm_card_authenticationRequired"
	}))
	w.start(fault{2, true}).run(civil.Date{}) // dies when the intent is open
	orphans := func() (n int) {
		last := map[string]processor.State{}
		for e := range b.Entries() {
			last[e.Ref] = e.State
		}
		for _, state := range last {
			if state == processor.Opened {
				n++
			}
		}
		return n
	}
	if n := orphans(); n != 1 {
		t.Fatalf("%d orphans", n)
	}
	w.pass(25 * time.Hour) // its key is forgotten
	if r := run(t, e); r.Orphans != 0 || orphans() != 1 {
		t.Errorf("too early: %d cancelled, %d are left", r.Orphans, orphans())
	}
	w.pass(24 * time.Hour)
	if r := run(t, e); r.Orphans != 1 || orphans() != 0 {
		t.Errorf("%d cancelled, %d are left", r.Orphans, orphans())
	}
	if s := w.sub(waiting); s.Open == nil || w.state(s.Open.Ref) != processor.RequiresAction {
		t.Errorf("what waits was touched: %s", w.describe(waiting))
	}
}

// TestStripeBoundIntentsStay: an intent that is bound and was never tried, because its period
// was parked then, is no orphan however old it is.
func TestStripeBoundIntentsStay(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	n := w.create(one("2024-01-31"))
	e := b.mustEngine(w)
	w.start(fault{5, true}).run(civil.Date{}) // dies when the intent is bound
	s := w.sub(n)
	if s.Open == nil || w.state(s.Open.Ref) != processor.Opened {
		t.Fatalf("not bound and untried: %s", w.describe(n))
	}
	w.pass(10 * 24 * time.Hour)
	swept, err := e.Sweep(t.Context(), w.now().Add(-30*24*time.Hour))
	if err != nil || swept != 0 || w.state(s.Open.Ref) != processor.Opened {
		t.Errorf("%d cancelled, %v; it is %s", swept, err, w.state(s.Open.Ref))
	}
	run(t, e)
	if s := w.sub(n); s.Period != 1 || s.LastCharge == "" {
		t.Errorf("not charged by it: %s", w.describe(n))
	}
	w.report(t)
}

// TestActionDays: a payment that nobody authenticates has failed so many days after the
// customer was asked, whatever was declined before; a payment under way is left alone.
func TestActionDays(t *testing.T) {
	for _, days := range []int{1, 3, 14} {
		w := newWorld("2024-01-31T09:00", planted{})
		w.cfg.ActionDays = days
		w.cfg.RetryDays = []int{20}
		n := w.create(one("2024-01-31", method("pm_card_visa_chargeDeclined")))
		w.start().run(civil.Date{})
		w.pass(10 * 24 * time.Hour)
		_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Method: new("pm_card_authenticationRequired")})
		mustNot(t, err)
		w.start().run(civil.Date{})
		for range days - 1 {
			w.tomorrow()
			w.start().run(civil.Date{})
			if s := w.sub(n); s.Open == nil {
				t.Fatalf("%d days: ended too early, on %s: %s", days, w.today(), w.describe(n))
			}
		}
		w.tomorrow()
		w.start().run(civil.Date{})
		if s := w.sub(n); s.Open != nil || s.Status != billing.PastDue || s.Period != 1 {
			t.Errorf("%d days: %s", days, w.describe(n))
		}
		w.report(t)
	}
}
