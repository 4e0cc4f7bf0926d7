package engine_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/audit"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/numbering"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// nowhere takes every mail.
type nowhere struct{}

func (nowhere) Deliver(context.Context, outbox.Effect) error { return nil }

// drain delivers all mail, and adds the sums.
func (w *world) drain(t *testing.T) {
	t.Helper()
	p := w.start()
	o := outbox.New(p.Store, w.tables.Outbox, w.now, nowhere{}, nil).Counting(report.Tally(p.Records)).
		Numbering(numbering.New(p.Records, false))
	_, err := o.Drain(t.Context(), 2)
	mustNot(t, err)
	for e, err := range o.Uncounted(t.Context()) {
		t.Errorf("not counted: %s, %v", e.ID, err)
	}
}

// sums returns the sums of the store by day and kind.
func (w *world) sums(t *testing.T) map[string]string {
	t.Helper()
	sums := map[string]report.Sum{}
	for it, err := range report.Items(t.Context(), w.start().Records, date("2023-01-01").In(time.UTC), date("2026-01-01").In(time.UTC)) {
		mustNot(t, err)
		list, err := report.Decode(it)
		mustNot(t, err)
		for _, s := range list {
			day := s.At.Format(time.DateOnly) + " " + string(s.Kind)
			if was, there := sums[day]; there {
				s.Amount, err = s.Amount.Add(was.Amount)
				mustNot(t, err)
			}
			sums[day] = s
		}
	}
	texts := map[string]string{}
	for day, s := range sums {
		texts[day] = s.Amount.String()
	}
	return texts
}

func wantSums(t *testing.T, w *world, want map[string]string) {
	t.Helper()
	w.drain(t)
	if got := w.sums(t); !maps.Equal(got, want) {
		t.Errorf("sums %v\nwant %v", got, want)
	}
	if r, err := w.start().Verify(t.Context()); err != nil || !r.OK {
		t.Errorf("verify: %+v, %v", r, err)
	}
}

// correct carries out the corrections of the audit, twice: the second time changes nothing.
func correct(t *testing.T, w *world, r *audit.Report) {
	t.Helper()
	e := w.start().Records
	var after []store.Item
	for range 2 {
		_, err := report.Correct(t.Context(), e, r.Corrections)
		mustNot(t, err)
		now, err := processor.Gather(report.Items(t.Context(), e, date("2020-01-01").In(time.UTC), date("2035-01-01").In(time.UTC)))
		mustNot(t, err)
		if after != nil && !slices.EqualFunc(after, now, store.Item.Equal) {
			t.Errorf("repaired again: %v, then %v", after, now)
		}
		after = now
	}
}

// silence takes an account's address away, as other tools write them.
func silence(t *testing.T, w *world, account string) {
	t.Helper()
	a, err := w.start().Account(t.Context(), account)
	mustNot(t, err)
	for _, key := range []store.Key{named(account).Key(), billing.AccountKey(account)} {
		mustNot(t, w.spy.mem.Commit(t.Context(), store.Update(w.tables.RecurringPayments.Name, key, nil,
			[]string{schema.Email})))
	}
	mustNot(t, w.spy.mem.Commit(t.Context(), store.Delete(w.tables.RecurringPayments.Name,
		store.Key{PK: "IDX#EMAIL", SK: a.Email + "#" + account}), store.Put(w.tables.RecurringPayments.Name,
		billing.ItemAt(store.Key{PK: "IDX#EMAIL", SK: "#" + account}))))
}

// TestSums: each event of money is in the sums of its day, once; also of accounts without an address.
func TestSums(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{proc: gives})
	w.create(one("2024-01-31"))
	w.create(one("2024-01-31", of("a2")))
	w.create(one("2024-01-31", of("a3"), method("pm_sandbox_flaky")))
	w.create(one("2024-01-31", of("a4"), method("pm_card_visa_chargeDeclinedLostCard")))
	cash := w.create(one("2024-01-31", of("a5"), method("")))
	for _, account := range []string{"a2", "a4", "a5"} {
		silence(t, w, account)
	}
	w.daily("2024-01-31")
	_, err := w.start().CreateReceipt(t.Context(), cash, engine.ManualPayment{Amount: usd(1500), Overpaid: true, Note: "cash"})
	mustNot(t, err)
	w.daily("2024-02-02")
	w.refund(t, refund.Order{Name: named("a1"), Amount: usd(299)}, "once")
	wantSums(t, w, map[string]string{
		"2024-01-31 collected": "25.98 USD", "2024-01-31 declined": "25.98 USD", "2024-01-31 failed": "12.99 USD", "2024-02-01 outside": "15.00 USD",
		"2024-02-01 collected": "12.99 USD", "2024-02-01 recovered": "12.99 USD", "2024-02-03 refunded": "2.99 USD"})
}

// TestSums_AFailedPeriod: one that fails again has failed once, on its first day, and one that is
// paid later has failed, and is recovered when it is paid.
func TestSums_AFailedPeriod(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31", method("pm_card_visa_chargeDeclinedLostCard")))
	w.daily("2024-02-01")
	wantSums(t, w, map[string]string{"2024-01-31 declined": "12.99 USD", "2024-01-31 failed": "12.99 USD"})
	charge := func() {
		t.Helper()
		_, err := w.start().ChargePeriod(t.Context(), n, engine.PeriodCharge{Period: 0})
		mustNot(t, err)
	}
	charge()
	wantSums(t, w, map[string]string{"2024-01-31 declined": "12.99 USD", "2024-01-31 failed": "12.99 USD"})
	w.tomorrow()
	good := "pm_card_visa"
	_, err := w.start().UpdateSubscription(t.Context(), n, billing.Change{Method: &good})
	mustNot(t, err)
	charge()
	wantSums(t, w, map[string]string{"2024-01-31 declined": "12.99 USD", "2024-01-31 failed": "12.99 USD", "2024-02-03 collected": "12.99 USD",
		"2024-02-03 recovered": "12.99 USD"})
}

// TestSums_ARefundThatIsSentBack leaves its day.
func TestSums_ARefundThatIsSentBack(t *testing.T) {
	was := &billing.ReversalRecord{State: processor.ReversalSucceeded, Amount: usd(299),
		Processed: date("2024-02-02").In(time.UTC)}
	now := *was
	now.State = processor.ReversalFailed
	if got := report.Text(report.OfReversal(&now, was)); got != "refunded -2.99 USD 2024-02-02T00:00" {
		t.Errorf("%q", got)
	}
	if got := report.Text(report.OfReversal(was, nil)) + report.Text(report.OfReversal(was, was)); got != "refunded 2.99 USD 2024-02-02T00:00" {
		t.Errorf("%q", got)
	}
}

// TestSums_OfAnOlderStore: a store that has kept no sums begins with those of today, and the audit asks
// for none from before.
func TestSums_OfAnOlderStore(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.create(one("2024-01-31"))
	w.daily("2024-01-31")
	for it, err := range w.spy.mem.Scan(t.Context(), store.Scan{Table: w.tables.Outbox.Name}) {
		mustNot(t, err)
		it = it.Clone()
		it.Remove(schema.Sums)
		mustNot(t, w.spy.mem.Commit(t.Context(), store.Put(w.tables.Outbox.Name, it)))
	}
	mustNot(t, w.spy.mem.Commit(t.Context(), store.Update(w.tables.RecurringPayments.Name, billing.MetaKey, nil,
		[]string{schema.SumsDate})))
	w.goTo(date("2024-02-02"))
	if began := w.start().Opened.Summed; !began.Equal(w.now()) {
		t.Errorf("sums begin %s", began)
	}
	w.daily("2024-02-29")
	wantSums(t, w, map[string]string{"2024-02-29 collected": "12.99 USD"})
}

// TestVerify_Sums: a sum that is not that of the records is found, whether it was added yet or not. If
// nothing else is wrong, its correction makes it right.
func TestVerify_Sums(t *testing.T) {
	tables := schema.New(schema.DefaultPrefix)
	item := func(h *hand, day string) store.Item {
		for it, err := range report.Items(h.t.Context(), h.start().Records, date(day).In(time.UTC), date(day).AddDays(1).In(time.UTC)) {
			mustNot(h.t, err)
			if strings.HasPrefix(it.Str(schema.SK), day) {
				return it.Clone()
			}
		}
		h.t.Fatalf("no sums of %s", day)
		return nil
	}
	table := tables.RecurringPayments.Name
	for what, spoil := range map[string]func(h *hand){
		"a wrong sum": func(h *hand) {
			it := item(h, "2024-01-31")
			it.Set(schema.Amounts, store.M(store.NewItem(
				store.Attribute{Name: "collected", Value: store.S("51.97")}, it.Get(schema.Amounts).Map()[1])))
			h.commit(store.Put(table, it))
		},
		"a sum that is gone": func(h *hand) { h.commit(store.Delete(table, billing.KeyOf(item(h, "2024-02-29")))) },
		"a sum of nothing": func(h *hand) {
			w, err := report.Tally(h.start().Records)(h.t.Context(), []string{"outside 1.00 EUR 2024-02-10T12:30"})
			mustNot(h.t, err)
			h.commit(w[0])
		},
		"an illegible sum":      func(h *hand) { h.garble(item(h, "2024-01-31"), store.S("12,99")) },
		"a sum that is no text": func(h *hand) { h.garble(item(h, "2024-02-29"), store.L()) },
		"sums that are no map": func(h *hand) {
			it := item(h, "2024-01-31")
			it.Set(schema.Amounts, store.S("much"))
			h.commit(store.Put(table, it))
		},
		"rows of an older drain": func(h *hand) {
			h.daily("2024-03-31")
			for it, err := range h.spy.mem.Scan(h.t.Context(), store.Scan{Table: h.tables.Outbox.Name}) {
				mustNot(h.t, err)
				h.commit(store.Delete(h.tables.Outbox.Name, h.tables.Outbox.KeyOf(it)))
			}
		},
		"a failed period that is gone": func(h *hand) { h.drop("a6", "PER#") },
		"a row that does not count": func(h *hand) {
			h.commit(outbox.Write(h.tables.Outbox.Name, outbox.Effect{ID: "x", Kind: outbox.KindSum, Due: h.now(),
				Created: h.now(), Sums: "recovered 1.00 USD 2024-02-10T12:30"}))
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := spoilWorld(t)
			w.drain(t)
			spoil(&hand{t, w})
			r, err := w.start().Verify(t.Context())
			mustNot(t, err)
			found, alone := false, true
			for _, p := range r.Problems {
				found = found || p.Kind == "sum differs"
				alone = alone && (p.Kind == "sum differs" || p.Kind == "unreadable sums")
			}
			if !found || alone == (what == "a failed period that is gone") || alone != (len(r.Corrections) > 0) {
				t.Errorf("problems: %+v, corrections %v", r.Problems, r.Corrections)
			}
			correct(t, w, r)
			if r, err = w.start().Verify(t.Context()); err != nil || alone && !r.OK {
				t.Errorf("corrected: %+v, %v", r.Problems, err)
			}
		})
	}
}

// garble puts a value in the place of the item's collected sum.
func (h *hand) garble(it store.Item, v store.Value) {
	amounts := it.Get(schema.Amounts).Map().Clone()
	amounts.Set("collected", v)
	it.Set(schema.Amounts, store.M(amounts))
	h.commit(store.Put(h.tables.RecurringPayments.Name, it))
}

// TestSums_AnIllegibleSum stops no mail, and its month is not complete. The other sums of its quarter
// are added.
func TestSums_AnIllegibleSum(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.create(one("2024-01-31"))
	w.start().run(w.today())
	w.drain(t)
	for it, err := range report.Items(t.Context(), w.start().Records, w.now(), w.now()) {
		mustNot(t, err)
		(&hand{t, w}).garble(it.Clone(), store.S("12,99"))
	}
	w.create(one("2024-01-31", of("a2")))
	w.create(one("2024-01-31", of("a3"), method("pm_card_visa_chargeDeclinedLostCard")))
	w.start().run(w.today())
	w.drain(t)
	m := made(t, w.start(), report.Query{}).Months[0]
	if m.Sums[report.Failed] != usd(1299) || !strings.Contains(m.Missing, "cannot be read") {
		t.Errorf("%+v", m)
	}
	r, err := w.start().Verify(t.Context())
	mustNot(t, err)
	correct(t, w, r)
	wantSums(t, w, map[string]string{"2024-01-31 collected": "25.98 USD", "2024-01-31 declined": "12.99 USD", "2024-01-31 failed": "12.99 USD"})
}

// TestSums_AClockThatWasAhead: sums of years ahead are compared like any others, so a right one is no
// difference, and a repair leaves it; a wrong one is found there, too.
func TestSums_AClockThatWasAhead(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.create(one("2027-05-31"))
	w.goTo(date("2027-05-31"))
	w.start().run(w.today())
	w.drain(t)
	w.goTo(date("2024-02-01"))
	mustNot(t, w.start().SetCharging(t.Context(), true, ""))
	for _, spoilt := range []bool{false, true} {
		r, err := w.start().Verify(t.Context())
		mustNot(t, err)
		differs := slices.ContainsFunc(r.Problems, func(p audit.Problem) bool { return p.Kind == "sum differs" })
		if differs != spoilt {
			t.Errorf("spoilt: %t, problems %+v", spoilt, r.Problems)
		}
		if spoilt && len(r.Corrections) == 0 {
			t.Errorf("no corrections of %+v", r.Problems)
		}
		correct(t, w, r)
		var item store.Item
		for it, err := range report.Items(t.Context(), w.start().Records, w.now(), date("2028-01-01").In(time.UTC)) {
			mustNot(t, err)
			item = it
		}
		if got := item.Get(schema.Amounts).Map().Str("collected"); got != "12.99" {
			t.Errorf("spoilt: %t, collected %q", spoilt, got)
		}
		h := hand{t, w}
		h.commit(store.Update(w.tables.RecurringPayments.Name, billing.KeyOf(item), store.NewItem(store.Attribute{
			Name: schema.Amounts, Value: store.M(store.NewItem(store.Attribute{Name: "collected", Value: store.S("30.00")}))}), nil))
	}
}

// TestSums_RepairedBesideARun: a repair that finds other sums than the audit read leaves them, whether a
// drain has added to them or another repair was faster; and rows that wait are added to a repaired sum.
func TestSums_RepairedBesideARun(t *testing.T) {
	spoilt := func() (*world, *audit.Report) {
		w := newWorld("2024-01-31T09:00", planted{})
		w.create(one("2024-01-31"))
		w.start().run(w.today())
		w.drain(t)
		for it, err := range report.Items(t.Context(), w.start().Records, w.now(), w.now()) {
			mustNot(t, err)
			(&hand{t, w}).garble(it.Clone(), store.S("99.00"))
		}
		w.create(one("2024-01-31", of("a2")))
		w.start().run(w.today()) // its row waits
		r, err := w.start().Verify(t.Context())
		mustNot(t, err)
		if len(r.Corrections) != 1 {
			t.Fatalf("corrections %+v of %+v", r.Corrections, r.Problems)
		}
		return w, r
	}
	w, r := spoilt()
	correct(t, w, r)
	wantSums(t, w, map[string]string{"2024-01-31 collected": "25.98 USD"})

	w, r = spoilt()
	w.drain(t)
	if done, err := report.Correct(t.Context(), w.start().Records, r.Corrections); err != nil || done != 0 {
		t.Errorf("after a drain: %d corrected, %v", done, err)
	}
	r, err := w.start().Verify(t.Context())
	mustNot(t, err)
	correct(t, w, r)
	wantSums(t, w, map[string]string{"2024-01-31 collected": "25.98 USD"})

	for _, crashed := range []bool{false, true} { // a repair whose reply is lost, or that dies, and another one beside it
		for point := 1; point < 4; point++ {
			w, r = spoilt()
			_, _ = report.Correct(t.Context(), w.start(fault{point, crashed}).Records, r.Corrections)
			correct(t, w, r)
			wantSums(t, w, map[string]string{"2024-01-31 collected": "25.98 USD"})
		}
	}
}

// TestSums_TooLarge: amounts that add up to more than an amount holds are a problem of the audit, and no
// number in a report or in the store.
func TestSums_TooLarge(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	for _, account := range []string{"a1", "a2"} {
		w.create(one("2024-01-31", of(account)))
		_, err := w.start().CreateReceipt(t.Context(), named(account), engine.ManualPayment{Overpaid: true,
			Amount: money.New(math.MaxInt64, usd(1).Currency())})
		mustNot(t, err)
	}
	if _, err := w.start().Report(t.Context(), report.Query{Progress: func(int64) {}}); !errors.Is(err, money.ErrOverflow) {
		t.Errorf("report of waiting sums: %v", err)
	}
	for _, drained := range []bool{false, true} {
		if drained {
			w.drain(t)
			if m := made(t, w.start(), report.Query{}).Months[0]; !strings.Contains(m.Missing, "cannot be read") {
				t.Errorf("report: %+v", m)
			}
		}
		r, err := w.start().Verify(t.Context())
		mustNot(t, err)
		kind := func(p audit.Problem) bool {
			return p.Kind == "sum too large" && strings.Contains(p.Detail, "the sum in USD is larger than an amount can hold")
		}
		raw := func(p audit.Problem) bool { return strings.Contains(p.Detail, "must have a kind") }
		if !slices.ContainsFunc(r.Problems, kind) || slices.ContainsFunc(r.Problems, raw) || len(r.Corrections) > 0 {
			t.Errorf("drained: %t: %+v, corrections %v", drained, r.Problems, r.Corrections)
		}
	}
}

// TestRun_AmountsTooLarge: a run that has taken more than an amount can be has left nothing.
func TestRun_AmountsTooLarge(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	for _, account := range []string{"a1", "a2"} {
		w.create(one("2024-01-31", of(account), func(n *billing.NewSubscription) { n.Amount = money.New(math.MaxInt64, usd(1).Currency()) }))
	}
	r, err := job.Payments(t.Context(), w.start().Engine, job.Options{Workers: 1})
	mustNot(t, err)
	if r.Counts[engine.OutcomePaid] != 2 || !r.Completed {
		t.Errorf("%v, completed %v, %s", r.Counts, r.Completed, r.Reason)
	}
}
