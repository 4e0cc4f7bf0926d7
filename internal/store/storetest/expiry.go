package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

func testExpiry(t *testing.T, open Opener) {
	key, all := at("a", "1"), in("a")
	play(t, open,
		scenario{"at the second, not before", func(r *rig) {
			it := item("a", "1", number("ttl", r.clock.unix()+2))
			r.put(it)
			r.want(ledger, it)
			r.clock.advance(1)
			r.want(ledger, it)
			r.wantSorts(all, "1")
			r.clock.advance(1)
			r.wantNone(ledger, key)
			r.wantSorts(all)
		}},
		scenario{"hidden from query and scan", func(r *rig) {
			now := r.clock.unix()
			r.put(item("a", "1"), item("a", "2", number("ttl", now+5)), item("a", "3", number("ttl", now+9)),
				item("b", "1", number("ttl", now+5)))
			r.clock.advance(5)
			r.both(all, "1", "3")
			r.wantSorts(store.Query{Table: ledger, Partition: "a", Limit: 2}, "1", "3")
			r.wantSorts(store.Query{Table: ledger, Partition: "a", From: "2", To: "2"})
			r.wantSorts(in("b"))
			if items := r.scan(store.Scan{Table: ledger}); len(items) != 2 {
				r.Fatalf("Scan = %v; want two items", shows(items))
			}
		}},
		scenario{"a limit counts the living", testLimitOfTheLiving},
		scenario{"an index yields the living", func(r *rig) {
			now, owned := r.clock.unix(), text("owner", "o")
			r.put(item("a", "1", owned), item("a", "2", owned, number("ttl", now+5)), item("a", "3", owned, number("ttl", now+9)))
			r.clock.advance(5)
			living := slices.DeleteFunc(r.sorts(ledger, r.rows(inIndex(byOwner, "o"))),
				func(sk string) bool { return sk == "2" }) // may be there or not
			if slices.Sort(living); !slices.Equal(living, []string{"1", "3"}) { // the index has no sort key
				r.Fatalf("the index yields %q", living)
			}
		}},
		scenario{"born expired", func(r *rig) {
			r.put(item("a", "1", number("ttl", r.clock.unix())), item("a", "2", number("ttl", 1)))
			r.wantNone(ledger, key, at("a", "2"))
			r.commit(put(item("a", "2"), store.Absent()))
			r.want(ledger, item("a", "2"))
		}},
		scenario{"what never expires", testNeverExpires},
		scenario{"cursors", func(r *rig) {
			now := r.clock.unix()
			for i, sk := range []string{"1", "2", "3", "4"} {
				r.put(item("a", sk, number("ttl", now+int64(9-i))))
			}
			rows := r.rows(all)
			r.clock.advance(7) // 3 and 4 are gone
			q := all
			for i, want := range [][]string{{"2"}, nil, nil, nil} {
				q.After = r.table(ledger).CursorAt("", rows[i])
				r.wantSorts(q, want...)
			}
			q.Reverse, q.After = true, r.table(ledger).CursorAt("", rows[3])
			r.wantSorts(q, "2", "1")
		}},
	)
}

// testLimitOfTheLiving reads past expired items at the beginning, between and at the end,
// by every limit, and page by page.
func testLimitOfTheLiving(r *rig) {
	all := in("a")
	var living []string
	for _, c := range "xx1x2xxx34xx5xx" { // x expires
		it := item("a", fmt.Sprintf("%02d", r.clock.unix()%100)) // the clock moves on by one each time
		if c == 'x' {
			it.Set("ttl", store.Int(r.clock.unix()+20))
		} else {
			living = append(living, it.Str("sk"))
		}
		r.put(it)
		r.clock.advance(1)
	}
	r.clock.advance(20)
	for _, all.Reverse = range []bool{false, true} {
		for limit := 1; limit <= len(living)+1; limit++ {
			q := all
			q.Limit = limit
			for rest := living; ; {
				n := min(limit, len(rest))
				rows := r.rows(q)
				if got := r.sorts(ledger, rows); !slices.Equal(got, rest[:n]) {
					r.Fatalf("Query(%+v) = %q, want %q", q, got, rest[:n])
				}
				if n == 0 {
					break
				}
				q.After, rest = r.table(ledger).CursorAt("", rows[n-1]), rest[n:]
			}
		}
		slices.Reverse(living)
	}
}

// testExpiredWrites has commits on expired items.
func testExpiredWrites(t *testing.T, open Opener) {
	key, all := at("a", "1"), in("a")
	play(t, open,
		scenario{"absent to writes", func(r *rig) {
			r.put(item("a", "1", number("ttl", r.clock.unix()+1), number("version", 1)))
			r.clock.advance(1)
			r.conflict(exists, update(key, store.NewItem(number("ttl", 1<<40)), nil), remove(key), check(key))
			c := equals("version", store.Int(1))
			r.conflict(c.String(), put(item("a", "1"), c))
			r.commit(check(key, store.Absent()))
			r.wantNone(ledger, key)
		}},
		scenario{"put over an expired item", func(r *rig) {
			r.put(item("a", "1", number("ttl", r.clock.unix()+1), text("note", "old"), text("state", "open"),
				text("due", "1"), text("owner", "o")))
			r.clock.advance(1)
			it := item("a", "1", text("owner", "p"))
			r.commit(put(it, store.Absent()))
			r.want(ledger, it)
			r.wantSorts(inIndex(byState, "open"))
			r.wantSorts(inIndex(byOwner, "o"))
			r.wantRows(inIndex(byOwner, "p"), it)
		}},
		scenario{"a later date saves the item", func(r *rig) {
			r.put(item("a", "1", number("ttl", r.clock.unix()+2)), item("a", "2", number("ttl", r.clock.unix()+2)))
			r.commit(update(key, store.NewItem(number("ttl", r.clock.unix()+9)), nil),
				update(at("a", "2"), nil, []string{"ttl"}))
			r.clock.advance(5)
			r.wantSorts(all, "1", "2")
			r.clock.advance(4)
			r.wantSorts(all, "2")
		}},
	)
}

func testNeverExpires(r *rig) {
	now := r.clock.unix()
	for name, v := range map[string]store.Value{
		"zero": store.Int(0), "below zero": store.Int(-now), "text": store.S("1"), "milliseconds": store.Int(now * 1000),
		"huge": decimal("1E+100"), "true": store.Bool(true), "list": store.L(store.Int(1)), "map": store.M(store.NewItem(number("ttl", 1))),
		"bytes": store.B([]byte{'1'}),
	} {
		it := item("a", name, attribute("ttl", v))
		r.put(it)
		r.clock.advance(1)
		r.want(ledger, it)
	}
	nested := item("a", "nested", attribute("m", store.M(store.NewItem(number("ttl", 1)))))
	r.put(nested)
	r.want(ledger, nested)
	// A table without a TTL attribute has no expiry.
	untimed := store.NewItem(text("id", "a"), number("ttl", 1))
	r.commit(store.Put(plain, untimed))
	r.want(plain, untimed)
}
