package storetest

import (
	"fmt"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// scanItems are many partitions of a few items, and the awkward keys.
func scanItems() []store.Item {
	var items []store.Item
	for p := range 40 {
		for _, sk := range []string{"1", "10", "2"} {
			items = append(items, item(fmt.Sprintf("p%d", p), sk, text("state", "open"), text("due", sk)))
		}
	}
	for _, pk := range awkward() {
		items = append(items, item(pk, pk))
	}
	return items
}

func testScan(t *testing.T, open Opener) {
	items := scanItems()
	for _, segments := range []int{0, 1, 2, 3, 7, 64} {
		t.Run(fmt.Sprintf("%d segments", segments), func(t *testing.T) {
			r := setUp(t, open)
			r.fill(items)
			r.commit(store.Put(plain, store.NewItem(text("id", "not of this table"))))
			seen := seenItems{}
			for i := range max(segments, 1) {
				seen.add(r, ledger, r.scan(store.Scan{Table: ledger, Segment: i, Segments: segments}))
			}
			seen.wantExactly(r, ledger, items)
		})
	}
	play(t, open,
		scenario{"an empty table", func(r *rig) {
			r.put(items[0])
			if got := r.scan(store.Scan{Table: plain}); len(got) != 0 {
				r.Fatalf("Scan = %v, want nothing", shows(got))
			}
		}},
		scenario{"one partition", func(r *rig) {
			var one []store.Item
			for i := range 300 {
				one = append(one, item("p", fmt.Sprint(i)))
			}
			r.fill(one)
			seen := seenItems{}
			for i := range 3 {
				seen.add(r, ledger, r.scan(store.Scan{Table: ledger, Segment: i, Segments: 3}))
			}
			seen.wantExactly(r, ledger, one)
		}},
		scenario{"a table without a sort key", func(r *rig) {
			var want []store.Item
			for _, id := range awkward() {
				want = append(want, store.NewItem(text("id", id)))
				r.commit(store.Put(plain, want[len(want)-1]))
			}
			seen := seenItems{}
			seen.add(r, plain, r.scan(store.Scan{Table: plain}))
			seen.wantExactly(r, plain, want)
			testScanCursors(r, plain, 1, false)
		}},
		scenario{"no such segment", func(r *rig) {
			for _, s := range []store.Scan{{Segment: -1}, {Segment: 1}, {Segment: 1, Segments: 1}, {Segment: 3, Segments: 3},
				{Segment: -1, Segments: 3}} {
				s.Table = ledger
				r.refuseRead(store.ErrInvalid, r.Scan(r.Context(), s))
			}
		}},
	)
}

func testScanResume(t *testing.T, open Opener) {
	items := scanItems()
	play(t, open,
		scenario{"cursors", func(r *rig) {
			r.fill(items)
			testScanCursors(r, ledger, 1, false)
		}},
		scenario{"cursors in segments", func(r *rig) {
			r.fill(items)
			testScanCursors(r, ledger, 3, false)
		}},
		scenario{"cursors of deleted items", func(r *rig) {
			r.fill(items)
			testScanCursors(r, ledger, 2, true)
		}},
	)
}

func (r *rig) scan(s store.Scan) []store.Item {
	r.Helper()
	items, err := collect(r.Scan(r.Context(), s))
	if err != nil {
		r.Fatalf("Scan(%+v): %v", s, err)
	}
	return items
}

// testScanCursors resumes each segment after every single item, and with remove
// deletes that item first: together they have to be everything, nothing twice.
func testScanCursors(r *rig, table string, segments int, remove bool) {
	for segment := range segments {
		s := store.Scan{Table: table, Segment: segment, Segments: segments}
		all := r.scan(s)
		if len(all) < 10 {
			r.Fatalf("segment %d has %d items, too few", segment, len(all))
		}
		for i, it := range all {
			if remove {
				r.commit(store.Delete(table, r.table(table).KeyOf(it)))
			}
			if i%r.rounds(1, 4) != 0 && i < len(all)-1 {
				continue
			}
			s.After = r.table(table).CursorAt("", it)
			seen := seenItems{}
			seen.add(r, table, all[:i+1])
			seen.add(r, table, r.scan(s))
			seen.wantExactly(r, table, all)
		}
	}
}

// seenItems holds items by their key.
type seenItems map[store.Key]store.Item

func (s seenItems) add(r *rig, table string, items []store.Item) {
	r.Helper()
	t := r.table(table)
	for _, it := range items {
		k := t.KeyOf(it)
		if s[k] != nil {
			r.Fatalf("%s is seen twice", show(it))
		}
		s[k] = it
	}
}

func (s seenItems) wantExactly(r *rig, table string, want []store.Item) {
	r.Helper()
	t := r.table(table)
	for _, it := range want {
		if got := s[t.KeyOf(it)]; !got.Equal(it) {
			r.Fatalf("%s is seen instead of %s", show(got), show(it))
		}
	}
	if len(s) != len(want) {
		r.Fatalf("%d items are seen, want %d", len(s), len(want))
	}
}
