package engine_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

func (w *world) refund(t *testing.T, o refund.Order, key ...string) *billing.ReversalRecord {
	t.Helper()
	r, _, err := w.start().Refunds().Refund(w.keyed(t.Context(), strings.Join(key, "")), o)
	mustNot(t, err)
	return r
}

func (w *world) mustCollect(t *testing.T, want int) {
	t.Helper()
	n, err := w.start().collect()
	mustNot(t, err)
	if n != want {
		t.Errorf("%d records made or changed, want %d", n, want)
	}
}

// states lists the kinds, amounts and states of the account's records.
func (w *world) states(t *testing.T) string {
	t.Helper()
	var all []string
	for r, err := range w.start().GetReversalsByAccount(t.Context(), "a1") {
		mustNot(t, err)
		all = append(all, fmt.Sprintf("%s %s %s", r.Kind, r.Amount.Decimal(), r.State))
	}
	return strings.Join(all, ", ")
}

func (w *world) wantStates(t *testing.T, want string) {
	t.Helper()
	if got := w.states(t); got != want {
		t.Errorf("recorded: %s, want %s", got, want)
	}
}

func (w *world) makeReturn(t *testing.T, kind processor.ReversalKind, ref string, cents int64,
	state processor.ReversalState) processor.Reversal {
	t.Helper()
	w.pass(time.Second)
	r, err := w.sandbox().MakeReversal(processor.Reversal{Kind: kind, Ref: ref, Amount: usd(cents), State: state,
		Reason: "theirs"})
	mustNot(t, err)
	return r
}

// TestCollectReversals_OfOthers records what was made at the processor, and how it goes on.
func TestCollectReversals_OfOthers(t *testing.T) {
	w, n := charged(planted{})
	ref := w.sub(n).LastCharge
	w.mustCollect(t, 0)
	refund := w.makeReturn(t, processor.Refunded, ref, 200, processor.ReversalPending)
	dispute := w.makeReturn(t, processor.Disputed, ref, 1099, processor.ReversalPending)
	if v := w.audit(); len(v) != 2 || !strings.Contains(v[0]+v[1], "refund not recorded") {
		t.Errorf("audit before: %q", v)
	}
	w.mustCollect(t, 2)
	w.wantStates(t, "refund 2.00 pending, dispute 10.99 pending")
	w.mustCollect(t, 0)
	mustNot(t, w.sandbox().MoveReversal(refund.ID, processor.ReversalSucceeded))
	mustNot(t, w.sandbox().MoveReversal(dispute.ID, processor.ReversalSucceeded))
	w.mustCollect(t, 2)
	w.wantStates(t, "refund 2.00 succeeded, dispute 10.99 succeeded")
	// A bank may send a refund back; nothing else leaves a final state.
	mustNot(t, w.sandbox().MoveReversal(refund.ID, processor.ReversalFailed))
	mustNot(t, w.sandbox().MoveReversal(dispute.ID, processor.ReversalPending))
	w.mustCollect(t, 1)
	w.wantStates(t, "refund 2.00 failed, dispute 10.99 succeeded")
	mustNot(t, w.sandbox().MoveReversal(refund.ID, processor.ReversalSucceeded))
	w.mustCollect(t, 0)
	w.wantStates(t, "refund 2.00 failed, dispute 10.99 succeeded")

	for r, err := range w.start().GetReversalsByAccount(t.Context(), "a1") {
		mustNot(t, err)
		if r.AskedHere() || r.Ref != r.ReversalID || r.Reason != "theirs" || r.Charge != ref || r.Period != 0 ||
			r.SKU != "gold" || r.Created.IsZero() || r.Ended.IsZero() {
			t.Errorf("record: %+v", r)
		}
	}
}

// TestCollectReversals_OfOtherStores leaves alone what belongs to nobody here.
func TestCollectReversals_OfOtherStores(t *testing.T) {
	w, n := charged(planted{})
	box := w.sandbox()
	for i, tag := range []processor.Tag{{Installation: "other", Account: "a1", Subscription: "s1", SKU: "gold"}, {},
		{Installation: installation(t, w), Account: "a1", Subscription: "gone", SKU: "gold"}} {
		in, err := box.Open(t.Context(),
			processor.OpenRequest{Key: fmt.Sprint("o", i), Tag: tag, Amount: usd(500), Method: "pm_card_visa"})
		mustNot(t, err)
		_, err = box.Confirm(t.Context(),
			processor.ConfirmRequest{Key: fmt.Sprint("c", i), Ref: in.Ref, Method: "pm_card_visa"})
		mustNot(t, err)
		w.makeReturn(t, processor.Refunded, in.Ref, 500, processor.ReversalSucceeded)
	}
	w.mustCollect(t, 0)
	w.makeReturn(t, processor.Refunded, w.sub(n).LastCharge, 500, processor.ReversalSucceeded)
	w.mustCollect(t, 1)
}

func installation(t *testing.T, w *world) string {
	meta, err := w.start().Meta(t.Context())
	mustNot(t, err)
	return meta.Installation
}

// reads counts what is asked of a store.
type reads struct {
	store.Store
	n *int
}

func (r *reads) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	*r.n++
	return r.Store.Get(ctx, table, key)
}

func (r *reads) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	*r.n++
	return r.Store.Query(ctx, q)
}

// TestCollectReversals_IsCheap: an account's records are read once, however many are listed.
func TestCollectReversals_IsCheap(t *testing.T) {
	n := 0
	w, name := charged(planted{proc: gives, store: func(_ *world, s store.Store) store.Store { return &reads{s, &n} }})
	for range 20 {
		w.makeReturn(t, processor.Refunded, w.sub(name).LastCharge, 10, processor.ReversalSucceeded)
	}
	w.mustCollect(t, 20)
	p := w.start()
	n = 0
	_, err := p.collect()
	mustNot(t, err)
	if n > 3 { // the places, the account's records, the unfinished
		t.Errorf("%d reads where nothing is new", n)
	}
}

// scattered is a processor with connected accounts, of which some refuse.
type scattered struct {
	*giver
	refuse map[string]error
	mu     *sync.Mutex
	asked  *[]string // guarded by mu
}

func (s *scattered) Reversals(ctx context.Context, r processor.ListRequest) iter.Seq2[processor.Reversal, error] {
	s.mu.Lock()
	*s.asked = append(*s.asked, r.At)
	s.mu.Unlock()
	if err := s.refuse[r.At]; err != nil {
		return func(yield func(processor.Reversal, error) bool) { yield(processor.Reversal{}, err) }
	}
	if r.At != "acct_3" { // where the charge is, in this test
		return func(func(processor.Reversal, error) bool) {}
	}
	r.At = ""
	return s.giver.Reversals(ctx, r)
}

func TestCollectReversals_OneRefusedAccount(t *testing.T) {
	refuse := map[string]error{"acct_2": processor.ErrAccountRefused}
	var mu sync.Mutex
	var asked []string
	w, n := charged(planted{proc: func(w *world, p processor.Charger) processor.Charger {
		return &scattered{gives(w, p).(*giver), refuse, &mu, &asked}
	}})
	for _, at := range []string{"acct_1", "acct_2", "acct_3"} {
		mustNot(t, w.spy.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, store.NewItem(
			store.Attribute{Name: schema.PK, Value: store.S("PROCESSOR")},
			store.Attribute{Name: schema.SK, Value: store.S(at)}))))
	}
	w.makeReturn(t, processor.Refunded, w.sub(n).LastCharge, 500, processor.ReversalSucceeded)
	asked = nil
	recorded, err := w.start().collect()
	wantErr(t, err, processor.ErrAccountRefused)
	slices.Sort(asked)
	if recorded != 1 || !strings.Contains(err.Error(), "acct_2") ||
		!slices.Equal(asked, []string{"", "acct_1", "acct_2", "acct_3"}) {
		t.Errorf("%d recorded, %v; asked %q", recorded, err, asked)
	}
	refuse[""] = processor.ErrRefused
	asked = nil
	_, err = w.start().collect()
	if wantErr(t, err, processor.ErrRefused); len(asked) != 1 {
		t.Errorf("credentials that are refused were used %d times", len(asked))
	}
}

// TestRefund_Refused: the processor says no, and another key asks again.
func TestRefund_Refused(t *testing.T) {
	w, n := charged(planted{})
	foreign := w.makeReturn(t, processor.Disputed, w.sub(n).LastCharge, 1299, processor.ReversalPending)
	_, _, err := w.start().Refunds().Refund(t.Context(), refund.Order{Name: n})
	wantErr(t, err, billing.ErrState)
	wantText(t, err, "nothing is left of the 12.99 USD", foreign.ID, "pending")
	mustNot(t, w.sandbox().MoveReversal(foreign.ID, processor.ReversalFailed))

	// The processor refuses what was recorded: somebody was faster there.
	w.plant.proc = func(w *world, p processor.Charger) processor.Charger {
		return &bentGiver{giver: gives(w, p).(*giver), refund: func(r *processor.RefundRequest) { r.Amount = usd(9999) }}
	}
	order := refund.Order{Name: n, Amount: usd(500)}
	r, repeated, err := w.start().Refunds().Refund(t.Context(), order)
	wantErr(t, err, billing.ErrState)
	if r.State != processor.ReversalFailed || r.Refusal == "" || repeated {
		t.Errorf("%+v, repeated %t", r, repeated)
	}
	w.plant.proc = gives
	_, repeated, err = w.start().Refunds().Refund(t.Context(), order)
	if wantErr(t, err, billing.ErrState); !repeated {
		t.Error("the refusal was asked for again")
	}
	wantText(t, err, "another key")
	w.refund(t, order, "again")
	w.gaveBack(500)
	w.report(t)
}

func wantText(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("error %v lacks %q", err, part)
		}
	}
}

// TestRefund_WhatCannotBe names what is wrong.
func TestRefund_WhatCannotBe(t *testing.T) {
	w, n := charged(planted{})
	eur, err := money.ParseCurrency("EUR")
	mustNot(t, err)
	for _, test := range []struct {
		o    refund.Order
		want string
	}{
		{refund.Order{Name: n, Period: -1}, "period"},
		{refund.Order{Name: n, Period: 1}, "period 1 is not paid"},
		{refund.Order{Name: n, Amount: usd(-5)}, "amount"},
		{refund.Order{Name: n, Amount: usd(1300)}, "must be at most 12.99 USD, which is left of 12.99 USD"},
		{refund.Order{Name: n, Amount: money.New(1, eur)}, "must be in USD"},
		{refund.Order{Name: n, Reason: "whim"}, "requested_by_customer"},
		{refund.Order{Name: n, Charge: "pi_nobody"}, "pi_nobody"},
		{refund.Order{Name: billing.Name{Account: "a1", ID: "gone"}}, "gone"},
	} {
		_, _, err := w.start().Refunds().Refund(t.Context(), test.o)
		if wantAny(t, err); len(w.inAccount("REF#")) > 0 {
			t.Fatalf("%+v: something was recorded", test.o)
		}
		wantText(t, err, test.want)
	}
	_, _, err = w.start().Refunds().Refund(w.keyed(t.Context(), "a\nb"), refund.Order{Name: n})
	wantText(t, err, "key")
	w.plant.proc = func(_ *world, p processor.Charger) processor.Charger { return p }
	_, _, err = w.start().Refunds().Refund(t.Context(), refund.Order{Name: n})
	wantErr(t, err, refund.ErrNoRefunds)
	w.mustCollect(t, 0)
	w.report(t)
}

// TestRefund_PaidOutside, imported, or with a receipt that has expired.
func TestRefund_OtherReceipts(t *testing.T) {
	w, n := charged(planted{})
	first := w.sub(n).LastCharge
	w.goTo(date("2024-02-29"))
	_, err := w.start().CreateReceipt(t.Context(), n, engine.ManualPayment{Note: "cash"})
	mustNot(t, err)
	_, _, err = w.start().Refunds().Refund(t.Context(), refund.Order{Name: n, Period: 1})
	wantErr(t, err, billing.ErrState)
	wantText(t, err, "manual payment; return the money")

	w.goTo(date("2024-12-31")) // both receipts have expired; the last charge is still known
	if len(w.inAccount("REC#")) != 0 {
		t.Fatal("the receipts are there")
	}
	_, _, err = w.start().Refunds().Refund(t.Context(), refund.Order{Name: n, Period: 1})
	wantErr(t, err, billing.ErrState)
	wantText(t, err, "period 1 has no receipt", "--charge")
	w.refund(t, refund.Order{Name: n, Amount: usd(100)})
	w.start().run(civil.Date{})
	w.start().run(civil.Date{})
	if w.sub(n).LastCharge == first {
		t.Fatal("nothing more was charged")
	}
	_, _, err = w.start().Refunds().Refund(t.Context(), refund.Order{Name: n, Amount: usd(200)})
	wantText(t, err, "--charge")
	_, _, err = w.start().Refunds().Refund(t.Context(), refund.Order{Name: n, Period: 1, Charge: first})
	wantText(t, err, "does not belong to period 1")
	w.refund(t, refund.Order{Name: n, Amount: usd(200), Charge: first})
	w.gaveBack(100, 200)
}

// TestRefund_RestoredStore: the store has forgotten the refund, and the processor the key.
func TestRefund_RestoredStore(t *testing.T) {
	w, n := charged(planted{})
	before := w.spy.snapshot()
	order := refund.Order{Name: n, Amount: usd(500)}
	made := w.refund(t, order)
	w.spy = before
	w.pass(30 * time.Hour)
	r, repeated, err := w.start().Refunds().Refund(t.Context(), order)
	mustNot(t, err)
	if !repeated || r.Ref != made.Ref || r.ReversalID != made.ReversalID {
		t.Errorf("%+v, repeated %t", r, repeated)
	}
	w.gaveBack(500)
	w.report(t)
}

// TestRefund_Pending: the bank takes its time, and may refuse.
func TestRefund_Pending(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{proc: gives})
	n := w.create(one("2024-01-31", func(s *billing.NewSubscription) { s.Method = "pm_card_pendingRefund" }))
	w.start().run(civil.Date{})
	r := w.refund(t, refund.Order{Name: n})
	if r.State != processor.ReversalPending || !r.Ended.IsZero() {
		t.Errorf("%+v", r)
	}
	_, repeated, err := w.start().Refunds().Refund(t.Context(), refund.Order{Name: n})
	if mustNot(t, err); !repeated {
		t.Error("not told that it was asked for before")
	}
	mustNot(t, w.sandbox().MoveReversal(r.Ref, processor.ReversalFailed))
	w.tomorrow()
	if rep := w.start().run(civil.Date{}); rep.Reversals != 1 {
		t.Errorf("the run has recorded %d", rep.Reversals)
	}
	w.wantStates(t, "refund 12.99 failed")
	w.refund(t, refund.Order{Name: n}, "2")
	w.report(t)
}

// TestVerify_Returns: what an audit says of refunds that are not as they should be.
func TestVerify_Returns(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(w *world, n billing.Name)
		want string
	}{
		"unfinished": {func(w *world, n billing.Name) {
			w.script.left = []scripted{{"lost", "refund", 9}}
			_, _, err := w.start().Refunds().Refund(t.Context(), refund.Order{Name: n})
			wantErr(t, err, processor.ErrUnknown)
			if v := w.audit(); len(v) > 0 {
				t.Errorf("at once: %q", v)
			}
			w.pass(2 * time.Hour)
		}, "unfinished refund"},
		"unknown to the processor": {func(w *world, n billing.Name) {
			w.refund(t, refund.Order{Name: n})
			it := w.inAccount("REF#")[0].Clone()
			it.Set(schema.Refund, store.S("re_lost"))
			mustNot(t, w.spy.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, it)))
		}, "refund unknown to the processor"},
		"more than charged": {func(w *world, n billing.Name) {
			w.refund(t, refund.Order{Name: n})
			it := w.inAccount("REF#")[0].Clone()
			it.Set(schema.Amount, store.S("13.00"))
			mustNot(t, w.spy.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, it)))
		}, "refunded more than charged"},
		"unreadable": {func(w *world, n billing.Name) {
			w.refund(t, refund.Order{Name: n})
			it := w.inAccount("REF#")[0].Clone()
			it.Set(schema.State, store.S("odd"))
			mustNot(t, w.spy.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, it)))
		}, "unreadable refund"},
	} {
		t.Run(name, func(t *testing.T) {
			w, n := charged(planted{})
			w.spy.Store = w.spy.mem // the records are spoilt on purpose
			test.do(w, n)
			if v := fmt.Sprint(w.audit()); !strings.Contains(v, test.want) {
				t.Errorf("audit: %s, want %q", v, test.want)
			}
		})
	}
}

// sleeper is a store on which something else may happen before a commit, or before it returns.
type sleeper struct {
	store.Store
	before, then func(writes []store.Write)
}

func (s *sleeper) Commit(ctx context.Context, writes ...store.Write) error {
	if s.before != nil {
		s.before(writes)
	}
	err := s.Store.Commit(ctx, writes...)
	if s.then != nil {
		s.then(writes)
	}
	return err
}

// TestRefund_ASenderThatSleeps between RECORD and SEND, until the processor has forgotten the
// key that another one has used meanwhile, looks again.
func TestRefund_ASenderThatSleeps(t *testing.T) {
	slept := false
	var order refund.Order
	sleeps := func(w *world, s store.Store) store.Store {
		return &sleeper{Store: s, then: func(writes []store.Write) {
			if slept || len(writes) == 1 || !isRef(writes[1].Item.Str(schema.SK)) {
				return
			}
			slept = true
			_, _, err := w.start().Refunds().Refund(context.Background(), order)
			mustNot(t, err)
			w.pass(25 * time.Hour)
		}}
	}
	w, n := charged(planted{proc: gives, store: sleeps})
	order = refund.Order{Name: n, Amount: usd(500)}
	w.refund(t, order)
	if !slept {
		t.Fatal("nobody slept")
	}
	w.gaveBack(500)
	w.report(t)
}

// TestCollectReversals_Overtaken: what was seen longer ago does not replace what is newer.
func TestCollectReversals_Overtaken(t *testing.T) {
	var made processor.Reversal
	overtaken := false
	w, n := charged(planted{proc: gives, store: func(w *world, s store.Store) store.Store {
		return &sleeper{Store: s, before: func(writes []store.Write) {
			if overtaken || writes[0].Op != store.OpUpdate || writes[0].Set.Str(schema.State) != "succeeded" {
				return
			}
			overtaken = true
			mustNot(t, w.sandbox().MoveReversal(made.ID, processor.ReversalFailed))
			w.mustCollect(t, 1)
		}}
	}})
	made = w.makeReturn(t, processor.Refunded, w.sub(n).LastCharge, 500, processor.ReversalPending)
	w.mustCollect(t, 1)
	mustNot(t, w.sandbox().MoveReversal(made.ID, processor.ReversalSucceeded))
	w.mustCollect(t, 0)
	if w.wantStates(t, "refund 5.00 failed"); !overtaken {
		t.Error("nobody was overtaken")
	}
}

// TestRefund_OfTheRightSubscription: an account may have several, with periods of one number.
func TestRefund_OfTheRightSubscription(t *testing.T) {
	w, n := charged(planted{})
	other := w.create(one("2024-01-31", func(s *billing.NewSubscription) { s.ID, s.Amount = "s2", usd(3000) }))
	w.start().run(civil.Date{})
	w.spy.Store = w.spy.mem // what balanced counts is of one subscription
	r := w.refund(t, refund.Order{Name: billing.Name{Account: "a1", ID: "s2"}})
	if r.Charge != w.sub(other).LastCharge || r.Amount != usd(3000) || r.ID != "s2" {
		t.Errorf("refund of s2: %+v", r)
	}
	r = w.refund(t, refund.Order{Name: n})
	if r.Charge != w.sub(n).LastCharge || r.Amount != usd(1299) || r.ID != "s1" {
		t.Errorf("refund of s1: %+v", r)
	}
	w.gaveBack(1299, 3000)
}
