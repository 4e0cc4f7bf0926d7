package storetest

import (
	"errors"
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

// wantEveryRead checks a Query of partition a, an index Query of owner o, and a Scan.
func (r *rig) wantEveryRead(want ...store.Item) {
	r.Helper()
	r.wantRows(in("a"), want...)
	r.wantExactly(ledger, r.rows(inIndex(byOwner, "o")), want)
	r.wantExactly(ledger, r.scan(store.Scan{Table: ledger}), want)
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
	play(t, open,
		scenario{"null is absent", func(r *rig) {
			r.putJSON("1", `"owner":{"S":"o"},"n":{"N":"7"},"v":{"NULL":true},"ttl":{"NULL":true},
				"l":{"L":[{"NULL":true},{"N":"1"}]},"m":{"M":{"x":{"NULL":true},"y":{"L":[{"NULL":true}]}}}`)
			want := item("a", "1", text("owner", "o"), number("n", 7), attribute("l", store.L(store.Int(1))),
				attribute("m", store.M(store.NewItem(attribute("y", store.L())))))
			r.want(ledger, want)
			r.wantEveryRead(want)
		}},
		scenario{"null is absent to conditions", func(r *rig) {
			r.putJSON("1", `"v":{"NULL":true},"w":{"NULL":true}`)
			key, other := at("a", "1"), store.Put(plain, store.NewItem(text("id", "other")))
			noV, noW := store.AttributeAbsent("v"), store.AttributeAbsent("w")
			r.commit(check(key, noV))
			r.commit(check(key, noV, noW), other)
			r.commit(update(key, store.NewItem(number("v", 1)), nil, noV))
			r.refuse(store.ErrConflict, update(key, nil, []string{"w"}, noV))
			r.commit(put(item("a", "1", number("v", 1)), noW), other)
			r.want(ledger, item("a", "1", number("v", 1)))
		}},
		scenario{"iterations leave a set out", func(r *rig) {
			owned := text("owner", "o")
			for _, v := range unsupported() {
				r.putJSON("1", `"owner":{"S":"o"},"n":{"N":"7"},"v":`+v)
				r.put(item("a", "2", owned))
				r.wantEveryRead(item("a", "1", owned, number("n", 7)), item("a", "2", owned))
			}
		}},
		scenario{"a get and a lone check name the attribute", testNamedAttribute},
		scenario{"an expired item with a set is absent", func(r *rig) {
			r.putJSON("1", `"ttl":{"N":"1"},"v":{"SS":["a"]}`)
			r.wantNone(ledger, at("a", "1"))
			r.commit(check(at("a", "1"), store.Absent()))
		}},
		scenario{"a set is present and equals nothing", func(r *rig) {
			r.putJSON("1", `"n":{"N":"7"},"v":{"SS":["a"]}`)
			for _, c := range []store.Condition{store.AttributeAbsent("v"), equals("v", store.S("a")),
				equals("v", store.L(store.S("a"))), store.Absent()} {
				w := update(at("a", "1"), store.NewItem(number("n", 8)), nil, c)
				r.conflict(c.String(), w)
				r.conflictAt(1, c.String(), store.Put(plain, store.NewItem(text("id", "other"))), w)
			}
		}},
		scenario{"an update keeps a set, other writes take it away", testKeptSet},
		scenario{"values that are written in another form", testOtherForms},
	)
}

func testNamedAttribute(r *rig) {
	for _, v := range unsupported() {
		r.putJSON("1", `"n":{"N":"7"},"v":`+v)
		it, err := r.Get(r.Context(), ledger, at("a", "1"))
		for _, err := range []error{err, r.Commit(r.Context(), check(at("a", "1")))} {
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
}

func testKeptSet(r *rig) {
	key := at("a", "1")
	r.putJSON("1", `"n":{"N":"7"},"v":{"SS":["a"]}`)
	r.commit(update(key, store.NewItem(number("n", 8)), nil, equals("n", store.Int(7))))
	r.refuseGet(store.ErrFormat, ledger, key)
	r.commit(update(key, nil, []string{"v"}))
	r.want(ledger, item("a", "1", number("n", 8)))
	r.putJSON("1", `"v":{"SS":["a"]}`)
	r.put(item("a", "1"))
	r.want(ledger, item("a", "1"))
	r.putJSON("1", `"v":{"SS":["a"]}`)
	r.commit(remove(key))
	r.wantNone(ledger, key)
}

func testOtherForms(r *rig) {
	r.putJSON("1", `"n1":{"N":"1.50e1"},"n2":{"N":"-0.0"},"n3":{"N":"00012"},
		"n4":{"N":"12345678901234567890123456789012345678"},"n5":{"N":"1E-130"},
		"s":{"S":""},"b":{"B":""},"c":{"B":"AP8="},"l":{"L":[]},"m":{"M":{}},
		"a.b":{"BOOL":false},"#":{"M":{"x":{"L":[{"BOOL":true}]}}}`)
	want := item("a", "1", number("n1", 15), number("n2", 0), number("n3", 12),
		attribute("n4", decimal("12345678901234567890123456789012345678")), attribute("n5", decimal("1E-130")),
		text("s", ""), attribute("b", store.B(nil)), attribute("c", store.B([]byte{0, 0xFF})), attribute("l", store.L()),
		attribute("m", store.M(nil)), attribute("a.b", store.Bool(false)),
		attribute("#", store.M(store.NewItem(attribute("x", store.L(store.Bool(true)))))))
	r.want(ledger, want)
	var same []store.Condition
	for _, a := range want {
		same = append(same, equals(a.Name, a.Value))
	}
	r.commit(check(at("a", "1"), same...))
	r.commit(update(at("a", "1"), store.NewItem(number("n6", 1)), nil, same...))
}

func testUnreadable(t *testing.T, open Opener) {
	play(t, open, scenario{"a damaged item", func(r *rig) {
		damager, ok := r.Store.(Damager)
		if !ok {
			r.Skip("the stored form of this engine's items cannot be damaged")
		}
		one, key := item("a", "1"), at("a", "2")
		r.put(one, item("a", "2", number("version", 1)), item("a", "3"))
		if err := damager.Damage(ledger, key); err != nil {
			r.Fatalf("Damage: %v", err)
		}
		r.refuseGet(store.ErrFormat, ledger, key)
		items, err := collect(r.Query(r.Context(), in("a")))
		if !errors.Is(err, store.ErrFormat) || len(items) != 1 || !items[0].Equal(one) {
			r.Fatalf("Query = %v, %v; want %s and then ErrFormat", shows(items), err, show(one))
		}
		if items, err := collect(r.Scan(r.Context(), store.Scan{Table: ledger})); !errors.Is(err, store.ErrFormat) {
			r.Fatalf("Scan = %v, %v; want ErrFormat", shows(items), err)
		}
		for _, w := range []store.Write{
			put(item("a", "2"), equals("version", store.Int(1))), put(item("a", "2"), store.Absent()),
			update(key, store.NewItem(number("amount", 1)), nil), remove(key), check(key),
		} {
			r.wantClass(r.Commit(r.Context(), put(item("b", "1")), w), store.ErrFormat)
		}
		r.wantNone(ledger, at("b", "1"))
		r.want(ledger, one, item("a", "3"))
	}})
}
