package storetest

import (
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// exists is the condition in a ConflictError about an absent item.
const exists = "item exists"

func testUpdate(t *testing.T, open Opener) {
	key := store.Key{PK: "a", SK: "1"}
	absent := store.ConflictError{Table: ledger, Key: key, Condition: exists}
	set := store.NewItem(number("amount", 6), text("zone", "z"))
	play(t, open,
		scenario{"sets, removes and leaves the rest", func(r *rig) {
			r.put(item("a", "1", number("amount", 5), text("note", "n"), text("keep", "k")), item("a", "2", number("amount", 5)))
			r.commit(store.Update(ledger, key, set, []string{"note"}))
			r.want(ledger, item("a", "1", number("amount", 6), text("zone", "z"), text("keep", "k")))
			r.want(ledger, item("a", "2", number("amount", 5)))
		}},
		scenario{"removing what is not there", func(r *rig) {
			r.put(item("a", "1", text("keep", "k")))
			r.commit(store.Update(ledger, key, nil, []string{"note", "aaa", "zzz"}))
			r.want(ledger, item("a", "1", text("keep", "k")))
		}},
		scenario{"changing nothing", func(r *rig) {
			r.put(item("a", "1", text("keep", "k")))
			r.commit(store.Update(ledger, key, nil, nil))
			r.want(ledger, item("a", "1", text("keep", "k")))
			r.conflict(store.ConflictError{Table: ledger, Key: store.Key{PK: "a", SK: "2"}, Condition: exists},
				store.Update(ledger, store.Key{PK: "a", SK: "2"}, nil, nil))
		}},
		scenario{"an absent item is a conflict", func(r *rig) {
			r.put(item("a", "2"), item("b", "1"))
			r.conflict(absent, store.Update(ledger, key, set, nil))
			r.conflict(absent, store.Update(ledger, key, set, nil, store.AttributeAbsent("amount")))
			r.conflict(absent, store.Update(ledger, key, set, nil, store.Absent()))
			r.wantNone(ledger, key)
		}},
		scenario{"a deleted item is a conflict", func(r *rig) {
			r.put(item("a", "1"))
			r.commit(store.Delete(ledger, key))
			r.conflict(absent, store.Update(ledger, key, set, nil))
		}},
		scenario{"another kind of value", func(r *rig) {
			r.put(item("a", "1", number("amount", 5)))
			r.commit(store.Update(ledger, key, store.NewItem(text("amount", "five")), nil))
			r.want(ledger, item("a", "1", text("amount", "five")))
		}},
		scenario{"no sort key", func(r *rig) {
			r.commit(store.Put(plain, store.NewItem(text("id", "a"))))
			r.commit(store.Update(plain, store.Key{PK: "a"}, set, nil))
			r.want(plain, store.NewItem(text("id", "a"), number("amount", 6), text("zone", "z")))
		}},
	)
}

func testDelete(t *testing.T, open Opener) {
	key := store.Key{PK: "a", SK: "1"}
	absent := store.ConflictError{Table: ledger, Key: key, Condition: exists}
	play(t, open,
		scenario{"deletes the item and no other", func(r *rig) {
			r.put(item("a", "1"), item("a", "2"), item("a", "11"), item("b", "1"))
			r.commit(store.Delete(ledger, key))
			r.wantNone(ledger, key)
			r.wantSorts(store.Query{Table: ledger, Partition: "a"}, "11", "2")
			r.wantSorts(store.Query{Table: ledger, Partition: "b"}, "1")
		}},
		scenario{"an absent item is a conflict", func(r *rig) {
			r.put(item("a", "2"))
			r.conflict(absent, store.Delete(ledger, key))
			r.conflict(absent, store.Delete(ledger, key, store.AttributeAbsent("note")))
			r.conflict(absent, store.Delete(ledger, key, store.Absent()))
		}},
		scenario{"twice is a conflict", func(r *rig) {
			r.put(item("a", "1"))
			r.commit(store.Delete(ledger, key))
			r.conflict(absent, store.Delete(ledger, key))
		}},
		scenario{"a condition that fails keeps it", func(r *rig) {
			it := item("a", "1", number("version", 2))
			r.put(it)
			c := store.AttributeEquals("version", store.Int(1))
			r.conflict(store.ConflictError{Table: ledger, Key: key, Condition: c.String()}, store.Delete(ledger, key, c))
			r.want(ledger, it)
		}},
		scenario{"and put again", func(r *rig) {
			r.put(item("a", "1", text("note", "old"), text("state", "open"), text("due", "1")))
			r.commit(store.Delete(ledger, key))
			it := item("a", "1", text("keep", "new"))
			r.commit(store.Put(ledger, it, store.Absent()))
			r.want(ledger, it)
		}},
		scenario{"no sort key", func(r *rig) {
			r.commit(store.Put(plain, store.NewItem(text("id", "a"))), store.Put(plain, store.NewItem(text("id", "b"))))
			r.commit(store.Delete(plain, store.Key{PK: "a"}))
			r.wantNone(plain, store.Key{PK: "a"})
			r.want(plain, store.NewItem(text("id", "b")))
		}},
	)
}

func testCheck(t *testing.T, open Opener) {
	key := store.Key{PK: "a", SK: "1"}
	absent := store.ConflictError{Table: ledger, Key: key, Condition: exists}
	play(t, open,
		scenario{"changes nothing", func(r *rig) {
			r.put(item("a", "1", number("version", 1), text("state", "open"), text("due", "1")))
			r.unchanged(func() {
				r.commit(store.Check(ledger, key))
				r.commit(store.Check(ledger, key, store.AttributeEquals("version", store.Int(1)), store.AttributeAbsent("note")))
				r.commit(store.Check(ledger, store.Key{PK: "a", SK: "2"}, store.Absent()))
			})
			r.wantNone(ledger, store.Key{PK: "a", SK: "2"})
		}},
		scenario{"the item must exist unless absence is the condition", func(r *rig) {
			r.conflict(absent, store.Check(ledger, key))
			r.conflict(absent, store.Check(ledger, key, store.AttributeAbsent("note")))
			r.commit(store.Check(ledger, key, store.Absent()))
			r.put(item("a", "1"))
			r.conflict(store.ConflictError{Table: ledger, Key: key, Condition: store.Absent().String()},
				store.Check(ledger, key, store.Absent()))
		}},
		scenario{"holds back the other writes", func(r *rig) {
			r.put(item("a", "1", number("version", 1)))
			other := item("b", "1")
			c := store.AttributeEquals("version", store.Int(2))
			r.conflict(store.ConflictError{Write: 1, Table: ledger, Key: key, Condition: c.String()},
				store.Put(ledger, other), store.Check(ledger, key, c))
			r.wantNone(ledger, store.Key{PK: "b", SK: "1"})
			r.commit(store.Put(ledger, other), store.Check(ledger, key, store.AttributeEquals("version", store.Int(1))))
			r.want(ledger, other)
		}},
	)
}
