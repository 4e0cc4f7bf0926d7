// Package workbench writes the declared tables as a NoSQL Workbench model, format version
// 3.0, and a table's sample data as CSV in Workbench's form.
//
// It does not read models; package book does.
package workbench

import (
	"encoding/json"
	"io"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Write writes the model of all tables. The recurring-payments table comes first, as in the
// published model: its facets, aliases, indexes, capacity and sample data. What of the
// published sample data is not repeated stands at package schema's description of the table.
// The same tables give the same bytes.
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
	Projection    projection
}

type projection struct {
	ProjectionType   string
	NonKeyAttributes []string `json:",omitempty"`
}

type dataAccess struct{ MySql struct{} }

// newTable lists an index's projection as it is declared, keys included, because the
// published model does.
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
			index{x.Name, newKeys(x.PartitionKey, x.SortKey), newProjection(&x)})
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

func newProjection(x *store.Index) projection {
	switch {
	case x.All:
		return projection{ProjectionType: "ALL"}
	case len(x.Include) == 0:
		return projection{ProjectionType: "KEYS_ONLY"}
	}
	return projection{"INCLUDE", x.Include}
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

// publishedCapacity is the published model's, with the numbers of package schema.
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
