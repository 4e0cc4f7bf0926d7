package metering

import (
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/capacity"
	"github.com/duesday/duesday/internal/store"
)

// PageBytes is the most that one query or scan request reads of items.
const PageBytes = 1 << 20

// Units are the consumption of calls.
type Units = capacity.Units

// A Consistency is the promise of a read, as its cost.
type Consistency float64

// The consistencies, in read units for each 4 KB.
const (
	Eventual Consistency = 0.5
	Strong   Consistency = 1
)

// ReadUnits returns the units of one read request: a Get of an item, or one page of a Query
// or Scan, whose items are added up before rounding. Nothing found costs as much as the
// smallest item; DynamoDB Local asks nothing for an empty page.
func ReadUnits(bytes int, c Consistency) float64 {
	return float64(units(bytes, capacity.ReadUnitBytes)) * float64(c)
}

// WriteUnits returns the units of a put, update or delete in the table: the larger of the item's
// sizes before and after counts; 0 stands for no item. A write with a failed condition consumes
// the same; then after is the size of the refused item.
func WriteUnits(before, after int) float64 {
	return float64(units(max(before, after), capacity.WriteUnitBytes))
}

// TransactionUnits returns a write's units in the table in a transaction. Index rows are not doubled.
func TransactionUnits(before, after int) float64 { return 2 * WriteUnits(before, after) }

// A RowWrite is one write to an index, caused by a write of an item.
type RowWrite struct {
	Partition string // the index partition it goes to
	Bytes     int    // the larger size of the row
	Units     float64
}

// IndexWrites returns the writes in index x of table t when item before becomes after, in a
// transaction or not; nil stands for no item. A new or a deleted row is one write. A row with a
// new key is two writes, each of its own size. A row changed in its place is one write of the
// larger size. An equal row is none.
func IndexWrites(t *store.Table, x *store.Index, before, after store.Item) []RowWrite {
	var writes []RowWrite
	write := func(k store.Key, bytes int) {
		writes = append(writes, RowWrite{Partition: k.PK, Bytes: bytes, Units: WriteUnits(bytes, 0)})
	}
	was, wasIn := x.KeyOf(before)
	is, isIn := x.KeyOf(after)
	rowBefore, rowAfter := t.Project(x, before), t.Project(x, after)
	if wasIn && isIn && was == is {
		if !rowBefore.Equal(rowAfter) {
			write(is, max(ItemBytes(rowBefore), ItemBytes(rowAfter)))
		}
		return writes
	}
	if wasIn {
		write(was, ItemBytes(rowBefore))
	}
	if isIn {
		write(is, ItemBytes(rowAfter))
	}
	return writes
}

// units rounds up; nothing rounds up to one.
func units(bytes, size int) int { return max(1, (bytes+size-1)/size) }

// ItemBytes returns the size of an item or of an index row, in bytes, as units are computed
// from it: the names and values of its attributes. It differs from store.Size, which is an
// engine's limit and may be generous, in numbers alone. The hundred bytes of overhead of an
// index row are storage, and consume no units.
func ItemBytes(it store.Item) int {
	n := 0
	for i := range it {
		n += len(it[i].Name) + valueBytes(it[i].Value)
	}
	return n
}

func valueBytes(v store.Value) int {
	switch v.Kind() {
	case store.KindString:
		return len(v.Str())
	case store.KindBinary:
		return len(v.Raw())
	case store.KindNumber:
		return numberBytes(v.Num())
	case store.KindMap:
		return 3 + len(v.Map()) + ItemBytes(v.Map())
	case store.KindSet:
		n := 0
		for _, e := range v.Elements() {
			n += valueBytes(e)
		}
		return n
	case store.KindList:
		n := 3 + len(v.List())
		for _, e := range v.List() {
			n += valueBytes(e)
		}
		return n
	}
	return 1 // a boolean or null
}

// numberBytes counts one byte, one for a sign, and one for every two digits, paired from the decimal
// point. It leaves out pairs of zeros at either end: 1000 and 0.01 have one pair, 1.5 has two.
func numberBytes(text string) int {
	text, negative := strings.CutPrefix(text, "-")
	mantissa, e, _ := strings.Cut(text, "E")
	exponent, _ := strconv.Atoi(e) // none is 0
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if (len(whole)+exponent)%2 != 0 { // the point is in the middle of a pair
		digits = "0" + digits
	}
	if len(digits)%2 != 0 {
		digits += "0"
	}
	first, last := len(digits), 0
	for i := 0; i < len(digits); i += 2 {
		if digits[i:i+2] != "00" {
			first, last = min(first, i), i+2
		}
	}
	if last == 0 {
		return 1 // zero
	}
	n := 1 + (last-first)/2
	if negative {
		n++
	}
	return n
}
