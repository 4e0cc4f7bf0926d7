package capacity

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// An Op is a kind of call, or of write in a commit.
type Op string

// The kinds.
const (
	OpGet    Op = "get"
	OpQuery  Op = "query"
	OpScan   Op = "scan"
	OpPut    Op = "put"
	OpUpdate Op = "update"
	OpDelete Op = "delete"
	OpCheck  Op = "check"
)

// A Line is a kind of consumption.
type Line struct {
	Op          Op
	Table       string
	Index       string // "" for the table itself
	Item        string // the kind of the item, by Options.Name; of a query, of its partition
	Transaction bool   // one of several writes: the item is written twice, an index row is not
	Failed      bool   // a condition failed: nothing was written, and it was paid for
}

// A Count is the sum of the calls of one Line.
type Count struct {
	Times int   // single writes, index rows or requests
	Bytes int64 // of all items counted, the larger side of each write
	Units Units
}

func (c Count) plus(d Count) Count {
	return Count{c.Times + d.Times, c.Bytes + d.Bytes, c.Units.Plus(d.Units)}
}

// A Usage is the consumption, line by line.
type Usage map[Line]Count

// Since returns the consumption between the earlier snapshot and this one.
func (u Usage) Since(earlier Usage) Usage {
	d := make(Usage)
	for l, c := range u {
		e := earlier[l]
		c = Count{Times: c.Times - e.Times, Bytes: c.Bytes - e.Bytes, Units: c.Units.Minus(e.Units)}
		if c != (Count{}) {
			d[l] = c
		}
	}
	return d
}

// Plus returns the sum, line by line.
func (u Usage) Plus(v Usage) Usage {
	sum := maps.Clone(u)
	for l, n := range v {
		sum[l] = sum[l].plus(n)
	}
	return sum
}

// Sorted yields the lines by table, item, index and kind.
func (u Usage) Sorted() iter.Seq2[Line, Count] {
	lines := slices.SortedFunc(maps.Keys(u), func(a, b Line) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Item, b.Item), cmp.Compare(a.Index, b.Index),
			cmp.Compare(a.Op, b.Op), flag(a.Transaction)-flag(b.Transaction), flag(a.Failed)-flag(b.Failed))
	})
	return func(yield func(Line, Count) bool) {
		for _, l := range lines {
			if !yield(l, u[l]) {
				return
			}
		}
	}
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
