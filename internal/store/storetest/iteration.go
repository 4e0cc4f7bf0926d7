package storetest

import (
	"fmt"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

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
