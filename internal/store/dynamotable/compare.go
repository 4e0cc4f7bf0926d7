package dynamotable

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/store"
)

// A Difference is one deviation of a table from its declaration.
type Difference struct {
	Table string
	Part  string // "partition key", "index GSI-1 projection", ...
	Want  string
	Got   string
	Mends bool // Create puts it right

	// Harmless: the table has more than was declared, such as a further index or a wider
	// projection. Create leaves it. Create refuses a difference that neither mends nor is harmless.
	Harmless bool
}

func (d Difference) String() string {
	return fmt.Sprintf("table %s: %s: expected %s, got %s", d.Table, d.Part, d.Want, d.Got)
}

const (
	none = "none"
	off  = "off"
)

// Compare returns the differences between the declaration and the table, in a fixed order. The
// order of attributes in a projection is no difference, nor are key attributes in it, which
// DynamoDB projects in any case. If keys differ, projections are not compared.
func Compare(declared store.Table, described Description) []Difference {
	if described.Missing {
		return []Difference{{Table: declared.Name, Part: "table", Want: "one", Got: none, Mends: true}}
	}
	c := comparison{table: declared.Name}
	got := &described.Table
	c.differ("partition key", declared.PartitionKey, got.PartitionKey)
	c.differ("sort key", declared.SortKey, got.SortKey)
	for _, k := range described.Types {
		if slices.Contains(declared.KeyNames(), k.Name) {
			c.differ("type of key attribute "+k.Name, "S", k.Type)
		}
	}
	for i := range declared.Indexes {
		x := &declared.Indexes[i]
		c.index(&declared, x, got, got.Index(x.Name))
	}
	for i := range got.Indexes {
		if x := &got.Indexes[i]; declared.Index(x.Name) == nil {
			c.more("index "+x.Name, none, shape(got, x))
		}
	}
	for _, name := range described.LocalIndex {
		c.more("local index "+name, none, "a local secondary index")
	}
	if declared.TTL != got.TTL {
		c.found = append(c.found, Difference{Table: c.table, Part: "TTL attribute", Want: cmp.Or(declared.TTL, off),
			Got: cmp.Or(got.TTL, off), Mends: got.TTL == ""})
	}
	return c.found
}

type comparison struct {
	table string
	found []Difference
}

func (c *comparison) differ(part, want, got string) {
	if want != got {
		c.found = append(c.found, Difference{Table: c.table, Part: part, Want: cmp.Or(want, none), Got: cmp.Or(got, none)})
	}
}

func (c *comparison) more(part, want, got string) {
	c.found = append(c.found, Difference{Table: c.table, Part: part, Want: want, Got: got, Harmless: true})
}

func (c *comparison) index(declared *store.Table, want *store.Index, described *store.Table, got *store.Index) {
	part := "index " + want.Name
	if got == nil {
		c.differ(part, shape(declared, want), "")
		return
	}
	c.differ(part+" partition key", want.PartitionKey, got.PartitionKey)
	c.differ(part+" sort key", want.SortKey, got.SortKey)
	sameKeys := declared.PartitionKey == described.PartitionKey && declared.SortKey == described.SortKey &&
		want.PartitionKey == got.PartitionKey && want.SortKey == got.SortKey
	wanted, there := Projection(declared, want), Projection(described, got)
	switch {
	case !sameKeys || wanted == there:
	case got.All || !want.All && !slices.ContainsFunc(projected(declared, want),
		func(name string) bool { return !slices.Contains(got.Include, name) }):
		c.more(part+" projection", wanted, there)
	default:
		c.differ(part+" projection", wanted, there)
	}
}

// shape is an index in a few words.
func shape(t *store.Table, x *store.Index) string {
	keys := x.PartitionKey
	if x.SortKey != "" {
		keys += "/" + x.SortKey
	}
	return keys + " " + Projection(t, x)
}

// Projection says what an index projects: ALL, KEYS_ONLY, or INCLUDE with sorted other attributes.
func Projection(t *store.Table, x *store.Index) string {
	if x.All {
		return "ALL"
	}
	if list := projected(t, x); len(list) > 0 {
		return "INCLUDE " + strings.Join(list, " ")
	}
	return "KEYS_ONLY"
}

func projected(t *store.Table, x *store.Index) (list []string) {
	for _, name := range x.Include {
		if !t.IsKey(name) && name != x.PartitionKey && name != x.SortKey {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// A DifferentError names tables that differ from their declaration. Nothing was created or changed.
type DifferentError struct{ Differences []Difference }

func (e *DifferentError) Error() string {
	lines := make([]string, len(e.Differences))
	for i, d := range e.Differences {
		lines[i] = d.String()
	}
	return "these tables are not Duesday's, so they were not changed: " + strings.Join(lines, "; ")
}

// Refused returns a DifferentError of the differences that neither mend nor are harmless, or nil.
func Refused(found ...Description) error {
	return different(found, func(d Difference) bool { return !d.Mends && !d.Harmless })
}

// different returns a DifferentError of the differences chosen by counts, or nil.
func different(found []Description, counts func(Difference) bool) error {
	var list []Difference
	for i := range found {
		for _, d := range found[i].Differences {
			if counts(d) {
				list = append(list, d)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	return &DifferentError{list}
}
