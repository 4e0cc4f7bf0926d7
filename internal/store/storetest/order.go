package storetest

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// awkward are keys that an engine's key encoding could get wrong: prefixes of each
// other, separators and escapes, digits, the first and last bytes, every length of
// UTF-8.
func awkward() []string {
	return []string{
		"\x00", "\x00\x00", "\x00\x01", "\x00\xc2\x80", "\x01", "\x01\x00", "\x02", " ", "#", "/", "0", "1", "10", "1001", "11", "123", "2", "9",
		"A", "Z", "[", "a", "a\x00", "a\x00\x00", "a\x00\x01", "a\x00\x01\x01b", "a\x00b", "a\x01", "a#", "a/b", "aa", "ab", "b", "b\x00", "z", "~", "\x7f",
		"\u0080", "é", "e\u0301", "ÿ", "\u07ff", "\u0800", "€", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0001F4B6", "\U0010ffff",
	}
}

// notUTF8 are byte strings that are no text. The contract takes them.
func notUTF8() []string {
	return []string{"\x80", "\xc2", "\xfe", "\xff", "\xff\x00", "\xff\x01", "\xff\xfe", "\xff\xff", "a\x00\xff", "a\xff", "a\xff\xff", "\x00\xff"}
}

// shuffled returns the keys in an order of no meaning that is the same every time.
func shuffled(keys []string) []string {
	keys = slices.Clone(keys)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

func testOrder(t *testing.T, open Opener) {
	for _, alphabet := range []struct {
		name string
		keys []string
	}{{"text", awkward()}, {"bytes", append(notUTF8(), "a", "a\x00", "\x7f", "é")}} {
		keys := slices.Sorted(slices.Values(alphabet.keys))
		t.Run(alphabet.name, func(t *testing.T) {
			play(t, open,
				scenario{"sort keys", func(r *rig) { testSortKeyOrder(r, keys) }},
				scenario{"index sort keys", func(r *rig) { testIndexOrder(r, keys) }},
				scenario{"index ties", func(r *rig) { testTieOrder(r, keys) }},
				scenario{"partitions", func(r *rig) { testPartitions(r, keys) }},
			)
		})
	}
	play(t, open, scenario{"long keys", func(r *rig) {
		long := strings.Repeat("k", store.MaxSortKeyBytes-1)
		r.put(item("a", long+"b"), item("a", long+"a"), item("a", long), item("a", long[:100]))
		r.wantSorts(store.Query{Table: ledger, Partition: "a"}, long[:100], long, long+"a", long+"b")
	}})
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

// testTieOrder gives all rows one index key: base partition key, then base sort key
// decide.
func testTieOrder(r *rig, keys []string) {
	type place struct{ pk, sk string }
	var want []place
	var writes []store.Write
	for _, pk := range keys {
		for _, sk := range []string{"1", "10", "2"} {
			want = append(want, place{pk, sk})
			writes = append(writes, store.Put(ledger, item(pk, sk, text("state", "open"), text("due", "same"), text("owner", "same"))))
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
			var got []place
			for _, it := range r.rows(q) {
				got = append(got, place{it.Str("pk"), it.Str("sk")})
			}
			if q.Reverse {
				slices.Reverse(got)
			}
			if !slices.Equal(got, want) {
				r.Fatalf("Query(%+v), forwards = %q, want %q", q, got, want)
			}
		}
	}
}

// testPartitions checks that no partition shows rows of another, in a table and in
// the indexes, whatever the keys look like.
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
			{Table: ledger, Index: byState, Partition: pk}, {Table: ledger, Index: byOwner, Partition: pk}, {Table: ledger, Index: inverted, Partition: pk + "2"},
		} {
			if rows := r.rows(q); len(rows) != 1 || rows[0].Str("pk") != pk {
				r.Fatalf("Query(%+v) = %v, want the row of partition %q", q, rows, pk)
			}
		}
	}
	r.wantSorts(store.Query{Table: ledger, Partition: "no such partition"})
}
