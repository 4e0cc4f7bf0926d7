package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/store"
)

// An Opener opens a new, empty store of these tables with that clock, for the test t. The suite
// closes the store before t ends.
type Opener func(t *testing.T, tables []store.Table, now func() time.Time) store.Store

// Run holds the engine to the contract, each topic on stores of its own and at the same time
// as the others. On a store whose method Remote returns true, one across a network, it runs
// the same cases with fewer rounds.
func Run(t *testing.T, open Opener) {
	for _, topic := range []struct {
		name string
		run  func(t *testing.T, open Opener)
	}{
		{"GetPut", testGetPut},
		{"Update", testUpdate},
		{"Delete", testDelete},
		{"Check", testCheck},
		{"Conditions", testConditions},
		{"Atomicity", testAtomicity},
		{"Order", testOrder},
		{"Ranges", testRanges},
		{"Cursors", testCursors},
		{"Indexes", testIndexes},
		{"Projections", testProjections},
		{"Expiry", testExpiry},
		{"ExpiredWrites", testExpiredWrites},
		{"Scan", testScan},
		{"ScanCursors", testScanResume},
		{"ItemLimits", testItemLimits},
		{"KeyLimits", testKeyLimits},
		{"CommitLimits", testCommitLimits},
		{"ReadLimits", testReadLimits},
		{"Values", testValues},
		{"Text", testText},
		{"Ownership", testOwnership},
		{"Returned", testReturned},
		{"Iteration", testIteration},
		{"Lifecycle", testLifecycle},
		{"Concurrency", testConcurrency},
		{"Unknown", testUnknown},
		{"Unsupported", testUnsupported},
		{"Unreadable", testUnreadable},
		{"Model", testModel},
	} {
		t.Run(topic.name, func(t *testing.T) {
			t.Parallel()
			topic.run(t, open)
		})
	}
}

// The suite's tables. ledger has expiry and three indexes: one projects some attributes, one
// projects all and has no sort key, and one swaps the parts of the base key. plain has neither a
// sort key nor expiry.
const (
	ledger   = "ledger"
	byState  = "byState"
	byOwner  = "byOwner"
	inverted = "inverted"
	plain    = "plain"
	byName   = "byName"
)

func suiteTables() []store.Table {
	return []store.Table{
		{
			Name: ledger, PartitionKey: "pk", SortKey: "sk", TTL: "ttl",
			Indexes: []store.Index{
				{Name: byState, PartitionKey: "state", SortKey: "due", Include: []string{"amount", "note"}},
				{Name: byOwner, PartitionKey: "owner", All: true},
				{Name: inverted, PartitionKey: "sk", SortKey: "pk"},
			},
		},
		{
			Name: plain, PartitionKey: "id",
			Indexes: []store.Index{{Name: byName, PartitionKey: "kind", SortKey: "name", All: true}},
		},
	}
}

// A clock stands still until it is moved.
type clock struct{ seconds atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.seconds.Store(1_800_000_000)
	return c
}

func (c *clock) now() time.Time  { return time.Unix(c.seconds.Load(), 0) }
func (c *clock) unix() int64     { return c.seconds.Load() }
func (c *clock) advance(s int64) { c.seconds.Add(s) }

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

// commit commits writes that must succeed.
func (r *rig) commit(writes ...store.Write) {
	r.Helper()
	if err := r.Commit(r.Context(), writes...); err != nil {
		r.Fatalf("Commit: %v", err)
	}
}

// put puts items of the ledger table, one commit each.
func (r *rig) put(items ...store.Item) {
	r.Helper()
	for _, it := range items {
		r.commit(store.Put(ledger, it))
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

// want checks the result of Get for the key of the item.
func (r *rig) want(table string, want store.Item) {
	r.Helper()
	key := r.table(table).KeyOf(want)
	got, err := r.Get(r.Context(), table, key)
	if err != nil || !got.Equal(want) {
		r.Fatalf("Get(%s, %q) = %s, %v; want %s", table, key, show(got), err, show(want))
	}
}

// wantNone checks that Get returns ErrNotFound.
func (r *rig) wantNone(table string, keys ...store.Key) {
	r.Helper()
	for _, key := range keys {
		if it, err := r.Get(r.Context(), table, key); !errors.Is(err, store.ErrNotFound) || it != nil {
			r.Fatalf("Get(%s, %q) = %s, %v; want ErrNotFound", table, key, show(it), err)
		}
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

// wantSorts checks the base sort keys of a query's rows, in order; in a table without sort keys,
// the partition keys.
func (r *rig) wantSorts(q store.Query, want ...string) {
	r.Helper()
	if got := r.sorts(q.Table, r.rows(q)); !slices.Equal(got, want) {
		r.Fatalf("Query(%+v) = %q, want %q", q, got, want)
	}
}

func (r *rig) sorts(table string, items []store.Item) []string {
	t, keys := r.table(table), []string(nil)
	for _, it := range items {
		k := t.KeyOf(it)
		keys = append(keys, k.SK)
		if t.SortKey == "" {
			keys[len(keys)-1] = k.PK
		}
	}
	return keys
}

// collect reads an iteration to its end. An error must come last.
func collect(rows func(yield func(store.Item, error) bool)) (items []store.Item, err error) {
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
	var s string
	switch v.Kind() {
	case store.KindNumber:
		s = v.Num()
	case store.KindBool:
		s = fmt.Sprint(v.Bool())
	case store.KindMap:
		s = show(append(store.Item{}, v.Map()...)) // an empty one may be nil
	case store.KindList:
		var parts []string
		for _, e := range v.List() {
			parts = append(parts, showValue(e))
		}
		s = "[" + strings.Join(parts, " ") + "]"
	default:
		s = v.Str() + v.Raw()
		if len(s) > long {
			return fmt.Sprintf("%q and so on, %d bytes", s[:long], len(s))
		}
		s = strconv.Quote(s)
	}
	return s
}
