package storetest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// A JSONWriter is a store under test open to writes of other programs. PutJSON puts an item,
// given in DynamoDB's JSON, as such a program would.
type JSONWriter interface {
	PutJSON(table, item string) error
}

// A Damager is a store under test with a way to damage an item on its disk.
type Damager interface {
	Damage(table string, key store.Key) error
}

// putJSON puts attributes, in DynamoDB's JSON, under the key a/sk of the ledger table.
func (r *rig) putJSON(sk, attributes string) {
	r.Helper()
	if err := r.Store.(JSONWriter).PutJSON(ledger, `{"pk":{"S":"a"},"sk":{"S":"`+sk+`"},`+attributes+`}`); err != nil {
		r.Fatalf("PutJSON: %v", err)
	}
}

// everyRead returns the rows of a Query of partition a, of an index Query of owner o, and of a
// Scan.
func (r *rig) everyRead() map[string][]store.Item {
	r.Helper()
	byKey := func(items []store.Item) []store.Item {
		slices.SortFunc(items, func(a, b store.Item) int { return strings.Compare(a.Str("sk"), b.Str("sk")) })
		return items
	}
	return map[string][]store.Item{
		"Query":       r.rows(store.Query{Table: ledger, Partition: "a"}),
		"index Query": byKey(r.rows(store.Query{Table: ledger, Index: byOwner, Partition: "o"})),
		"Scan":        byKey(r.scan(store.Scan{Table: ledger})),
	}
}

func (r *rig) wantEveryRead(want ...store.Item) {
	r.Helper()
	for name, got := range r.everyRead() {
		if !slices.EqualFunc(got, want, store.Item.Equal) {
			r.Fatalf("%s = %v, want %v", name, shows(got), shows(want))
		}
	}
}

// unsupported are values with a set, in DynamoDB's JSON.
func unsupported() []string {
	return []string{`{"SS":["a"]}`, `{"NS":["1"]}`, `{"BS":["AA=="]}`, `{"L":[{"M":{"x":{"NS":["1"]}}}]}`,
		`{"M":{"x":{"SS":["a"]},"y":{"S":"b"}}}`}
}

func testUnsupported(t *testing.T, open Opener) {
	if _, ok := setUp(t, open).Store.(JSONWriter); !ok {
		t.Skip("no other program can write to this engine")
	}
	key := store.Key{PK: "a", SK: "1"}
	owned := text("owner", "o")
	play(t, open,
		scenario{"null is absent", func(r *rig) {
			r.putJSON("1", `"owner":{"S":"o"},"n":{"N":"7"},"v":{"NULL":true},"ttl":{"NULL":true},
				"l":{"L":[{"NULL":true},{"N":"1"}]},"m":{"M":{"x":{"NULL":true},"y":{"L":[{"NULL":true}]}}}`)
			want := item("a", "1", owned, number("n", 7), attribute("l", store.L(store.Int(1))),
				attribute("m", store.M(store.NewItem(attribute("y", store.L())))))
			r.want(ledger, want)
			r.wantEveryRead(want)
		}},
		scenario{"null is absent to conditions", func(r *rig) {
			r.putJSON("1", `"v":{"NULL":true},"w":{"NULL":true}`)
			other := store.Put(plain, store.NewItem(text("id", "other")))
			r.commit(store.Check(ledger, key, store.AttributeAbsent("v")))
			r.commit(store.Check(ledger, key, store.AttributeAbsent("v"), store.AttributeAbsent("w")), other)
			r.commit(store.Update(ledger, key, store.NewItem(number("v", 1)), nil, store.AttributeAbsent("v")))
			r.refuse(store.ErrConflict, store.Update(ledger, key, nil, []string{"w"}, store.AttributeAbsent("v")))
			r.commit(store.Put(ledger, item("a", "1", number("v", 1)), store.AttributeAbsent("w")), other)
			r.want(ledger, item("a", "1", number("v", 1)))
		}},
		scenario{"iterations leave a set out", func(r *rig) {
			for _, v := range unsupported() {
				r.putJSON("1", `"owner":{"S":"o"},"n":{"N":"7"},"v":`+v)
				r.put(item("a", "2", owned))
				r.wantEveryRead(item("a", "1", owned, number("n", 7)), item("a", "2", owned))
			}
		}},
		scenario{"a get and a lone check name the attribute", func(r *rig) {
			for _, v := range unsupported() {
				r.putJSON("1", `"n":{"N":"7"},"v":`+v)
				it, err := r.Get(r.Context(), ledger, key)
				for _, err := range []error{err, r.Commit(r.Context(), store.Check(ledger, key))} {
					if !errors.Is(err, store.ErrFormat) || it != nil {
						r.Fatalf("an item with %s: %s, %v; want ErrFormat", v, show(it), err)
					}
					for _, part := range []string{ledger, "a/1", "attribute v"} {
						if !strings.Contains(err.Error(), part) {
							r.Fatalf("%q does not name %s", err, part)
						}
					}
				}
			}
		}},
		scenario{"an expired item with a set is absent", func(r *rig) {
			r.putJSON("1", `"ttl":{"N":"1"},"v":{"SS":["a"]}`)
			r.wantNone(ledger, key)
			r.commit(store.Check(ledger, key, store.Absent()))
		}},
		scenario{"a set is present and equals nothing", func(r *rig) {
			r.putJSON("1", `"n":{"N":"7"},"v":{"SS":["a"]}`)
			other := store.Put(plain, store.NewItem(text("id", "other")))
			for _, c := range []store.Condition{store.AttributeAbsent("v"), store.AttributeEquals("v", store.S("a")),
				store.AttributeEquals("v", store.L(store.S("a"))), store.Absent()} {
				w := store.Update(ledger, key, store.NewItem(number("n", 8)), nil, c)
				want := store.ConflictError{Table: ledger, Key: key, Condition: c.String()}
				r.conflict(want, w)
				want.Write = 1
				r.conflict(want, other, w)
			}
		}},
		scenario{"an update keeps a set, other writes take it away", func(r *rig) {
			r.putJSON("1", `"n":{"N":"7"},"v":{"SS":["a"]}`)
			r.commit(store.Update(ledger, key, store.NewItem(number("n", 8)), nil, store.AttributeEquals("n", store.Int(7))))
			if _, err := r.Get(r.Context(), ledger, key); !errors.Is(err, store.ErrFormat) {
				r.Fatalf("Get after an update of another attribute = %v, want ErrFormat", err)
			}
			r.commit(store.Update(ledger, key, nil, []string{"v"}))
			r.want(ledger, item("a", "1", number("n", 8)))
			r.putJSON("1", `"v":{"SS":["a"]}`)
			r.commit(store.Put(ledger, item("a", "1")))
			r.want(ledger, item("a", "1"))
			r.putJSON("1", `"v":{"SS":["a"]}`)
			r.commit(store.Delete(ledger, key))
			r.wantNone(ledger, key)
		}},
		scenario{"values that are written in another form", func(r *rig) {
			r.putJSON("1", `"n1":{"N":"1.50e1"},"n2":{"N":"-0.0"},"n3":{"N":"00012"},
				"n4":{"N":"12345678901234567890123456789012345678"},"n5":{"N":"1E-130"},
				"s":{"S":""},"b":{"B":""},"c":{"B":"AP8="},"l":{"L":[]},"m":{"M":{}},
				"a.b":{"BOOL":false},"#":{"M":{"x":{"L":[{"BOOL":true}]}}}`)
			want := item("a", "1", number("n1", 15), number("n2", 0), number("n3", 12), text("s", ""),
				attribute("b", store.B(nil)),
				attribute("c", store.B([]byte{0, 0xFF})), attribute("l", store.L()), attribute("m", store.M(nil)),
				attribute("a.b", store.Bool(false)),
				attribute("#", store.M(store.NewItem(attribute("x", store.L(store.Bool(true)))))))
			for name, number := range map[string]string{"n4": "12345678901234567890123456789012345678", "n5": "1E-130"} {
				v, err := store.Number(number)
				if err != nil {
					r.Fatal(err)
				}
				want.Set(name, v)
			}
			r.want(ledger, want)
			var same []store.Condition
			for _, a := range want {
				same = append(same, store.AttributeEquals(a.Name, a.Value))
			}
			r.commit(store.Check(ledger, key, same...))
			r.commit(store.Update(ledger, key, store.NewItem(number("n6", 1)), nil, same...))
		}},
	)
}

func testUnreadable(t *testing.T, open Opener) {
	play(t, open, scenario{"a damaged item", func(r *rig) {
		damager, ok := r.Store.(Damager)
		if !ok {
			r.Skip("the stored form of this engine's items cannot be damaged")
		}
		one, key := item("a", "1"), store.Key{PK: "a", SK: "2"}
		r.put(one, item("a", "2", number("version", 1)), item("a", "3"))
		if err := damager.Damage(ledger, key); err != nil {
			r.Fatalf("Damage: %v", err)
		}
		if it, err := r.Get(r.Context(), ledger, key); !errors.Is(err, store.ErrFormat) || it != nil {
			r.Fatalf("Get = %s, %v; want ErrFormat", show(it), err)
		}
		items, err := collect(r.Query(r.Context(), store.Query{Table: ledger, Partition: "a"}))
		if !errors.Is(err, store.ErrFormat) || len(items) != 1 || !items[0].Equal(one) {
			r.Fatalf("Query = %v, %v; want %s and then ErrFormat", shows(items), err, show(one))
		}
		if items, err := collect(r.Scan(r.Context(), store.Scan{Table: ledger})); !errors.Is(err, store.ErrFormat) {
			r.Fatalf("Scan = %v, %v; want ErrFormat", shows(items), err)
		}
		for _, w := range []store.Write{
			store.Put(ledger, item("a", "2"), store.AttributeEquals("version", store.Int(1))),
			store.Put(ledger, item("a", "2"), store.Absent()),
			store.Update(ledger, key, store.NewItem(number("amount", 1)), nil), store.Delete(ledger, key),
			store.Check(ledger, key),
		} {
			r.wantClass(r.Commit(r.Context(), store.Put(ledger, item("b", "1")), w), store.ErrFormat)
		}
		r.wantNone(ledger, store.Key{PK: "b", SK: "1"})
		r.want(ledger, one)
		r.want(ledger, item("a", "3"))
	}})
}
