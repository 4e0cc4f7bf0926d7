package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// CheckCommit returns an error if ctx has ended, and unless the writes keep DynamoDB's rules, as far
// as they can be checked without the stored items. Every engine calls it first. Resolve checks the
// rules that need the stored item (the size of an updated one).
func (s Schema) CheckCommit(ctx context.Context, writes []Write) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if n := len(writes); n == 0 || n > MaxWrites {
		class := ErrTooLarge
		if n == 0 {
			class = ErrInvalid
		}
		return fmt.Errorf("%w: a commit must have 1 to %[3]d writes (got %[2]d)", class, n, MaxWrites)
	}
	total := 0
	for i := range writes {
		t, err := s.Table(writes[i].Table)
		if err != nil {
			return err
		}
		size, err := t.checkWrite(&writes[i])
		if err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
		if total += size; total > MaxCommitBytes {
			return fmt.Errorf("%w: a commit must have at most %d bytes", ErrTooLarge, MaxCommitBytes)
		}
	}
	return s.checkDistinct(writes)
}

func (s Schema) checkDistinct(writes []Write) error {
	type place struct {
		table string
		key   Key
	}
	seen := map[place]bool{} // up to eight entries, which is most commits, take no allocation
	for i := range writes {
		p := place{writes[i].Table, writes[i].KeyIn(s[writes[i].Table])}
		if seen[p] {
			return fmt.Errorf("%w: a commit writes %s %s/%s twice", ErrInvalid, p.table, p.key.PK, p.key.SK)
		}
		seen[p] = true
	}
	return nil
}

// KeyIn returns the key the write is about; t is the write's table.
func (w *Write) KeyIn(t *Table) Key {
	if w.Op == OpPut {
		return t.KeyOf(w.Item)
	}
	return w.Key
}

func (t *Table) checkWrite(w *Write) (int, error) {
	if err := t.CheckKey(w.KeyIn(t)); err != nil {
		return 0, err
	}
	if len(w.If) > MaxConditions {
		return 0, fmt.Errorf("%w: table %s: %d conditions; the limit is %d", ErrTooLarge, t.Name, len(w.If), MaxConditions)
	}
	for _, c := range w.If {
		if err := c.check(); err != nil {
			return 0, fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	switch w.Op {
	case OpPut:
		return t.checkItem(w.Item)
	case OpUpdate:
		if n := len(w.Set) + len(w.Remove); n > MaxUpdateAttributes {
			return 0, fmt.Errorf("%w: table %s: an update must have at most %d attributes (got %d); put the whole item instead",
				ErrTooLarge, t.Name, MaxUpdateAttributes, n)
		}
		for i, name := range w.Remove {
			if t.IsKey(name) || w.Set.Has(name) || slices.Contains(w.Remove[:i], name) {
				return 0, fmt.Errorf("%w: table %s: cannot remove %s", ErrInvalid, t.Name, name)
			}
			if err := checkName(name); err != nil {
				return 0, fmt.Errorf("table %s: %w", t.Name, err)
			}
		}
		for _, a := range w.Set {
			if t.IsKey(a.Name) {
				return 0, fmt.Errorf("%w: table %s: cannot set key attribute %s", ErrInvalid, t.Name, a.Name)
			}
		}
		return t.checkItem(w.Set)
	case OpDelete, OpCheck:
		return len(w.Key.PK) + len(w.Key.SK), nil
	}
	return 0, fmt.Errorf("%w: table %s: unknown operation %d", ErrInvalid, t.Name, w.Op)
}

func (c Condition) check() error {
	// A zero value would equal an attribute that is not there.
	if c.op == 0 || (c.op != itemAbsent && c.name == "") || (c.op == attributeEquals && c.value.IsZero()) {
		return fmt.Errorf("%w: an empty condition", ErrInvalid)
	}
	if c.op == itemAbsent {
		return nil
	}
	if err := checkName(c.name); err != nil || c.op == attributeAbsent {
		return err
	}
	if _, err := sizeValue(c.value, 0); err != nil {
		return fmt.Errorf("condition on %s: %w", c.name, err)
	}
	return nil
}

// checkName refuses an attribute name that DynamoDB cannot have.
func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: an attribute without a name", ErrInvalid)
	case len(name) > MaxNameBytes:
		return fmt.Errorf("%w: an attribute name of %d bytes; the limit is %d", ErrTooLarge, len(name), MaxNameBytes)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: attribute name %q is not UTF-8", ErrInvalid, name)
	}
	return nil
}

func (t *Table) checkItem(it Item) (int, error) {
	size, err := Size(it)
	if err != nil {
		return 0, fmt.Errorf("table %s: %w", t.Name, err)
	}
	if size > MaxItemBytes {
		return 0, fmt.Errorf("%w: table %s: an item of %d bytes; the limit is %d", ErrTooLarge, t.Name, size, MaxItemBytes)
	}
	if t.TTL != "" && it.Get(t.TTL).fraction() {
		return 0, fmt.Errorf("%w: table %s: %s must be an expiry in whole seconds", ErrInvalid, t.Name, t.TTL)
	}
	for i := range t.Indexes {
		x := &t.Indexes[i]
		for _, k := range [2]struct {
			name string
			max  int
		}{{x.PartitionKey, MaxPartitionKeyBytes}, {x.SortKey, MaxSortKeyBytes}} {
			v := it.Get(k.name)
			switch {
			case k.name == "" || v.IsZero():
			case v.Kind() != KindString || v.Str() == "":
				return 0, fmt.Errorf("%w: table %s: key attribute %s of index %s must be a non-empty string", ErrInvalid, t.Name,
					k.name, x.Name)
			case len(v.Str()) > k.max:
				return 0, fmt.Errorf("%w: table %s: key attribute %s of %d bytes; the limit is %d", ErrTooLarge, t.Name, k.name,
					len(v.Str()), k.max)
			}
		}
	}
	return size, nil
}

// Size returns the size of an item by DynamoDB's rules: names and values in UTF-8, for maps and
// lists three bytes and one per element. It returns an error if the item is nested too deeply or
// unsorted, or has an attribute without a name or value, or text that is not UTF-8.
func Size(it Item) (int, error) { return sizeItem(it, 0) }

func sizeItem(it Item, depth int) (int, error) {
	size := 0
	for i := range it {
		if it[i].Name == "" || (i > 0 && strings.Compare(it[i-1].Name, it[i].Name) >= 0) {
			return 0, fmt.Errorf("%w: attribute names must be present, sorted and unique (%q)", ErrInvalid, it[i].Name)
		}
		if err := checkName(it[i].Name); err != nil {
			return 0, err
		}
		n, err := sizeValue(it[i].Value, depth)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", it[i].Name, err)
		}
		size += len(it[i].Name) + n
	}
	return size, nil
}

func sizeValue(v Value, depth int) (int, error) {
	switch v.kind {
	case KindString:
		if !utf8.ValidString(v.s) {
			return 0, fmt.Errorf("%w: a string is not UTF-8; use a binary for bytes", ErrInvalid)
		}
		return len(v.s), nil
	case KindBinary:
		return len(v.s), nil
	case KindNumber:
		return (len(v.s)+1)/2 + 1, nil
	case KindBool:
		return 1, nil
	case KindNull:
		if depth > 0 {
			return 1, nil
		}
	case KindMap, KindList, KindSet:
		if v.kind != KindSet && depth+1 > MaxDepth {
			return 0, fmt.Errorf("%w: nested more than %d levels", ErrTooLarge, MaxDepth)
		}
		size, err := sizeItem(v.nest.m, depth+1)
		if err != nil {
			return 0, err
		}
		for _, e := range v.nest.l {
			n, err := sizeValue(e, depth+1)
			if err != nil {
				return 0, err
			}
			size += n
		}
		return size + 3 + len(v.nest.m) + len(v.nest.l), nil
	}
	return 0, fmt.Errorf("%w: an attribute without a value", ErrInvalid)
}

// Resolve checks the write against the stored item and returns the item after it, nil for none. old
// is nil for an absent item; the caller passes nil for an expired one. index is the place of the
// write in its Commit, for the error. A check returns old. The result shares values with old and w.
func (w *Write) Resolve(t *Table, index int, old Item) (Item, error) {
	present := old != nil
	mayBeAbsent := w.Op == OpPut
	for i := range w.If {
		if !w.If[i].Holds(old, present) {
			return nil, &ConflictError{Write: index, Table: t.Name, Key: w.KeyIn(t), Condition: w.If[i].String()}
		}
		mayBeAbsent = mayBeAbsent || (w.Op == OpCheck && w.If[i].op == itemAbsent)
	}
	if !present && !mayBeAbsent {
		return nil, &ConflictError{Write: index, Table: t.Name, Key: w.KeyIn(t), Condition: "item exists"}
	}
	switch w.Op {
	case OpPut:
		return w.Item, nil
	case OpUpdate:
		it := w.updated(old)
		if _, err := t.checkItem(it); err != nil {
			return nil, fmt.Errorf("write %d: %w", index, err)
		}
		return it, nil
	case OpDelete:
		return nil, nil
	}
	return old, nil
}

// updated merges old and w.Set, both sorted, without w.Remove.
func (w *Write) updated(old Item) Item {
	it := make(Item, 0, len(old)+len(w.Set))
	set := w.Set
	for _, a := range old {
		for len(set) > 0 && set[0].Name < a.Name {
			it, set = append(it, set[0]), set[1:]
		}
		switch {
		case len(set) > 0 && set[0].Name == a.Name:
			it, set = append(it, set[0]), set[1:]
		case !slices.Contains(w.Remove, a.Name):
			it = append(it, a)
		}
	}
	return append(it, set...)
}
