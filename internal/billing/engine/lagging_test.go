package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

// A lagging is a store whose indexes lag as DynamoDB's may, item by item: for a time after a write, a
// Query of an index may show any state that the item has had meanwhile: not there yet (missing), or
// with its former values in its former place (stale). The states of two items, or of one in two
// queries, are independent: DynamoDB promises no more. So a moved row may be shown twice or not at
// all. Rows are in their order, and never more than the Limit.
//
// If two commits write one item at the same moment, a state between them may be lost; none is
// invented.
type lagging struct {
	store.Store
	direct         store.Store // for what an item was before a write
	schema         store.Schema
	now            func() time.Time
	most           time.Duration
	hides, showOld float64 // probabilities, per row

	mu             sync.Mutex
	draws          *rand.Rand
	past           map[string]map[store.Key][]version // by table
	missing, stale int                                // rows
}

// A version is a state of an item. They are kept oldest first.
type version struct {
	until time.Time
	item  store.Item // nil: it was not there
}

func newLagging(s, direct store.Store, tables []store.Table, now func() time.Time, seed uint64) *lagging {
	schema, err := store.NewSchema(tables...)
	if err != nil {
		panic(err) // the tests' own tables
	}
	return &lagging{Store: s, direct: direct, schema: schema, now: now, most: time.Minute, hides: 0.5, showOld: 0.5,
		draws: rand.New(rand.NewPCG(seed, 5)), past: map[string]map[store.Key][]version{}}
}

// Commit implements store.Store. A write whose outcome is unknown may have ended a state too.
func (l *lagging) Commit(ctx context.Context, writes ...store.Write) error {
	before := map[int]store.Item{}
	for i := range writes {
		t := l.schema[writes[i].Table]
		if t == nil || writes[i].Op == store.OpCheck {
			continue
		}
		if it, err := l.direct.Get(ctx, t.Name, writes[i].KeyIn(t)); err == nil || errors.Is(err, store.ErrNotFound) {
			before[i] = it
		}
	}
	err := l.Store.Commit(ctx, writes...)
	if err != nil && !errors.Is(err, store.ErrUnknown) {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, it := range before {
		t := l.schema[writes[i].Table]
		if l.past[t.Name] == nil {
			l.past[t.Name] = map[store.Key][]version{}
		}
		key := writes[i].KeyIn(t)
		l.past[t.Name][key] = append(l.recent(l.past[t.Name][key]), version{l.now(), it})
	}
	return err
}

// recent returns the states that an index may still show.
func (l *lagging) recent(past []version) []version {
	first := slices.IndexFunc(past, func(v version) bool { return l.now().Sub(v.until) < l.most })
	if first < 0 {
		return nil
	}
	return past[first:]
}

// draw returns the keys of rows to be hidden, and old rows in their order, each for the present one.
func (l *lagging) draw(q store.Query, t *store.Table, x *store.Index) (hidden map[store.Key]bool, old []store.Item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hidden = map[store.Key]bool{}
	for _, key := range slices.SortedFunc(maps.Keys(l.past[q.Table]), store.Key.Compare) {
		recent := l.recent(l.past[q.Table][key])
		if len(recent) == 0 {
			delete(l.past[q.Table], key)
			continue
		}
		was := recent[l.draws.IntN(len(recent))].item
		hide, show := l.draws.Float64() < l.hides, l.draws.Float64() < l.showOld
		at, in := x.KeyOf(was)
		in = in && at.PK == q.Partition && strings.HasPrefix(at.SK, q.Prefix) && at.SK >= q.From &&
			(q.To == "" || at.SK <= q.To)
		switch {
		case !in:
			hidden[key] = hide
		case show && (q.After.IsZero() || ordered(q, q.After.Index.SK, at.SK)):
			old = append(old, t.Project(x, was))
		}
	}
	slices.SortStableFunc(old, func(a, b store.Item) int {
		if ordered(q, a.Str(x.SortKey), b.Str(x.SortKey)) {
			return -1
		}
		return 1
	})
	return hidden, old
}

// ordered reports whether one sort key comes before another.
func ordered(q store.Query, a, b string) bool { return a != b && (a < b) != q.Reverse }

// Query implements store.Store.
func (l *lagging) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	t := l.schema[q.Table]
	if q.Index == "" || t == nil {
		return l.Store.Query(ctx, q)
	}
	x := t.Index(q.Index)
	return func(yield func(store.Item, error) bool) {
		hidden, old := l.draw(q, t, x)
		replaced := map[store.Key]bool{}
		for _, it := range old {
			replaced[t.KeyOf(it)] = true
		}
		left := q.Limit
		show := func(it store.Item, stale int) (more bool) {
			l.count(0, stale)
			left--
			return yield(it, nil) && left != 0
		}
		all := q
		all.Limit = 0 // hidden rows do not count
		for it, err := range l.Store.Query(ctx, all) {
			if err != nil {
				yield(nil, err)
				return
			}
			for len(old) > 0 && ordered(q, old[0].Str(x.SortKey), it.Str(x.SortKey)) {
				if !show(old[0], 1) {
					return
				}
				old = old[1:]
			}
			key := t.KeyOf(it)
			same := slices.IndexFunc(old, it.Equal)
			switch {
			case hidden[key]:
				l.count(1, 0)
				continue
			case same >= 0: // it is as it was
				old = slices.Delete(old, same, same+1)
			case replaced[key]:
				continue
			}
			if !show(it, 0) {
				return
			}
		}
		for _, it := range old {
			if !show(it, 1) {
				return
			}
		}
	}
}

func (l *lagging) count(missing, stale int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missing += missing
	l.stale += stale
}

// TestLagging: each row that is shown was the item's state within the last minute, each that is not
// shown was not there at some time within it, and both happen. Rows are in order, up to the limit.
func TestLagging(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	clock := func() time.Time { return now }
	tables := []store.Table{{Name: "t", PartitionKey: "pk",
		Indexes: []store.Index{{Name: "x", PartitionKey: "day", SortKey: "note", All: true}}}}
	inner, err := memstore.Open(tables, clock)
	if err != nil {
		t.Fatal(err)
	}
	s := newLagging(inner, inner, tables, clock, 1)
	draws := rand.New(rand.NewPCG(5, 5))
	type spell struct {
		note  string // "" while it is not in the index under d
		until time.Time
	}
	forever := time.Unix(1<<40, 0)
	items := make([][]spell, 6)
	for i := range items {
		items[i] = []spell{{"", forever}}
	}
	for step := range 2000 {
		i := draws.IntN(len(items))
		items[i][len(items[i])-1].until = now
		next := spell{fmt.Sprintf("n%04d", draws.IntN(10_000)), forever}
		row := store.NewItem(store.Attribute{Name: "pk", Value: store.S(fmt.Sprint(i))},
			store.Attribute{Name: "day", Value: store.S("d")}, store.Attribute{Name: "note", Value: store.S(next.note)})
		write := store.Put("t", row)
		switch draws.IntN(3) {
		case 0:
			if _, err := inner.Get(t.Context(), "t", store.Key{PK: fmt.Sprint(i)}); err == nil {
				write = store.Delete("t", store.Key{PK: fmt.Sprint(i)})
				next.note = ""
			}
		case 1:
			row.Set("day", store.S("elsewhere"))
			write = store.Put("t", row)
			next.note = ""
		}
		if err := s.Commit(t.Context(), write); err != nil {
			t.Fatal(err)
		}
		items[i] = append(items[i], next)
		now = now.Add(time.Duration(draws.IntN(20)) * time.Second)

		q := store.Query{Table: "t", Index: "x", Partition: "d", Reverse: step%2 == 0, Limit: step % 5}
		shown, last := map[string]string{}, ""
		for it, err := range s.Query(t.Context(), q) {
			pk, note := it.Str("pk"), it.Str("note")
			if err != nil || shown[pk] != "" || last != "" && ordered(q, note, last) {
				t.Fatalf("step %d: %v after %s, %v; %v", step, it, last, err, shown)
			}
			shown[pk], last = note, note
		}
		if q.Limit > 0 && len(shown) > q.Limit {
			t.Fatalf("step %d: %d rows over the limit %d", step, len(shown), q.Limit)
		}
		for i, spells := range items {
			got := shown[fmt.Sprint(i)]
			if got == "" && q.Limit > 0 {
				continue // the limit may have cut it off
			}
			lately := func(s spell) bool { return s.note == got && now.Sub(s.until) < time.Minute }
			if !slices.ContainsFunc(spells, lately) {
				t.Fatalf("step %d: item %d is shown as %q at %v; it was %v", step, i, got, now, spells)
			}
		}
	}
	if s.missing < 100 || s.stale < 100 {
		t.Errorf("%d rows were missing and %d stale", s.missing, s.stale)
	}
	now = now.Add(time.Minute)
	rows, want := 0, 0
	for range s.Query(t.Context(), store.Query{Table: "t", Index: "x", Partition: "d"}) {
		rows++
	}
	for range inner.Query(t.Context(), store.Query{Table: "t", Index: "x", Partition: "d"}) {
		want++
	}
	if rows != want {
		t.Errorf("%d rows a minute later, want %d", rows, want)
	}
}

// A busy store has somebody at work on it after each scan.
type busy struct {
	store.Store
	work func()
}

func (b *busy) Scan(ctx context.Context, q store.Scan) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		for it, err := range b.Store.Scan(ctx, q) {
			if !yield(it, err) {
				return
			}
		}
		b.work()
	}
}

// TestVerify_BesideARun: charges made while the audit reads are no problem; one that the store does not
// know is.
func TestVerify_BesideARun(t *testing.T) {
	w := newWorld("2024-02-29T09:00", planted{})
	n := w.create(one("2024-01-31", func(n *billing.NewSubscription) { n.PaymentDay = 31 })) // two periods are due
	before, e := w.sub(n).Raw, w.start()
	e.Store = &busy{e.Store, func() {
		w.create(one("2024-02-29", of("a2")))
		w.start().run(civil.Date{})
	}}
	a, err := e.Verify(t.Context())
	mustNot(t, err)
	if !a.OK || a.Charges != 3 {
		t.Errorf("%d charges, %+v", a.Charges, a.Problems)
	}
	mustNot(t, w.spy.mem.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, before)))
	for _, r := range w.spy.receipts["ACC#a1/s1/0"] {
		mustNot(t, w.spy.mem.Commit(t.Context(), store.Delete(w.tables.RecurringPayments.Name, billing.KeyOf(r))))
	}
	w.wantProblem(t, "charge without a receipt")
}
