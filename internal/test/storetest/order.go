package storetest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// awkward are difficult keys for an engine's key encoding: prefixes of each other, separators and
// escapes, digits, the first and last bytes, every length of UTF-8.
func awkward() []string {
	return []string{
		"\x00", "\x00\x00", "\x00\x01", "\x00\xc2\x80", "\x01", "\x01\x00", "\x02", " ", "#", "/", "0", "1", "10", "1001",
		"11", "123", "2", "9", "A", "Z", "[", "a", "a\x00", "a\x00\x00", "a\x00\x01", "a\x00\x01\x01b", "a\x00b", "a\x01",
		"a#", "a/b", "aa", "ab", "b", "b\x00", "z", "~", "\x7f", "\u0080", "é", "e\u0301", "ÿ", "\u07ff", "\u0800", "€",
		"\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0001F4B6", "\U0010ffff",
	}
}

// shuffled returns the keys in a meaningless order, the same every time.
func shuffled(keys []string) []string {
	keys = slices.Clone(keys)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

func testOrder(t *testing.T, open Opener) {
	keys := slices.Sorted(slices.Values(awkward()))
	play(t, open,
		scenario{"sort keys", func(r *rig) { testSortKeyOrder(r, keys) }},
		scenario{"index sort keys", func(r *rig) { testIndexOrder(r, keys) }},
		scenario{"index ties", func(r *rig) { testTieOrder(r, keys) }},
		scenario{"partitions", func(r *rig) { testPartitions(r, keys) }},
		scenario{"long keys", func(r *rig) {
			long := strings.Repeat("k", store.MaxSortKeyBytes-1)
			r.put(item("a", long+"b"), item("a", long+"a"), item("a", long), item("a", long[:100]))
			r.wantSorts(in("a"), long[:100], long, long+"a", long+"b")
		}},
	)
}

func testSortKeyOrder(r *rig, keys []string) {
	r.put(item("p\x00", "other"), item("o", "other"), item("q", "other"), item("p\x01", "other"))
	for _, k := range shuffled(keys) {
		r.put(item("p", k, text("note", k)))
	}
	r.both(in("p"), keys...)
	for _, k := range keys {
		r.want(ledger, item("p", k, text("note", k)))
	}
}

func testIndexOrder(r *rig, keys []string) {
	want := []string(nil)
	for i, k := range keys {
		want = append(want, string(rune('A'+len(keys)-i))) // base keys in the opposite order
		r.put(item("p", want[i], text("state", "open"), text("due", k)))
	}
	r.both(inIndex(byState, "open"), want...)
	for i, k := range keys {
		r.wantSorts(store.Query{Table: ledger, Index: byState, Partition: "open", From: k, To: k}, want[i])
	}
}

// testTieOrder gives all rows one index key. Their order is the engine's own, and the
// same whenever they are read while nothing is written, and page by page.
func testTieOrder(r *rig, keys []string) {
	want := map[store.Key]bool{}
	var items []store.Item
	for _, pk := range keys {
		for _, sk := range []string{"1", "10", "2"} {
			want[at(pk, sk)] = true
			items = append(items, item(pk, sk, text("state", "open"), text("due", "same"), text("owner", "same")))
		}
	}
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	r.fill(items)
	for _, q := range []store.Query{
		inIndex(byState, "open"), inIndex(byOwner, "same"),
		{Table: ledger, Index: byState, Partition: "open", From: "same", To: "same"},
		{Table: ledger, Index: byState, Partition: "open", Prefix: "sa"},
	} {
		for _, q.Reverse = range []bool{false, true} {
			rows, got := r.rows(q), map[store.Key]bool{}
			for _, it := range rows {
				got[r.table(ledger).KeyOf(it)] = true
			}
			if len(rows) != len(want) || !maps.Equal(got, want) {
				r.Fatalf("Query(%+v) = %v, want in any order %v", q, shows(rows), want)
			}
			r.wantRows(q, rows...)
			r.wantPages(q, 50, rows)
		}
	}
}

// testPartitions checks, for all awkward keys, that no partition shows rows of another.
func testPartitions(r *rig, keys []string) {
	for _, pk := range keys {
		r.commit(put(item(pk, "1", text("state", pk), text("due", pk), text("owner", pk))), put(item(pk, pk+"2")),
			store.Put(plain, store.NewItem(text("id", pk))))
	}
	for _, pk := range keys {
		r.both(in(pk), slices.Sorted(slices.Values([]string{"1", pk + "2"}))...)
		r.both(store.Query{Table: plain, Partition: pk}, pk)
		for _, q := range []store.Query{inIndex(byState, pk), inIndex(byOwner, pk), inIndex(inverted, pk+"2")} {
			if rows := r.rows(q); len(rows) != 1 || rows[0].Str("pk") != pk {
				r.Fatalf("Query(%+v) = %v, want the row of partition %q", q, rows, pk)
			}
		}
	}
	r.wantSorts(in("no such partition"))
}

func testRanges(t *testing.T, open Opener) {
	play(t, open,
		scenario{"in a table", func(r *rig) { testEveryRange(r, in("p")) }},
		scenario{"in an index", func(r *rig) { testEveryRange(r, inIndex(byState, "p")) }},
		scenario{"in the index of a table without a sort key", func(r *rig) {
			for _, id := range []string{"3", "1", "2"} {
				r.commit(store.Put(plain, store.NewItem(text("id", id), text("kind", "k"), text("name", "n"+id))))
			}
			q := store.Query{Table: plain, Index: byName, Partition: "k"}
			r.both(q, "1", "2", "3")
			q.From = "n2"
			r.both(q, "2", "3")
			q.From, q.To = "", "n2"
			r.both(q, "1", "2")
		}},
		scenario{"limits", func(r *rig) {
			all := []string{"a1", "a2", "a3", "b1", "b2"}
			for _, sk := range all {
				r.put(item("p", sk))
			}
			for n := 1; n <= 6; n++ {
				r.wantSorts(store.Query{Table: ledger, Partition: "p", Limit: n}, all[:min(n, 5)]...)
			}
			for _, c := range []struct {
				q           store.Query
				first, last string
			}{
				{store.Query{Reverse: true}, "b2", "b1"}, {store.Query{Prefix: "b"}, "b1", "b2"},
				{store.Query{Prefix: "a", Reverse: true}, "a3", "a2"}, {store.Query{From: "a3"}, "a3", "b1"},
				{store.Query{To: "b1", Reverse: true}, "b1", "a3"},
			} {
				c.q.Table, c.q.Partition, c.q.Limit = ledger, "p", 2
				r.wantSorts(c.q, c.first, c.last)
			}
		}},
	)
}

// testEveryRange tries every pair of ends, and every prefix, by a filter of the sorted list.
func testEveryRange(r *rig, q store.Query) {
	keys := slices.Sorted(slices.Values(awkward()))
	var items []store.Item
	for _, other := range []string{"o", "p\x00", "q"} { // neighbours that must not be seen
		items = append(items, item(other, "m", text("state", other), text("due", "m")))
	}
	pk := "p"
	if q.Index != "" {
		pk = "base"
	}
	for _, k := range keys {
		items = append(items, item(pk, k, text("state", "p"), text("due", k)))
	}
	r.fill(items)
	filter := func(keep func(k string) bool) []string {
		return slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return !keep(k) })
	}
	ends := append(slices.Clone(keys), "")
	for i := range ends {
		ends = append(ends, ends[i]+"!")
	}
	share, special := r.rounds(3, 80), r.rounds(1, 5)
	for i, from := range ends {
		for j, to := range ends {
			every := share
			if from == "" || to == "" || from == to {
				every = special
			}
			if (i+j)%every != 0 {
				continue
			}
			q.From, q.To = from, to
			r.both(q, filter(func(k string) bool { return k >= from && (to == "" || k <= to) })...)
		}
	}
	q.From, q.To = "", ""
	for _, prefix := range append(ends, "10", "100", "a\x00\x01\x01", "nobody", "\U0010ffff\U0010ffff") {
		q.Prefix = prefix
		r.both(q, filter(func(k string) bool { return strings.HasPrefix(k, prefix) })...)
	}
}
