package storetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// testAtomicity puts one failing write at every place of a commit of every
// operation, in two tables and with index rows, and checks that nothing is written.
func testAtomicity(t *testing.T, open Opener) {
	indexed := []store.Attribute{text("state", "open"), text("due", "2027"), text("owner", "o")}
	good := []store.Write{
		store.Put(ledger, item("new", "1", indexed...)),
		store.Put(ledger, item("a", "1", text("note", "replaced"))),
		store.Update(ledger, store.Key{PK: "a", SK: "2"}, store.NewItem(text("due", "2028")), []string{"owner"}),
		store.Delete(ledger, store.Key{PK: "a", SK: "3"}),
		store.Check(ledger, store.Key{PK: "a", SK: "4"}),
		store.Put(plain, store.NewItem(text("id", "new"), text("kind", "k"), text("name", "n"))),
		store.Delete(plain, store.Key{PK: "p"}),
	}
	prepare := func(r *rig) {
		for _, sk := range []string{"1", "2", "3", "4"} {
			r.put(item("a", sk, indexed...))
		}
		r.put(item("big", "1", text("blob", strings.Repeat("x", store.MaxItemBytes-100))))
		r.commit(store.Put(plain, store.NewItem(text("id", "p"), text("kind", "k"), text("name", "m"))))
	}
	bad := []struct {
		name  string
		write store.Write
		want  error
	}{
		{"put", store.Put(ledger, item("a", "4"), store.Absent()), store.ErrConflict},
		{"update", store.Update(ledger, store.Key{PK: "z", SK: "1"}, store.NewItem(text("note", "n")), nil),
			store.ErrConflict},
		{"delete", store.Delete(plain, store.Key{PK: "z"}), store.ErrConflict},
		{"check", store.Check(ledger, store.Key{PK: "z", SK: "1"}), store.ErrConflict},
		{"condition", store.Update(ledger, store.Key{PK: "big", SK: "1"}, store.NewItem(text("note", "n")), nil,
			store.AttributeAbsent("blob")), store.ErrConflict},
		{"update that grows too large", store.Update(ledger, store.Key{PK: "big", SK: "1"},
			store.NewItem(text("note", strings.Repeat("n", 200))), nil), store.ErrTooLarge},
		{"invalid", store.Put(ledger, item("z", "")), store.ErrInvalid},
	}
	for _, b := range bad {
		t.Run("one failing "+b.name, func(t *testing.T) {
			r := setUp(t, open)
			prepare(r)
			for i := 0; i <= len(good); i += r.rounds(1, 4) {
				writes := slices.Insert(slices.Clone(good), i, b.write)
				if b.name == "put" {
					// it is on the same key
					writes = slices.DeleteFunc(writes, func(w store.Write) bool { return w.Op == store.OpCheck })
				}
				r.unchanged(func() { r.refuse(b.want, writes...) })
			}
			r.commit(good...) // and they were good
		})
	}
	t.Run("all or nothing means all", func(t *testing.T) {
		r := setUp(t, open)
		prepare(r)
		r.commit(good...)
		r.want(ledger, item("new", "1", indexed...))
		r.want(ledger, item("a", "1", text("note", "replaced")))
		r.want(ledger, item("a", "2", text("state", "open"), text("due", "2028")))
		r.want(ledger, item("a", "4", indexed...))
		r.wantNone(ledger, store.Key{PK: "a", SK: "3"})
		r.wantNone(plain, store.Key{PK: "p"})
		r.wantSorts(store.Query{Table: plain, Index: byName, Partition: "k"}, "new")
		r.wantSorts(store.Query{Table: ledger, Index: byState, Partition: "open"}, "4", "1", "2")
	})
}
