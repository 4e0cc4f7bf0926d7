package memstore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

var ledger = []store.Table{{
	Name: "t", PartitionKey: "pk", SortKey: "sk",
	Indexes: []store.Index{{Name: "x", PartitionKey: "state", SortKey: "sk", All: true}},
}}

func row(n int, state string) store.Write {
	return store.Put("t", store.NewItem(
		store.Attribute{Name: "pk", Value: store.S(fmt.Sprint(n % 7))},
		store.Attribute{Name: "sk", Value: store.S(fmt.Sprint(n))},
		store.Attribute{Name: "state", Value: store.S(state)}))
}

func open(t testing.TB) *memstore.Store {
	t.Helper()
	s, err := memstore.Open(ledger, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func commit(t testing.TB, s store.Store, writes ...store.Write) {
	t.Helper()
	if err := s.Commit(t.Context(), writes...); err != nil {
		t.Fatal(err)
	}
}

// count counts the rows of state in the index, and all items.
func count(t testing.TB, s store.Store, state string) (indexed, items int) {
	t.Helper()
	for _, err := range s.Query(t.Context(), store.Query{Table: "t", Index: "x", Partition: state}) {
		if err != nil {
			t.Fatal(err)
		}
		indexed++
	}
	for _, err := range s.Scan(t.Context(), store.Scan{Table: "t"}) {
		if err != nil {
			t.Fatal(err)
		}
		items++
	}
	return indexed, items
}

func TestSnapshot(t *testing.T) {
	s := open(t)
	for n := range 600 {
		commit(t, s, row(n, "old"))
	}
	c := s.Snapshot()
	for n := range 300 {
		commit(t, s, row(n, "new"), row(1000+n, "new"))
		commit(t, c, store.Delete("t", store.Key{PK: fmt.Sprint((300 + n) % 7), SK: fmt.Sprint(300 + n)}))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := s.Snapshot()
	for _, want := range []struct {
		s              *memstore.Store
		state          string
		indexed, items int
	}{{c, "old", 300, 300}, {c, "new", 0, 300}, {again, "old", 300, 900}, {again, "new", 600, 900}} {
		if indexed, items := count(t, want.s, want.state); indexed != want.indexed || items != want.items {
			t.Errorf("%d rows %s of %d items, want %d of %d", indexed, want.state, items, want.indexed, want.items)
		}
	}
	commit(t, again, row(5000, "open")) // a copy of a closed store is open
	if err := s.Commit(t.Context(), row(5000, "closed")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Commit = %v, want ErrClosed", err)
	}
}

func BenchmarkOpenAndCommit(b *testing.B) {
	for b.Loop() {
		s := open(b)
		commit(b, s, row(1, "open"))
	}
}

func BenchmarkCommit(b *testing.B) {
	s, n := open(b), 0
	for range 100_000 {
		commit(b, s, row(n, "open"))
		n += 7919
	}
	for b.Loop() {
		commit(b, s, row(n%1_000_000, "open"))
		n += 7919
	}
}

func BenchmarkGet(b *testing.B) {
	s := open(b)
	for n := range 100_000 {
		commit(b, s, row(n, "open"))
	}
	for b.Loop() {
		if _, err := s.Get(b.Context(), "t", store.Key{PK: "3", SK: "70003"}); err != nil {
			b.Fatal(err)
		}
	}
}
