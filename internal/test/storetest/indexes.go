package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// An indexChange is a step that may take an item into an index, within it, or out.
type indexChange struct {
	name  string
	write store.Write
	want  []string // due dates of the rows in byState/open afterwards
	owned bool     // whether byOwner/o has the item
}

func testIndexes(t *testing.T, open Opener) {
	key := at("a", "1")
	set := func(attributes ...store.Attribute) store.Write {
		return update(key, store.NewItem(attributes...), nil)
	}
	cut := func(names ...string) store.Write { return update(key, nil, names) }
	steps := []indexChange{
		{"put without keys", put(item("a", "1", number("amount", 1))), nil, false},
		{"half a key", set(text("state", "open")), nil, false},
		{"the whole key", set(text("due", "2027")), []string{"2027"}, false},
		{"an attribute that is not projected", set(text("zone", "z")), []string{"2027"}, false},
		{"an attribute that is projected", set(number("amount", 2)), []string{"2027"}, false},
		{"another sort key", set(text("due", "2028")), []string{"2028"}, false},
		{"another partition", set(text("state", "closed")), nil, false},
		{"back, and owned", set(text("state", "open"), text("owner", "o")), []string{"2028"}, true},
		{"sort key removed", cut("due"), nil, true},
		{"and set again", set(text("due", "2029")), []string{"2029"}, true},
		{"partition key removed", cut("state"), nil, true},
		{"owner removed", cut("owner"), nil, false},
		{"put with all", put(item("a", "1", text("state", "open"), text("due", "2030"), text("owner", "o"))),
			[]string{"2030"}, true},
		{"put with all again", put(item("a", "1", text("state", "open"), text("due", "2031"),
			text("owner", "o"))), []string{"2031"}, true},
		{"put with half", put(item("a", "1", text("due", "2031"), text("owner", "o"))), nil, true},
		{"put in again", put(item("a", "1", text("state", "open"), text("due", "2032"))), []string{"2032"}, false},
		{"check", check(key), []string{"2032"}, false},
		{"delete", remove(key), nil, false},
		{"put after delete", put(item("a", "1", text("state", "open"), text("due", "2033"))), []string{"2033"}, false},
	}
	play(t, open,
		scenario{"in and out", func(r *rig) {
			for _, s := range steps {
				r.commit(s.write)
				r.wantIndexed(s)
			}
		}},
		scenario{"an item alone in its index or not", func(r *rig) {
			open := []store.Attribute{text("state", "open"), text("due", "1")}
			r.put(item("a", "1", open...), item("a", "2", open...), item("b", "1", open...))
			r.commit(remove(key))
			// their sort keys are equal: in any order
			r.wantExactly(ledger, r.rows(inIndex(byState, "open")),
				[]store.Item{item("a", "2", open...), item("b", "1", open...)})
		}},
		scenario{"a key of the table is one of the index", func(r *rig) {
			r.put(item("b", "1"), item("a", "1"), item("a", "2"))
			r.wantRows(inIndex(inverted, "1"), item("a", "1"), item("b", "1"))
			r.commit(remove(key))
			r.wantRows(inIndex(inverted, "1"), item("b", "1"))
		}},
		scenario{"several items in one commit", func(r *rig) {
			r.put(item("a", "1", text("state", "open"), text("due", "1")),
				item("a", "2", text("state", "open"), text("due", "2")))
			r.commit(set(text("due", "2")), update(at("a", "2"), store.NewItem(text("due", "1")), nil),
				put(item("a", "3", text("state", "open"), text("due", "0"))))
			r.wantSorts(inIndex(byState, "open"), "3", "2", "1")
		}},
	)
}

func (r *rig) wantIndexed(s indexChange) {
	r.Helper()
	var due []string
	for _, row := range r.rows(inIndex(byState, "open")) {
		due = append(due, row.Str("due"))
	}
	if !slices.Equal(due, s.want) {
		r.Fatalf("%s: byState has %q, want %q", s.name, due, s.want)
	}
	if owned := r.rows(inIndex(byOwner, "o")); len(owned) > 1 || len(owned) == 1 != s.owned {
		r.Fatalf("%s: byOwner has %v, want it there: %t", s.name, shows(owned), s.owned)
	}
}

func testProjections(t *testing.T, open Opener) {
	full := item("a", "1", text("state", "open"), text("due", "1"), text("owner", "o"), number("amount", 5),
		attribute("note", store.M(store.NewItem(text("k", "v")))), text("zone", "not projected"), number("ttl", 1<<40))
	more := store.NewItem(text("id", "a"), text("kind", "k"), text("name", "n"), text("more", "m"))
	row := func(write store.Write, q store.Query, want store.Item) func(r *rig) {
		return func(r *rig) {
			r.commit(write)
			r.wantRows(q, want)
		}
	}
	play(t, open,
		scenario{"keys and what is included", row(put(full), inIndex(byState, "open"), item("a", "1", text("state", "open"),
			text("due", "1"), number("amount", 5), attribute("note", full.Get("note"))))},
		scenario{"all", row(put(full), inIndex(byOwner, "o"), full)},
		scenario{"keys only", row(put(full), inIndex(inverted, "1"), item("a", "1"))},
		scenario{"an included attribute that is not there", row(
			put(item("a", "1", text("state", "open"), text("due", "1"), text("zone", "z"))),
			inIndex(byState, "open"), item("a", "1", text("state", "open"), text("due", "1")))},
		scenario{"the index of a table without a sort key", row(store.Put(plain, more),
			store.Query{Table: plain, Index: byName, Partition: "k"}, more)},
		scenario{"rows follow updates", func(r *rig) {
			r.put(full)
			r.commit(update(at("a", "1"), store.NewItem(number("amount", 6), text("zone", "y")), []string{"note"}))
			r.wantRows(inIndex(byState, "open"), item("a", "1", text("state", "open"), text("due", "1"), number("amount", 6)))
			want := full.Clone()
			want.Set("amount", store.Int(6))
			want.Set("zone", store.S("y"))
			want.Remove("note")
			r.wantRows(inIndex(byOwner, "o"), want)
		}},
	)
}

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
			r.put(item("a", "1", owned), item("a", "2", owned, number("ttl", now+5)),
				item("a", "3", owned, number("ttl", now+9)))
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

// testLimitOfTheLiving reads past expired items everywhere, by every limit, and page by page.
func testLimitOfTheLiving(r *rig) {
	var living []store.Item
	for _, c := range "xx1x2xxx34xx5xx" { // x expires
		it := item("a", fmt.Sprintf("%02d", r.clock.unix()%100)) // the clock moves on by one each time
		if c == 'x' {
			it.Set("ttl", store.Int(r.clock.unix()+20))
		} else {
			living = append(living, it)
		}
		r.put(it)
		r.clock.advance(1)
	}
	r.clock.advance(20)
	all := in("a")
	for _, all.Reverse = range []bool{false, true} {
		for limit := 1; limit <= len(living)+1; limit++ {
			r.wantPages(all, limit, living)
		}
		slices.Reverse(living)
	}
}

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
		"huge": decimal("1E+100"), "true": store.Bool(true), "list": store.L(store.Int(1)),
		"map":   store.M(store.NewItem(number("ttl", 1))),
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
