package memstore

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/store"
)

func at(n int) store.Cursor { return store.Cursor{Key: store.Key{PK: strconv.Itoa(n)}} }

func (r *rows) forwards() (found []store.Cursor) {
	for p := (position{}); ; {
		f, then, ok := r.next(p)
		if !ok {
			return found
		}
		p, found = then, append(found, f.at)
	}
}

func (r *rows) backwards() (found []store.Cursor) {
	for p := (position{block: len(r.blocks)}); ; {
		f, then, ok := r.previous(p)
		if !ok {
			return found
		}
		p, found = then, append(found, f.at)
	}
}

// TestRows compares the list with a map over enough rows for many blocks to be split
// and emptied.
func TestRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r rows
		model := map[store.Cursor]int64{}
		for round := range int64(rapid.IntRange(1, 6).Draw(t, "rounds")) {
			from := rapid.IntRange(0, 3000).Draw(t, "from")
			to := from + rapid.IntRange(0, 1500).Draw(t, "count")
			step := rapid.SampledFrom([]int{1, 7, 1009}).Draw(t, "step") // 1009: about at random
			remove := round > 0 && rapid.Bool().Draw(t, "remove")
			for i := from; i < to; i++ {
				place := at(i * step % 4001)
				if remove {
					r.remove(place)
					delete(model, place)
				} else {
					r.put(place, store.NewItem(store.Attribute{Name: "n", Value: store.Int(round)}))
					model[place] = round
				}
			}
		}
		var want []store.Cursor
		for place, n := range model {
			want = append(want, place)
			if it := r.get(place); it == nil || it.Int("n") != n {
				t.Fatalf("%v is %v, want %d", place, it, n)
			}
		}
		slices.SortFunc(want, compare)
		if got := r.forwards(); !slices.Equal(got, want) {
			t.Fatalf("forwards %v, want %v", got, want)
		}
		slices.Reverse(want)
		if got := r.backwards(); !slices.Equal(got, want) {
			t.Fatalf("backwards %v, want %v", got, want)
		}
		for i, b := range r.blocks {
			if len(b) == 0 || len(b) > blockRows {
				t.Fatalf("block %d has %d rows", i, len(b))
			}
		}
	})
}
