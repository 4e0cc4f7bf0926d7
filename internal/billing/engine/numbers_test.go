package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/numbering"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/billing/report"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/storetest"
)

// given returns the numbers of the store's receipts and refunds, sorted.
func (w *world) given(t *testing.T) (numbers []string) {
	t.Helper()
	for it, err := range w.spy.mem.Scan(t.Context(), store.Scan{Table: w.tables.RecurringPayments.Name}) {
		mustNot(t, err)
		if it.Has(schema.Number) {
			numbers = append(numbers, it.Str(schema.Number))
		}
	}
	slices.Sort(numbers)
	return numbers
}

// number lets a drain give numbers. It dies around its commit n, if that is not 0.
func (w *world) number(n int, phase storetest.Phase) {
	now := w.now() // it must not move the clock of a simulation
	s := storetest.NewFaulty(w.spy)
	if n > 0 {
		s.Hook = storetest.CrashAt(n, phase)
	}
	r := billing.NewRecords(s, w.tables, func() time.Time { return now }, nil)
	o := outbox.New(s, w.tables.Outbox, r.Now, nowhere{}, nil).Counting(report.Tally(r)).Numbering(numbering.New(r, false))
	if _, err := o.Drain(context.Background(), 1); err != nil && !errors.Is(err, storetest.ErrCrash) {
		w.violate("drain: %v", err)
	}
}

// unnumbered notes each receipt that drains have left without a number.
func (w *world) unnumbered() {
	if w.plant.engine != nil { // its index may hide rows from the last drain
		return
	}
	for it, err := range w.spy.mem.Scan(context.Background(), store.Scan{Table: w.tables.RecurringPayments.Name}) {
		if sk := it.Str(schema.SK); err != nil || strings.HasPrefix(sk, billing.RecPrefix) && !it.Has(schema.Number) {
			w.violate("receipt %s has no number, %v", sk, err)
		}
	}
}

// numbersAtOpen is the bug of a number that is given when a period is opened: the period may never be paid.
func numbersAtOpen(w *world, s store.Store) store.Store {
	return &givesAtOpen{s, w}
}

type givesAtOpen struct {
	store.Store
	w *world
}

func (g *givesAtOpen) Commit(ctx context.Context, writes ...store.Write) error {
	for _, wr := range writes {
		if wr.Op != store.OpPut || !isSub(wr.Item) || !wr.Item.Has(schema.OpenPeriod) {
			continue
		}
		key := billing.KeyOf(wr.Item)
		if was, _ := g.w.spy.mem.Get(ctx, wr.Table, key); was.Has(schema.OpenPeriod) {
			continue
		}
		c, _ := g.w.spy.mem.Get(ctx, wr.Table, numbering.CounterKey)
		x := numbering.Number{Series: "R-2024", N: c.Get(schema.Last).Map().Int("R-2024") + 1}
		writes = append(writes, store.Put(wr.Table, billing.ItemAt(x.Key(), store.Attribute{Name: schema.Numbered, Value: store.L(
			store.S(key.PK), store.S(billing.RecPrefix+x.String()))}, store.Attribute{Name: schema.CreatedDate,
			Value: store.S(billing.Stamp(g.w.now()))}), store.Absent()),
			store.Put(wr.Table, billing.ItemAt(numbering.CounterKey, store.Attribute{Name: schema.Last, Value: store.M(store.NewItem(
				store.Attribute{Name: x.Series, Value: store.Int(x.N)}))}, store.Attribute{Name: schema.Version,
				Value: store.Int(c.Int(schema.Version) + 1)})))
		break
	}
	return g.Store.Commit(ctx, writes...)
}

// declinedNumber is a day on which one period is declined for good.
func declinedNumber(p planted) []string {
	w := newWorld("2024-01-31T09:00", p)
	w.create(one("2024-01-31", method("pm_card_visa_chargeDeclinedLostCard")))
	w.start().run(civil.Date{})
	w.number(0, 0)
	return w.audit()
}

// numbered is a world with three charges, a manual payment, a failed period and a refund.
func numbered(t *testing.T) *world {
	t.Helper()
	w := newWorld("2024-01-31T09:00", planted{proc: gives})
	w.create(one("2024-01-31"))
	w.create(one("2024-01-31", of("a2")))
	w.create(one("2024-01-31", of("a4"), method("pm_card_visa_chargeDeclinedLostCard")))
	cash := w.create(one("2024-01-31", of("a5"), method("")))
	silence(t, w, "a2")
	silence(t, w, "a5")
	w.daily("2024-01-31")
	_, err := w.start().CreateReceipt(t.Context(), cash, engine.ManualPayment{Note: "cash"})
	mustNot(t, err)
	w.refund(t, refund.Order{Name: named("a1"), Amount: usd(299)}, "once")
	w.drain(t)
	return w
}

func problemsOf(t *testing.T, w *world) (kinds []string) {
	t.Helper()
	r, err := w.start().Verify(t.Context())
	mustNot(t, err)
	for _, p := range r.Problems {
		kinds = append(kinds, p.Kind+": "+p.Detail)
	}
	return kinds
}

// TestNumbers: charges, manual payments and refunds have numbers, in accounts with an address and without.
func TestNumbers(t *testing.T) {
	w := numbered(t)
	equal(t, w.given(t), []string{"R-2024-000001", "R-2024-000002", "R-2024-000003", "R-2024-000004"})
	equal(t, problemsOf(t, w), nil)
	w.drain(t)
	w.daily("2024-02-29")
	w.drain(t)
	equal(t, w.given(t)[4:], []string{"R-2024-000005", "R-2024-000006"})
	equal(t, problemsOf(t, w), nil)
}

// TestNumbers_AreAudited: each disagreement of receipts, numbers and counter is a problem.
func TestNumbers_AreAudited(t *testing.T) {
	row := store.Key{PK: "NUM#R-2024", SK: "000002"}
	set := func(key store.Key, name string, v store.Value) func(w *world) store.Write {
		return func(w *world) store.Write {
			return store.Update(w.tables.RecurringPayments.Name, key, store.NewItem(store.Attribute{Name: name, Value: v}), nil)
		}
	}
	object := func(w *world) store.Key {
		it, err := w.spy.mem.Get(t.Context(), w.tables.RecurringPayments.Name, row)
		mustNot(t, err)
		x, err := numbering.Decode(it)
		mustNot(t, err)
		return x.Of
	}
	for name, tt := range map[string]struct {
		do   func(w *world) store.Write
		want string
	}{
		"row gone": {func(w *world) store.Write { return store.Delete(w.tables.RecurringPayments.Name, row) },
			"R-2024-000002: it was given, and its row is missing"},
		"last row gone": {func(w *world) store.Write {
			return store.Delete(w.tables.RecurringPayments.Name, store.Key{PK: row.PK, SK: "000004"})
		}, "R-2024-000004: it was given, and its row is missing"},
		"row of another": {set(row, schema.Numbered, store.L(store.S("ACC#a9"), store.S("REC#x"))), "R-2024-000002: its receipt or refund REC#x is missing"},
		"receipt without": {func(w *world) store.Write {
			return store.Update(w.tables.RecurringPayments.Name, object(w), nil, []string{schema.Number})
		}, `has the number ""`},
		"number twice": {func(w *world) store.Write {
			return set(object(w), schema.Number, store.S("R-2024-000001"))(w)
		}, "R-2024-000001: no row gives it to "},
		"counter back": {set(numbering.CounterKey, schema.Last, store.M(store.NewItem(store.Attribute{Name: "R-2024", Value: store.Int(3)}))),
			"R-2024-000004: the counter says that the last number is 3"},
		"counter ahead": {set(numbering.CounterKey, schema.Last, store.M(store.NewItem(store.Attribute{Name: "R-2024", Value: store.Int(5)}))),
			"R-2024-000005: it was given, and its row is missing"},
		"counter illegible": {set(numbering.CounterKey, schema.Last, store.S("4")), "cannot be read"},
		"row illegible":     {set(row, schema.Numbered, store.S("4")), "does not name a receipt"},
	} {
		w := numbered(t)
		mustNot(t, w.spy.mem.Commit(t.Context(), tt.do(w)))
		if got := problemsOf(t, w); !slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, tt.want) }) {
			t.Errorf("%s: problems %q, want %q", name, got, tt.want)
		}
	}
}

// TestNumbers_AfterALoss: reconcile begins a new series if the store does not know charges, and only once.
func TestNumbers_AfterALoss(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	n := w.create(one("2024-01-31"))
	w.create(one("2024-01-31", of("a2")))
	w.daily("2024-01-31")
	w.drain(t)
	before, err := w.spy.mem.Get(t.Context(), w.tables.RecurringPayments.Name, n.Key())
	mustNot(t, err)
	w.daily("2024-02-29")
	for it, err := range w.spy.mem.Query(t.Context(), store.Query{Table: w.tables.RecurringPayments.Name, Partition: billing.AccountPK("a1"),
		Prefix: billing.RecPrefix + "2024-02-29"}) {
		mustNot(t, err)
		mustNot(t, w.spy.mem.Commit(t.Context(), store.Delete(w.tables.RecurringPayments.Name, billing.KeyOf(it))))
	}
	mustNot(t, w.spy.mem.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, before)))
	for range 2 {
		_, err = w.start().Reconcile(t.Context())
		mustNot(t, err)
	}
	w.drain(t)
	numbers := w.given(t)
	if !slices.Contains(numbers, "R-2024B-000001") || slices.ContainsFunc(numbers, func(n string) bool { return strings.Contains(n, "2024C") }) {
		t.Errorf("numbers %q", numbers)
	}
}

// TestNumbers_NothingLost: reconcile begins a new series also in a store that lacks no charge, because the store that it
// replaces may have given numbers to refunds and manual payments.
func TestNumbers_NothingLost(t *testing.T) {
	w := newWorld("2024-01-31T09:00", planted{})
	w.create(one("2024-01-31"))
	w.daily("2024-01-31")
	w.drain(t)
	adopted, err := w.start().Reconcile(t.Context())
	if mustNot(t, err); adopted != 0 {
		t.Fatalf("%d charges were adopted", adopted)
	}
	w.daily("2024-02-29")
	w.drain(t)
	equal(t, w.given(t), []string{"R-2024-000001", "R-2024B-000001"})
}

func TestNumbers_Declined(t *testing.T) {
	for _, v := range declinedNumber(planted{}) {
		t.Error(v)
	}
}
