package store

import (
	"context"
	"fmt"
	"unicode/utf8"
)

// A Schema is the set of tables of an open store, by name.
type Schema map[string]*Table

// NewSchema checks the declarations: names present and unique, keys named.
func NewSchema(tables ...Table) (Schema, error) {
	s := make(Schema, len(tables))
	for _, t := range tables {
		if t.Name == "" || t.PartitionKey == "" {
			return nil, fmt.Errorf("%w: table %q needs a name and a partition key", ErrInvalid, t.Name)
		}
		if s[t.Name] != nil {
			return nil, fmt.Errorf("%w: table %q is declared twice", ErrInvalid, t.Name)
		}
		seen := map[string]bool{}
		for _, x := range t.Indexes {
			if x.Name == "" || x.PartitionKey == "" || seen[x.Name] {
				return nil, fmt.Errorf("%w: table %q: index %q needs a unique name and a partition key", ErrInvalid, t.Name,
					x.Name)
			}
			seen[x.Name] = true
		}
		s[t.Name] = &t
	}
	return s, nil
}

// Table returns the named table, or ErrInvalid.
func (s Schema) Table(name string) (*Table, error) {
	if t := s[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%w: no table %q", ErrInvalid, name)
}

// CheckKey returns an error unless an item of the table can have the key.
func (t *Table) CheckKey(k Key) error {
	switch {
	case k.PK == "":
		return fmt.Errorf("%w: table %s: empty partition key", ErrInvalid, t.Name)
	case t.SortKey != "" && k.SK == "":
		return fmt.Errorf("%w: table %s: empty sort key", ErrInvalid, t.Name)
	case t.SortKey == "" && k.SK != "":
		return fmt.Errorf("%w: table %s has no sort key", ErrInvalid, t.Name)
	case !k.text():
		return fmt.Errorf("%w: table %s: key %q/%q is not UTF-8", ErrInvalid, t.Name, k.PK, k.SK)
	case len(k.PK) > MaxPartitionKeyBytes:
		return fmt.Errorf("%w: table %s: partition key of %d bytes; the limit is %d", ErrTooLarge, t.Name, len(k.PK),
			MaxPartitionKeyBytes)
	case len(k.SK) > MaxSortKeyBytes:
		return fmt.Errorf("%w: table %s: sort key of %d bytes; the limit is %d", ErrTooLarge, t.Name, len(k.SK), MaxSortKeyBytes)
	}
	return nil
}

func (k Key) text() bool { return utf8.ValidString(k.PK) && utf8.ValidString(k.SK) }

func (c Cursor) text() bool { return c.Key.text() && c.Index.text() }

// CheckGet returns the table, and an error if ctx has ended or the Get is invalid.
func (s Schema) CheckGet(ctx context.Context, table string, key Key) (*Table, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, err := s.Table(table)
	if err != nil {
		return nil, err
	}
	return t, t.CheckKey(key)
}

// CheckQuery returns the query's table and index (nil: the table itself), or an error.
func (s Schema) CheckQuery(q Query) (*Table, *Index, error) {
	t, err := s.Table(q.Table)
	if err != nil {
		return nil, nil, err
	}
	var x *Index
	sortKey, after := t.SortKey, q.After.Key
	if q.Index != "" {
		if x = t.Index(q.Index); x == nil {
			return nil, nil, fmt.Errorf("%w: table %s has no index %q", ErrInvalid, t.Name, q.Index)
		}
		sortKey, after = x.SortKey, q.After.Index
	}
	switch {
	case q.Partition == "":
		err = fmt.Errorf("%w: query of %s without a partition", ErrInvalid, t.Name)
	case q.Prefix != "" && (q.From != "" || q.To != ""):
		err = fmt.Errorf("%w: query of %s with both a prefix and a range", ErrInvalid, t.Name)
	case sortKey == "" && (q.Prefix != "" || q.From != "" || q.To != ""):
		err = fmt.Errorf("%w: query of %s by sort key, which it does not have", ErrInvalid, t.Name)
	case q.Limit < 0:
		err = fmt.Errorf("%w: query of %s with a negative limit", ErrInvalid, t.Name)
	case !Key{q.Partition, q.Prefix}.text() || !Key{q.From, q.To}.text() || !q.After.text():
		err = fmt.Errorf("%w: query of %s with text that is not UTF-8", ErrInvalid, t.Name)
	case !q.After.IsZero() && after.PK != q.Partition:
		err = fmt.Errorf("%w: query of %s with a cursor from another partition", ErrInvalid, t.Name)
	case len(q.Partition) > MaxPartitionKeyBytes || max(len(q.Prefix), len(q.From), len(q.To)) > MaxSortKeyBytes:
		err = fmt.Errorf("%w: query of %s with keys longer than the limits of %d and %d bytes", ErrTooLarge, t.Name,
			MaxPartitionKeyBytes, MaxSortKeyBytes)
	}
	return t, x, err
}

// CheckScan returns the scan's table, and an error if the scan is invalid.
func (s Schema) CheckScan(sc Scan) (*Table, error) {
	t, err := s.Table(sc.Table)
	if err != nil {
		return nil, err
	}
	if n := max(sc.Segments, 1); sc.Segment < 0 || sc.Segment >= n || n > MaxSegments {
		return nil, fmt.Errorf("%w: scan of %s: segment %d of %d", ErrInvalid, t.Name, sc.Segment, n)
	}
	if !sc.After.text() {
		return nil, fmt.Errorf("%w: scan of %s with a cursor that is not UTF-8", ErrInvalid, t.Name)
	}
	return t, nil
}
