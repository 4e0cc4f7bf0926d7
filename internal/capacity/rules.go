package capacity

import (
	"fmt"

	"github.com/duesday/duesday/internal/store"
)

// The sizes and limits that the rules speak of.
const (
	WriteUnitBytes  = 1 << 10 // of one write unit
	ReadUnitBytes   = 4 << 10 // of one strongly consistent read unit
	PageBytes       = 1 << 20 // at most, of items read by one query or scan request
	PartitionWrites = 1000    // units a second that one partition takes, whatever the table has
	PartitionReads  = 3000
)

// Units are what calls consume. Write units are whole; eventually consistent reads come in
// halves.
type Units struct {
	Read  float64 `json:"read"`
	Write float64 `json:"write"`
}

// Plus returns the sum.
func (u Units) Plus(v Units) Units { return Units{u.Read + v.Read, u.Write + v.Write} }

// Minus returns the difference.
func (u Units) Minus(v Units) Units { return Units{u.Read - v.Read, u.Write - v.Write} }

// Times returns the units of n such calls.
func (u Units) Times(n float64) Units { return Units{u.Read * n, u.Write * n} }

func (u Units) String() string { return fmt.Sprintf("%g read, %g write", u.Read, u.Write) }

// A Consistency says what a read promises, and so what it costs.
type Consistency float64

// The consistencies, in read units for each 4 KB.
const (
	Eventual      Consistency = 0.5
	Strong        Consistency = 1
	Transactional Consistency = 2
)

// ReadUnits returns the units of one read request: a Get of an item, or one page of a Query
// or Scan, whose items are added up before rounding. Nothing found costs as much as the
// smallest item; DynamoDB Local asks nothing for an empty page.
func ReadUnits(bytes int, c Consistency) float64 {
	return float64(units(bytes, ReadUnitBytes)) * float64(c)
}

// WriteUnits returns the units that a put, update or delete consumes in the table: the larger
// of the item's sizes before and after counts; 0 stands for no item. A write whose condition
// fails consumes the same, after being what would have been written.
func WriteUnits(before, after int) float64 {
	return float64(units(max(before, after), WriteUnitBytes))
}

// TransactionUnits returns the units that a put, update, delete or check in a transaction
// consumes in the table. Index rows are not doubled: see the package comment.
func TransactionUnits(before, after int) float64 { return 2 * WriteUnits(before, after) }

// A RowWrite is one write to an index: what a write of an item leads to there.
type RowWrite struct {
	Partition string // the index partition it goes to
	Bytes     int    // the larger size of the row
	Units     float64
}

// IndexWrites returns the writes that turning the item before into after needs in index x of
// table t, in a transaction or not; nil stands for no item. A row that comes or goes is one
// write; one whose key changes two, each of its own size; a row that changes in its place one
// of the larger size; one that does not change none.
func IndexWrites(t *store.Table, x *store.Index, before, after store.Item) []RowWrite {
	was, wasIn := x.KeyOf(before)
	is, isIn := x.KeyOf(after)
	var rowBefore, rowAfter store.Item
	if wasIn {
		rowBefore = t.Project(x, before)
	}
	if isIn {
		rowAfter = t.Project(x, after)
	}
	one := func(partition string, bytes int) RowWrite {
		return RowWrite{Partition: partition, Bytes: bytes, Units: WriteUnits(bytes, 0)}
	}
	old, now := ItemBytes(rowBefore), ItemBytes(rowAfter)
	switch {
	case !wasIn && !isIn, wasIn && isIn && rowBefore.Equal(rowAfter):
		return nil
	case !wasIn:
		return []RowWrite{one(is.PK, now)}
	case !isIn:
		return []RowWrite{one(was.PK, old)}
	case was != is:
		return []RowWrite{one(was.PK, old), one(is.PK, now)}
	}
	return []RowWrite{one(is.PK, max(old, now))}
}

// units rounds up; nothing rounds up to one.
func units(bytes, size int) int { return max(1, (bytes+size-1)/size) }
