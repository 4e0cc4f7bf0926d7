package storetest

import (
	"cmp"
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
		"11", "123", "2", "9",
		"A", "Z", "[", "a", "a\x00", "a\x00\x00", "a\x00\x01", "a\x00\x01\x01b", "a\x00b", "a\x01", "a#", "a/b", "aa",
		"ab", "b", "b\x00", "z", "~", "\x7f",
		"\u0080", "é", "e\u0301", "ÿ", "\u07ff", "\u0800", "€", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0001F4B6",
		"\U0010ffff",
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
			r.wantSorts(store.Query{Table: ledger, Partition: "a"}, long[:100], long, long+"a", long+"b")
		}},
	)
}

// both checks the order forwards and backwards.
func (r *rig) both(q store.Query, want []string) {
	r.Helper()
	r.wantSorts(q, want...)
	q.Reverse = true
	back := slices.Clone(want)
	slices.Reverse(back)
	r.wantSorts(q, back...)
}

func testSortKeyOrder(r *rig, keys []string) {
	r.put(item("p\x00", "other"), item("o", "other"), item("q", "other"), item("p\x01", "other"))
	for _, k := range shuffled(keys) {
		r.put(item("p", k, text("note", k)))
	}
	r.both(store.Query{Table: ledger, Partition: "p"}, keys)
	for _, k := range keys {
		r.want(ledger, item("p", k, text("note", k)))
	}
}

func testIndexOrder(r *rig, keys []string) {
	want := []string(nil)
	for i, k := range keys {
		want = append(want, string(rune('A'+len(keys)-i))) // base keys in the opposite order
		r.commit(store.Put(ledger, item("p", want[i], text("state", "open"), text("due", k))))
	}
	r.both(store.Query{Table: ledger, Index: byState, Partition: "open"}, want)
	for i, k := range keys {
		r.wantSorts(store.Query{Table: ledger, Index: byState, Partition: "open", From: k, To: k}, want[i])
	}
}

// testTieOrder gives all rows one index key. Their order is the engine's own, and the
// same whenever they are read while nothing is written, and page by page.
func testTieOrder(r *rig, keys []string) {
	type place struct{ pk, sk string }
	var want []place
	places := func(items []store.Item) (got []place) {
		for _, it := range items {
			got = append(got, place{it.Str("pk"), it.Str("sk")})
		}
		return got
	}
	sorted := func(ps []place) []place {
		return slices.SortedFunc(slices.Values(ps), func(a, b place) int {
			return cmp.Or(cmp.Compare(a.pk, b.pk),
				cmp.Compare(a.sk, b.sk))
		})
	}
	var writes []store.Write
	for _, pk := range keys {
		for _, sk := range []string{"1", "10", "2"} {
			want = append(want, place{pk, sk})
			writes = append(writes, store.Put(ledger, item(pk, sk, text("state", "open"), text("due", "same"),
				text("owner", "same"))))
		}
	}
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(writes), func(i, j int) { writes[i], writes[j] = writes[j], writes[i] })
	for part := range slices.Chunk(writes, 50) {
		r.commit(part...)
	}
	for _, q := range []store.Query{
		{Table: ledger, Index: byState, Partition: "open"},
		{Table: ledger, Index: byState, Partition: "open", From: "same", To: "same"},
		{Table: ledger, Index: byState, Partition: "open", Prefix: "sa"},
		{Table: ledger, Index: byOwner, Partition: "same"},
	} {
		for _, q.Reverse = range []bool{false, true} {
			got := places(r.rows(q))
			if !slices.Equal(sorted(got), sorted(want)) {
				r.Fatalf("Query(%+v) = %q, want in any order %q", q, got, want)
			}
			if second := places(r.rows(q)); !slices.Equal(got, second) {
				r.Fatalf("Query(%+v) = %q, and then %q", q, got, second)
			}
			var paged []place
			for p := q; len(paged) < len(want); {
				p.Limit = 50
				items := r.rows(p)
				if len(items) == 0 {
					break
				}
				paged = append(paged, places(items)...)
				p.After = r.table(ledger).CursorAt(p.Index, items[len(items)-1])
			}
			if !slices.Equal(got, paged) {
				r.Fatalf("Query(%+v) = %q, and page by page %q", q, got, paged)
			}
		}
	}
}

// testPartitions checks, for all awkward keys, that no partition of a table or an index shows
// rows of another.
func testPartitions(r *rig, keys []string) {
	for _, pk := range keys {
		r.commit(
			store.Put(ledger, item(pk, "1", text("state", pk), text("due", pk), text("owner", pk))),
			store.Put(ledger, item(pk, pk+"2")),
			store.Put(plain, store.NewItem(text("id", pk))))
	}
	for _, pk := range keys {
		r.both(store.Query{Table: ledger, Partition: pk}, slices.Sorted(slices.Values([]string{"1", pk + "2"})))
		r.both(store.Query{Table: plain, Partition: pk}, []string{pk})
		for _, q := range []store.Query{
			{Table: ledger, Index: byState, Partition: pk}, {Table: ledger, Index: byOwner, Partition: pk},
			{Table: ledger, Index: inverted, Partition: pk + "2"},
		} {
			if rows := r.rows(q); len(rows) != 1 || rows[0].Str("pk") != pk {
				r.Fatalf("Query(%+v) = %v, want the row of partition %q", q, rows, pk)
			}
		}
	}
	r.wantSorts(store.Query{Table: ledger, Partition: "no such partition"})
}
