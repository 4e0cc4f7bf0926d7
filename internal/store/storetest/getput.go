package storetest

import (
	"testing"

	"github.com/duesday/duesday/internal/store"
)

func testGetPut(t *testing.T, open Opener) {
	play(t, open,
		scenario{"absent", func(r *rig) {
			r.wantNone(ledger, store.Key{PK: "a", SK: "1"})
			r.wantNone(plain, store.Key{PK: "a"})
		}},
		scenario{"put inserts", func(r *rig) {
			it := item("a", "1", text("note", "first"), number("amount", 5))
			r.put(it)
			r.want(ledger, it)
		}},
		scenario{"put replaces the whole item", func(r *rig) {
			r.put(item("a", "1", text("note", "first"), text("state", "open"), text("due", "2027")))
			it := item("a", "1", number("amount", 5))
			r.put(it)
			r.want(ledger, it)
			r.wantSorts(store.Query{Table: ledger, Partition: "a"}, "1")
		}},
		scenario{"both parts of the key count", func(r *rig) {
			it := item("a", "1", text("note", "it"))
			r.put(it)
			r.wantNone(ledger, store.Key{PK: "a", SK: "2"}, store.Key{PK: "b", SK: "1"}, store.Key{PK: "1", SK: "a"},
				store.Key{PK: "a1", SK: "1"}, store.Key{PK: "a", SK: "11"}, store.Key{PK: "A", SK: "1"})
			other, third := item("b", "1", text("note", "other")), item("a", "2", text("note", "third"))
			r.put(other, third)
			r.want(ledger, it)
			r.want(ledger, other)
			r.want(ledger, third)
		}},
		scenario{"no sort key", func(r *rig) {
			it := store.NewItem(text("id", "a"), text("sk", "an attribute like any other"))
			r.commit(store.Put(plain, it))
			r.want(plain, it)
			r.wantSorts(store.Query{Table: plain, Partition: "a"}, "a")
		}},
		scenario{"tables are apart", func(r *rig) {
			one := item("a", "1", text("id", "a"))
			r.commit(store.Put(ledger, one))
			r.wantNone(plain, store.Key{PK: "a"})
			two := store.NewItem(text("id", "a"), text("note", "two"))
			r.commit(store.Put(plain, two))
			r.want(ledger, one)
			r.want(plain, two)
		}},
		scenario{"an item of its key alone", func(r *rig) {
			r.put(item("a", "1"))
			r.want(ledger, item("a", "1"))
		}},
		scenario{"every reader sees a commit at once", func(r *rig) {
			for n := range int64(r.rounds(20, 4)) {
				it := item("a", "1", number("amount", n))
				r.put(it)
				r.want(ledger, it)
				scanned, err := collect(r.Scan(r.Context(), store.Scan{Table: ledger}))
				if err != nil || len(scanned) != 1 || !scanned[0].Equal(it) {
					r.Fatalf("Scan = %v, %v", scanned, err)
				}
				if rows := r.rows(store.Query{Table: ledger, Partition: "a"}); len(rows) != 1 || !rows[0].Equal(it) {
					r.Fatalf("Query = %v", rows)
				}
			}
		}},
	)
}
