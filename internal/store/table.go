package store

import (
	"slices"
	"strings"
)

// A Table declares the key attributes, all strings, the indexes and the expiry of a table.
type Table struct {
	Name         string
	PartitionKey string  // attribute name
	SortKey      string  // attribute name; "" for a table without one
	Indexes      []Index // sparse
	TTL          string  // attribute that holds Unix seconds; "" for none
}

// An Index declares a sparse secondary index: DynamoDB's global secondary index.
type Index struct {
	Name         string
	PartitionKey string
	SortKey      string // "" for an index without one
	All          bool   // project all attributes
	Include      []string
}

// A Key names one item. SK is "" in a table without a sort key.
type Key struct{ PK, SK string }

// Compare compares two keys in the order in which queries return rows.
func (k Key) Compare(other Key) int {
	if c := strings.Compare(k.PK, other.PK); c != 0 {
		return c
	}
	return strings.Compare(k.SK, other.SK)
}

// KeyOf returns the base key of an item or of an index row.
func (t *Table) KeyOf(it Item) Key {
	k := Key{PK: it.Str(t.PartitionKey)}
	if t.SortKey != "" {
		k.SK = it.Str(t.SortKey)
	}
	return k
}

// SetKey writes the key attributes into the item.
func (t *Table) SetKey(it *Item, k Key) {
	it.Set(t.PartitionKey, S(k.PK))
	if t.SortKey != "" {
		it.Set(t.SortKey, S(k.SK))
	}
}

// IsKey reports whether the attribute is one of the table's own key attributes.
func (t *Table) IsKey(name string) bool {
	return name == t.PartitionKey || (t.SortKey != "" && name == t.SortKey)
}

// KeyNames returns the sorted names of the key attributes of the table and its indexes.
func (t *Table) KeyNames() []string {
	names := []string{t.PartitionKey, t.SortKey}
	for i := range t.Indexes {
		names = append(names, t.Indexes[i].PartitionKey, t.Indexes[i].SortKey)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// Index returns the named index, or nil.
func (t *Table) Index(name string) *Index {
	for i := range t.Indexes {
		if t.Indexes[i].Name == name {
			return &t.Indexes[i]
		}
	}
	return nil
}

// KeyOf returns the index key of an item, and false if the item is not in the index: it lacks
// one of the key attributes as a non-empty string.
func (x *Index) KeyOf(it Item) (Key, bool) {
	k := Key{PK: it.Str(x.PartitionKey)}
	if k.PK == "" {
		return Key{}, false
	}
	if x.SortKey != "" {
		if k.SK = it.Str(x.SortKey); k.SK == "" {
			return Key{}, false
		}
	}
	return k, true
}

// Projects reports whether rows of index x of table t contain the attribute.
func (t *Table) Projects(x *Index, name string) bool {
	return x.All || t.IsKey(name) || name == x.PartitionKey || (x.SortKey != "" && name == x.SortKey) ||
		slices.Contains(x.Include, name)
}

// Project returns the row of index x of table t for the item.
func (t *Table) Project(x *Index, it Item) Item {
	row := make(Item, 0, len(x.Include)+4)
	for _, a := range it {
		if t.Projects(x, a.Name) {
			row = append(row, a)
		}
	}
	return row
}

// Expired reports whether the item is expired at now, in Unix seconds.
func (t *Table) Expired(it Item, now int64) bool {
	if t.TTL == "" {
		return false
	}
	at, ok := it.Get(t.TTL).Int64()
	return ok && at > 0 && at <= now
}
