package pebblestore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/duesday/duesday/internal/store"
)

// A layout is the stored form of a table: its id, and for every index the attributes in the key of
// a row.
type layout struct {
	*store.Table
	id      byte
	names   *Dictionary
	indexes []indexLayout
}

type indexLayout struct {
	*store.Index
	number byte
	key    []keyPart // attributes of an index key, sorted by name, each once
}

// A keyPart says which component of an index key holds an attribute.
type keyPart struct {
	name      string
	component int // 0: index partition, 1: index sort, 2: base partition, 3: base sort
}

func newLayout(t *store.Table, id byte, names *Dictionary) *layout {
	l := &layout{Table: t, id: id, names: names}
	for i := range t.Indexes {
		x := indexLayout{Index: &t.Indexes[i], number: byte(i + 1)}
		for c, name := range [4]string{x.PartitionKey, x.SortKey, t.PartitionKey, t.SortKey} {
			if name != "" && !x.holds(name) {
				x.key = append(x.key, keyPart{name, c})
			}
		}
		slices.SortFunc(x.key, func(a, b keyPart) int { return strings.Compare(a.name, b.name) })
		l.indexes = append(l.indexes, x)
	}
	return l
}

func (x *indexLayout) holds(name string) bool {
	return slices.ContainsFunc(x.key, func(p keyPart) bool { return p.name == name })
}

// A row is one key and value of the database.
type row struct{ key, value []byte }

// Marks are an item's rows beside its base row: one for each of the indexes, and in a table with
// expiry its TTL entry. A row that the item does not have has a nil key.
type marks []row

func (l *layout) key(k store.Key) []byte {
	return appendBaseKey(make([]byte, 0, 4+len(k.PK)+len(k.SK)), l.id, k)
}

// encoding has rooms for the encodings of items, whose length is known at their end.
var encoding = sync.Pool{New: func() any { return new([]byte) }}

func (l *layout) value(it store.Item) []byte {
	room := encoding.Get().(*[]byte)
	*room = l.names.encode((*room)[:0], it, func(name string) bool { return !l.IsKey(name) })
	value := bytes.Clone(*room)
	if cap(*room) <= 64<<10 {
		encoding.Put(room)
	}
	return value
}

// markBytes is about the length of one of the marks, without the item's key.
const markBytes = 100

func (l *layout) marks(k store.Key, it store.Item) marks {
	if len(l.indexes) == 0 && l.TTL == "" {
		return nil
	}
	m := make(marks, len(l.indexes), len(l.indexes)+1)
	b := make([]byte, 0, cap(m)*(markBytes+len(k.PK)+len(k.SK))) // of all rows
	end := func(begin int) []byte { return b[begin:len(b):len(b)] }
	for i := range l.indexes {
		x, r := &l.indexes[i], &m[i]
		if ik, ok := x.KeyOf(it); ok {
			begin := len(b)
			b = appendIndexKey(b, l.id, x.number, ik, k)
			r.key, begin = end(begin), len(b)
			b = l.names.encode(b, it, func(name string) bool { return l.Projects(x.Index, name) && !x.holds(name) })
			r.value = end(begin)
		}
	}
	if l.TTL != "" {
		var r row
		if at, ok := it.Get(l.TTL).Int64(); ok && at > 0 {
			begin := len(b)
			b = appendExpiryKey(b, l.id, at, k)
			r.key = end(begin)
		}
		m = append(m, r)
	}
	return m
}

// decodeBase returns the item of a base row. tail is the key less its first two
// bytes. pk is the partition key when the caller knows it, else "".
func (l *layout) decodeBase(tail, value []byte, pk string) (store.Item, error) {
	component, sk, plain, err := cutComponent(tail)
	if err != nil {
		return nil, err
	}
	var buf [2]keyAttribute
	keys := append(buf[:0], keyAttribute{name: l.PartitionKey, s: pk, raw: component, escaped: !plain})
	if l.SortKey != "" {
		keys = append(keys, keyAttribute{name: l.SortKey, raw: sk})
		if l.SortKey < l.PartitionKey {
			keys[0], keys[1] = keys[1], keys[0]
		}
	}
	return l.names.decode(value, keys)
}

// decodeIndex returns the item of an index row; tail and pk as for decodeBase, of
// the index's partition.
func (l *layout) decodeIndex(x *indexLayout, tail, value []byte, pk string) (store.Item, error) {
	var parts [4]keyAttribute
	var err error
	rest, plain := tail, true
	for i := range 3 {
		if parts[i].raw, rest, plain, err = cutComponent(rest); err != nil {
			return nil, err
		}
		parts[i].escaped = !plain
	}
	parts[0].s = pk
	parts[3].raw = rest
	var buf [4]keyAttribute
	keys := buf[:0]
	for _, p := range x.key {
		k := parts[p.component]
		k.name = p.name
		keys = append(keys, k)
	}
	return l.names.decode(value, keys)
}

// Kinds of keys, the second byte. Those between are indexes, numbered from 1.
const (
	kindBase   = 0x00
	kindExpiry = 0xFF
	expiryHead = 2 + 8 // bytes of a TTL entry's key before those of the item's: table, kind, seconds

	maxTables  = 0xFF // ids 1 to 255; 0 begins the store's own keys
	maxIndexes = 0xFE
)

// Every component of a key but the last is escaped: 00 becomes 00 FF, and 00 01 ends the
// component. The end is less than every continuation of the component, so "a" stays before
// "a\x00" and both before "ab".
const (
	escape   = 0x00
	escaped0 = 0xFF
	ended    = 0x01
	afterEnd = 0x02 // greater than the end, less than any continuation
)

var (
	// metaKey holds the store's description of itself; no table has that id.
	metaKey = []byte("\x00meta")

	errKey = fmt.Errorf("%w: malformed key", store.ErrFormat)
)

// appendEscaped appends s escaped, without an end.
func appendEscaped(dst []byte, s string) []byte {
	return append(dst, strings.ReplaceAll(s, "\x00", "\x00\xFF")...)
}

func appendComponent(dst []byte, s string) []byte {
	return append(appendEscaped(dst, s), escape, ended)
}

// cutComponent splits an escaped component from the front of key. The component is
// returned as it is stored; plain says that it contains no escapes.
func cutComponent(key []byte) (component, rest []byte, plain bool, err error) {
	plain = true
	for i := 0; ; i += 2 {
		n := bytes.IndexByte(key[i:], escape)
		if n < 0 || i+n+1 >= len(key) {
			return nil, nil, false, errKey
		}
		i += n
		switch key[i+1] {
		case ended:
			return key[:i], key[i+2:], plain, nil
		case escaped0:
			plain = false
		default:
			return nil, nil, false, errKey
		}
	}
}

func unescaped(component []byte) string {
	return strings.ReplaceAll(string(component), "\x00\xFF", "\x00")
}

// appendBaseKey appends the key of an item, whose first byte is the table's id.
func appendBaseKey(dst []byte, table byte, k store.Key) []byte {
	return appendKeyTail(append(dst, table, kindBase), k)
}

func appendKeyTail(dst []byte, k store.Key) []byte {
	return append(appendComponent(dst, k.PK), k.SK...)
}

func appendIndexKey(dst []byte, table, index byte, ik, k store.Key) []byte {
	dst = appendComponent(append(dst, table, index), ik.PK)
	return appendKeyTail(appendComponent(dst, ik.SK), k)
}

// appendExpiryKey appends the key of a TTL entry; expiry is positive.
func appendExpiryKey(dst []byte, table byte, expiry int64, k store.Key) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, table, kindExpiry), uint64(expiry))
	return appendKeyTail(dst, k)
}

// decodeKeyTail is the reverse of appendKeyTail.
func decodeKeyTail(tail []byte) (store.Key, error) {
	pk, sk, _, err := cutComponent(tail)
	if err != nil {
		return store.Key{}, err
	}
	return store.Key{PK: unescaped(pk), SK: string(sk)}, nil
}

// successor returns the least key above every key with the prefix; it changes prefix. Prefixes
// begin with a table's id and a kind. Only the expiry keys of table 255 can be FF throughout,
// and nil (no bound) is right for them.
func successor(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xFF {
			prefix[i]++
			return prefix[:i+1]
		}
	}
	return nil
}
