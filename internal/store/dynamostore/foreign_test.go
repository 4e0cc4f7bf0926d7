package dynamostore_test

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/test/dynamotest"
)

// A legacy is a store in DynamoDB Local, to which another program writes too.
type legacy struct {
	*testing.T
	s *prefixed
}

// onLegacy runs the test on a store, and on one whose requests meet faults.
func onLegacy(t *testing.T, test func(l legacy)) {
	t.Helper()
	tables := []store.Table{{Name: "t", PartitionKey: "pk", SortKey: "sk", TTL: "ttl",
		Indexes: []store.Index{{Name: "byOwner", PartitionKey: "owner", All: true}}},
		{Name: "plain", PartitionKey: "id"}}
	for name, rates := range map[string]dynamotest.Rates{"plain": nil, "faults": retried()} {
		t.Run(name, func(t *testing.T) {
			p := dynamotest.NewProxy(t, dynamotest.Endpoint(t), dynamotest.Options{Seed: 1, Rates: rates})
			s := openLocal(t, tables, dynamostore.Options{Client: p.Client(), Pace: quick()})
			defer closeStore(t, s)
			test(legacy{t, s})
		})
	}
}

// put writes attributes, in DynamoDB's JSON, under the key a/sk, as another program does.
func (l legacy) put(sk, attributes string) {
	l.Helper()
	if err := l.s.PutJSON("t", `{"pk":{"S":"a"},"sk":{"S":"`+sk+`"},`+attributes+`}`); err != nil {
		l.Fatal(err)
	}
}

func (l legacy) commit(writes ...store.Write) {
	l.Helper()
	if err := l.s.Commit(l.Context(), writes...); err != nil {
		l.Fatalf("Commit: %v", err)
	}
}

// get checks the item at a/sk, or the error.
func (l legacy) get(sk string, want store.Item, wantErr error) {
	l.Helper()
	it, err := l.s.Get(l.Context(), "t", at(sk))
	if !errors.Is(err, wantErr) || !it.Equal(want) {
		l.Fatalf("Get = %v, %v; want %v, %v", it, err, want, wantErr)
	}
}

// reads checks a Query of partition a, an index Query of owner o, and a Scan.
func (l legacy) reads(want ...store.Item) {
	l.Helper()
	for name, rows := range map[string]iter.Seq2[store.Item, error]{
		"Query":       l.s.Query(l.Context(), store.Query{Table: "t", Partition: "a"}),
		"index Query": l.s.Query(l.Context(), store.Query{Table: "t", Index: "byOwner", Partition: "o"}),
		"Scan":        l.s.Scan(l.Context(), store.Scan{Table: "t"}),
	} {
		var got []store.Item
		for it, err := range rows {
			if err != nil {
				l.Fatalf("%s: %v", name, err)
			}
			got = append(got, it)
		}
		slices.SortFunc(got, func(a, b store.Item) int { return strings.Compare(a.Str("sk"), b.Str("sk")) })
		if !slices.EqualFunc(got, want, store.Item.Equal) {
			l.Fatalf("%s = %v, want %v", name, got, want)
		}
	}
}

func at(sk string) store.Key { return store.Key{PK: "a", SK: sk} }

func attribute(name string, v store.Value) store.Attribute {
	return store.Attribute{Name: name, Value: v}
}

func itemAt(sk string, attributes ...store.Attribute) store.Item {
	return store.NewItem(append(attributes, attribute("pk", store.S("a")), attribute("sk", store.S(sk)))...)
}

func otherItem() store.Write {
	return store.Put("plain", store.NewItem(attribute("id", store.S("other"))))
}

// TestForeign_Null: a null is absent, also to conditions; inside maps and lists it has its place.
func TestForeign_Null(t *testing.T) {
	onLegacy(t, func(l legacy) {
		l.put("1", `"owner":{"S":"o"},"n":{"N":"7"},"v":{"NULL":true},"ttl":{"NULL":true},
			"l":{"L":[{"NULL":true},{"N":"1"}]},"m":{"M":{"x":{"NULL":true},"y":{"L":[{"NULL":true}]}}}`)
		want := itemAt("1", attribute("owner", store.S("o")), number("n", 7), attribute("l", store.L(store.Null(), store.Int(1))),
			attribute("m", store.M(store.Item{attribute("x", store.Null()), attribute("y", store.L(store.Null()))})))
		l.get("1", want, nil)
		l.reads(want)

		l.put("1", `"v":{"NULL":true},"w":{"NULL":true}`)
		noV, noW := store.AttributeAbsent("v"), store.AttributeAbsent("w")
		l.commit(store.Check("t", at("1"), noV))
		l.commit(store.Check("t", at("1"), noV, noW), otherItem())
		l.commit(store.Update("t", at("1"), store.NewItem(number("v", 1)), nil, noV))
		err := l.s.Commit(l.Context(), store.Update("t", at("1"), nil, []string{"w"}, noV))
		if !errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknown) {
			l.Fatalf("Commit = %v, want ErrConflict", err)
		}
		l.commit(store.Put("t", itemAt("1", number("v", 1)), noW), otherItem())
		l.get("1", itemAt("1", number("v", 1)), nil)
	})
}

// TestForeign_Sets: a set, and a null in a map or list, is read, compared, copied and kept like any
// other value.
func TestForeign_Sets(t *testing.T) {
	onLegacy(t, func(l legacy) {
		owned := attribute("owner", store.S("o"))
		for text, v := range withSets {
			l.put("1", `"owner":{"S":"o"},"n":{"N":"7"},"v":`+text)
			whole := itemAt("1", owned, number("n", 7), attribute("v", v))
			l.get("1", whole, nil)
			l.reads(whole)
			for _, c := range []store.Condition{store.AttributeAbsent("v"), store.AttributeEquals("v", store.S("a")),
				store.AttributeEquals("v", store.L(store.S("a"))), store.Absent()} {
				w := store.Update("t", at("1"), store.NewItem(number("n", 8)), nil, c)
				for i, err := range []error{l.s.Commit(l.Context(), w), l.s.Commit(l.Context(), otherItem(), w)} {
					conflict, ok := errors.AsType[*store.ConflictError](err)
					if want := (store.ConflictError{Write: i, Table: "t", Key: at("1"), Condition: c.String()}); !ok ||
						*conflict != want {
						l.Fatalf("Commit on %s = %#v, want %#v", text, err, want)
					}
				}
			}
			same := store.AttributeEquals("v", v)
			l.commit(store.Update("t", at("1"), store.NewItem(number("n", 8)), nil, same))
			whole.Set("n", store.Int(8))
			l.get("1", whole, nil)
			l.commit(store.Put("t", whole, same))
			l.commit(store.Update("t", at("1"), nil, []string{"n"}, same), otherItem())
			whole.Remove("n")
			l.get("1", whole, nil)
		}
		l.put("1", `"ttl":{"N":"1"},"v":{"SS":["a"]}`)
		l.get("1", nil, store.ErrNotFound)
		l.commit(store.Check("t", at("1"), store.Absent()))
	})
}

// TestForeign_Rewrite: what another program has written since the item was read stays.
func TestForeign_Rewrite(t *testing.T) {
	onLegacy(t, func(l legacy) {
		for _, others := range [][]store.Write{nil, {otherItem()}} {
			was := itemAt("1", number("n", 7), attribute("gone", store.S("x")), attribute("same", store.S("y")))
			l.commit(store.Put("t", was))
			l.put("1", `"n":{"N":"7"},"gone":{"S":"x"},"same":{"S":"theirs"},"tags":{"SS":["vip"]},"null":{"NULL":true}`)
			now := itemAt("1", number("n", 8), attribute("new", store.S("z")), attribute("same", store.S("y")))
			l.commit(append(others, store.Rewrite("t", was, now, store.AttributeEquals("n", store.Int(7))))...)
			l.get("1", itemAt("1", number("n", 8), attribute("new", store.S("z")), attribute("same", store.S("theirs")),
				attribute("tags", setOf(store.S("vip")))), nil)
			l.commit(store.Delete("t", at("1")))
			err := l.s.Commit(l.Context(), append(others, store.Rewrite("t", was, now))...)
			if !errors.Is(err, store.ErrConflict) {
				l.Fatalf("an item that is gone: %v", err)
			}
		}
	})
}

// TestForeign_OtherForms: values that another program writes in another form are the same.
func TestForeign_OtherForms(t *testing.T) {
	onLegacy(t, func(l legacy) {
		l.put("1", `"n1":{"N":"1.50e1"},"n2":{"N":"-0.0"},"n3":{"N":"00012"},
			"n4":{"N":"12345678901234567890123456789012345678"},"n5":{"N":"1E-130"},
			"s":{"S":""},"b":{"B":""},"c":{"B":"AP8="},"l":{"L":[]},"m":{"M":{}},
			"a.b":{"BOOL":false},"#":{"M":{"x":{"L":[{"BOOL":true}]}}}`)
		want := itemAt("1", number("n1", 15), number("n2", 0), number("n3", 12),
			attribute("n4", decimal(l.T, "12345678901234567890123456789012345678")),
			attribute("n5", decimal(l.T, "1E-130")),
			attribute("s", store.S("")), attribute("b", store.B(nil)), attribute("c", store.B([]byte{0, 0xFF})),
			attribute("l", store.L()), attribute("m", store.M(nil)), attribute("a.b", store.Bool(false)),
			attribute("#", store.M(store.NewItem(attribute("x", store.L(store.Bool(true)))))))
		l.get("1", want, nil)
		var same []store.Condition
		for _, a := range want {
			same = append(same, store.AttributeEquals(a.Name, a.Value))
		}
		l.commit(store.Check("t", at("1"), same...))
		l.commit(store.Update("t", at("1"), store.NewItem(number("n6", 1)), nil, same...))
	})
}

func decimal(t *testing.T, text string) store.Value {
	t.Helper()
	v, err := store.Number(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
