package engine_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/bulk"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// TestPlantedBugs puts the classic bugs of billing systems between the engine and its
// store or processor, one at a time, and wants the named test to see it: a test that
// cannot fail proves nothing. NoSync and a read before it is durable are pebblestore's.
func TestPlantedBugs(t *testing.T) {
	for _, test := range plantedBugs() {
		t.Run(test.bug, func(t *testing.T) {
			if calm := test.run(planted{}); len(calm) > 0 {
				t.Fatalf("%s fails without the bug: %s", test.test, calm[0])
			}
			found := test.run(test.plant)
			for _, v := range found {
				for want := range strings.SplitSeq(test.want, "|") {
					if strings.Contains(v, want) {
						t.Logf("caught by %s: %s", test.test, v)
						return
					}
				}
			}
			t.Errorf("%s does not see it; it says %q", test.test, found)
		})
	}
}

// A plantedBug is one of TestPlantedBugs.
type plantedBug struct {
	bug   string
	plant planted
	test  string // which catches it
	run   func(planted) []string
	want  string // what it says
}

func plantedBugs() []plantedBug {
	return []plantedBug{
		{"no condition", planted{store: unconditional}, "TestTwins", twins,
			"ended with|went from|was charged|written 2 times|has 2 receipts"},
		{"random key", planted{proc: randomKeys}, "TestTwins", twins, "opened twice within a day|ran twice"},
		{"key without the account", planted{proc: keysWithoutAccount}, "TestSameIDInTwoAccounts", sameIDs,
			"idempotency key was used"},
		{"timeout taken for a decline", planted{proc: timeoutIsDecline}, "TestExactlyOnce_EveryCrashPoint", timeouts,
			"the processor knows 0"},
		{"equality query", planted{store: onlyToday}, "TestDowntime", func(p planted) []string { return downtime(60, p) },
			"is due and not dealt with"},
		{"AddDate chain", planted{store: chained}, "TestMonthEnds", monthEnds, "2023-12-01"},
		{"receipt read as guard", planted{store: receiptsDecide}, "TestExpiredReceipts", expiredReceipts,
			"was charged 2 times"},
		{"first page only", planted{store: firstPage}, "TestOneRunChargesAll", oneRun, "of 600 were charged"},
		{"next date written in the past", planted{store: pastDates}, "TestLongPending", longPending,
			"is paid at the processor and still open"},
		{"pause that drops an open period from the index", planted{store: pauseDrops}, "TestExactlyOnce_EveryCrashPoint",
			pauses, "not settled after"},
		{"intent left live after a final failure", planted{proc: lyingCancel}, "TestExactlyOnce_EveryCrashPoint", failures,
			"has ended, and its intent"},
		{"past period opened without a look", planted{proc: lyingLook}, "TestCollecting", collecting, "was bound while"},
		{"past period that moves the next one on", planted{store: movesOn}, "TestCollecting", collecting,
			"ended with 0 proofs"},
		{"past period opened under its old generation", planted{proc: keysWithoutGeneration}, "TestCollecting", collecting,
			"was not collected"},
		{"record kept when its period is paid", planted{store: keepsRecords}, "TestCollecting", collecting, "is paid and failed"},
		{"manual payment recorded before its intent is cancelled", planted{proc: lyingCancel}, "TestManualPayments",
			manualPayments, "has ended, and its intent"},
		{"wire dropped when the intent was paid", planted{store: dropsWires}, "TestManualPayments", manualPayments,
			"is recorded 0 times"},
		{"repeated key taken as a new request", planted{store: forgetsKeys}, "TestRepeatedKeys", repeatedKeys,
			"settled 2 periods|taken for a new request"},
		{"fallback tried twice in a period", planted{store: forgetsFallback}, "TestFallbackOnce", fallbackOnce,
			"fallback was tried twice"},
		{"plan applied while a period is open", planted{store: plansAtOnce}, "TestPlanWaits", planWaits,
			"the plan was changed while"},
		{"discount counted on the wrong period", planted{store: discountsEarly}, "TestTerms_Counted", counted,
			"a discount begins with period 0"},
		{"quantity applied to an open period", planted{store: quantityAtOnce}, "TestTerms_Counted", counted,
			"was changed while it was open"},
		{"upgrade that keeps the old anchor", planted{store: keepsAnchor}, "TestExactlyOnce_Upgrade", upgrades,
			"and its schedule begins on"},
		{"upgrade in force before it is paid", planted{store: upgradesAtOnce}, "TestExactlyOnce_Upgrade", upgrades,
			"without its receipt"},
		{"upgrade without a generation of its own", planted{store: keepsGeneration}, "TestExactlyOnce_Upgrade", upgrades,
			"has the generation of its upgrade"},
		{"tax rounded for each unit", planted{store: roundsEachUnit}, "TestTax_RoundedOnce", roundedOnce, "was opened at 46.38"},
		{"receipt number given when a period is opened", planted{store: numbersAtOpen}, "TestNumbers_Declined", declinedNumber,
			"receipt number differs: R-2024-000001: its receipt or refund"},
	}
}

// TestShares_FindPlantedBugs holds that the crash programmes' shares in go test find 20 of the 27 planted
// bugs. The others need two processes, two accounts, several pages, a known year, a repetition on a later day, a tax, or an
// intent that a restored store has brought back: only their own tests see them.
func TestShares_FindPlantedBugs(t *testing.T) {
	t.Parallel()
	if !soaktest.Checked() {
		t.Skip("make check plays it: it plays the shares of go test")
	}
	others := []string{"no condition", "key without the account", "first page only", "past period opened without a look",
		"repeated key taken as a new request", "receipt number given when a period is opened", "tax rounded for each unit"}
	soon := []string{"random key", "timeout taken for a decline", "pause that drops an open period from the index",
		"discount counted on the wrong period", "quantity applied to an open period"}
	found := 0
	for _, b := range plantedBugs() {
		if slices.Contains(others, b.bug) {
			continue
		}
		found++
		s := pastPeriod()
		if strings.HasPrefix(b.bug, "upgrade ") {
			s = upgradeNow()
		}
		if slices.Contains(soon, b.bug) {
			s = anyPeriod()
		}
		s.plant = b.plant
		for seed := range soaktest.Cases(t, 1, 1, 5) {
			t.Run(fmt.Sprint(b.bug, " ", seed+1), func(t *testing.T) {
				s.seed = uint64(seed) + 1
				g := newProgramme(t, s)
				if g.outcomes(); g.bad.Load() == 0 {
					t.Errorf("not found in %d cases", g.cases.Load())
				}
			})
		}
	}
	if found != 20 {
		t.Errorf("%d bugs were looked for", found)
	}
}

// few plays some cases of the crash programme: every first crash, and every crash in the
// request after it. It returns the violations of the first case that has any but of the
// kind that is not of interest.
func few(p planted, ask, outcomeName, ignore string) []string {
	play := func(c *crash) (found []string) {
		for _, v := range c.play() {
			if ignore == "" || !strings.Contains(v, ignore) {
				found = append(found, v)
			}
		}
		return found
	}
	for _, o := range outcomes() {
		if o.name != outcomeName {
			continue
		}
		calm := crash{outcome: o, plant: p}
		if v := play(&calm); len(v) > 0 {
			return v
		}
		for _, r := range requests() {
			for point := 1; point <= calm.lives[0] && r.name == ask; point++ {
				c := crash{outcome: o, plant: p, first: []fault{{point, true}}, delay: time.Second, request: &r}
				if v := play(&c); len(v) > 0 {
					return v
				}
				for cut := 1; cut <= c.lives[1]; cut++ {
					d := crash{outcome: o, plant: p, first: c.first, delay: time.Second, request: &r, during: fault{cut, true},
						again: time.Second}
					if v := play(&d); len(v) > 0 {
						return v
					}
				}
			}
		}
	}
	return nil
}

func timeouts(p planted) []string { return few(p, "", "timeout", "") }

func failures(p planted) []string { return few(p, "", "hard decline", "") }

// pauses looks at what comes of a pause; that the commit itself is wrong the spy sees at once.
func pauses(p planted) []string { return few(p, "pause, resume", "pays", "has left the index") }

// twins lets two processes run at once over and over, interleaved by chance at each call.
func twins(p planted) []string {
	for seed := range uint64(40) {
		w := newWorld("2024-01-31T09:00", p)
		for i, method := range []string{"pm_card_visa", "pm_sandbox_flaky", "pm_card_visa_chargeDeclinedLostCard"} {
			n := one("2024-01-31")
			n.ID, n.Method = fmt.Sprintf("s%d", i), method
			w.create(n)
		}
		rng := seeded(seed)
		for range 3 {
			var threads []func(func())
			for range 2 {
				q := w.start()
				threads = append(threads, func(edge func()) { q.edge = edge; q.run(civil.Date{}) })
			}
			interleave(rng, threads)
			w.tomorrow()
		}
		if v := w.audit(); len(v) > 0 {
			return v
		}
	}
	return nil
}

func TestTwins(t *testing.T) {
	for _, v := range twins(planted{}) {
		t.Error(v)
	}
}

// sameIDs charges two accounts that number their subscriptions alike.
func sameIDs(p planted) []string {
	w := newWorld("2024-01-31T09:00", p)
	var names []billing.Name
	for _, account := range []string{"a1", "a2"} {
		n := one("2024-01-31")
		n.Account = account
		names = append(names, w.create(n))
	}
	w.start().run(civil.Date{})
	for _, n := range names {
		if s := w.sub(n); s.Period != 1 {
			w.violate("%s is %s: %s", n, s.Status, s.Parked)
		}
	}
	return w.audit()
}

func TestSameIDInTwoAccounts(t *testing.T) {
	for _, v := range sameIDs(planted{}) {
		t.Error(v)
	}
}

// expiredReceipts lives a year with receipts that expire after a month.
func expiredReceipts(p planted) []string {
	w := newWorld("2024-01-31T09:00", p)
	w.cfg.ReceiptMonths = 1
	n := w.create(one("2024-01-31"))
	for range 366 {
		w.start().run(civil.Date{})
		w.tomorrow()
	}
	if got := len(w.paidOn(n)); got != 12 {
		w.violate("%s was charged %d times in a year", n, got)
	}
	return w.audit()
}

func TestExpiredReceipts(t *testing.T) {
	for _, v := range expiredReceipts(planted{}) {
		t.Error(v)
	}
}

// oneRun has more due on one day than any engine yields in a page.
func oneRun(p planted) []string {
	const many = 600
	w := newWorld("2024-01-31T09:00", p)
	batch := make([]billing.NewSubscription, many)
	for i := range batch {
		batch[i] = one("2024-01-31")
		batch[i].Account = fmt.Sprintf("a%d", i)
	}
	if _, err := bulk.Create(context.Background(), w.start().Records, batch); err != nil {
		w.violate("%v", err)
	}
	if rep := w.start().run(civil.Date{}); rep.Counts[engine.OutcomePaid] != many {
		w.violate("%d of %d were charged", rep.Counts[engine.OutcomePaid], many)
	}
	return w.audit()
}

func TestOneRunChargesAll(t *testing.T) {
	for _, v := range oneRun(planted{}) {
		t.Error(v)
	}
}

// longPending has a payment that the bank takes ninety days to decide on.
func longPending(p planted) []string {
	w := newWorld("2024-01-31T09:00", p)
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Method = "pm_sandbox_processing" }))
	for range 90 {
		w.start().run(civil.Date{})
		w.tomorrow()
	}
	ref := w.sub(n).Open.Ref
	if err := w.box.Finish(ref, true); err != nil {
		w.violate("%v", err)
	}
	for range 3 {
		w.start().run(civil.Date{})
		w.tomorrow()
	}
	if s := w.sub(n); s.Open != nil && s.Open.Ref == ref {
		w.violate("period %d is paid at the processor and still open", s.Period)
	}
	return w.audit()
}

func TestLongPending(t *testing.T) {
	for _, v := range longPending(planted{}) {
		t.Error(v)
	}
}

// collecting has a person collect a failed period, whose last intent is cancelled or lives, with a
// crash at every point.
func collecting(p planted) []string {
	for _, live := range []bool{false, true} {
		for point := range 40 {
			w := newWorld("2024-01-31T09:00", p)
			n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.Method = "pm_card_visa_chargeDeclinedLostCard" }))
			w.start().run(civil.Date{})
			w.newMethod(n, "pm_card_visa")
			if live {
				w.revive(n)
			}
			ctx := context.Background()
			if _, err := w.start(fault{point, true}).ChargePeriod(ctx, n, engine.PeriodCharge{}); err != nil {
				_, _ = w.start().ChargePeriod(ctx, n, engine.PeriodCharge{})
			}
			w.tomorrow()
			w.start().run(civil.Date{})
			if s := w.sub(n); s.Paid != 1 {
				w.violate("period 0 was not collected: %s", w.describe(n))
			}
			if v := w.audit(); len(v) > 0 {
				return v
			}
		}
	}
	return nil
}

// revive writes an intent that could be paid into the record of the failed period 0, as a store put
// back would have it.
func (w *world) revive(n billing.Name) {
	ctx, p := context.Background(), w.ending(n, 0)
	in, err := w.box.Open(ctx, processor.OpenRequest{Key: "live", Amount: p.Amount, Method: "pm_card_visa",
		Tag: processor.Tag{Installation: w.start().Opened.Installation, Account: n.Account, Subscription: n.ID, SKU: n.SKU,
			Generation: 5}})
	if err != nil {
		panic(err)
	}
	w.spy.bound[in.Ref] = "ACC#" + n.String() + "/0"
	p.Ref = in.Ref
	if err := w.spy.Commit(ctx, p.Write(w.tables.RecurringPayments.Name)); err != nil {
		panic(err)
	}
}

func TestCollecting(t *testing.T) {
	for _, v := range collecting(planted{}) {
		t.Error(v)
	}
}

// manualPayments has a person tell of a payment while an intent lives, or is paid, with a crash at every
// point, and repeat it.
func manualPayments(p planted) []string {
	ctx, m := context.Background(), engine.ManualPayment{Period: new(int)}
	for _, l := range lives() {
		for point := 0; point < 12 && l.meanwhile == nil && l.method != lostCard; point++ {
			w := newWorld("2024-01-31T09:00", p)
			n := w.create(one("2024-01-31", method(l.method)))
			l.before(w, n)
			_, _ = w.start(fault{point, true}).CreateReceipt(w.keyed(ctx, "wire"), n, m)
			_, _ = w.start().CreateReceipt(w.keyed(ctx, "wire"), n, m)
			w.tomorrow()
			w.start().run(civil.Date{})
			if v := w.audit(); len(v) > 0 {
				return v
			}
		}
	}
	return nil
}

func TestManualPayments(t *testing.T) {
	for _, v := range manualPayments(planted{}) {
		t.Error(v)
	}
}

// repeatedKeys has a person repeat a request whose reply may be lost, while two periods are due.
func repeatedKeys(p planted) []string {
	for point := range 4 {
		w := newWorld("2024-01-20T09:00", p)
		n := w.create(one("2024-01-31"))
		w.goTo(date("2024-03-05"))
		for _, q := range []*process{w.start(fault{point, false}), w.start()} {
			if _, err := q.CreateReceipt(w.keyed(context.Background(), "wire"), n, engine.ManualPayment{}); err != nil {
				w.violate("%v", err)
			}
		}
		if settled := w.sub(n).Period; settled != 1 {
			w.violate("one key settled %d periods", settled)
		}
		if v := w.audit(); len(v) > 0 {
			return v
		}
	}
	return nil
}

func TestRepeatedKeys(t *testing.T) {
	for _, v := range repeatedKeys(planted{}) {
		t.Error(v)
	}
}

// fallbackOnce has a period that neither the first method nor the fallback can pay.
func fallbackOnce(p planted) []string {
	w := newWorld("2024-01-31T09:00", p)
	w.create(one("2024-01-31", method(lostCard)))
	if _, err := w.start().Attach(context.Background(), "a1", billing.Attachment{Fallback: new(declined)}); err != nil {
		w.violate("%v", err)
	}
	for range 10 {
		w.start().run(civil.Date{})
		w.tomorrow()
	}
	return w.audit()
}

func TestFallbackOnce(t *testing.T) {
	for _, v := range fallbackOnce(planted{}) {
		t.Error(v)
	}
}

// planWaits has the plan changed while its period is open and declined.
func planWaits(p planted) []string {
	ctx := context.Background()
	w := newWorld("2024-01-31T09:00", p)
	n := w.create(one("2024-01-31", method(declined)))
	w.start().run(civil.Date{})
	for _, c := range []billing.Change{{SKU: new("platinum"), Amount: new(usd(2999))}, {Method: new("pm_card_visa")}} {
		if _, err := w.start().UpdateSubscription(ctx, n, c); err != nil {
			w.violate("%v", err)
		}
	}
	w.amounts["ACC#a1/s1/0"], w.amounts["ACC#a1/s1/1"] = usd(1299), usd(2999)
	for range 31 {
		w.start().run(civil.Date{})
		w.tomorrow()
	}
	if s := w.sub(n); s.Period != 2 || s.SKU != "platinum" {
		w.violate("%s: %s", s.SKU, w.describe(n))
	}
	return w.audit()
}

func TestPlanWaits(t *testing.T) {
	for _, v := range planWaits(planted{}) {
		t.Error(v)
	}
}

// rewrite is a store that changes what is committed.
type rewrite struct {
	store.Store
	write func(store.Write) store.Write
}

func (r *rewrite) Commit(ctx context.Context, writes ...store.Write) error {
	changed := make([]store.Write, len(writes))
	for i, w := range writes {
		w.Item = w.Item.Clone()
		changed[i] = r.write(w)
	}
	return r.Store.Commit(ctx, changed...)
}

func isSub(it store.Item) bool { return strings.HasPrefix(it.Str(schema.SK), "SUB#") }

func unconditional(_ *world, s store.Store) store.Store {
	return &rewrite{s, func(w store.Write) store.Write {
		if w.Op == store.OpPut && isSub(w.Item) {
			w.If = nil
		}
		return w
	}}
}

func pauseDrops(_ *world, s store.Store) store.Store {
	return &rewrite{s, func(w store.Write) store.Write {
		if w.Op == store.OpPut && isSub(w.Item) && w.Item.Str(schema.Requested) == "pause" && w.Item.Has(schema.OpenPeriod) {
			w.Item.Remove(schema.NextPaymentDate)
		}
		return w
	}}
}

// pastDates writes the due date of an open period where the run's day belongs.
func pastDates(_ *world, s store.Store) store.Store {
	return &rewrite{s, func(w store.Write) store.Write {
		if open := w.Item.Get(schema.OpenPeriod).Map(); w.Op == store.OpPut && isSub(w.Item) && open != nil &&
			open.Str(schema.RetryDate) == "" {
			w.Item.Set(schema.NextPaymentDate, store.S(open.Str(schema.DueDate)))
		}
		return w
	}}
}

// chained computes a due date from the one before, by AddDate.
func chained(w *world, s store.Store) store.Store {
	return &rewrite{s, func(wr store.Write) store.Write {
		if wr.Op != store.OpPut || !isSub(wr.Item) {
			return wr
		}
		w.spy.mu.Lock()
		was := w.spy.subs["ACC#a1/s1"]
		w.spy.mu.Unlock()
		if was == nil || was.Int(schema.Period) == wr.Item.Int(schema.Period) {
			return wr
		}
		due := civil.Of(date(was.Str(schema.Anchor)).In(time.UTC).AddDate(0, 1, 0))
		wr.Item.Set(schema.AnchorPeriod, wr.Item.Get(schema.Period))
		wr.Item.Set(schema.Anchor, store.S(due.String()))
		wr.Item.Set(schema.PaymentDay, store.S(fmt.Sprint(due.Day())))
		wr.Item.Set(schema.NextPaymentDate, store.S(due.String()))
		return wr
	}}
}

// query is a store that answers queries and reads in its own way.
type query struct {
	store.Store
	query func(context.Context, store.Query) iter.Seq2[store.Item, error]
	get   func(store.Item) store.Item
}

func (s *query) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	if s.query == nil {
		return s.Store.Query(ctx, q)
	}
	return s.query(ctx, q)
}

func (s *query) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	it, err := s.Store.Get(ctx, table, key)
	if err == nil && s.get != nil {
		it = s.get(it)
	}
	return it, err
}

func onlyToday(w *world, s store.Store) store.Store {
	return &query{Store: s, query: func(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
		if q.Index != "" && q.Partition != w.today().String() {
			return func(func(store.Item, error) bool) {}
		}
		return s.Query(ctx, q)
	}}
}

func firstPage(_ *world, s store.Store) store.Store {
	return &query{Store: s, query: func(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
		if q.Limit == 0 && q.Index != "" {
			q.Limit = 256
		}
		return s.Query(ctx, q)
	}}
}

// receiptsDecide takes the number of the next period from the receipts that are there.
func receiptsDecide(w *world, s store.Store) store.Store {
	return &query{Store: s, get: func(it store.Item) store.Item {
		if !isSub(it) || it.Has(schema.OpenPeriod) {
			return it
		}
		n := int64(0)
		q := store.Query{Table: w.tables.RecurringPayments.Name, Partition: it.Str(schema.PK), Prefix: "REC#"}
		for r, err := range s.Query(context.Background(), q) {
			if err == nil {
				n = max(n, r.Int(schema.Period)+1)
			}
		}
		it.Set(schema.Period, store.Int(n))
		return it
	}}
}

// bent is a processor that is asked, or answers, in another way.
type bent struct {
	processor.Charger
	open    func(*processor.OpenRequest)
	confirm func(*processor.ConfirmRequest)
	answer  func(processor.ConfirmRequest, processor.Intent, error) (processor.Intent, error)
	cancel  func(processor.Intent) processor.Intent
}

func (b *bent) Open(ctx context.Context, r processor.OpenRequest) (processor.Intent, error) {
	if b.open != nil {
		b.open(&r)
	}
	return b.Charger.Open(ctx, r)
}

func (b *bent) Confirm(ctx context.Context, r processor.ConfirmRequest) (processor.Intent, error) {
	if b.confirm != nil {
		b.confirm(&r)
	}
	in, err := b.Charger.Confirm(ctx, r)
	if b.answer != nil {
		return b.answer(r, in, err)
	}
	return in, err
}

func (b *bent) Cancel(ctx context.Context, ref string) (processor.Intent, error) {
	if b.cancel == nil {
		return b.Charger.Cancel(ctx, ref)
	}
	in, err := b.Charger.Lookup(ctx, ref)
	return b.cancel(in), err
}

func randomKeys(_ *world, p processor.Charger) processor.Charger {
	return &bent{Charger: p, open: func(r *processor.OpenRequest) { r.Key = rand.Text() },
		confirm: func(r *processor.ConfirmRequest) { r.Key = rand.Text() }}
}

func keysWithoutAccount(_ *world, p processor.Charger) processor.Charger {
	return &bent{Charger: p, open: func(r *processor.OpenRequest) {
		r.Key = fmt.Sprint(r.Tag.Installation, r.Tag.Subscription, r.Tag.SKU, r.Tag.Period, r.Tag.Generation, r.Amount,
			r.Method)
	}}
}

func timeoutIsDecline(_ *world, p processor.Charger) processor.Charger {
	return &bent{Charger: p, answer: func(r processor.ConfirmRequest, in processor.Intent, err error) (processor.Intent,
		error) {
		if !errors.Is(err, processor.ErrUnknown) {
			return in, err
		}
		if in, err = p.Lookup(context.Background(), r.Ref); err == nil {
			in.State, in.Code = processor.Declined, "timeout"
		}
		return in, err
	}}
}

func lyingCancel(_ *world, p processor.Charger) processor.Charger {
	return &bent{Charger: p, cancel: func(in processor.Intent) processor.Intent {
		if in.State != processor.Succeeded {
			in.State = processor.Canceled
		}
		return in
	}}
}

// lyingLook takes every intent that is not paid for cancelled, unless it has just been made.
func lyingLook(_ *world, p processor.Charger) processor.Charger {
	return &blind{p}
}

type blind struct{ processor.Charger }

func (b *blind) Lookup(ctx context.Context, ref string) (processor.Intent, error) {
	in, err := b.Charger.Lookup(ctx, ref)
	if in.Tag.Generation == 5 {
		in.State = processor.Canceled
	}
	return in, err
}

// movesOn has a collected period move the next one on, as the settling of that one does.
func movesOn(w *world, s store.Store) store.Store {
	return &rewrite{s, func(wr store.Write) store.Write {
		if wr.Op != store.OpPut || !isSub(wr.Item) {
			return wr
		}
		w.spy.mu.Lock()
		defer w.spy.mu.Unlock()
		was := w.spy.subs["ACC#a1/s1"]
		open := was.Get(schema.OpenPeriod).Map()
		if open != nil && !wr.Item.Has(schema.OpenPeriod) && open.Int(schema.Period) < was.Int(schema.Period) {
			wr.Item.Set(schema.Period, store.Int(was.Int(schema.Period)+1))
		}
		return wr
	}}
}

func keysWithoutGeneration(_ *world, p processor.Charger) processor.Charger {
	return &bent{Charger: p, open: func(r *processor.OpenRequest) {
		r.Tag.Generation = 0
		r.Key, r.Method = fmt.Sprint(r.Tag), "pm_card_visa_chargeDeclinedLostCard"
	}}
}

// keepsRecords keeps the records of periods that are paid after all.
func keepsRecords(_ *world, s store.Store) store.Store {
	return &keeping{s}
}

type keeping struct{ store.Store }

func (k *keeping) Commit(ctx context.Context, writes ...store.Write) error {
	return k.Store.Commit(ctx, slices.DeleteFunc(slices.Clone(writes), func(w store.Write) bool {
		return w.Op == store.OpDelete && strings.HasPrefix(w.Key.SK, "PER#")
	})...)
}

// dropsWires keeps no overpayment.
func dropsWires(_ *world, s store.Store) store.Store { return &dropping{s} }

type dropping struct{ store.Store }

func (d *dropping) Commit(ctx context.Context, writes ...store.Write) error {
	return d.Store.Commit(ctx, slices.DeleteFunc(slices.Clone(writes), func(w store.Write) bool {
		return w.Op == store.OpPut && w.Item.Str(schema.Kind) == string(billing.Overpayment)
	})...)
}

// forgetsKeys finds no request under its key.
func forgetsKeys(_ *world, s store.Store) store.Store {
	return &forgetful{&rewrite{s, func(w store.Write) store.Write {
		if w.Op == store.OpPut && strings.HasPrefix(w.Item.Str(schema.PK), billing.KeyPrefix) {
			w.If = nil
		}
		return w
	}}}
}

type forgetful struct{ store.Store }

func (f *forgetful) Get(ctx context.Context, table string, key store.Key) (store.Item, error) {
	if strings.HasPrefix(key.PK, billing.KeyPrefix) {
		return nil, store.ErrNotFound
	}
	return f.Store.Get(ctx, table, key)
}

// forgetsFallback goes back to the first method when the fallback is declined.
func forgetsFallback(_ *world, s store.Store) store.Store {
	return &rewrite{s, func(w store.Write) store.Write {
		open := w.Item.Get(schema.OpenPeriod).Map()
		if w.Op != store.OpPut || !isSub(w.Item) || !open.Has(schema.FallbackFor) || !open.Has(schema.RetryDate) {
			return w
		}
		open = open.Clone()
		open.Set(schema.Method, open.Get(schema.FallbackFor))
		open.Remove(schema.FallbackFor)
		open.Remove(schema.Attempts)
		w.Item.Set(schema.OpenPeriod, store.M(open))
		return w
	}}
}

// plansAtOnce applies a plan when it is asked for.
func plansAtOnce(_ *world, s store.Store) store.Store {
	return &rewrite{s, func(w store.Write) store.Write {
		plan := w.Item.Get(schema.Pending).Map()
		if w.Op == store.OpPut && isSub(w.Item) && plan != nil {
			w.Item.Set(schema.SKU, plan.Get(schema.SKU))
			w.Item.Set(schema.PaymentAmount, plan.Get(schema.Amount))
			w.Item.Remove(schema.Pending)
		}
		return w
	}}
}
