package metering

import (
	"cmp"
	"fmt"
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
	Item        string // the kind of the item, by Options.Name; of a query, of its partition; of a scan, none
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
		c = Count{Times: c.Times - e.Times, Bytes: c.Bytes - e.Bytes, Units: c.Units.Plus(e.Units.Times(-1))}
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

// Sorted returns the lines by table, item, index and kind.
func (u Usage) Sorted() []Line {
	place := func(l Line) string {
		return fmt.Sprintf("%s\x00%s\x00%s\x00%s\x00%t %t", l.Table, l.Item, l.Index, l.Op, l.Transaction, l.Failed)
	}
	return slices.SortedFunc(maps.Keys(u), func(a, b Line) int { return cmp.Compare(place(a), place(b)) })
}
