package storetest

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// refused commits a write alone and together with a good one. Each commit must fail with the
// error and write nothing.
func (r *rig) refused(want error, w store.Write) {
	r.Helper()
	r.unchanged(func() {
		r.Helper()
		r.refuse(want, w)
		r.refuse(want, store.Put(plain, store.NewItem(text("id", "good"))), w)
		r.refuse(want, w, store.Put(plain, store.NewItem(text("id", "good"))))
	})
}

// refuseRead checks the only result of an iteration: the error.
func (r *rig) refuseRead(want error, rows iter.Seq2[store.Item, error]) {
	r.Helper()
	items, err := collect(rows)
	if !errors.Is(err, want) || len(items) > 0 {
		r.Fatalf("the iteration yields %v, %v; want %v", shows(items), err, want)
	}
}

// sized returns an item of a/sk that has exactly so many bytes by DynamoDB's rules,
// reckoned here by hand.
func sized(sk string, bytes int) store.Item {
	it := item("a", sk, number("n", 12345), attribute("on", store.Bool(true)),
		attribute("list", store.L(store.S("é"), store.B([]byte{0, 1}))),
		attribute("map", store.M(store.NewItem(text("k", "v")))))
	fixed := len("pk"+"a"+"sk"+sk) + (1 + 4) + (2 + 1) + (4 + 3 + 2 + 2 + 2) + (3 + 3 + 1 + 1 + 1) + len("blob")
	it.Set("blob", store.S(strings.Repeat("x", bytes-fixed)))
	return it
}

func testItemLimits(t *testing.T, open Opener) {
	key := store.Key{PK: "a", SK: "1"}
	play(t, open,
		scenario{"the largest item", func(r *rig) {
			it := sized("1", store.MaxItemBytes)
			r.put(it)
			r.want(ledger, it)
			r.refused(store.ErrTooLarge, store.Put(ledger, sized("1", store.MaxItemBytes+1)))
			r.refused(store.ErrTooLarge, store.Put(ledger, sized("2", store.MaxItemBytes+1)))
			r.want(ledger, it)
		}},
		scenario{"an update that grows", func(r *rig) {
			r.put(sized("1", store.MaxItemBytes-10))
			r.commit(store.Update(ledger, key, store.NewItem(text("t", "123456789")), nil))
			r.refused(store.ErrTooLarge, store.Update(ledger, key, store.NewItem(text("t", "1234567890")), nil))
			r.refused(store.ErrTooLarge, store.Update(ledger, key, store.NewItem(text("u", "")), nil))
			r.commit(store.Update(ledger, key, store.NewItem(text("u", "123456789")), []string{"t"}))
		}},
		scenario{"bytes count, not characters", func(r *rig) {
			blob := strings.Repeat("€", (store.MaxItemBytes-len("pk"+"a"+"sk"+"1"+"blob"))/3)
			r.put(item("a", "1", text("blob", blob)))
			r.refused(store.ErrTooLarge, store.Put(ledger, item("a", "1", text("blob", blob+"€"))))
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
				r.refused(store.ErrTooLarge, store.Put(ledger, item("a", "1", attribute("v", wrap(v)))))
				r.refused(store.ErrTooLarge, store.Update(ledger, key, store.NewItem(attribute("w", wrap(v))), nil))
			}
		}},
		scenario{"updates", func(r *rig) {
			r.put(item("a", "1"))
			var set store.Item
			var remove []string
			for i := range store.MaxUpdateAttributes - 1 {
				set.Set(fmt.Sprintf("attribute %03d", i), store.Int(int64(i)))
				remove = append(remove, fmt.Sprintf("attribute %03d", i))
			}
			r.commit(store.Update(ledger, key, set, []string{"other"}))
			want := item("a", "1", set...)
			r.want(ledger, want)
			r.refused(store.ErrTooLarge, store.Update(ledger, key, set, []string{"other", "another"}))
			r.refused(store.ErrTooLarge, store.Update(ledger, key, nil, append(remove, "x", "y")))
			var all []store.Condition
			for _, a := range set[:store.MaxConditions] {
				all = append(all, store.AttributeEquals(a.Name, a.Value))
			}
			r.commit(store.Update(ledger, key, store.NewItem(number("n", 1)), remove, all...))
			r.want(ledger, item("a", "1", number("n", 1)))
			r.refused(store.ErrTooLarge, store.Check(ledger, key, append(all, store.AttributeAbsent("x"))...))
			r.refused(store.ErrInvalid, store.Update(ledger, key, nil, []string{"n", "n"}))
		}},
		scenario{"expiry is in whole seconds", func(r *rig) {
			r.put(item("a", "1"))
			for _, text := range []string{"1.5", "0.5", "-1.5", "1E-5", "1800000000.5"} {
				v, err := store.Number(text)
				if err != nil {
					r.Fatal(err)
				}
				r.refused(store.ErrInvalid, store.Put(ledger, item("a", "2", attribute("ttl", v))))
				r.refused(store.ErrInvalid, store.Update(ledger, key, store.NewItem(attribute("ttl", v)), nil))
				r.commit(store.Put(plain, store.NewItem(attribute("id", store.S("no expiry here")), attribute("ttl", v))))
			}
		}},
		scenario{"malformed items", func(r *rig) {
			pk, sk := text("pk", "a"), text("sk", "1")
			for _, it := range []store.Item{
				{sk, pk},
				{pk, pk, sk},
				{attribute("", store.Int(1)), pk, sk},
				{attribute("none", store.Value{}), pk, sk},
				{attribute("l", store.L(store.Value{})), pk, sk},
				{attribute("m", store.M(store.Item{text("b", "1"), text("a", "2")})), pk, sk},
				{attribute("m", store.M(store.Item{text("", "1")})), pk, sk},
			} {
				r.refused(store.ErrInvalid, store.Put(ledger, it))
			}
			r.put(item("a", "1"))
			r.refused(store.ErrInvalid, store.Update(ledger, key, store.Item{text("b", "1"), text("a", "2")}, nil))
			r.refused(store.ErrInvalid, store.Update(ledger, key, store.Item{attribute("b", store.Value{})}, nil))
		}},
	)
}

func testKeyLimits(t *testing.T, open Opener) {
	key := store.Key{PK: "a", SK: "1"}
	long := func(n int) string { return strings.Repeat("k", n) }
	play(t, open,
		scenario{"the longest keys", func(r *rig) {
			it := store.NewItem(text("id", long(store.MaxPartitionKeyBytes)))
			r.commit(store.Put(plain, it))
			r.want(plain, it)
			r.put(item("a", long(store.MaxSortKeyBytes)))
			r.want(ledger, item("a", long(store.MaxSortKeyBytes)))
			r.refused(store.ErrTooLarge, store.Put(plain, store.NewItem(text("id", long(store.MaxPartitionKeyBytes+1)))))
			r.refused(store.ErrTooLarge, store.Put(ledger, item("a", long(store.MaxSortKeyBytes+1))))
			r.refused(store.ErrTooLarge,
				store.Put(plain, store.NewItem(text("id", strings.Repeat("é", store.MaxPartitionKeyBytes/2)+"k"))))
		}},
		scenario{"no key, an empty one, one of another kind", func(r *rig) {
			for _, it := range []store.Item{
				nil, {}, store.NewItem(text("pk", "a")), store.NewItem(text("sk", "1")), item("", "1"), item("a", ""),
				store.NewItem(text("pk", "a"), number("sk", 1)), store.NewItem(attribute("pk", store.B([]byte("a"))),
					text("sk", "1")),
			} {
				r.refused(store.ErrInvalid, store.Put(ledger, it))
			}
			for _, k := range []store.Key{{}, {PK: "a"}, {SK: "1"}} {
				r.refused(store.ErrInvalid, store.Update(ledger, k, nil, []string{"x"}))
				r.refused(store.ErrInvalid, store.Delete(ledger, k))
				r.refused(store.ErrInvalid, store.Check(ledger, k, store.Absent()))
			}
			r.refused(store.ErrInvalid, store.Check(plain, store.Key{PK: "a", SK: "1"}, store.Absent()))
		}},
		scenario{"an update of the key", func(r *rig) {
			r.put(item("a", "1", text("note", "n")))
			for _, name := range []string{"pk", "sk"} {
				r.refused(store.ErrInvalid, store.Update(ledger, key, store.NewItem(text(name, "a")), nil))
				r.refused(store.ErrInvalid, store.Update(ledger, key, nil, []string{name}))
			}
			r.refused(store.ErrInvalid, store.Update(ledger, key, store.NewItem(text("note", "m")), []string{"note"}))
		}},
		scenario{"index keys", func(r *rig) {
			r.put(item("a", "1"))
			for _, c := range []struct {
				a    store.Attribute
				want error
			}{
				{number("state", 1), store.ErrInvalid}, {text("state", ""), store.ErrInvalid},
				{attribute("due", store.Bool(true)), store.ErrInvalid},
				{attribute("owner", store.B([]byte("o"))), store.ErrInvalid}, {attribute("due", store.L()), store.ErrInvalid},
				{text("state", long(store.MaxPartitionKeyBytes+1)), store.ErrTooLarge},
				{text("due", long(store.MaxSortKeyBytes+1)), store.ErrTooLarge},
			} {
				r.refused(c.want, store.Put(ledger, item("a", "2", c.a)))
				r.refused(c.want, store.Update(ledger, key, store.NewItem(c.a), nil))
			}
			// The base partition key is a sort key of index inverted, and so has its limit.
			r.refused(store.ErrTooLarge, store.Put(ledger, item(long(store.MaxSortKeyBytes+1), "1")))
			it := item(long(store.MaxSortKeyBytes), "2", text("state", long(store.MaxPartitionKeyBytes)),
				text("due", long(store.MaxSortKeyBytes)), text("owner", long(store.MaxPartitionKeyBytes)))
			r.put(it)
			r.want(ledger, it)
			r.wantSorts(store.Query{Table: ledger, Index: byState, Partition: long(store.MaxPartitionKeyBytes),
				From: long(store.MaxSortKeyBytes)}, "2")
		}},
	)
}

func testCommitLimits(t *testing.T, open Opener) {
	play(t, open,
		scenario{"a hundred writes", func(r *rig) {
			var writes []store.Write
			for i := range store.MaxWrites {
				writes = append(writes, store.Put(ledger, item("a", fmt.Sprintf("%03d", i))))
			}
			r.unchanged(func() {
				r.refuse(store.ErrTooLarge, append(writes, store.Put(ledger, item("b", "1")))...)
				r.refuse(store.ErrTooLarge, append(writes, store.Check(ledger, store.Key{PK: "b", SK: "1"}, store.Absent()))...)
				r.refuse(store.ErrInvalid)
			})
			r.commit(writes...)
			if rows := r.rows(store.Query{Table: ledger, Partition: "a"}); len(rows) != store.MaxWrites {
				r.Fatalf("%d items, want %d", len(rows), store.MaxWrites)
			}
		}},
		scenario{"four megabytes", func(r *rig) {
			var writes []store.Write
			rest := store.MaxCommitBytes
			for i := 0; rest > store.MaxItemBytes; i++ {
				writes = append(writes, store.Put(ledger, sized(fmt.Sprint(i), store.MaxItemBytes)))
				rest -= store.MaxItemBytes
			}
			r.unchanged(func() { r.refuse(store.ErrTooLarge, append(writes, store.Put(ledger, sized("z", rest+1)))...) })
			r.commit(append(writes, store.Put(ledger, sized("z", rest)))...)
			r.want(ledger, sized("z", rest))
			r.want(ledger, sized("0", store.MaxItemBytes))
		}},
		scenario{"two writes on one key", func(r *rig) {
			r.put(item("a", "1"))
			key := store.Key{PK: "a", SK: "1"}
			one := []store.Write{store.Put(ledger, item("a", "1", text("note", "n"))),
				store.Update(ledger, key, store.NewItem(text("note", "m")), nil), store.Delete(ledger, key),
				store.Check(ledger, key)}
			var between []store.Write
			for i := range 20 {
				between = append(between, store.Put(ledger, item("b", fmt.Sprint(i))))
			}
			r.unchanged(func() {
				for _, v := range one {
					for _, w := range one {
						r.refuse(store.ErrInvalid, v, w)
						r.refuse(store.ErrInvalid, append(append([]store.Write{v}, between...), w)...)
					}
				}
			})
			r.commit(store.Check(ledger, key), store.Put(plain, store.NewItem(text("id", "a"))),
				store.Put(ledger, item("a", "2")))
		}},
		scenario{"unknown tables and operations", func(r *rig) {
			r.refused(store.ErrInvalid, store.Put("nowhere", item("a", "1")))
			r.refused(store.ErrInvalid, store.Delete("", store.Key{PK: "a", SK: "1"}))
			r.refused(store.ErrInvalid, store.Write{Table: ledger, Key: store.Key{PK: "a", SK: "1"}})
			r.refused(store.ErrInvalid, store.Write{Op: 99, Table: ledger, Key: store.Key{PK: "a", SK: "1"}})
		}},
	)
}

func testReadLimits(t *testing.T, open Opener) {
	play(t, open,
		scenario{"get", func(r *rig) {
			for _, c := range []struct {
				table string
				key   store.Key
				want  error
			}{
				{"nowhere", store.Key{PK: "a", SK: "1"}, store.ErrInvalid}, {ledger, store.Key{}, store.ErrInvalid},
				{ledger, store.Key{PK: "a"}, store.ErrInvalid},
				{ledger, store.Key{SK: "1"}, store.ErrInvalid}, {plain, store.Key{PK: "a", SK: "1"}, store.ErrInvalid},
				{plain, store.Key{PK: strings.Repeat("k", store.MaxPartitionKeyBytes+1)}, store.ErrTooLarge},
				{ledger, store.Key{PK: "a", SK: strings.Repeat("k", store.MaxSortKeyBytes+1)}, store.ErrTooLarge},
			} {
				if it, err := r.Get(r.Context(), c.table, c.key); !errors.Is(err, c.want) || it != nil {
					r.Errorf("Get(%s, %.20q) = %v, %v; want %v", c.table, c.key, it, err, c.want)
				}
			}
		}},
		scenario{"longer than a key can be", func(r *rig) {
			long := strings.Repeat("k", store.MaxPartitionKeyBytes)
			for _, q := range []store.Query{
				{Table: ledger, Partition: long + "k"}, {Table: ledger, Index: byState, Partition: long + "k"},
				{Table: ledger, Partition: "a", From: long},
				{Table: ledger, Partition: "a", To: long}, {Table: ledger, Index: byState, Partition: "a", Prefix: long},
			} {
				r.refuseRead(store.ErrTooLarge, r.Query(r.Context(), q))
			}
		}},
		scenario{"the cursor of another partition", func(r *rig) {
			it := item("a", "1", text("state", "open"), text("due", "1"))
			r.put(it)
			for _, index := range []string{"", byState} {
				after := r.table(ledger).CursorAt(index, it)
				r.refuseRead(store.ErrInvalid, r.Query(r.Context(), store.Query{Table: ledger, Index: index, Partition: "other",
					After: after}))
			}
		}},
		scenario{"query", func(r *rig) {
			r.put(item("a", "1"))
			for _, q := range []store.Query{
				{Table: "nowhere", Partition: "a"}, {Table: ledger, Index: "nowhere", Partition: "a"},
				{Table: plain, Index: byState, Partition: "a"},
				{Table: ledger}, {Table: ledger, Index: byState}, {Table: ledger, Partition: "a", Limit: -1},
				{Table: ledger, Partition: "a", Prefix: "1", From: "1"}, {Table: ledger, Partition: "a", Prefix: "1", To: "1"},
				{Table: plain, Partition: "a", Prefix: "1"}, {Table: plain, Partition: "a", To: "1"},
				{Table: ledger, Index: byOwner, Partition: "a", From: "1"},
			} {
				r.refuseRead(store.ErrInvalid, r.Query(r.Context(), q))
			}
		}},
		scenario{"scan", func(r *rig) {
			r.refuseRead(store.ErrInvalid, r.Scan(r.Context(), store.Scan{Table: "nowhere"}))
			r.refuseRead(store.ErrInvalid, r.Scan(r.Context(), store.Scan{}))
			r.refuseRead(store.ErrInvalid, r.Scan(r.Context(), store.Scan{Table: ledger, Segments: store.MaxSegments + 1}))
		}},
	)
}
