package storetest

import (
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// spoil changes an item in every way open to its owner.
func spoil(it store.Item) {
	for i := range it {
		it[i].Value = store.S("spoiled")
	}
	if len(it) > 0 {
		it[0].Name = "spoiled"
		_ = append(it[:0], text("spoiled", "too"))
	}
}

// ownedItem is the item of these tests, in two indexes; ownedQueries show it.
func ownedItem() store.Item {
	return item("a", "1", text("state", "open"), text("due", "1"), text("owner", "o"), number("amount", 5),
		attribute("m", store.M(store.NewItem(text("k", "v")))))
}

func ownedQueries() []store.Query {
	return []store.Query{in("a"), inIndex(byState, "open"), inIndex(byOwner, "o")}
}

// intact checks the stored item: it must be as it was put.
func intact(r *rig) {
	r.Helper()
	r.want(ledger, ownedItem())
	r.wantRows(in("a"), ownedItem())
	r.wantRows(inIndex(byState, "open"), item("a", "1", text("state", "open"), text("due", "1"), number("amount", 5)))
	r.wantRows(inIndex(byOwner, "o"), ownedItem())
}

// testOwnership changes items after a commit, testReturned items from reads.
func testOwnership(t *testing.T, open Opener) {
	key := at("a", "1")
	play(t, open,
		scenario{"an item that was put", func(r *rig) {
			it := ownedItem()
			it = append(it, text("zz", "spare"))[:len(it)] // room for an append to write into
			writes := []store.Write{put(it)}
			r.commit(writes...)
			spoil(it)
			writes[0] = store.Write{}
			intact(r)
		}},
		scenario{"the attributes of an update", func(r *rig) {
			it := ownedItem()
			it.Remove("amount")
			it.Set("note", store.S("n"))
			r.put(it)
			set, remove := store.NewItem(number("amount", 5)), []string{"note"}
			r.commit(update(key, set, remove))
			spoil(set)
			remove[0] = "owner"
			intact(r)
		}},
		scenario{"an item of a failed commit", func(r *rig) {
			r.put(ownedItem())
			it := item("a", "1", text("note", "n"))
			r.refuse(store.ErrConflict, put(it), check(at("z", "z")))
			spoil(it)
			intact(r)
		}},
		scenario{"an item put in two tables", func(r *rig) {
			it := item("a", "1", text("id", "a"))
			r.commit(put(it), store.Put(plain, it))
			r.commit(store.Update(plain, at("a", ""), store.NewItem(text("note", "n")), []string{"sk"}))
			r.want(ledger, it)
		}},
		scenario{"bytes", func(r *rig) {
			b := []byte("bytes")
			it := item("a", "1", attribute("b", store.B(b)))
			r.put(it)
			b[0] = 'X'
			it.Get("b").Bytes()[0] = 'Y'
			r.want(ledger, item("a", "1", attribute("b", store.B([]byte("bytes")))))
		}},
	)
}

func testReturned(t *testing.T, open Opener) {
	key := at("a", "1")
	play(t, open,
		scenario{"an item that was got", func(r *rig) {
			r.put(ownedItem())
			for range 2 {
				it, err := r.Get(r.Context(), ledger, key)
				if err != nil {
					r.Fatal(err)
				}
				spoil(it)
				intact(r)
			}
		}},
		scenario{"rows", func(r *rig) {
			r.put(ownedItem())
			for _, q := range ownedQueries() {
				for it := range r.good(r.Query(r.Context(), q)) {
					spoil(it)
				}
				intact(r)
			}
			for _, it := range r.scan(store.Scan{Table: ledger}) {
				spoil(it)
			}
			intact(r)
		}},
	)
}
