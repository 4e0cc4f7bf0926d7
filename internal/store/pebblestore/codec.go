package pebblestore

import (
	"encoding/binary"
	"fmt"

	"github.com/duesday/duesday/internal/store"
)

// An item on disk has a version byte, two hints and its attributes. The hints are sizes for the
// decoder's allocations: the number of attributes, and the bytes of text that the packed values
// unfold to. The attributes follow in the order of their names, to the end of the value. A name
// is its place in the store's dictionary plus one, or 0 and the name itself. A value is a tag
// and its content. Attributes in the key are left out.
//
// Fewer bytes save time: half of a payment's CPU is compaction, which moves bytes.
const codecVersion = 1

const headerBytes = 3

// Tags. Short strings and small numbers, which are most values, are part of the tag.
const (
	tagString  = 0x01 // length, bytes
	tagMillis  = 0x02 // "2006-01-02T15:04:05.000Z" as milliseconds
	tagDate    = 0x03 // "2006-01-02" as days
	tagSpaced  = 0x04 // "2006-01-02 15:04:05.000" as milliseconds
	tagInt     = 0x05
	tagNumber  = 0x06 // canonical text, for numbers beyond 64 bits
	tagFalse   = 0x07
	tagTrue    = 0x08
	tagBinary  = 0x09
	tagMap     = 0x0A // count, names and values
	tagList    = 0x0B // count, values
	tagNull    = 0x0C
	tagSet     = 0x0D // count, values
	tagSmall   = 0x40 // + 0 to 63
	tagShort   = 0x80 // + length 0 to 127, bytes
	maxSmall   = 63
	maxShort   = 127
	hintUnit   = 8 // bytes of unfolded text per unit of the hint
	maxInHint  = 0xFF
	maxInitial = 64 // elements allocated before any was read
)

// A Dictionary numbers attribute names, and packs items with them. Entries are only ever appended.
type Dictionary struct {
	names []string
	ids   map[string]uint64 // place plus one
}

// NewDictionary returns the dictionary of the names, or ErrInvalid if one is empty or listed twice.
func NewDictionary(names []string) (*Dictionary, error) {
	d := &Dictionary{names: names, ids: make(map[string]uint64, len(names))}
	for i, name := range names {
		if name == "" || d.ids[name] != 0 {
			return nil, fmt.Errorf("%w: attribute name %d (%q) is empty or listed twice", store.ErrInvalid, i, name)
		}
		d.ids[name] = uint64(i + 1)
	}
	return d, nil
}

// Append appends the packed item. The item must be one that a Commit takes.
func (d *Dictionary) Append(dst []byte, it store.Item) []byte { return d.encode(dst, it, nil) }

// Unpack returns the item that Append has packed. It accepts any bytes, and returns ErrFormat if
// they are not an item.
func (d *Dictionary) Unpack(b []byte) (store.Item, error) { return d.decode(b, nil) }

// encode appends the item's attributes whose names are to be kept; nil keeps all.
func (d *Dictionary) encode(dst []byte, it store.Item, keep func(name string) bool) []byte {
	e := encoder{Dictionary: d, dst: append(dst, codecVersion, 0, 0)}
	count := 0
	for i := range it {
		if keep == nil || keep(it[i].Name) {
			e.attribute(&it[i])
			count++
		}
	}
	header := e.dst[len(dst):]
	header[1] = byte(min(count, maxInHint))
	header[2] = byte(min((e.unfolded+hintUnit-1)/hintUnit, maxInHint))
	return e.dst
}

type encoder struct {
	*Dictionary
	dst      []byte
	unfolded int
}

func (e *encoder) attribute(a *store.Attribute) {
	if id := e.ids[a.Name]; id != 0 {
		e.dst = binary.AppendUvarint(e.dst, id)
	} else {
		e.dst = append(e.dst, 0)
		e.bytes(a.Name)
	}
	e.value(&a.Value)
}

func (e *encoder) bytes(s string) {
	e.dst = binary.AppendUvarint(e.dst, uint64(len(s)))
	e.dst = append(e.dst, s...)
}

func (e *encoder) value(v *store.Value) {
	switch v.Kind() {
	case store.KindString:
		e.text(v.Str())
	case store.KindNumber:
		e.number(v)
	case store.KindBool:
		if v.Bool() {
			e.dst = append(e.dst, tagTrue)
		} else {
			e.dst = append(e.dst, tagFalse)
		}
	case store.KindBinary:
		e.dst = append(e.dst, tagBinary)
		e.bytes(v.Raw())
	case store.KindMap:
		m := v.Map()
		e.dst = binary.AppendUvarint(append(e.dst, tagMap), uint64(len(m)))
		for i := range m {
			e.attribute(&m[i])
		}
	case store.KindList:
		e.list(tagList, v.List())
	case store.KindSet:
		e.list(tagSet, v.Elements())
	case store.KindNull:
		e.dst = append(e.dst, tagNull)
	}
}

func (e *encoder) list(tag byte, l []store.Value) {
	e.dst = binary.AppendUvarint(append(e.dst, tag), uint64(len(l)))
	for i := range l {
		e.value(&l[i])
	}
}

func (e *encoder) text(s string) {
	if tag, n, ok := packTime(s); ok {
		e.dst = binary.AppendVarint(append(e.dst, tag), n)
		e.unfolded += len(s)
		return
	}
	if len(s) <= maxShort {
		e.dst = append(append(e.dst, tagShort+byte(len(s))), s...)
		return
	}
	e.dst = append(e.dst, tagString)
	e.bytes(s)
}

func (e *encoder) number(v *store.Value) {
	n, ok := v.Int64()
	switch {
	case !ok:
		e.dst = append(e.dst, tagNumber)
		e.bytes(v.Num())
	case n >= 0 && n <= maxSmall:
		e.dst = append(e.dst, tagSmall+byte(n))
	default:
		e.dst = binary.AppendVarint(append(e.dst, tagInt), n)
	}
}
