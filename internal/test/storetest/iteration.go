package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// cursorQueries are queries of cursorItems, of every kind that a cursor can belong to.
func cursorQueries() []store.Query {
	return []store.Query{
		in("a"), inIndex(byState, "open"), inIndex(byOwner, "o"), inIndex(inverted, "1"),
		{Table: ledger, Partition: "a", From: "10", To: "3"}, {Table: ledger, Partition: "a", Prefix: "1"},
		{Table: ledger, Index: byState, Partition: "open", From: "2027", To: "2028"},
		{Table: ledger, Index: byState, Partition: "open", Prefix: "2027"},
	}
}

// cursorItems have partitions and sort keys that begin alike, and index keys with many ties.
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

// answer puts all items back and returns the query's rows, enough for the test to mean something.
func (r *rig) answer(q store.Query) []store.Item {
	r.Helper()
	r.fill(cursorItems())
	rows := r.rows(q)
	if len(rows) < 3 {
		r.Fatalf("Query(%+v) = %d rows, too few", q, len(rows))
	}
	return rows
}

// resume goes on after each item of the answer, once the write, if any, has moved the item away.
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
		r.wantPages(q, size, rows)
	}
}

// wantPages checks the rows of a query page by page, and that no page follows them.
func (r *rig) wantPages(q store.Query, size int, rows []store.Item) {
	r.Helper()
	q.Limit = size
	for page := range slices.Chunk(rows, size) {
		r.wantRows(q, page...)
		q.After = r.table(q.Table).CursorAt(q.Index, page[len(page)-1])
	}
	r.wantRows(q)
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

// many is more rows than an embedded engine is likely to fetch at once. A test cannot afford to
// write as many rows as a remote engine fetches.
func (r *rig) many() int { return r.rounds(1200, 150) }

// manyItems are even numbers, with a free place between any two.
func (r *rig) manyItems() []store.Item {
	var items []store.Item
	for i := range r.many() {
		items = append(items, item("a", even(i), text("state", "open"), text("due", even(i))))
	}
	return items
}

func even(i int) string { return fmt.Sprintf("%05d", 2*i) }

func testIteration(t *testing.T, open Opener) {
	for _, q := range []store.Query{in("a"), inIndex(byState, "open")} {
		for _, q.Reverse = range []bool{false, true} {
			t.Run(fmt.Sprintf("%s%s reverse=%t", q.Table, q.Index, q.Reverse), func(t *testing.T) {
				play(t, open, scenario{"a long answer", func(r *rig) { testLong(r, q) }},
					scenario{"left early", func(r *rig) { testLeftEarly(r, q) }},
					scenario{"writes in the loop", func(r *rig) { testWritesInLoop(r, q) }})
			})
		}
	}
	play(t, open,
		scenario{"a scan left early, and writes in it", func(r *rig) {
			r.fill(r.manyItems())
			for range 3 {
				for range r.good(r.Scan(r.Context(), store.Scan{Table: ledger})) {
					break
				}
			}
			seen, n := map[string]bool{}, 0
			for it := range r.good(r.Scan(r.Context(), store.Scan{Table: ledger})) {
				if n++; n%100 == 0 {
					r.commit(put(item("b", fmt.Sprint(n))),
						update(r.table(ledger).KeyOf(it), store.NewItem(number("amount", 1)), nil))
				}
				if it.Str("pk") == "a" && seen[it.Str("sk")] {
					r.Fatalf("%s is seen twice", show(it))
				}
				seen[it.Str("pk")+it.Str("sk")] = true
			}
			for _, it := range r.manyItems() {
				if !seen["a"+it.Str("sk")] {
					r.Fatalf("%s is not seen", show(it))
				}
			}
		}},
		scenario{"moved on by the loop", func(r *rig) {
			// A job moves every due row on to a later date, in the index it reads.
			items := r.manyItems()
			r.fill(items)
			q, n := inIndex(byState, "open"), 0
			q.To = "09999"
			for it := range r.good(r.Query(r.Context(), q)) {
				if n%50 == 0 {
					r.commit(update(r.table(ledger).KeyOf(it), store.NewItem(text("due", "1"+it.Str("due"))), nil))
				}
				r.wantPlace(it, n, items[n].Str("sk"))
				n++
			}
			if n != r.many() {
				r.Fatalf("%d rows, want %d", n, r.many())
			}
		}},
	)
}

func (r *rig) wantPlace(it store.Item, n int, want string) {
	r.Helper()
	if it.Str("sk") != want {
		r.Fatalf("row %d is %s, want %s", n, it.Str("sk"), want)
	}
}

func testLong(r *rig, q store.Query) {
	r.fill(r.manyItems())
	rows := r.Query(r.Context(), q)
	for range 2 { // an iteration can be repeated
		n := 0
		for it := range r.good(rows) {
			r.wantPlace(it, n, even(r.place(q, n)))
			n++
		}
		if n != r.many() {
			r.Fatalf("%d rows, want %d", n, r.many())
		}
	}
	for _, q.Limit = range []int{1, 255, 256, 257, 513, r.many() - 1, r.many(), r.many() + 1} {
		if n := len(r.rows(q)); n != min(q.Limit, r.many()) {
			r.Fatalf("Query(%+v) yields %d rows", q, n)
		}
	}
}

// place returns which of manyItems the n-th row of the answer is.
func (r *rig) place(q store.Query, n int) int {
	if q.Reverse {
		return r.many() - 1 - n
	}
	return n
}

func testLeftEarly(r *rig, q store.Query) {
	r.fill(r.manyItems())
	for _, stop := range []int{1, 2, 300} {
		n := 0
		for range r.good(r.Query(r.Context(), q)) {
			if n++; n == stop {
				break
			}
		}
		r.put(item("b", "1")) // nothing is left locked
	}
}

// testWritesInLoop inserts and deletes rows before and after the current row. Untouched rows must
// be seen exactly once and in order; the others may be seen or not.
func testWritesInLoop(r *rig, q store.Query) {
	r.fill(r.manyItems())
	touched := map[string]bool{}
	var seen []string
	n := 0
	for it := range r.good(r.Query(r.Context(), q)) {
		if n%40 == 0 && n+40 < r.many() {
			for _, near := range []int{n - 20, n, n + 3} { // behind, here, ahead
				if i := r.place(q, near); i >= 0 && i < r.many() {
					other, between := even(i), fmt.Sprintf("%05d", 2*i+1)
					touched[other], touched[between] = true, true
					r.commit(remove(at("a", other)), put(item("a", between, text("state", "open"), text("due", between))))
				}
			}
		}
		seen = append(seen, it.Str("sk"))
		n++
	}
	last := -1
	for _, sk := range seen {
		if touched[sk] {
			continue
		}
		i := last + 1
		for ; i < r.many() && touched[even(r.place(q, i))]; i++ { // skip rows missing by right
		}
		if i == r.many() || sk != even(r.place(q, i)) {
			r.Fatalf("row %s follows number %d", sk, last)
		}
		last = i
	}
	for i := last + 1; i < r.many(); i++ {
		if sk := even(r.place(q, i)); !touched[sk] {
			r.Fatalf("row %s is not seen", sk)
		}
	}
}
