package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/store"
)

// A tester is a *testing.T or a *rapid.T.
type tester interface {
	rapid.TB
	Context() context.Context
}

// A rig is one open store with the suite's tables, and the calls of the tests.
type rig struct {
	tester
	store.Store
	clock *clock
}

func setUp(t *testing.T, open Opener) *rig {
	t.Helper()
	c := newClock()
	return &rig{tester: t, Store: openFor(t, open, c), clock: c}
}

// openFor opens a store and closes it at the end of t, if it is still open.
func openFor(t *testing.T, open Opener, c *clock) store.Store {
	t.Helper()
	s := open(t, suiteTables(), c.now)
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, store.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// A scenario is one case of a topic, on a store of its own.
type scenario struct {
	name string
	run  func(r *rig)
}

func play(t *testing.T, open Opener, scenarios ...scenario) {
	t.Helper()
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) { s.run(setUp(t, open)) })
	}
}

// in returns the same store for a subtest.
func (r *rig) in(t *testing.T) *rig { return &rig{tester: t, Store: r.Store, clock: r.clock} }

// rounds returns how often a case repeats its work.
func (r *rig) rounds(local, remote int) int {
	if s, ok := r.Store.(interface{ Remote() bool }); ok && s.Remote() {
		return remote
	}
	return local
}

func (r *rig) table(name string) *store.Table {
	for _, t := range suiteTables() {
		if t.Name == name {
			return &t
		}
	}
	r.Fatalf("the suite has no table %q", name)
	return nil
}

func (r *rig) commit(writes ...store.Write) {
	r.Helper()
	if err := r.Commit(r.Context(), writes...); err != nil {
		r.Fatalf("Commit: %v", err)
	}
}

func (r *rig) put(items ...store.Item) {
	r.Helper()
	for _, it := range items {
		r.commit(put(it))
	}
}

func (r *rig) fill(items []store.Item) {
	r.Helper()
	for part := range slices.Chunk(items, store.MaxWrites) {
		var writes []store.Write
		for _, it := range part {
			writes = append(writes, put(it))
		}
		r.commit(writes...)
	}
}

// refuse commits writes that must fail with that error, and returns the error.
func (r *rig) refuse(want error, writes ...store.Write) error {
	r.Helper()
	err := r.Commit(r.Context(), writes...)
	if !errors.Is(err, want) || errors.Is(err, store.ErrUnknown) {
		r.Fatalf("Commit = %v, want %v", err, want)
	}
	return err
}

// refused commits each write alone and with a good one. Each must fail so and write nothing.
func (r *rig) refused(want error, writes ...store.Write) {
	r.Helper()
	good := store.Put(plain, store.NewItem(text("id", "good")))
	for _, w := range writes {
		r.unchanged(func() {
			r.Helper()
			r.refuse(want, w)
			r.refuse(want, good, w)
			r.refuse(want, w, good)
		})
	}
}

// conflict commits each write alone. It must conflict by the condition and write nothing.
func (r *rig) conflict(condition string, writes ...store.Write) {
	r.Helper()
	for _, w := range writes {
		r.conflictAt(0, condition, w)
	}
}

// conflictAt commits writes, of which the i-th must conflict by the condition, and writes nothing.
func (r *rig) conflictAt(i int, condition string, writes ...store.Write) {
	r.Helper()
	w := &writes[i]
	want := store.ConflictError{Write: i, Table: w.Table, Key: w.KeyIn(r.table(w.Table)), Condition: condition}
	r.unchanged(func() {
		r.Helper()
		err := r.refuse(store.ErrConflict, writes...)
		if got, ok := errors.AsType[*store.ConflictError](err); !ok || *got != want {
			r.Fatalf("Commit = %#v, want %#v", err, &want)
		}
	})
}

func (r *rig) unchanged(fail func()) {
	r.Helper()
	before := r.dump()
	fail()
	if after := r.dump(); !slices.Equal(before, after) {
		r.Fatalf("a refused commit wrote something:\nbefore %q\nafter  %q", before, after)
	}
}

// dump reads all items, and all index rows of their partitions, for comparisons.
func (r *rig) dump() []string {
	r.Helper()
	var lines []string
	for _, t := range suiteTables() {
		items := r.scan(store.Scan{Table: t.Name})
		for _, it := range items {
			lines = append(lines, t.Name+" "+show(it))
		}
		for i := range t.Indexes {
			x, seen := &t.Indexes[i], map[string]bool{}
			for _, it := range items {
				k, ok := x.KeyOf(it)
				if !ok || seen[k.PK] {
					continue
				}
				seen[k.PK] = true
				for _, row := range r.rows(store.Query{Table: t.Name, Index: x.Name, Partition: k.PK}) {
					lines = append(lines, t.Name+"."+x.Name+" "+show(row))
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func (r *rig) want(table string, items ...store.Item) {
	r.Helper()
	for _, want := range items {
		key := r.table(table).KeyOf(want)
		got, err := r.Get(r.Context(), table, key)
		if err != nil || !got.Equal(want) {
			r.Fatalf("Get(%s, %q) = %s, %v; want %s", table, key, show(got), err, show(want))
		}
	}
}

func (r *rig) wantNone(table string, keys ...store.Key) {
	r.Helper()
	r.refuseGet(store.ErrNotFound, table, keys...)
}

func (r *rig) refuseGet(want error, table string, keys ...store.Key) {
	r.Helper()
	for _, key := range keys {
		if it, err := r.Get(r.Context(), table, key); !errors.Is(err, want) || it != nil {
			r.Fatalf("Get(%s, %.20q) = %s, %v; want %v", table, key, show(it), err, want)
		}
	}
}

// refuseRead checks the only result of an iteration: the error.
func (r *rig) refuseRead(want error, rows iter.Seq2[store.Item, error]) {
	r.Helper()
	items, err := collect(rows)
	if !errors.Is(err, want) || len(items) > 0 {
		r.Fatalf("the iteration yields %v, %v; want %v", shows(items), err, want)
	}
}

func (r *rig) refuseQuery(want error, queries ...store.Query) {
	r.Helper()
	for _, q := range queries {
		r.refuseRead(want, r.Query(r.Context(), q))
	}
}

// rows returns a query's rows. It does not wait for a lagging index.
func (r *rig) rows(q store.Query) []store.Item {
	r.Helper()
	items, err := collect(r.Query(r.Context(), q))
	if err != nil {
		r.Fatalf("Query(%+v): %v", q, err)
	}
	return items
}

func (r *rig) scan(s store.Scan) []store.Item {
	r.Helper()
	items, err := collect(r.Scan(r.Context(), s))
	if err != nil {
		r.Fatalf("Scan(%+v): %v", s, err)
	}
	return items
}

func (r *rig) good(rows iter.Seq2[store.Item, error]) iter.Seq[store.Item] {
	return func(yield func(store.Item) bool) {
		for it, err := range rows {
			if err != nil {
				r.Fatal(err)
			}
			if !yield(it) {
				return
			}
		}
	}
}

func (r *rig) wantRows(q store.Query, want ...store.Item) {
	r.Helper()
	if got := r.rows(q); !slices.EqualFunc(got, want, store.Item.Equal) {
		r.Fatalf("Query(%+v) =\n%v, want\n%v", q, shows(got), shows(want))
	}
}

// wantSorts checks the base sort keys of a query's rows, in order; without sort keys, partitions'.
func (r *rig) wantSorts(q store.Query, want ...string) {
	r.Helper()
	if got := r.sorts(q.Table, r.rows(q)); !slices.Equal(got, want) {
		r.Fatalf("Query(%+v) = %q, want %q", q, got, want)
	}
}

func (r *rig) both(q store.Query, want ...string) {
	r.Helper()
	r.wantSorts(q, want...)
	q.Reverse = true
	back := slices.Clone(want)
	slices.Reverse(back)
	r.wantSorts(q, back...)
}

func (r *rig) sorts(table string, items []store.Item) []string {
	var keys []string
	for _, it := range items {
		k := r.table(table).KeyOf(it)
		keys = append(keys, cmp.Or(k.SK, k.PK))
	}
	return keys
}

// collect reads an iteration to its end. An error must come last.
func collect(rows iter.Seq2[store.Item, error]) (items []store.Item, err error) {
	for it, e := range rows {
		switch {
		case err != nil:
			return items, fmt.Errorf("the iteration goes on after the error %w", err)
		case e != nil:
			err = e
		default:
			items = append(items, it)
		}
	}
	return items, err
}

// These are short forms of writes, keys and queries of the ledger table.

func put(it store.Item, conditions ...store.Condition) store.Write {
	return store.Put(ledger, it, conditions...)
}

func update(key store.Key, set store.Item, remove []string, conditions ...store.Condition) store.Write {
	return store.Update(ledger, key, set, remove, conditions...)
}

func remove(key store.Key, conditions ...store.Condition) store.Write {
	return store.Delete(ledger, key, conditions...)
}

func check(key store.Key, conditions ...store.Condition) store.Write {
	return store.Check(ledger, key, conditions...)
}

func equals(name string, v store.Value) store.Condition { return store.AttributeEquals(name, v) }

func at(pk, sk string) store.Key { return store.Key{PK: pk, SK: sk} }

func in(partition string) store.Query { return inIndex("", partition) }

func inIndex(index, partition string) store.Query {
	return store.Query{Table: ledger, Index: index, Partition: partition}
}

// item makes an item of the ledger table out of its key and further attributes.
func item(pk, sk string, attributes ...store.Attribute) store.Item {
	it := store.NewItem(attributes...)
	it.Set("pk", store.S(pk))
	it.Set("sk", store.S(sk))
	return it
}

func attribute(name string, v store.Value) store.Attribute {
	return store.Attribute{Name: name, Value: v}
}

func text(name, s string) store.Attribute         { return attribute(name, store.S(s)) }
func number(name string, n int64) store.Attribute { return attribute(name, store.Int(n)) }

// decimal returns the number of a text that is one.
func decimal(text string) store.Value {
	v, err := store.Number(text)
	if err != nil {
		panic(err)
	}
	return v
}

func shows(items []store.Item) []string {
	var lines []string
	for _, it := range items {
		lines = append(lines, show(it))
	}
	return lines
}

// show writes an item for a failure message, long values cut.
func show(it store.Item) string {
	if it == nil {
		return "none"
	}
	var b strings.Builder
	for _, a := range it {
		fmt.Fprintf(&b, " %s=%s", a.Name, showValue(a.Value))
	}
	return "{" + strings.TrimSpace(b.String()) + "}"
}

func showValue(v store.Value) string {
	const long = 80
	switch v.Kind() {
	case store.KindNumber:
		return v.Num()
	case store.KindBool:
		return fmt.Sprint(v.Bool())
	case store.KindMap:
		return show(append(store.Item{}, v.Map()...)) // an empty one may be nil
	case store.KindNull:
		return "null"
	case store.KindList, store.KindSet:
		var parts []string
		for _, e := range append(v.List(), v.Elements()...) {
			parts = append(parts, showValue(e))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	s := v.Str() + v.Raw()
	if len(s) > long {
		return fmt.Sprintf("%q and so on, %d bytes", s[:long], len(s))
	}
	return strconv.Quote(s)
}
