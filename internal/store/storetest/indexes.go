package storetest

import (
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
		{"put in again", put(item("a", "1", text("state", "open"), text("due", "2032"))), []string{"2032"},
			false},
		{"check", check(key), []string{"2032"}, false},
		{"delete", remove(key), nil, false},
		{"put after delete", put(item("a", "1", text("state", "open"), text("due", "2033"))),
			[]string{"2033"}, false},
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
			r.put(item("a", "1", text("state", "open"), text("due", "1")), item("a", "2", text("state", "open"), text("due", "2")))
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
	play(t, open,
		scenario{"keys and what is included", func(r *rig) {
			r.put(full)
			r.wantRows(inIndex(byState, "open"), item("a", "1", text("state", "open"), text("due", "1"), number("amount", 5),
				attribute("note", full.Get("note"))))
		}},
		scenario{"all", func(r *rig) {
			r.put(full)
			r.wantRows(inIndex(byOwner, "o"), full)
		}},
		scenario{"keys only", func(r *rig) {
			r.put(full)
			r.wantRows(inIndex(inverted, "1"), item("a", "1"))
		}},
		scenario{"an included attribute that is not there", func(r *rig) {
			r.put(item("a", "1", text("state", "open"), text("due", "1"), text("zone", "z")))
			r.wantRows(inIndex(byState, "open"), item("a", "1", text("state", "open"), text("due", "1")))
		}},
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
		scenario{"the index of a table without a sort key", func(r *rig) {
			it := store.NewItem(text("id", "a"), text("kind", "k"), text("name", "n"), text("more", "m"))
			r.commit(store.Put(plain, it))
			r.wantRows(store.Query{Table: plain, Index: byName, Partition: "k"}, it)
		}},
	)
}
