package storetest

import (
	"errors"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// notUTF8 are byte strings that are not UTF-8.
func notUTF8() []string {
	return []string{"\x80", "\xc2", "\xff", "a\x00\xff", "\xed\xa0\x80", "\xf4\x90\x80\x80"}
}

// testText puts invalid UTF-8 into every place of a string.
func testText(t *testing.T, open Opener) {
	key := store.Key{PK: "a", SK: "1"}
	play(t, open,
		scenario{"writes", func(r *rig) {
			r.put(item("a", "1"))
			for _, bad := range notUTF8() {
				for _, w := range []store.Write{
					store.Put(ledger, item(bad, "1")), store.Put(ledger, item("a", bad)),
					store.Put(ledger, item("b", "1", text("note", bad))),
					store.Put(ledger, item("b", "1", text("state", bad))), store.Put(ledger, item("b", "1", text(bad, "x"))),
					store.Put(ledger, item("b", "1", attribute("l", store.L(store.S(bad))))),
					store.Put(ledger, item("b", "1", attribute("m", store.M(store.NewItem(text(bad, "x")))))),
					store.Update(ledger, key, store.NewItem(text("note", bad)), nil),
					store.Update(ledger, key, store.NewItem(text(bad, "x")), nil),
					store.Update(ledger, key, nil, []string{bad}), store.Update(ledger, store.Key{PK: "a", SK: bad}, nil, nil),
					store.Delete(ledger, store.Key{PK: bad, SK: "1"}), store.Check(ledger, store.Key{PK: bad, SK: "1"},
						store.Absent()),
					store.Check(ledger, key, store.AttributeAbsent(bad)),
					store.Check(ledger, key, store.AttributeEquals(bad, store.Int(1))),
					store.Check(ledger, key, store.AttributeEquals("note", store.S(bad))),
				} {
					r.refuse(store.ErrInvalid, w)
				}
				r.commit(store.Put(ledger, item("a", "2", attribute("bytes", store.B([]byte(bad))))))
				r.want(ledger, item("a", "2", attribute("bytes", store.B([]byte(bad)))))
			}
			r.wantSorts(store.Query{Table: ledger, Partition: "a"}, "1", "2")
			r.wantSorts(store.Query{Table: ledger, Partition: "b"})
		}},
		scenario{"reads", func(r *rig) {
			r.put(item("a", "1"))
			for _, bad := range notUTF8() {
				for _, k := range []store.Key{{PK: bad, SK: "1"}, {PK: "a", SK: bad}} {
					if it, err := r.Get(r.Context(), ledger, k); !errors.Is(err, store.ErrInvalid) || it != nil {
						r.Fatalf("Get(%q) = %s, %v; want ErrInvalid", k, show(it), err)
					}
				}
				for _, q := range []store.Query{
					{Partition: bad}, {Partition: "a", Prefix: bad}, {Partition: "a", From: bad}, {Partition: "a", To: bad},
					{Partition: "a", After: store.Cursor{Key: store.Key{PK: "a", SK: bad}}}, {Index: byState, Partition: bad},
					{Index: byState, Partition: "a", After: store.Cursor{Key: key, Index: store.Key{PK: "a", SK: bad}}},
				} {
					q.Table = ledger
					r.refuseRead(store.ErrInvalid, r.Query(r.Context(), q))
				}
				r.refuseRead(store.ErrInvalid,
					r.Scan(r.Context(), store.Scan{Table: ledger, After: store.Cursor{Key: store.Key{PK: bad, SK: "1"}}}))
			}
		}},
	)
}
