package memstore

import (
	"slices"
	"sort"
	"strings"

	"github.com/duesday/duesday/internal/store"
)

// A row is an item at its place: the base key alone in a table, index key and base
// key in an index.
type row struct {
	at   store.Cursor
	item store.Item
}

// compare orders places as the contract wants rows ordered; in a table the index
// keys are empty and do not count.
func compare(a, b store.Cursor) int {
	if c := compareKeys(a.Index, b.Index); c != 0 {
		return c
	}
	return compareKeys(a.Key, b.Key)
}

func compareKeys(a, b store.Key) int {
	if c := strings.Compare(a.PK, b.PK); c != 0 {
		return c
	}
	return strings.Compare(a.SK, b.SK)
}

// rows is a sorted list of rows in blocks, so that an insertion moves one block and
// not a hundred thousand rows, and a store of three items is one small slice. No
// block is empty.
type rows struct{ blocks [][]row }

const blockRows = 256

// A position is a row's place in rows: its block, and its number within.
type position struct{ block, i int }

// seek returns the position of the first row whose place passes reached, which has
// to be false up to some row and true from there on, or the end.
func (r *rows) seek(reached func(store.Cursor) bool) position {
	b := sort.Search(len(r.blocks), func(b int) bool {
		last := r.blocks[b][len(r.blocks[b])-1]
		return reached(last.at)
	})
	if b == len(r.blocks) {
		return position{b, 0}
	}
	return position{b, sort.Search(len(r.blocks[b]), func(i int) bool { return reached(r.blocks[b][i].at) })}
}

// find returns the position of the place, or that where it would be inserted.
func (r *rows) find(at store.Cursor) (position, bool) {
	p := r.seek(func(c store.Cursor) bool { return compare(c, at) >= 0 })
	return p, p.block < len(r.blocks) && r.blocks[p.block][p.i].at == at
}

func (r *rows) get(at store.Cursor) store.Item {
	if p, ok := r.find(at); ok {
		return r.blocks[p.block][p.i].item
	}
	return nil
}

func (r *rows) put(at store.Cursor, it store.Item) {
	p, ok := r.find(at)
	switch {
	case ok:
		r.blocks[p.block][p.i].item = it
		return
	case p.block == len(r.blocks) && (p.block == 0 || len(r.blocks[p.block-1]) >= blockRows):
		r.blocks = append(r.blocks, []row{{at, it}})
		return
	case p.block == len(r.blocks):
		p.block--
		p.i = len(r.blocks[p.block])
	}
	b := slices.Insert(r.blocks[p.block], p.i, row{at, it})
	r.blocks[p.block] = b
	if len(b) > blockRows {
		half := len(b) / 2
		r.blocks[p.block] = slices.Clone(b[:half])
		r.blocks = slices.Insert(r.blocks, p.block+1, slices.Clone(b[half:]))
	}
}

func (r *rows) remove(at store.Cursor) {
	p, ok := r.find(at)
	if !ok {
		return
	}
	b := slices.Delete(r.blocks[p.block], p.i, p.i+1)
	r.blocks[p.block] = b
	if len(b) == 0 {
		r.blocks = slices.Delete(r.blocks, p.block, p.block+1)
	}
}

// next steps on from p; ok is false at the end.
func (r *rows) next(p position) (at row, then position, ok bool) {
	if p.block == len(r.blocks) {
		return row{}, p, false
	}
	at = r.blocks[p.block][p.i]
	if p.i++; p.i == len(r.blocks[p.block]) {
		p = position{p.block + 1, 0}
	}
	return at, p, true
}

// previous steps back from p, to the row before it; ok is false at the beginning.
func (r *rows) previous(p position) (at row, then position, ok bool) {
	if p.i == 0 {
		if p.block == 0 {
			return row{}, p, false
		}
		p = position{p.block - 1, len(r.blocks[p.block-1])}
	}
	p.i--
	return r.blocks[p.block][p.i], p, true
}

func (r *rows) clone() rows {
	blocks := make([][]row, len(r.blocks))
	for i, b := range r.blocks {
		blocks[i] = slices.Clone(b)
	}
	return rows{blocks}
}
