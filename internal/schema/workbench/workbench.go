// Package workbench writes the declared tables as a NoSQL Workbench model (format version 3.0), and a
// table's sample data as Workbench CSV.
//
// It does not read models; package book does.
package workbench

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Write writes the model of all tables. The recurring-payments table comes first, as in the
// published model: its facets, aliases, indexes, capacity and sample data, except those that
// package schema's description of it names. The same tables give the same bytes.
func Write(w io.Writer, t schema.Tables) error {
	m := model{ModelName: "Payments System", ModelMetadata: metadata{
		// the published model's: no clock is read
		DateCreated: "May 18, 2023, 10:24 AM", DateLastModified: "May 18, 2023, 03:50 PM",
		Description: "All tables of Duesday", AWSService: "Amazon DynamoDB", Version: "3.0"}}
	for _, d := range t.Describe() {
		m.DataModel = append(m.DataModel, newTable(&d))
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(m)
}

type model struct {
	ModelName     string
	ModelMetadata metadata
	DataModel     []table
}

type metadata struct {
	Author, DateCreated, DateLastModified, Description, AWSService, Version string
}

type table struct {
	TableName                   string
	KeyAttributes               keys
	NonKeyAttributes            []attribute
	TableFacets                 []facet  `json:",omitempty"`
	GlobalSecondaryIndexes      []index  `json:",omitempty"`
	TableData                   []object `json:",omitempty"` // of a table without facets
	DataAccess                  dataAccess
	BillingMode                 string
	ProvisionedCapacitySettings capacity
}

type attribute struct{ AttributeName, AttributeType string }

type keys struct {
	PartitionKey attribute
	SortKey      *attribute `json:",omitempty"`
}

type facet struct {
	FacetName         string
	KeyAttributeAlias struct{ PartitionKeyAlias, SortKeyAlias string }
	TableData         []object
	NonKeyAttributes  []string
	DataAccess        dataAccess
}

type index struct {
	IndexName     string
	KeyAttributes keys
	Projection    schema.Projection
}

type dataAccess struct{ MySql struct{} }

// newTable lists an index's projection as declared, with keys, as the published model does.
func newTable(d *schema.Description) table {
	t := table{TableName: d.Table.Name, KeyAttributes: newKeys(d.Table.PartitionKey, d.Table.SortKey),
		BillingMode: "PROVISIONED", ProvisionedCapacitySettings: publishedCapacity()}
	for _, a := range d.Attributes {
		t.NonKeyAttributes = append(t.NonKeyAttributes, attribute{a.Name, a.Type})
	}
	for _, f := range d.Facets {
		x := facet{FacetName: f.Name, TableData: objects(d, f.Items), NonKeyAttributes: f.Attributes}
		x.KeyAttributeAlias.PartitionKeyAlias, x.KeyAttributeAlias.SortKeyAlias = f.PartitionAlias, f.SortAlias
		t.TableFacets = append(t.TableFacets, x)
	}
	for _, x := range d.Table.Indexes {
		t.GlobalSecondaryIndexes = append(t.GlobalSecondaryIndexes,
			index{x.Name, newKeys(x.PartitionKey, x.SortKey), schema.ProjectionOf(&x)})
	}
	t.TableData = objects(d, d.Items)
	return t
}

func newKeys(partition, sort string) keys {
	k := keys{PartitionKey: attribute{partition, "S"}}
	if sort != "" {
		k.SortKey = &attribute{sort, "S"}
	}
	return k
}

type capacity struct {
	ProvisionedThroughput             struct{ ReadCapacityUnits, WriteCapacityUnits int }
	AutoScalingRead, AutoScalingWrite scaling
}

type scaling struct {
	ScalableTargetRequest struct {
		MinCapacity, MaxCapacity int
		ServiceRole              string
	}
	ScalingPolicyConfiguration struct{ TargetValue int }
}

func publishedCapacity() capacity {
	var s scaling
	s.ScalableTargetRequest.MinCapacity, s.ScalableTargetRequest.MaxCapacity = schema.LeastUnits, schema.MostUnits
	s.ScalableTargetRequest.ServiceRole = schema.ScalingRole
	s.ScalingPolicyConfiguration.TargetValue = schema.TargetUse
	c := capacity{AutoScalingRead: s, AutoScalingWrite: s}
	c.ProvisionedThroughput.ReadCapacityUnits = schema.ReadUnits
	c.ProvisionedThroughput.WriteCapacityUnits = schema.WriteUnits
	return c
}

// WriteCSV writes the table's sample items, all facets together: a header of attribute names, the
// keys first, and a row for each item. A cell is the value's text; a map or list is DynamoDB JSON
// without the type around it; an absent attribute is an empty cell. Workbench finds a column by its
// name and takes the type from the model, and at most 150 rows at a time.
func WriteCSV(w io.Writer, d schema.Description) error {
	items := d.Samples()
	header := slices.DeleteFunc(names(&d), func(name string) bool {
		return !slices.ContainsFunc(items, func(it store.Item) bool { return it.Has(name) })
	})
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
	kind, inner := typed(v)
	if text, ok := inner.(string); ok || v.IsZero() {
		return text, nil
	}
	if kind == "" {
		return "", fmt.Errorf("a value of kind %d cannot be exported to NoSQL Workbench", v.Kind())
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(inner)
	return string(bytes.TrimSpace(b.Bytes())), err
}

// An object is an item, or a map in one, in DynamoDB JSON, its members in order.
type object []store.Attribute

func objects(d *schema.Description, items []store.Item) []object {
	var list []object
	for _, it := range items {
		var o object
		for _, name := range names(d) {
			if v := it.Get(name); !v.IsZero() {
				o = append(o, store.Attribute{Name: name, Value: v})
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
		kind, inner := typed(m.Value)
		if kind == "" {
			return nil, fmt.Errorf("attribute %s: a value of kind %d cannot be exported to NoSQL Workbench", m.Name, m.Value.Kind())
		}
		if i > 0 {
			b.WriteByte(',')
		}
		if err := enc.Encode(m.Name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := enc.Encode(map[string]any{kind: inner}); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// typed returns the value's type as DynamoDB writes it, of those in samples, and its content.
func typed(v store.Value) (kind string, inner any) {
	switch v.Kind() {
	case store.KindString:
		return "S", v.Str()
	case store.KindNumber:
		return "N", v.Num()
	case store.KindBool:
		return "BOOL", v.Bool()
	case store.KindMap:
		return "M", object(v.Map())
	}
	return "", nil
}
