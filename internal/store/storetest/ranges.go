package storetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

func testRanges(t *testing.T, open Opener) {
	play(t, open,
		scenario{"in a table", func(r *rig) { testEveryRange(r, store.Query{Table: ledger, Partition: "p"}) }},
		scenario{"in an index", func(r *rig) {
			testEveryRange(r, store.Query{Table: ledger, Index: byState,
				Partition: "p"})
		}},
		scenario{"in the index of a table without a sort key", func(r *rig) {
			for _, id := range []string{"3", "1", "2"} {
				r.commit(store.Put(plain, store.NewItem(text("id", id), text("kind", "k"), text("name", "n"+id))))
			}
			r.both(store.Query{Table: plain, Index: byName, Partition: "k"}, []string{"1", "2", "3"})
			r.both(store.Query{Table: plain, Index: byName, Partition: "k", From: "n2"}, []string{"2", "3"})
			r.both(store.Query{Table: plain, Index: byName, Partition: "k", To: "n2"}, []string{"1", "2"})
		}},
		scenario{"limits", func(r *rig) {
			for _, sk := range []string{"a1", "a2", "a3", "b1", "b2"} {
				r.put(item("p", sk))
			}
			q := store.Query{Table: ledger, Partition: "p"}
			for n := 1; n <= 6; n++ {
				q.Limit = n
				r.wantSorts(q, []string{"a1", "a2", "a3", "b1", "b2"}[:min(n, 5)]...)
			}
			r.wantSorts(store.Query{Table: ledger, Partition: "p", Limit: 2, Reverse: true}, "b2", "b1")
			r.wantSorts(store.Query{Table: ledger, Partition: "p", Limit: 2, Prefix: "b"}, "b1", "b2")
			r.wantSorts(store.Query{Table: ledger, Partition: "p", Limit: 2, Prefix: "a", Reverse: true}, "a3", "a2")
			r.wantSorts(store.Query{Table: ledger, Partition: "p", Limit: 2, From: "a3"}, "a3", "b1")
			r.wantSorts(store.Query{Table: ledger, Partition: "p", Limit: 2, To: "b1", Reverse: true}, "b1", "a3")
		}},
	)
}

// testEveryRange tries every pair of ends and every prefix of the awkward keys, and
// ends between them, against a filter of the sorted list.
func testEveryRange(r *rig, q store.Query) {
	keys := slices.Sorted(slices.Values(awkward()))
	var writes []store.Write
	for _, other := range []string{"o", "p\x00", "q"} { // neighbours that must not be seen
		writes = append(writes, store.Put(ledger, item(other, "m", text("state", other), text("due", "m"))))
	}
	for _, k := range keys {
		pk := "p"
		if q.Index != "" {
			pk = "base"
		}
		writes = append(writes, store.Put(ledger, item(pk, k, text("state", "p"), text("due", k))))
	}
	r.commit(writes...)
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
			r.both(q, filter(func(k string) bool { return k >= from && (to == "" || k <= to) }))
		}
	}
	q.From, q.To = "", ""
	for _, prefix := range append(ends, "10", "100", "a\x00\x01\x01", "nobody", "\U0010ffff\U0010ffff") {
		q.Prefix = prefix
		r.both(q, filter(func(k string) bool { return strings.HasPrefix(k, prefix) }))
	}
}
