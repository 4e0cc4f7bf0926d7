package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/stripefake"
)

// post is a person's plain request to Stripe, at a connected account or "" for our own. It
// returns the id of what it made or changed.
func (b *stripeBank) post(at, path string, form url.Values) string {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.server.URL+path,
		strings.NewReader(form.Encode()))
	mustNot(b.t.(*testing.T), err)
	r.Header.Set("Authorization", "Bearer "+fakeKey)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if at != "" {
		r.Header.Set("Stripe-Account", at)
	}
	var made struct {
		ID string `json:"id"`
	}
	if err := b.do(r, &made); err != nil {
		b.t.Fatal(err)
	}
	return made.ID
}

// customer makes one at Stripe.
func (b *stripeBank) customer(at string) string {
	b.t.Helper()
	return b.post(at, "/v1/customers", url.Values{"email": {"ada@example.com"}})
}

// engineOf is an engine over the world's store and any processor.
func engineOf(t *testing.T, w *world, p processor.Charger) *engine.Engine {
	t.Helper()
	e, err := engine.Open(t.Context(),
		engine.Options{Store: w.spy, Tables: w.tables, Processor: p, Now: w.now, Config: w.cfg})
	mustNot(t, err)
	return e
}

// attachTo gives the account a card of its customer's at a connected account, or our own.
func attachTo(t *testing.T, e *engine.Engine, id, at, customer, card string) {
	t.Helper()
	_, err := e.Attach(t.Context(), id, billing.Attachment{Connected: &at, Customer: customer, Method: card})
	mustNot(t, err)
}

// audited fails the test with what the engine's own audit says.
func audited(t *testing.T, e *engine.Engine) {
	t.Helper()
	a, err := e.Verify(t.Context())
	if err != nil || !a.OK {
		t.Errorf("audit %+v, %v", a, err)
	}
}

// spoil changes the subscription's item behind everybody's back.
func (w *world) spoil(t *testing.T, n billing.Name, change func(*store.Item)) {
	t.Helper()
	key := store.Key{PK: "ACC#" + n.Account, SK: "SUB#" + n.ID + "#SKU#" + n.SKU}
	it, err := w.spy.mem.Get(t.Context(), w.tables.RecurringPayments.Name, key)
	mustNot(t, err)
	it = it.Clone()
	change(&it)
	mustNot(t, w.spy.mem.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, it)))
}

// freeze is another tool's hand: it writes a state that Duesday does not know, and drops what it
// does not know itself.
func freeze(it *store.Item) {
	it.Set(schema.Status, store.S("frozen"))
	it.Remove(schema.Version)
}

// of is another account's subscription.
func of(account string) func(*billing.NewSubscription) {
	return func(n *billing.NewSubscription) { n.Account, n.Email = account, account+"@example.com" }
}

// TestGate_AnotherCustomerInTheLostTime: the copy knows the account at cus_A. In the lost time
// it was attached to cus_B and charged there. Whatever may charge it or settle its period stops.
func TestGate_AnotherCustomerInTheLostTime(t *testing.T) {
	ctx := context.Background()
	type op struct {
		parked, paused bool
		do             func(*engine.Engine, billing.Name) error
	}
	for name, op := range map[string]op{
		"collect now": {do: func(e *engine.Engine, n billing.Name) error { _, _, err := e.CollectNow(ctx, n); return err }},
		"receipt": {do: func(e *engine.Engine, n billing.Name) error {
			_, err := e.CreateReceipt(ctx, n, engine.ManualPayment{Amount: usd(1299), Note: "cash"})
			return err
		}},
		"charge parked": {parked: true,
			do: func(e *engine.Engine, n billing.Name) error { _, _, err := e.ChargeParked(ctx, n); return err }},
		"skip parked": {parked: true, do: func(e *engine.Engine, n billing.Name) error {
			_,
				err := e.SkipParked(ctx, n)
			return err
		}},
		"resume": {paused: true, do: func(e *engine.Engine, n billing.Name) error { _, err := e.Resume(ctx, n); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			w, b := stripeWorld(t, "2024-01-20T09:00", stripefake.Faults{})
			n := w.create(one("2024-01-31", bare))
			e := b.mustEngine(w)
			attachTo(t, e, "a1", "", b.customer(""), "pm_card_visa")
			if op.paused {
				_, err := e.Pause(ctx, n)
				mustNot(t, err)
			}
			w.goTo(date("2024-01-31"))
			if op.parked {
				w.goTo(date("2024-06-20"))
				run(t, e)
			}
			backup := w.spy.snapshot()
			attachTo(t, e, "a1", "", b.customer(""), "pm_card_visa")
			switch {
			case op.parked:
				_, _, err := e.ChargeParked(ctx, n)
				mustNot(t, err)
			case op.paused:
				_, err := e.Resume(ctx, n)
				mustNot(t, err)
			}
			run(t, e)
			if charged := b.charges()["a1/s1/0"]; charged != 1 {
				t.Fatalf("%d charges in the lost time: %s", charged, w.describe(n))
			}
			w.spy = backup
			w.pass(time.Hour)
			e = b.mustEngine(w)
			if err := op.do(e, n); !errors.Is(err, charging.ErrWentBack) {
				t.Errorf("error %v, want %v", err, charging.ErrWentBack)
			}
			if meta, err := e.Meta(ctx); err != nil || meta.Charging {
				t.Errorf("charging is on: %v", err)
			}
			adopted, err := e.Reconcile(ctx)
			if err != nil || adopted != 1 {
				t.Errorf("adopted %d, %v", adopted, err)
			}
			mustNot(t, e.SetCharging(ctx, true, ""))
			run(t, e)
			if charged := b.charges()["a1/s1/0"]; charged != 1 {
				t.Errorf("charged %d times", charged)
			}
			audited(t, e)
		})
	}
}

// TestReconcile_APlaceOfTheLostTime: a connected account that was first used in the lost time
// is in no list of the copy's, and found at the processor.
func TestReconcile_APlaceOfTheLostTime(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	n := w.create(one("2024-01-31", bare))
	other := w.create(one("2024-01-31", of("a2")))
	backup := w.spy.snapshot()
	mustNot(t, b.fake.Connect("acct_new", ""))
	mustNot(t, b.fake.Connect("acct_idle", ""))
	e := b.mustEngine(w)
	attachTo(t, e, "a1", "acct_new", b.customer("acct_new"), "pm_card_visa")
	run(t, e)
	ref := w.sub(n).LastCharge
	if !strings.HasPrefix(ref, "acct_new/") {
		t.Fatalf("charged by %q", ref)
	}
	w.spy = backup
	w.pass(time.Hour)
	e = b.mustEngine(w)
	adopted, err := e.Reconcile(t.Context())
	if err != nil || adopted != 2 {
		t.Errorf("adopted %d, %v; want 2", adopted, err)
	}
	for _, n := range []billing.Name{n, other} {
		s, err := e.Subscription(t.Context(), n)
		if err != nil || s.Period != 1 || n.Account == "a1" && s.LastCharge != ref {
			t.Errorf("%s: %+v, %v", n, s, err)
		}
	}
	run(t, e)
	if charges := b.charges(); charges["a1/s1/0"] != 1 || charges["a2/s1/0"] != 1 {
		t.Errorf("charges %v", charges)
	}
}

// TestGate_RefusedPlace: nobody is charged by a command at a connected account that could not
// be asked, and the others are.
func TestGate_RefusedPlace(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	n := w.create(one("2024-01-31", bare))
	other := w.create(one("2024-01-31", of("a2")))
	mustNot(t, b.fake.Connect("acct_gone", ""))
	attachTo(t, b.mustEngine(w), "a1", "acct_gone", b.customer("acct_gone"), "pm_card_visa")
	e := engineOf(t, w, &closed{b, "acct_gone"})
	for range 2 { // whether the place only refuses to be listed, or anything
		_, _, err := e.CollectNow(t.Context(), n)
		wantErr(t, err, processor.ErrAccountRefused)
		_, err = e.CreateReceipt(t.Context(), n, engine.ManualPayment{Amount: usd(1299), Note: "cash"})
		wantErr(t, err, processor.ErrAccountRefused)
		mustNot(t, b.fake.Disconnect("acct_gone"))
		e = b.mustEngine(w)
	}
	if s := w.sub(n); s.Period != 0 || len(b.charges()) != 0 {
		t.Errorf("%s; charges %v", w.describe(n), b.charges())
	}
	results, _, err := e.CollectNow(t.Context(), other)
	if err != nil || len(results) != 1 || results[0].Outcome != engine.OutcomePaid {
		t.Errorf("the other: %+v, %v", results, err)
	}
}

// closed is a connected account that refuses to be listed.
type closed struct {
	*stripeBank
	place string
}

func (c *closed) List(ctx context.Context, r processor.ListRequest) iter.Seq2[processor.Intent, error] {
	if r.At != c.place {
		return c.stripeBank.List(ctx, r)
	}
	return func(yield func(processor.Intent, error) bool) { yield(processor.Intent{}, processor.ErrAccountRefused) }
}

// TestGate_NoNewIntentAtARefusedPlace: one that is shown cancelled is not replaced where the
// gate could not look.
func TestGate_NoNewIntentAtARefusedPlace(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	n := w.create(one("2024-01-31", bare))
	mustNot(t, b.fake.Connect("acct_shut", ""))
	customer := b.customer("acct_shut")
	e := b.mustEngine(w)
	attachTo(t, e, "a1", "acct_shut", customer, "pm_sandbox_decline_generic_decline")
	run(t, e)
	ref := w.sub(n).Open.Ref
	attachTo(t, e, "a1", "acct_shut", customer, "pm_card_visa")
	_, err := b.Cancel(t.Context(), ref)
	mustNot(t, err)
	w.tomorrow()
	r := run(t, engineOf(t, w, &closed{b, "acct_shut"}))
	if s := w.sub(n); r.Counts[engine.OutcomePending] != 1 || s.Open == nil || s.Open.Ref != ref || len(b.charges()) != 0 {
		t.Errorf("counts %v, charges %v, %s", r.Counts, b.charges(), w.describe(n))
	}
	if r = run(t, e); r.Counts[engine.OutcomePaid] != 1 || b.charges()["a1/s1/0"] != 1 {
		t.Errorf("asked again: %v, %s", r.Counts, w.describe(n))
	}
	audited(t, e)
}

// TestAttach_NoSuchPlace: what is no connected account is refused before it is registered.
func TestAttach_NoSuchPlace(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	w.create(one("2024-01-31", bare))
	mustNot(t, b.fake.Connect("acct_left", ""))
	mustNot(t, b.fake.Disconnect("acct_left"))
	e := b.mustEngine(w)
	before := w.contents(t)
	for at, want := range map[string]error{"myshop": processor.ErrInvalid, stripefake.DefaultAccount: processor.ErrInvalid,
		"acct_nobody": processor.ErrAccountRefused, "acct_left": processor.ErrAccountRefused} {
		if _, err := e.Attach(t.Context(), "a1", billing.Attachment{Connected: &at}); !errors.Is(err, want) ||
			!strings.Contains(err.Error(), "connected account") {
			t.Errorf("%s: error %v, want %v", at, err, want)
		}
	}
	if w.contents(t) != before {
		t.Error("what was refused has changed something")
	}
}

// TestGate_AWrongPlaceIsItsOwnAffair: one that was registered by an older Duesday stops nobody.
func TestGate_AWrongPlaceIsItsOwnAffair(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	w.create(one("2024-01-31"))
	other := w.create(one("2024-02-01", of("a2")))
	w.registerWrongly(t)
	e := b.mustEngine(w)
	r, err := job.Payments(t.Context(), e, job.Options{Workers: 4})
	if err != nil || r.Counts[engine.OutcomePaid] != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	w.tomorrow()
	results, _, err := e.CollectNow(t.Context(), other)
	if err != nil || len(results) != 1 || results[0].Outcome != engine.OutcomePaid {
		t.Errorf("now: %+v, %v", results, err)
	}
	if _, err = e.Reconcile(t.Context()); err != nil && !strings.Contains(err.Error(), "myshop") {
		t.Errorf("reconcile: %v", err)
	}
}

// TestVerify_AWrongPlace: where nothing was ever charged nothing has to be looked at, and the
// others are.
func TestVerify_AWrongPlace(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	w.registerWrongly(t)
	w.create(one("2024-01-31"))
	e := b.mustEngine(w)
	_, err := job.Payments(t.Context(), e, job.Options{Workers: 1})
	mustNot(t, err)
	a, err := e.Verify(t.Context())
	if err != nil || !a.OK || a.Charges != 1 {
		t.Errorf("%+v, %v", a, err)
	}
}

// registerWrongly lists as a connected account what is none.
func (w *world) registerWrongly(t *testing.T) {
	t.Helper()
	mustNot(t, w.spy.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, store.NewItem(
		store.Attribute{Name: schema.PK, Value: store.S("PROCESSOR")},
		store.Attribute{Name: schema.SK, Value: store.S("myshop")}))))
}

// TestStripe_AnIntentMissingAtAConnectedAccount is the connected account's own affair.
func TestStripe_AnIntentMissingAtAConnectedAccount(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	n := w.create(one("2024-01-31", bare))
	own, second := w.create(one("2024-02-01", of("a2"))), w.create(one("2024-02-01", of("a3"), bare))
	mustNot(t, b.fake.Connect("acct_1", ""))
	e := b.mustEngine(w)
	attachTo(t, e, "a1", "acct_1", b.customer("acct_1"), "pm_sandbox_decline_generic_decline")
	attachTo(t, e, "a3", "acct_1", b.customer("acct_1"), "pm_card_visa")
	run(t, e)
	_, err := b.Cancel(t.Context(), w.sub(n).Open.Ref)
	mustNot(t, err)
	w.spoil(t, n, func(it *store.Item) {
		open := it.Get(schema.OpenPeriod).Map().Clone()
		open.Set(schema.Ref, store.S("acct_1/pi_gone"))
		it.Set(schema.OpenPeriod, store.M(open))
	})
	w.tomorrow()
	r := run(t, e)
	if r.Counts[engine.OutcomePaid] != 2 || r.Counts[engine.OutcomePending] != 1 {
		t.Errorf("counts %v", r.Counts)
	}
	if s := w.sub(n); s.Open == nil || s.Open.Ref != "acct_1/pi_gone" || s.Status != billing.Active {
		t.Errorf("%s", w.describe(n))
	}
	for _, n := range []billing.Name{own, second} {
		if s := w.sub(n); s.Period != 1 {
			t.Errorf("%s", w.describe(n))
		}
	}
}

// TestGate_AnUnreadableSubscription with a success in the gate's window stops nobody else,
// neither on the day nor later, whether it falls due or not.
func TestGate_AnUnreadableSubscription(t *testing.T) {
	for name, weekly := range map[string]bool{"due again": true, "not due": false} {
		t.Run(name, func(t *testing.T) {
			w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
			n := w.create(one("2024-01-31", func(n *billing.NewSubscription) {
				if weekly {
					n.Interval, n.PaymentDay = civil.Interval{N: 1, Unit: civil.Week}, 3
				}
			}))
			later := []billing.Name{w.create(one("2024-01-31", of("a2"))), w.create(one("2024-02-01", of("a3"))),
				w.create(one("2024-02-20", of("a4")))}
			e := b.mustEngine(w)
			_, _, err := e.CollectNow(t.Context(), n)
			mustNot(t, err)
			w.spoil(t, n, freeze)
			for i, day := range []string{"2024-01-31", "2024-02-01", "2024-02-20"} {
				w.goTo(date(day))
				r, err := job.Payments(t.Context(), e, job.Options{Workers: 2})
				if r == nil || r.Counts[engine.OutcomePaid] != 1 || r.Off || errors.Is(err, charging.ErrWentBack) {
					t.Fatalf("%s: %+v, %v", day, r, err)
				}
				if due := weekly && i == 2; err != nil || due != (r.Counts[engine.OutcomeUnreadable] == 1) {
					t.Errorf("%s: %v, error %v", day, r.Counts, err)
				}
				if s := w.sub(later[i]); s.Period != 1 {
					t.Errorf("%s: %s", day, w.describe(later[i]))
				}
			}
			if charges := b.charges(); len(charges) != 4 {
				t.Errorf("charges %v", charges)
			}
		})
	}
}

// TestRun_AnUnreadableRowStopsNothingElse: refunds and disputes are recorded, and orphans
// cancelled, though a row that is due cannot be read; the run says so.
func TestRun_AnUnreadableRowStopsNothingElse(t *testing.T) {
	for _, orphanOf := range []string{"a3", "a4"} { // a4 is the unreadable one
		t.Run("an orphan of "+orphanOf, func(t *testing.T) {
			w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
			n, disputed := w.create(one("2024-01-31")), w.create(one("2024-01-31", of("a2")))
			w.create(one("2024-12-31", of("a3")))
			bad := w.create(one("2024-02-02", of("a4")))
			e := b.mustEngine(w)
			run(t, e)
			meta, err := e.Meta(t.Context())
			mustNot(t, err)
			var orphans []string
			for _, account := range []string{"a3", orphanOf, "a3"} {
				in, err := b.Open(t.Context(),
					processor.OpenRequest{Key: fmt.Sprint("orphan", len(orphans)), Amount: usd(1299), Method: "pm_card_visa",
						Tag: processor.Tag{Installation: meta.Installation, Account: account, Subscription: "s1", SKU: "gold",
							Generation: len(orphans)}})
				mustNot(t, err)
				orphans = append(orphans, in.Ref)
			}
			w.goTo(date("2024-02-03"))
			b.post("", "/v1/refunds", url.Values{"payment_intent": {w.sub(n).LastCharge}, "amount": {"500"}})
			_, err = b.fake.Dispute(w.sub(disputed).LastCharge, "")
			mustNot(t, err)
			w.spoil(t, bad, freeze)
			r, err := job.Payments(t.Context(), e, job.Options{Workers: 2})
			if mustNot(t, err); r.Reversals != 2 || r.Counts[engine.OutcomeUnreadable] != 1 {
				t.Fatalf("%+v", r)
			}
			for i, ref := range orphans {
				if in, err := b.Lookup(t.Context(), ref); (i != 1 || orphanOf == "a3") &&
					(err != nil || in.State != processor.Canceled) {
					t.Errorf("orphan %d is %s, %v; missed %v", i, in.State, err, r.Missed)
				}
			}
		})
	}
}

// TestReturns_AnUnreadableRecord of one account does not stop those of others, whether they
// are seen at the processor or wait to be sent again.
func TestReturns_AnUnreadableRecord(t *testing.T) {
	w, b := stripeWorld(t, "2024-01-31T09:00", stripefake.Faults{})
	accounts := []string{"a1", "a2", "a3"}
	m := &meddler{stripeBank: b}
	e := engineOf(t, w, m)
	for _, a := range accounts {
		w.create(one("2024-01-31", of(a)))
	}
	run(t, e)
	m.lost = true
	for _, a := range accounts { // recorded, and not sent
		_, _, err := e.Refunds().Refund(t.Context(), refund.Order{Name: billing.Name{Account: a, ID: "s1"}, Amount: usd(100)})
		wantErr(t, err, processor.ErrUnknown)
	}
	m.lost = false
	unreadable := false
	for it, err := range w.spy.Query(t.Context(),
		store.Query{Table: w.tables.RecurringPayments.Name, Partition: "ACC#a2", Prefix: "REF#"}) {
		mustNot(t, err)
		it = it.Clone()
		it.Set(schema.State, store.S("odd"))
		mustNot(t, w.spy.mem.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, it)))
		unreadable = true
	}
	if !unreadable {
		t.Fatal("there is no record")
	}
	for _, a := range accounts { // made at Stripe
		w.pass(time.Minute)
		b.post("", "/v1/refunds", url.Values{"payment_intent": {w.sub(billing.Name{Account: a, ID: "s1",
			SKU: "gold"}).LastCharge}, "amount": {"200"}})
	}
	w.tomorrow()
	r, err := job.Payments(t.Context(), e, job.Options{Workers: 2})
	mustNot(t, err)
	if len(r.Missed) != 1 || !strings.Contains(fmt.Sprint(r.Missed), "a2") {
		t.Errorf("missed %v", r.Missed)
	}
	for _, a := range []string{"a1", "a3"} {
		var got []string
		for r, err := range e.GetReversalsByAccount(t.Context(), a) {
			mustNot(t, err)
			got = append(got, r.Amount.Decimal()+" "+string(r.State))
		}
		equal(t, got, []string{"1.00 succeeded", "2.00 succeeded"})
	}
}
