package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// cursorQueries are queries over the items of cursorItems, of every kind that a
// cursor can belong to.
func cursorQueries() []store.Query {
	return []store.Query{
		in("a"), inIndex(byState, "open"), inIndex(byOwner, "o"), inIndex(inverted, "1"),
		{Table: ledger, Partition: "a", From: "10", To: "3"}, {Table: ledger, Partition: "a", Prefix: "1"},
		{Table: ledger, Index: byState, Partition: "open", From: "2027", To: "2028"},
		{Table: ledger, Index: byState, Partition: "open", Prefix: "2027"},
	}
}

// cursorItems have partitions and sort keys that begin alike, and index keys with
// many ties.
func cursorItems() []store.Item {
	var items []store.Item
	for i, pk := range []string{"a", "a\x00", "aa", "b"} {
		for j, sk := range []string{"1", "1\x00", "10", "1001", "123", "2", "3", "é"} {
			due := []string{"2026", "2027", "2027-01", "2028"}[(i+j)%4]
			items = append(items, item(pk, sk, text("state", "open"), text("due", due), text("owner", "o"),
				number("amount", int64(i*10+j))))
		}
	}
	return items
}

func testCursors(t *testing.T, open Opener) {
	r := setUp(t, open) // one for all: each fills it anew
	for _, q := range cursorQueries() {
		for _, q.Reverse = range []bool{false, true} {
			name := fmt.Sprintf("%s%s from=%s to=%s prefix=%s reverse=%t", q.Table, q.Index, q.From, q.To, q.Prefix, q.Reverse)
			t.Run(name, func(t *testing.T) {
				t.Run("after every item", func(t *testing.T) { r.in(t).resume(q, nil) })
				t.Run("page by page", func(t *testing.T) { testPages(r.in(t), q) })
				t.Run("after a deleted item", func(t *testing.T) {
					r.in(t).resume(q, func(key store.Key) store.Write { return remove(key) })
				})
				// A row of an index goes to another partition; in the table itself nothing moves.
				t.Run("after an item that has moved", func(t *testing.T) {
					elsewhere := store.NewItem(text("state", "elsewhere"), text("due", "1999"), text("owner", "elsewhere"))
					r.in(t).resume(q, func(key store.Key) store.Write { return update(key, elsewhere, nil) })
				})
			})
		}
	}
}

// answer puts all items back into the store and returns the query's rows, of which there
// have to be enough for the test to mean something.
func (r *rig) answer(q store.Query) []store.Item {
	r.Helper()
	r.fill(cursorItems())
	rows := r.rows(q)
	if len(rows) < 3 {
		r.Fatalf("Query(%+v) = %d rows, too few", q, len(rows))
	}
	return rows
}

// resume goes on after each item of the answer, once the write, nil for none, has taken the item
// out of the place that the cursor marks.
func (r *rig) resume(q store.Query, write func(store.Key) store.Write) {
	rows := r.answer(q)
	for i, it := range rows {
		q.After = r.table(q.Table).CursorAt(q.Index, it)
		if write != nil {
			r.commit(write(r.table(ledger).KeyOf(it)))
		}
		if i%r.rounds(1, 4) == 0 || (write == nil && i == len(rows)-1) {
			r.wantRows(q, rows[i+1:]...)
		}
	}
}

func testPages(r *rig, q store.Query) {
	rows := r.answer(q)
	for size := 1; size <= len(rows)+1; size++ {
		if size > 2 && size < len(rows) && size%r.rounds(1, 13) != 0 {
			continue
		}
		q.Limit, q.After = size, store.Cursor{}
		for rest := rows; len(rest) > 0; {
			n := min(size, len(rest))
			r.wantRows(q, rest[:n]...)
			q.After = r.table(q.Table).CursorAt(q.Index, rest[n-1])
			rest = rest[n:]
		}
		r.wantRows(q)
	}
}

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
			r.wantSegments(ledger, segments, items)
		})
	}
	play(t, open,
		scenario{"an empty table", func(r *rig) {
			r.put(items[0])
			r.wantSegments(plain, 0, nil)
		}},
		scenario{"one partition", func(r *rig) {
			var one []store.Item
			for i := range 300 {
				one = append(one, item("p", fmt.Sprint(i)))
			}
			r.fill(one)
			r.wantSegments(ledger, 3, one)
		}},
		scenario{"a table without a sort key", func(r *rig) {
			var want []store.Item
			for _, id := range awkward() {
				want = append(want, store.NewItem(text("id", id)))
				r.commit(store.Put(plain, want[len(want)-1]))
			}
			r.wantSegments(plain, 0, want)
			testScanCursors(r, plain, 1, false)
		}},
		scenario{"no such segment", func(r *rig) {
			for _, s := range [][2]int{{-1, 0}, {1, 0}, {1, 1}, {3, 3}, {-1, 3}} {
				r.refuseRead(store.ErrInvalid, r.Scan(r.Context(), store.Scan{Table: ledger, Segment: s[0], Segments: s[1]}))
			}
		}},
	)
}

func testScanResume(t *testing.T, open Opener) {
	cursors := func(segments int, remove bool) func(r *rig) {
		return func(r *rig) {
			r.fill(scanItems())
			testScanCursors(r, ledger, segments, remove)
		}
	}
	play(t, open, scenario{"cursors", cursors(1, false)}, scenario{"cursors in segments", cursors(3, false)},
		scenario{"cursors of deleted items", cursors(2, true)})
}

// wantSegments checks that the segments of a table have these items, each once.
func (r *rig) wantSegments(table string, segments int, want []store.Item) {
	r.Helper()
	var got []store.Item
	for i := range max(segments, 1) {
		got = append(got, r.scan(store.Scan{Table: table, Segment: i, Segments: segments})...)
	}
	r.wantExactly(table, got, want)
}

// wantExactly checks that got has the items of want, each once, in any order.
func (r *rig) wantExactly(table string, got, want []store.Item) {
	r.Helper()
	t, seen := r.table(table), map[store.Key]store.Item{}
	for _, it := range got {
		k := t.KeyOf(it)
		if seen[k] != nil {
			r.Fatalf("%s is seen twice", show(it))
		}
		seen[k] = it
	}
	for _, it := range want {
		if got := seen[t.KeyOf(it)]; !got.Equal(it) {
			r.Fatalf("%s is seen instead of %s", show(got), show(it))
		}
	}
	if len(seen) != len(want) {
		r.Fatalf("%d items are seen, want %d", len(seen), len(want))
	}
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
			r.wantExactly(table, slices.Concat(all[:i+1], r.scan(s)), all)
		}
	}
}
