package storetest

import (
	"math"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

func testGetPut(t *testing.T, open Opener) {
	play(t, open,
		scenario{"absent", func(r *rig) {
			r.wantNone(ledger, at("a", "1"))
			r.wantNone(plain, at("a", ""))
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
			r.wantSorts(in("a"), "1")
		}},
		scenario{"both parts of the key count", func(r *rig) {
			it := item("a", "1", text("note", "it"))
			r.put(it)
			r.wantNone(ledger, at("a", "2"), at("b", "1"), at("1", "a"), at("a1", "1"), at("a", "11"), at("A", "1"))
			other, third := item("b", "1", text("note", "other")), item("a", "2", text("note", "third"))
			r.put(other, third)
			r.want(ledger, it, other, third)
		}},
		scenario{"no sort key", func(r *rig) {
			it := store.NewItem(text("id", "a"), text("sk", "an attribute like any other"))
			r.commit(store.Put(plain, it))
			r.want(plain, it)
			r.wantSorts(store.Query{Table: plain, Partition: "a"}, "a")
		}},
		scenario{"tables are apart", func(r *rig) {
			one, two := item("a", "1", text("id", "a")), store.NewItem(text("id", "a"), text("note", "two"))
			r.put(one)
			r.wantNone(plain, at("a", ""))
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
				r.wantSegments(ledger, 1, []store.Item{it})
				r.wantRows(in("a"), it)
			}
		}},
	)
}

// sampleValues returns values of every kind, no two of them equal.
func sampleValues() []store.Value {
	deep := store.S("bottom")
	for range store.MaxDepth / 2 {
		deep = store.L(store.M(store.NewItem(attribute("in", deep))))
	}
	set := func(vs ...store.Value) store.Value { v, _ := store.Set(vs...); return v }
	nines, one := strings.Repeat("9", store.MaxNumberDigits), store.B([]byte{1})
	return []store.Value{
		store.S(""), store.S("1"), store.S("true"), store.S("\x00"), store.S("a\x00b"), store.S("Zürich €\U0001F4B6"),
		store.S(strings.Repeat("x", 70_000)),
		store.Int(0), store.Int(1), store.Int(-1), store.Int(math.MaxInt64), store.Int(math.MinInt64),
		decimal(nines), decimal("-" + nines), decimal("0." + nines), decimal("1E-130"), decimal("-9.99E+125"),
		decimal("0.1"), decimal("9223372036854775808"),
		store.Bool(true), store.Bool(false),
		store.B(nil), store.B([]byte("1")), store.B([]byte{0}), store.B([]byte{0, 0}), store.B([]byte{0, 1, 0xFF, 0xFE, 0}),
		store.M(nil), store.M(store.NewItem(number("a", 1), text("b", "2"))),
		store.M(store.NewItem(text("a", "1"), text("b", "2"))),
		store.L(), store.L(store.L()), store.L(store.M(nil)), store.L(store.Int(1), store.S("1"), store.Bool(true), one),
		store.L(store.S("1"), store.Int(1), store.Bool(true), one), deep, store.L(store.Null()),
		store.M(store.Item{attribute("n", store.Null()), attribute("s", set(decimal("0.1"), store.Int(-2)))}),
		set(store.S("1")), set(store.S("b"), store.S("a")), set(store.Int(1)), set(one), store.L(set(store.S("1"))),
	}
}

func testValues(t *testing.T, open Opener) {
	play(t, open,
		scenario{"round trip", func(r *rig) {
			all := item("all", "1", text("owner", "o"))
			for i, v := range sampleValues() {
				it := item("a", "1", attribute("v", v), text("owner", "p"))
				r.put(it)
				r.want(ledger, it)
				r.commit(update(at("a", "1"), store.NewItem(attribute("w", v)), []string{"v"}))
				it.Set("w", v)
				it.Remove("v")
				r.want(ledger, it)
				all.Set("v"+strings.Repeat("i", i), v)
			}
			r.put(all)
			r.want(ledger, all)
			r.wantRows(in("all"), all)
			r.wantRows(inIndex(byOwner, "o"), all)
			r.commit(remove(at("a", "1")))
			r.wantSegments(ledger, 1, []store.Item{all})
		}},
		scenario{"attribute names", func(r *rig) {
			it := item("a", "1")
			for _, name := range []string{" ", "\x00", "a.b", "a#b", "a:b", "size", "PK", "Sk", "é", strings.Repeat("n", 255)} {
				it.Set(name, store.S("v "+name))
			}
			it.Set("m", store.M(it.Clone()))
			r.put(it)
			r.want(ledger, it)
		}},
	)
}

func notUTF8() []string {
	return []string{"\x80", "\xc2", "\xff", "a\x00\xff", "\xed\xa0\x80", "\xf4\x90\x80\x80"}
}

// testText puts invalid UTF-8 into every place of a string.
func testText(t *testing.T, open Opener) {
	key := at("a", "1")
	play(t, open,
		scenario{"writes", func(r *rig) {
			r.put(item("a", "1"))
			for _, bad := range notUTF8() {
				for _, w := range []store.Write{
					put(item(bad, "1")), put(item("a", bad)), put(item("b", "1", text("note", bad))),
					put(item("b", "1", text("state", bad))), put(item("b", "1", text(bad, "x"))),
					put(item("b", "1", attribute("l", store.L(store.S(bad))))),
					put(item("b", "1", attribute("m", store.M(store.NewItem(text(bad, "x")))))),
					update(key, store.NewItem(text("note", bad)), nil), update(key, store.NewItem(text(bad, "x")), nil),
					update(key, nil, []string{bad}), update(at("a", bad), nil, nil),
					remove(at(bad, "1")), check(at(bad, "1"), store.Absent()), check(key, store.AttributeAbsent(bad)),
					check(key, equals(bad, store.Int(1))), check(key, equals("note", store.S(bad))),
				} {
					r.refuse(store.ErrInvalid, w)
				}
				it := item("a", "2", attribute("bytes", store.B([]byte(bad))))
				r.put(it)
				r.want(ledger, it)
			}
			r.wantSorts(in("a"), "1", "2")
			r.wantSorts(in("b"))
		}},
		scenario{"reads", func(r *rig) {
			r.put(item("a", "1"))
			for _, bad := range notUTF8() {
				r.refuseGet(store.ErrInvalid, ledger, at(bad, "1"), at("a", bad))
				r.refuseQuery(store.ErrInvalid, in(bad), inIndex(byState, bad),
					store.Query{Table: ledger, Partition: "a", Prefix: bad}, store.Query{Table: ledger, Partition: "a", From: bad},
					store.Query{Table: ledger, Partition: "a", To: bad},
					store.Query{Table: ledger, Partition: "a", After: store.Cursor{Key: at("a", bad)}},
					store.Query{Table: ledger, Index: byState, Partition: "a", After: store.Cursor{Key: key, Index: at("a", bad)}})
				after := store.Cursor{Key: at(bad, "1")}
				r.refuseRead(store.ErrInvalid, r.Scan(r.Context(), store.Scan{Table: ledger, After: after}))
			}
		}},
	)
}

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

// ownedItem is the item of these tests, in two indexes.
func ownedItem() store.Item {
	return item("a", "1", text("state", "open"), text("due", "1"), text("owner", "o"), number("amount", 5),
		attribute("m", store.M(store.NewItem(text("k", "v")))))
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
			for _, q := range []store.Query{in("a"), inIndex(byState, "open"), inIndex(byOwner, "o")} {
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
