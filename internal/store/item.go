package store

import (
	"slices"
	"strings"
)

// An Attribute is one named value of an item or of a map.
type Attribute struct {
	Name  string
	Value Value
}

// An Item is a set of named attributes, sorted by name, each name once. Make one with NewItem
// or by calling Set on a nil Item. Values are immutable, so a Clone is an independent copy.
type Item []Attribute

// NewItem returns the item of the given attributes. Of two with one name the later wins. It
// leaves out attributes with a zero Value.
func NewItem(attributes ...Attribute) Item {
	it := make(Item, 0, len(attributes))
	for _, a := range attributes {
		if !a.Value.IsZero() {
			it.Set(a.Name, a.Value)
		}
	}
	return it
}

func (it Item) find(name string) (int, bool) {
	return slices.BinarySearchFunc(it, name, func(a Attribute, name string) int { return strings.Compare(a.Name, name) })
}

// Get returns the value of the attribute, or the zero Value.
func (it Item) Get(name string) Value {
	if i, ok := it.find(name); ok {
		return it[i].Value
	}
	return Value{}
}

// Str returns the attribute's string, or "" when it is absent or no string.
func (it Item) Str(name string) string { return it.Get(name).Str() }

// Int returns the attribute's integer, or 0 when it is absent or no integer.
func (it Item) Int(name string) int64 {
	n, _ := it.Get(name).Int64()
	return n
}

// Has reports whether the attribute is present.
func (it Item) Has(name string) bool {
	_, ok := it.find(name)
	return ok
}

// Set puts the attribute in its place, replacing an earlier value of that name.
func (it *Item) Set(name string, v Value) {
	n := len(*it)
	if n == 0 || (*it)[n-1].Name < name {
		*it = append(*it, Attribute{name, v})
		return
	}
	i, ok := it.find(name)
	if ok {
		(*it)[i].Value = v
		return
	}
	*it = slices.Insert(*it, i, Attribute{name, v})
}

// Remove takes the attribute out, if it is present.
func (it *Item) Remove(name string) {
	if i, ok := it.find(name); ok {
		*it = slices.Delete(*it, i, i+1)
	}
}

// Clone returns an independent copy.
func (it Item) Clone() Item { return slices.Clone(it) }

// Equal reports whether both items have the same names and equal values.
func (it Item) Equal(other Item) bool {
	return slices.EqualFunc(it, other, func(a, b Attribute) bool { return a.Name == b.Name && a.Value.Equal(b.Value) })
}
