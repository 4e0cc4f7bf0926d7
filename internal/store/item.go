package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// An Attribute is one named value of an item or of a map.
type Attribute struct {
	Name  string
	Value Value
}

// An Item is a set of named attributes, sorted by name, each name once. Create an Item with
// NewItem, or by calling Set on a nil Item. Values are immutable, so a Clone is an independent
// copy.
type Item []Attribute

// NewItem returns the item of the given attributes. If two attributes have the same name, the later
// one wins. NewItem omits attributes with a zero Value.
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

// Str returns the attribute's string, or "" if the attribute is absent or not a string.
func (it Item) Str(name string) string { return it.Get(name).Str() }

// Int returns the attribute's integer, or 0 if the attribute is absent or not an integer.
func (it Item) Int(name string) int64 {
	n, _ := it.Get(name).Int64()
	return n
}

// Has reports whether the attribute is present.
func (it Item) Has(name string) bool {
	_, ok := it.find(name)
	return ok
}

// Set sets the attribute, and replaces an earlier value with the same name.
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

// Remove removes the attribute if it is present.
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

// A Kind is the type of a Value, after DynamoDB's type descriptors.
type Kind uint8

// The kinds of values. The zero Kind means that there is no value.
const (
	KindNone Kind = iota
	KindString
	KindNumber
	KindBool
	KindBinary
	KindMap
	KindList
	KindNull // inside maps and lists, by other programs: it reads as absent
	KindSet  // of strings, numbers or binaries, by other programs
)

// A Value is one attribute value: a string, a number, a boolean, bytes, a map, a list, a set or a
// null. Values are immutable. The zero Value means that there is no value.
type Value struct {
	kind Kind
	bool bool
	s    string // string, canonical number, or the bytes of a binary
	nest *nested
}

type nested struct {
	m Item
	l []Value
}

// S returns a string value.
func S(s string) Value { return Value{kind: KindString, s: s} }

// Int returns a number value.
func Int(n int64) Value { return Value{kind: KindNumber, s: strconv.FormatInt(n, 10)} }

// Bool returns a boolean value.
func Bool(b bool) Value { return Value{kind: KindBool, bool: b} }

// B returns a binary value; it copies b.
func B(b []byte) Value { return Value{kind: KindBinary, s: string(b)} }

// M returns a map value. It takes over m: the caller must not change m afterwards.
func M(m Item) Value { return Value{kind: KindMap, nest: &nested{m: m}} }

// L returns a list value. It takes over vs: the caller must not change vs afterwards.
func L(vs ...Value) Value { return Value{kind: KindList, nest: &nested{l: vs}} }

// Null returns the null, which maps and lists of other programs may have.
func Null() Value { return Value{kind: KindNull} }

// Set returns a set of strings, numbers or binaries. It returns ErrInvalid if the values have different
// or other kinds, or if there are none.
func Set(vs ...Value) (Value, error) {
	set := slices.Clone(vs)
	for _, e := range set {
		if e.kind != set[0].kind || e.kind != KindString && e.kind != KindNumber && e.kind != KindBinary {
			return Value{}, fmt.Errorf("%w: a set must contain only strings, only numbers or only binaries", ErrInvalid)
		}
	}
	if len(set) == 0 {
		return Value{}, fmt.Errorf("%w: a set must not be empty", ErrInvalid)
	}
	slices.SortFunc(set, func(a, b Value) int { return strings.Compare(a.s, b.s) })
	set = slices.CompactFunc(set, Value.Equal)
	return Value{kind: KindSet, nest: &nested{l: set}}, nil
}

// Kind returns the type of v.
func (v Value) Kind() Kind { return v.kind }

// IsZero reports whether v is the zero Value or a null.
func (v Value) IsZero() bool { return v.kind == KindNone || v.kind == KindNull }

// Str returns the string of a string value, or "".
func (v Value) Str() string { return v.text(KindString) }

// Num returns the canonical decimal text of a number value, or "".
func (v Value) Num() string { return v.text(KindNumber) }

// Raw returns the bytes of a binary value as a string without copying them, or "".
func (v Value) Raw() string { return v.text(KindBinary) }

func (v Value) text(k Kind) string {
	if v.kind != k {
		return ""
	}
	return v.s
}

// Int64 returns the integer of a number value. It returns false if v is not a number or does not
// fit.
func (v Value) Int64() (int64, bool) {
	if v.kind != KindNumber {
		return 0, false
	}
	n, err := strconv.ParseInt(v.s, 10, 64)
	return n, err == nil
}

// fraction reports whether v is a number with a fraction, by the point or exponent of its form.
func (v Value) fraction() bool {
	n := v.Num()
	return strings.Contains(n, "E-") || (strings.Contains(n, ".") && !strings.Contains(n, "E"))
}

// Bool returns the value of a boolean, or false.
func (v Value) Bool() bool { return v.kind == KindBool && v.bool }

// Bytes returns a copy of the bytes of a binary value, or nil.
func (v Value) Bytes() []byte {
	if v.kind != KindBinary {
		return nil
	}
	return []byte(v.s)
}

// Map returns the attributes of a map value, or nil. The caller must not change them.
func (v Value) Map() Item {
	if v.kind != KindMap {
		return nil
	}
	return v.nest.m
}

// List returns the elements of a list value, or nil. The caller must not change them.
func (v Value) List() []Value {
	if v.kind != KindList {
		return nil
	}
	return v.nest.l
}

// Elements returns the elements of a set in a fixed order, or nil. The caller must not change them.
func (v Value) Elements() []Value {
	if v.kind != KindSet {
		return nil
	}
	return v.nest.l
}

// Equal reports whether v and w have the same kind and are equal. It compares numbers by value, and maps
// and sets in any order.
func (v Value) Equal(w Value) bool {
	if v.kind != w.kind || v.bool != w.bool || v.s != w.s {
		return false
	}
	switch v.kind {
	case KindMap:
		return v.nest.m.Equal(w.nest.m)
	case KindList, KindSet:
		return slices.EqualFunc(v.nest.l, w.nest.l, Value.Equal)
	}
	return true
}
