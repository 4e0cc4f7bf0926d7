package dryrun_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/dryrun"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

var tables = []store.Table{{Name: "t", PartitionKey: "pk", SortKey: "sk"}}

func open(t *rapid.T) *memstore.Store {
	s, err := memstore.Open(tables, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func attribute(name, text string) store.Attribute {
	return store.Attribute{Name: name, Value: store.S(text)}
}

// drawWrite draws any write to one of a few keys.
func drawWrite(t *rapid.T, was store.Item, key store.Key) store.Write {
	var conditions []store.Condition
	for range rapid.IntRange(0, 2).Draw(t, "conditions") {
		conditions = append(conditions, rapid.SampledFrom([]store.Condition{store.Absent(), store.AttributeAbsent("a"),
			store.AttributeEquals("a", store.S("1"))}).Draw(t, "condition"))
	}
	value := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value")
	it := store.NewItem(attribute("pk", key.PK), attribute("sk", key.SK), attribute(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"), value))
	switch rapid.SampledFrom([]string{"put", "rewrite", "update", "delete", "check"}).Draw(t, "op") {
	case "put":
		return store.Put("t", it, conditions...)
	case "rewrite":
		if was != nil {
			return store.Rewrite("t", was, it, conditions...)
		}
		return store.Put("t", it, conditions...)
	case "update":
		return store.Update("t", key, store.NewItem(attribute("c", value)), []string{"a"}, conditions...)
	case "delete":
		return store.Delete("t", key, conditions...)
	}
	return store.Check("t", key, conditions...)
}

// dump returns the items of a query as text.
func dump(t *rapid.T, s store.Store, q store.Query) (text string) {
	for it, err := range s.Query(context.Background(), q) {
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprint(it, "\n")
	}
	return text
}

// TestStore: a Store shows what another store with the same commits has, accepts and refuses the same ones,
// and leaves the store below as it was.
func TestStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		base, twin := open(t), open(t)
		keys := []store.Key{{PK: "p", SK: "1"}, {PK: "p", SK: "2"}, {PK: "p", SK: "3"}, {PK: "q", SK: "1"}}
		commit := func(stores []store.Store, round int) {
			var writes []store.Write
			for _, key := range rapid.Permutation(keys).Draw(t, "keys")[:rapid.IntRange(1, 3).Draw(t, "writes")] {
				was, _ := twin.Get(ctx, "t", key)
				writes = append(writes, drawWrite(t, was, key))
			}
			var first error
			for i, s := range stores {
				err := s.Commit(ctx, writes...)
				if i == 0 {
					first = err
				} else if errors.Is(err, store.ErrConflict) != errors.Is(first, store.ErrConflict) {
					t.Fatalf("commit %d of %+v: %v, but %v", round, writes, err, first)
				}
			}
		}
		for round := range 4 {
			commit([]store.Store{twin, base}, round)
		}
		whole := store.Query{Table: "t", Partition: "p"}
		before := dump(t, base, whole)
		dry := dryrun.NewStore(base, tables)
		for round := range 6 {
			commit([]store.Store{twin, dry}, round)
			q := whole
			q.Reverse, q.Limit = rapid.Bool().Draw(t, "reverse"), rapid.IntRange(0, 2).Draw(t, "limit")
			switch rapid.IntRange(0, 2).Draw(t, "selection") {
			case 1:
				q.Prefix = "2"
			case 2:
				q.From, q.To = "2", "3"
			}
			if got, want := dump(t, dry, q), dump(t, twin, q); got != want {
				t.Fatalf("%+v:\n%swant\n%s", q, got, want)
			}
			for _, key := range keys {
				got, gotErr := dry.Get(ctx, "t", key)
				want, wantErr := twin.Get(ctx, "t", key)
				if !got.Equal(want) || errors.Is(gotErr, store.ErrNotFound) != errors.Is(wantErr, store.ErrNotFound) {
					t.Fatalf("%v: %v, %v, want %v, %v", key, got, gotErr, want, wantErr)
				}
			}
		}
		if after := dump(t, base, whole); after != before {
			t.Fatalf("the store below has changed:\n%swant\n%s", after, before)
		}
	})
}
