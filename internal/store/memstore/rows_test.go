package memstore

import (
	"iter"
	"slices"
	"strconv"
	"testing"

	"github.com/RaduBerinde/btreemap"
	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/store"
)

func at(n int) store.Cursor { return store.Cursor{Key: store.Key{PK: strconv.Itoa(n)}} }

func places(rows iter.Seq2[store.Cursor, store.Item]) (found []store.Cursor) {
	for place := range rows {
		found = append(found, place)
	}
	return found
}

// TestRows compares the list with a map over enough rows for many nodes to be split
// and emptied.
func TestRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRows()
		model := map[store.Cursor]int64{}
		for round := range int64(rapid.IntRange(1, 6).Draw(t, "rounds")) {
			from := rapid.IntRange(0, 3000).Draw(t, "from")
			to := from + rapid.IntRange(0, 1500).Draw(t, "count")
			step := rapid.SampledFrom([]int{1, 7, 1009}).Draw(t, "step") // 1009: about at random
			remove := round > 0 && rapid.Bool().Draw(t, "remove")
			for i := from; i < to; i++ {
				place := at(i * step % 4001)
				if remove {
					r.Delete(place)
					delete(model, place)
				} else {
					r.ReplaceOrInsert(place, store.NewItem(store.Attribute{Name: "n", Value: store.Int(round)}))
					model[place] = round
				}
			}
		}
		var want []store.Cursor
		for place, n := range model {
			want = append(want, place)
			if _, it, _ := r.Get(place); it == nil || it.Int("n") != n {
				t.Fatalf("%v is %v, want %d", place, it, n)
			}
		}
		slices.SortFunc(want, compare)
		if got := places(r.Ascend(btreemap.Min[store.Cursor](), btreemap.Max[store.Cursor]())); !slices.Equal(got, want) {
			t.Fatalf("forwards %v, want %v", got, want)
		}
		slices.Reverse(want)
		if got := places(r.Descend(btreemap.Max[store.Cursor](), btreemap.Min[store.Cursor]())); !slices.Equal(got, want) {
			t.Fatalf("backwards %v, want %v", got, want)
		}
		if r.Len() != len(want) {
			t.Fatalf("%d rows, want %d", r.Len(), len(want))
		}
	})
}
