package pebblestore

import (
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/store"
)

// A layout is the stored form of a table: its id, and for every kind of row the attributes in
// the key and those in the value.
type layout struct {
	*store.Table
	id      byte
	names   *dictionary
	baseKey []string // attributes that a base key holds, sorted
	indexes []indexLayout
}

type indexLayout struct {
	*store.Index
	number  byte
	key     []keyPart // attributes of an index key, sorted by name, each once
	keyed   []string  // their names
	carried []string  // attributes of the value, sorted; nil for all outside the key
}

// A keyPart says which component of an index key holds an attribute.
type keyPart struct {
	name      string
	component int // 0: index partition, 1: index sort, 2: base partition, 3: base sort
}

func newLayout(t *store.Table, id byte, names *dictionary) *layout {
	l := &layout{Table: t, id: id, names: names, baseKey: sortedNames(t.PartitionKey, t.SortKey)}
	for i := range t.Indexes {
		l.indexes = append(l.indexes, newIndexLayout(t, &t.Indexes[i], byte(i+1)))
	}
	return l
}

func newIndexLayout(t *store.Table, x *store.Index, number byte) indexLayout {
	l := indexLayout{Index: x, number: number}
	for i, name := range [4]string{x.PartitionKey, x.SortKey, t.PartitionKey, t.SortKey} {
		if name != "" && !slices.ContainsFunc(l.key, func(p keyPart) bool { return p.name == name }) {
			l.key = append(l.key, keyPart{name, i})
		}
	}
	slices.SortFunc(l.key, func(a, b keyPart) int { return strings.Compare(a.name, b.name) })
	for _, p := range l.key {
		l.keyed = append(l.keyed, p.name)
	}
	if x.All {
		return l
	}
	l.carried = []string{} // not nil: nil carries everything
	for _, name := range sortedNames(x.Include...) {
		if !slices.Contains(l.keyed, name) {
			l.carried = append(l.carried, name)
		}
	}
	return l
}

func sortedNames(names ...string) []string {
	out := slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == "" })
	slices.Sort(out)
	return slices.Compact(out)
}

// A row is one key and value of the database.
type row struct{ key, value []byte }

// Marks are an item's rows beside its base row: one in each of its indexes, and its TTL entry.
type marks struct {
	index  []row  // by place in layout.indexes; nil keys where the item is not in
	expiry []byte // nil for an item that never expires
}

func (l *layout) key(k store.Key) []byte {
	return appendBaseKey(make([]byte, 0, 4+len(k.PK)+len(k.SK)), l.id, k)
}

func (l *layout) value(it store.Item) []byte {
	return l.names.encode(make([]byte, 0, 256), it, nil, l.baseKey)
}

func (l *layout) marks(k store.Key, it store.Item) marks {
	var m marks
	if len(l.indexes) > 0 {
		m.index = make([]row, len(l.indexes))
	}
	for i := range l.indexes {
		x := &l.indexes[i]
		ik, ok := x.KeyOf(it)
		if !ok {
			continue
		}
		key := make([]byte, 0, 8+len(ik.PK)+len(ik.SK)+len(k.PK)+len(k.SK))
		m.index[i].key = appendIndexKey(key, l.id, x.number, ik, k)
		m.index[i].value = l.names.encode(make([]byte, 0, 128), it, x.carried, x.keyed)
	}
	if at := l.expiryOf(it); at > 0 {
		m.expiry = appendExpiryKey(nil, l.id, at, k)
	}
	return m
}

// expiryOf returns the Unix second from which the item is expired, or 0 for never.
func (l *layout) expiryOf(it store.Item) int64 {
	if l.TTL == "" {
		return 0
	}
	at, ok := it.Get(l.TTL).Int64()
	if !ok {
		return 0
	}
	return max(at, 0)
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
