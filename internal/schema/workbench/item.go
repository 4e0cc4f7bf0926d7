package workbench

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// WriteCSV writes the table's sample items, all facets together: a header of attribute names, the
// keys first, and a row for each item. A cell is the value's text; a map or list is DynamoDB JSON
// without the type around it; an absent attribute is an empty cell. Workbench finds a column by its
// name and takes the type from the model, and at most 150 rows at a time.
func WriteCSV(w io.Writer, d schema.Description) error {
	items := d.Samples()
	var header []string
	for _, name := range names(&d) {
		for _, it := range items {
			if it.Has(name) {
				header = append(header, name)
				break
			}
		}
	}
	out := csv.NewWriter(w)
	if err := out.Write(header); err != nil {
		return err
	}
	for _, it := range items {
		row := make([]string, len(header))
		for i, name := range header {
			var err error
			if row[i], err = cell(it.Get(name)); err != nil {
				return fmt.Errorf("attribute %s: %w", name, err)
			}
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// names returns the attributes of the table in the order they are shown in.
func names(d *schema.Description) []string {
	list := []string{d.Table.PartitionKey}
	if d.Table.SortKey != "" {
		list = append(list, d.Table.SortKey)
	}
	for _, a := range d.Attributes {
		list = append(list, a.Name)
	}
	return list
}

func cell(v store.Value) (string, error) {
	switch v.Kind() {
	case store.KindNone:
		return "", nil
	case store.KindString:
		return v.Str(), nil
	case store.KindNumber:
		return v.Num(), nil
	}
	kind, inner := typed(v)
	if kind == "" {
		return "", fmt.Errorf("a value of kind %d has no form here", v.Kind())
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(inner)
	return string(bytes.TrimSpace(b.Bytes())), err
}

// An object is an item, or a map in one, in DynamoDB JSON, its members in order.
type object []member

type member struct {
	name  string
	value store.Value
}

// objects gives the items' attributes the declared order.
func objects(d *schema.Description, items []store.Item) []object {
	var list []object
	for _, it := range items {
		var o object
		for _, name := range names(d) {
			if v := it.Get(name); !v.IsZero() {
				o = append(o, member{name, v})
			}
		}
		list = append(list, o)
	}
	return list
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	b := bytes.NewBufferString("{")
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := enc.Encode(m.name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		kind, inner := typed(m.value)
		if kind == "" {
			return nil, fmt.Errorf("attribute %s: a value of kind %d has no form here", m.name, m.value.Kind())
		}
		if err := enc.Encode(map[string]any{kind: inner}); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// typed returns the value's type as DynamoDB writes it, and its content. The
// samples have no other types.
func typed(v store.Value) (kind string, inner any) {
	switch v.Kind() {
	case store.KindString:
		return "S", v.Str()
	case store.KindNumber:
		return "N", v.Num()
	case store.KindBool:
		return "BOOL", v.Bool()
	case store.KindMap:
		o := object{}
		for _, a := range v.Map() {
			o = append(o, member{a.Name, a.Value})
		}
		return "M", o
	}
	return "", nil
}
