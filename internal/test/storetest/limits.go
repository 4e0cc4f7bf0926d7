package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// sized returns an item of a/sk of so many bytes by DynamoDB's rules, reckoned by hand.
func sized(sk string, bytes int) store.Item {
	it := item("a", sk, number("n", 12345), attribute("on", store.Bool(true)),
		attribute("list", store.L(store.S("é"), store.B([]byte{0, 1}))),
		attribute("map", store.M(store.NewItem(text("k", "v")))))
	fixed := len("pk"+"a"+"sk"+sk) + (1 + 4) + (2 + 1) + (4 + 3 + 2 + 2 + 2) + (3 + 3 + 1 + 1 + 1) + len("blob")
	it.Set("blob", store.S(strings.Repeat("x", bytes-fixed)))
	return it
}

func testItemLimits(t *testing.T, open Opener) {
	key := at("a", "1")
	play(t, open,
		scenario{"the largest item", func(r *rig) {
			it := sized("1", store.MaxItemBytes)
			r.put(it)
			r.want(ledger, it)
			r.refused(store.ErrTooLarge, put(sized("1", store.MaxItemBytes+1)), put(sized("2", store.MaxItemBytes+1)))
			r.want(ledger, it)
		}},
		scenario{"an update that grows", func(r *rig) {
			r.put(sized("1", store.MaxItemBytes-10))
			r.commit(update(key, store.NewItem(text("t", "123456789")), nil))
			r.refused(store.ErrTooLarge, update(key, store.NewItem(text("t", "1234567890")), nil),
				update(key, store.NewItem(text("u", "")), nil))
			r.commit(update(key, store.NewItem(text("u", "123456789")), []string{"t"}))
		}},
		scenario{"bytes count, not characters", func(r *rig) {
			blob := strings.Repeat("€", (store.MaxItemBytes-len("pk"+"a"+"sk"+"1"+"blob"))/3)
			r.put(item("a", "1", text("blob", blob)))
			r.refused(store.ErrTooLarge, put(item("a", "1", text("blob", blob+"€"))))
		}},
		scenario{"depth", func(r *rig) {
			for _, wrap := range []func(v store.Value) store.Value{
				func(v store.Value) store.Value { return store.L(v) },
				func(v store.Value) store.Value { return store.M(store.NewItem(attribute("in", v))) },
			} {
				v := store.Int(1)
				for range store.MaxDepth {
					v = wrap(v)
				}
				r.put(item("a", "1", attribute("v", v)))
				r.want(ledger, item("a", "1", attribute("v", v)))
				r.refused(store.ErrTooLarge, put(item("a", "1", attribute("v", wrap(v)))),
					update(key, store.NewItem(attribute("w", wrap(v))), nil))
			}
		}},
		scenario{"updates", testUpdateLimits},
		scenario{"expiry is in whole seconds", func(r *rig) {
			r.put(item("a", "1"))
			for _, text := range []string{"1.5", "0.5", "-1.5", "1E-5", "1800000000.5"} {
				at := attribute("ttl", decimal(text))
				r.refused(store.ErrInvalid, put(item("a", "2", at)), update(key, store.NewItem(at), nil))
				r.commit(store.Put(plain, store.NewItem(attribute("id", store.S("no expiry here")), at)))
			}
		}},
		scenario{"sets and nulls", func(r *rig) {
			for _, wrong := range [][]store.Value{nil, {store.Bool(true)}, {store.S("1"), store.Int(1)}, {store.L()}} {
				if v, err := store.Set(wrong...); !errors.Is(err, store.ErrInvalid) || !v.IsZero() {
					r.Errorf("a set of %v: %v, %v", wrong, v, err)
				}
			}
			two, _ := store.Set(store.S("b"), store.S("a"), store.S("b"))
			same, _ := store.Set(store.S("a"), store.S("b"))
			r.put(item("a", "1", attribute("v", two)))
			r.commit(check(key, equals("v", same)))
			null := store.Item{attribute("n", store.Null()), text("pk", "a"), text("sk", "1")}
			r.refused(store.ErrInvalid, put(null), update(key, null[:1], nil), check(key, equals("n", store.Null())))
		}},
		scenario{"malformed items", func(r *rig) {
			pk, sk := text("pk", "a"), text("sk", "1")
			r.refused(store.ErrInvalid, put(store.Item{sk, pk}), put(store.Item{pk, pk, sk}),
				put(store.Item{attribute("", store.Int(1)), pk, sk}), put(store.Item{attribute("none", store.Value{}), pk, sk}),
				put(store.Item{attribute("l", store.L(store.Value{})), pk, sk}),
				put(store.Item{attribute("m", store.M(store.Item{text("b", "1"), text("a", "2")})), pk, sk}),
				put(store.Item{attribute("m", store.M(store.Item{text("", "1")})), pk, sk}))
			r.put(item("a", "1"))
			r.refused(store.ErrInvalid, update(key, store.Item{text("b", "1"), text("a", "2")}, nil),
				update(key, store.Item{attribute("b", store.Value{})}, nil))
		}},
	)
}

func testUpdateLimits(r *rig) {
	key := at("a", "1")
	r.put(item("a", "1"))
	var set store.Item
	var names []string
	for i := range store.MaxUpdateAttributes - 1 {
		names = append(names, fmt.Sprintf("attribute %03d", i))
		set.Set(names[i], store.Int(int64(i)))
	}
	r.commit(update(key, set, []string{"other"}))
	r.want(ledger, item("a", "1", set...))
	r.refused(store.ErrTooLarge, update(key, set, []string{"other", "another"}), update(key, nil, append(names, "x", "y")))
	var all []store.Condition
	for _, a := range set[:store.MaxConditions] {
		all = append(all, equals(a.Name, a.Value))
	}
	r.commit(update(key, store.NewItem(number("n", 1)), names, all...))
	r.want(ledger, item("a", "1", number("n", 1)))
	r.refused(store.ErrTooLarge, check(key, append(all, store.AttributeAbsent("x"))...))
	r.refused(store.ErrInvalid, update(key, nil, []string{"n", "n"}))
}

func testKeyLimits(t *testing.T, open Opener) {
	key := at("a", "1")
	long := func(n int) string { return strings.Repeat("k", n) }
	named := func(id string) store.Write { return store.Put(plain, store.NewItem(text("id", id))) }
	play(t, open,
		scenario{"the longest keys", func(r *rig) {
			r.commit(named(long(store.MaxPartitionKeyBytes)))
			r.want(plain, store.NewItem(text("id", long(store.MaxPartitionKeyBytes))))
			r.put(item("a", long(store.MaxSortKeyBytes)))
			r.want(ledger, item("a", long(store.MaxSortKeyBytes)))
			r.refused(store.ErrTooLarge, named(long(store.MaxPartitionKeyBytes+1)),
				put(item("a", long(store.MaxSortKeyBytes+1))), named(strings.Repeat("é", store.MaxPartitionKeyBytes/2)+"k"))
		}},
		scenario{"no key, an empty one, one of another kind", func(r *rig) {
			r.refused(store.ErrInvalid, put(nil), put(store.Item{}), put(store.NewItem(text("pk", "a"))),
				put(store.NewItem(text("sk", "1"))), put(item("", "1")), put(item("a", "")),
				put(store.NewItem(text("pk", "a"), number("sk", 1))),
				put(store.NewItem(attribute("pk", store.B([]byte("a"))), text("sk", "1"))))
			for _, k := range []store.Key{{}, {PK: "a"}, {SK: "1"}} {
				r.refused(store.ErrInvalid, update(k, nil, []string{"x"}), remove(k), check(k, store.Absent()))
			}
			r.refused(store.ErrInvalid, store.Check(plain, at("a", "1"), store.Absent()))
		}},
		scenario{"an update of the key", func(r *rig) {
			r.put(item("a", "1", text("note", "n")))
			for _, name := range []string{"pk", "sk"} {
				r.refused(store.ErrInvalid, update(key, store.NewItem(text(name, "a")), nil), update(key, nil, []string{name}))
			}
			r.refused(store.ErrInvalid, update(key, store.NewItem(text("note", "m")), []string{"note"}))
		}},
		scenario{"index keys", func(r *rig) {
			r.put(item("a", "1"))
			for _, c := range []struct {
				want error
				a    store.Attribute
			}{
				{store.ErrInvalid, number("state", 1)}, {store.ErrInvalid, text("state", "")},
				{store.ErrInvalid, attribute("due", store.Bool(true))}, {store.ErrInvalid, attribute("due", store.L())},
				{store.ErrInvalid, attribute("owner", store.B([]byte("o")))},
				{store.ErrTooLarge, text("state", long(store.MaxPartitionKeyBytes+1))},
				{store.ErrTooLarge, text("due", long(store.MaxSortKeyBytes+1))},
			} {
				r.refused(c.want, put(item("a", "2", c.a)), update(key, store.NewItem(c.a), nil))
			}
			// The base partition key is a sort key of index inverted, and so has its limit.
			r.refused(store.ErrTooLarge, put(item(long(store.MaxSortKeyBytes+1), "1")))
			it := item(long(store.MaxSortKeyBytes), "2", text("state", long(store.MaxPartitionKeyBytes)),
				text("due", long(store.MaxSortKeyBytes)), text("owner", long(store.MaxPartitionKeyBytes)))
			r.put(it)
			r.want(ledger, it)
			q := inIndex(byState, long(store.MaxPartitionKeyBytes))
			q.From = long(store.MaxSortKeyBytes)
			r.wantSorts(q, "2")
		}},
	)
}

func testCommitLimits(t *testing.T, open Opener) {
	key := at("a", "1")
	play(t, open,
		scenario{"a hundred writes", func(r *rig) {
			var writes []store.Write
			for i := range store.MaxWrites {
				writes = append(writes, put(item("a", fmt.Sprintf("%03d", i))))
			}
			r.unchanged(func() {
				r.refuse(store.ErrTooLarge, append(writes, put(item("b", "1")))...)
				r.refuse(store.ErrTooLarge, append(writes, check(at("b", "1"), store.Absent()))...)
				r.refuse(store.ErrInvalid)
			})
			r.commit(writes...)
			if rows := r.rows(in("a")); len(rows) != store.MaxWrites {
				r.Fatalf("%d items, want %d", len(rows), store.MaxWrites)
			}
		}},
		scenario{"four megabytes", func(r *rig) {
			var writes []store.Write
			rest := store.MaxCommitBytes
			for i := 0; rest > store.MaxItemBytes; i++ {
				writes = append(writes, put(sized(fmt.Sprint(i), store.MaxItemBytes)))
				rest -= store.MaxItemBytes
			}
			r.unchanged(func() { r.refuse(store.ErrTooLarge, append(writes, put(sized("z", rest+1)))...) })
			r.commit(append(writes, put(sized("z", rest)))...)
			r.want(ledger, sized("z", rest), sized("0", store.MaxItemBytes))
		}},
		scenario{"two writes on one key", func(r *rig) {
			r.put(item("a", "1"))
			one := []store.Write{put(item("a", "1", text("note", "n"))), update(key, store.NewItem(text("note", "m")), nil),
				remove(key), check(key)}
			var between []store.Write
			for i := range 20 {
				between = append(between, put(item("b", fmt.Sprint(i))))
			}
			r.unchanged(func() {
				for _, v := range one {
					for _, w := range one {
						r.refuse(store.ErrInvalid, v, w)
						r.refuse(store.ErrInvalid, append(append([]store.Write{v}, between...), w)...)
					}
				}
			})
			r.commit(check(key), store.Put(plain, store.NewItem(text("id", "a"))), put(item("a", "2")))
		}},
		scenario{"unknown tables and operations", func(r *rig) {
			r.refused(store.ErrInvalid, store.Put("nowhere", item("a", "1")), store.Delete("", key),
				store.Write{Table: ledger, Key: key}, store.Write{Op: 99, Table: ledger, Key: key})
		}},
	)
}

func testReadLimits(t *testing.T, open Opener) {
	long := strings.Repeat("k", store.MaxPartitionKeyBytes)
	play(t, open,
		scenario{"get", func(r *rig) {
			r.refuseGet(store.ErrInvalid, "nowhere", at("a", "1"))
			r.refuseGet(store.ErrInvalid, ledger, at("", ""), at("a", ""), at("", "1"))
			r.refuseGet(store.ErrInvalid, plain, at("a", "1"))
			r.refuseGet(store.ErrTooLarge, plain, at(long+"k", ""))
			r.refuseGet(store.ErrTooLarge, ledger, at("a", strings.Repeat("k", store.MaxSortKeyBytes+1)))
		}},
		scenario{"longer than a key can be", func(r *rig) {
			r.refuseQuery(store.ErrTooLarge, in(long+"k"), inIndex(byState, long+"k"),
				store.Query{Table: ledger, Partition: "a", From: long}, store.Query{Table: ledger, Partition: "a", To: long},
				store.Query{Table: ledger, Index: byState, Partition: "a", Prefix: long})
		}},
		scenario{"the cursor of another partition", func(r *rig) {
			it := item("a", "1", text("state", "open"), text("due", "1"))
			r.put(it)
			for _, index := range []string{"", byState} {
				q := inIndex(index, "other")
				q.After = r.table(ledger).CursorAt(index, it)
				r.refuseQuery(store.ErrInvalid, q)
			}
		}},
		scenario{"query", func(r *rig) {
			r.put(item("a", "1"))
			r.refuseQuery(store.ErrInvalid, []store.Query{
				{Table: "nowhere", Partition: "a"}, {Table: ledger, Index: "nowhere", Partition: "a"},
				{Table: plain, Index: byState, Partition: "a"},
				{Table: ledger}, {Table: ledger, Index: byState}, {Table: ledger, Partition: "a", Limit: -1},
				{Table: ledger, Partition: "a", Prefix: "1", From: "1"}, {Table: ledger, Partition: "a", Prefix: "1", To: "1"},
				{Table: plain, Partition: "a", Prefix: "1"}, {Table: plain, Partition: "a", To: "1"},
				{Table: ledger, Index: byOwner, Partition: "a", From: "1"},
			}...)
		}},
		scenario{"scan", func(r *rig) {
			for _, s := range []store.Scan{{Table: "nowhere"}, {}, {Table: ledger, Segments: store.MaxSegments + 1}} {
				r.refuseRead(store.ErrInvalid, r.Scan(r.Context(), s))
			}
		}},
	)
}
