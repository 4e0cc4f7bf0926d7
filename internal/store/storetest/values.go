package storetest

import (
	"math"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

// sampleValues returns values of every kind, no two of them equal.
func sampleValues(t *testing.T) []store.Value {
	t.Helper()
	n := func(text string) store.Value {
		v, err := store.Number(text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	deep := store.S("bottom")
	for range store.MaxDepth / 2 {
		deep = store.L(store.M(store.NewItem(attribute("in", deep))))
	}
	nines := strings.Repeat("9", store.MaxNumberDigits)
	return []store.Value{
		store.S(""), store.S("1"), store.S("true"), store.S("\x00"), store.S("a\x00b"), store.S("Zürich €\U0001F4B6"),
		store.S(strings.Repeat("x", 70_000)),
		store.Int(0), store.Int(1), store.Int(-1), store.Int(math.MaxInt64), store.Int(math.MinInt64),
		n(nines), n("-" + nines), n("0." + nines), n("1E-130"), n("-9.99E+125"), n("0.1"), n("9223372036854775808"),
		store.Bool(true), store.Bool(false),
		store.B(nil), store.B([]byte("1")), store.B([]byte{0}), store.B([]byte{0, 0}), store.B([]byte{0, 1, 0xFF, 0xFE, 0}),
		store.M(nil), store.M(store.NewItem(number("a", 1), text("b", "2"))),
		store.M(store.NewItem(text("a", "1"), text("b", "2"))),
		store.L(), store.L(store.L()), store.L(store.M(nil)), store.L(store.Int(1), store.S("1"), store.Bool(true),
			store.B([]byte{1})),
		store.L(store.S("1"), store.Int(1), store.Bool(true), store.B([]byte{1})), deep,
	}
}

func testValues(t *testing.T, open Opener) {
	play(t, open,
		scenario{"round trip", func(r *rig) {
			all := item("all", "1", text("owner", "o"))
			for i, v := range sampleValues(t) {
				it := item("a", "1", attribute("v", v), text("owner", "p"))
				r.put(it)
				r.want(ledger, it)
				r.commit(store.Update(ledger, store.Key{PK: "a", SK: "1"}, store.NewItem(attribute("w", v)), []string{"v"}))
				it.Set("w", v)
				it.Remove("v")
				r.want(ledger, it)
				all.Set("v"+strings.Repeat("i", i), v)
			}
			r.put(all)
			r.want(ledger, all)
			for _, q := range []store.Query{{Table: ledger, Partition: "all"}, {Table: ledger, Index: byOwner, Partition: "o"}} {
				if rows := r.rows(q); len(rows) != 1 || !rows[0].Equal(all) {
					r.Fatalf("Query(%+v) = %d rows: %v, want %s", q, len(rows), rows, show(all))
				}
			}
			r.commit(store.Delete(ledger, store.Key{PK: "a", SK: "1"}))
			if rows, err := collect(r.Scan(r.Context(), store.Scan{Table: ledger})); err != nil || len(rows) != 1 ||
				!rows[0].Equal(all) {
				r.Fatalf("Scan = %v, %v; want %s", rows, err, show(all))
			}
		}},
		scenario{"attribute names", func(r *rig) {
			it := item("a", "1")
			for _, name := range []string{" ", "\x00", "a.b", "a#b", "a:b", "size", "PK", "Sk", "é", strings.Repeat("n", 255)} {
				it.Set(name, store.S("v "+name))
			}
			it.Set("m", store.M(it.Clone()))
			r.put(it)
			r.want(ledger, it)
		}},
	)
}
