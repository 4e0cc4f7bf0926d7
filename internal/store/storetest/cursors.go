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
		{Table: ledger, Partition: "a"},
		{Table: ledger, Partition: "a", From: "10", To: "3"},
		{Table: ledger, Partition: "a", Prefix: "1"},
		{Table: ledger, Index: byState, Partition: "open"},
		{Table: ledger, Index: byState, Partition: "open", From: "2027", To: "2028"},
		{Table: ledger, Index: byState, Partition: "open", Prefix: "2027"},
		{Table: ledger, Index: byOwner, Partition: "o"},
		{Table: ledger, Index: inverted, Partition: "1"},
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

func (r *rig) fill(items []store.Item) {
	r.Helper()
	for part := range slices.Chunk(items, store.MaxWrites) {
		var writes []store.Write
		for _, it := range part {
			writes = append(writes, store.Put(ledger, it))
		}
		r.commit(writes...)
	}
}

func testCursors(t *testing.T, open Opener) {
	r := setUp(t, open) // one for all: each fills it anew
	for _, q := range cursorQueries() {
		for _, q.Reverse = range []bool{false, true} {
			name := fmt.Sprintf("%s%s from=%s to=%s prefix=%s reverse=%t", q.Table, q.Index, q.From, q.To, q.Prefix, q.Reverse)
			t.Run(name, func(t *testing.T) {
				t.Run("after every item", func(t *testing.T) { testResume(r.in(t), q) })
				t.Run("page by page", func(t *testing.T) { testPages(r.in(t), q) })
				t.Run("after a deleted item", func(t *testing.T) { testResumeDeleted(r.in(t), q) })
				t.Run("after an item that has moved", func(t *testing.T) { testResumeMoved(r.in(t), q) })
			})
		}
	}
}

// in returns the same store for a subtest.
func (r *rig) in(t *testing.T) *rig { return &rig{tester: t, Store: r.Store, clock: r.clock} }

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

// wantRows checks rows against those expected, whole.
func (r *rig) wantRows(q store.Query, want []store.Item) {
	r.Helper()
	got := r.rows(q)
	if !slices.EqualFunc(got, want, store.Item.Equal) {
		r.Fatalf("Query(%+v) =\n%v, want\n%v", q, shows(got), shows(want))
	}
}

func shows(items []store.Item) []string {
	var lines []string
	for _, it := range items {
		lines = append(lines, show(it))
	}
	return lines
}

func testResume(r *rig, q store.Query) {
	rows := r.answer(q)
	for i, it := range rows {
		if i%r.rounds(1, 4) != 0 && i < len(rows)-1 {
			continue
		}
		q.After = r.table(q.Table).CursorAt(q.Index, it)
		r.wantRows(q, rows[i+1:])
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
			r.wantRows(q, rest[:n])
			q.After = r.table(q.Table).CursorAt(q.Index, rest[n-1])
			rest = rest[n:]
		}
		r.wantRows(q, nil)
	}
}

func testResumeDeleted(r *rig, q store.Query) {
	rows := r.answer(q)
	for i, it := range rows {
		q.After = r.table(q.Table).CursorAt(q.Index, it)
		r.commit(store.Delete(ledger, r.table(ledger).KeyOf(it)))
		if i%r.rounds(1, 4) == 0 {
			r.wantRows(q, rows[i+1:])
		}
	}
}

// testResumeMoved takes each item out of the place that the cursor marks: a row of
// an index goes to another partition; in the table itself the item is changed, which
// moves nothing.
func testResumeMoved(r *rig, q store.Query) {
	rows := r.answer(q)
	elsewhere := store.NewItem(text("state", "elsewhere"), text("due", "1999"), text("owner", "elsewhere"))
	for i, it := range rows {
		q.After = r.table(q.Table).CursorAt(q.Index, it)
		r.commit(store.Update(ledger, r.table(ledger).KeyOf(it), elsewhere, nil))
		if i%r.rounds(1, 4) == 0 {
			r.wantRows(q, rows[i+1:])
		}
	}
}
