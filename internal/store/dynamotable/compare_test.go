package dynamotable

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/store"
)

// drawTable draws a table whose attributes are all different letters' names.
func drawTable(t *rapid.T) store.Table {
	name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g"})
	table := store.Table{Name: "table", PartitionKey: "PK"}
	if rapid.Bool().Draw(t, "sort key") {
		table.SortKey = "SK"
	}
	if rapid.Bool().Draw(t, "TTL") {
		table.TTL = "TTL"
	}
	for _, index := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"i", "j", "k"}), 0, 3,
		rapid.ID).Draw(t, "indexes") {
		x := store.Index{Name: index, PartitionKey: name.Draw(t, "partition key")}
		if rapid.Bool().Draw(t, "has sort key") {
			x.SortKey = name.Filter(func(n string) bool { return n != x.PartitionKey }).Draw(t, "sort key")
		}
		if x.All = rapid.Bool().Draw(t, "all"); !x.All {
			x.Include = rapid.SliceOfDistinct(rapid.SampledFrom([]string{"PK", "SK", "a", "b", "x", "y", "z"}),
				rapid.ID).Draw(t, "include")
		}
		table.Indexes = append(table.Indexes, x)
	}
	return table
}

// made is what DynamoDB describes after the request, with TTL switched on. Its lists are in
// any order, and table keys may have left the projections.
func made(t *rapid.T, in *dynamodb.CreateTableInput, ttl string) Description {
	table := &types.TableDescription{TableStatus: types.TableStatusActive, KeySchema: in.KeySchema,
		AttributeDefinitions: in.AttributeDefinitions}
	for _, g := range in.GlobalSecondaryIndexes {
		p := &types.Projection{ProjectionType: g.Projection.ProjectionType,
			NonKeyAttributes: rapid.Permutation(g.Projection.NonKeyAttributes).Draw(t, "projected")}
		if rapid.Bool().Draw(t, "keys left out") {
			p.NonKeyAttributes = slices.DeleteFunc(p.NonKeyAttributes, func(name string) bool { return name == "PK" })
		}
		table.GlobalSecondaryIndexes = append(table.GlobalSecondaryIndexes, types.GlobalSecondaryIndexDescription{
			IndexName: g.IndexName, IndexStatus: types.IndexStatusActive, KeySchema: g.KeySchema, Projection: p})
	}
	table.GlobalSecondaryIndexes = rapid.Permutation(table.GlobalSecondaryIndexes).Draw(t, "indexes as described")
	d := describe(*in.TableName, table)
	d.Table.TTL = ttl
	return d
}

func TestCompare_WhatInputMakesDoesNotDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		if d := Compare(table, made(t, Input(table, Settings{}), table.TTL)); len(d) > 0 {
			t.Fatalf("differs: %v", d)
		}
	})
}

// TestCompare_EveryChangeIsNamed changes one thing of what was declared and expects exactly
// that to be named.
func TestCompare_EveryChangeIsNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		there := made(t, Input(table, Settings{}), table.TTL)
		part, kind := change(t, &table, &there)
		want := []string{part}
		var got []string
		for _, d := range Compare(table, there) {
			got = append(got, d.Part)
			if d.Table != table.Name || d.Want == d.Got || d.Want == "" || d.Got == "" || d.Mends != (kind == mends) ||
				d.Harmless != (kind == harmless) {
				t.Fatalf("difference %+v, want one that %s", d, kind)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("differs in %q, want %q", got, want)
		}
		there.Differences = Compare(table, there)
		if refused := Refused(there) != nil; refused != (kind == bad) {
			t.Fatalf("refused: %v, of one that %s", refused, kind)
		}
	})
}

// What becomes of a difference.
const (
	bad      = "is refused"
	mends    = "mends"
	harmless = "is harmless"
)

// change makes one thing differ and returns its name, and what becomes of it.
func change(t *rapid.T, table *store.Table, there *Description) (part, what string) {
	kinds := []string{"partition key", "sort key", "type", "TTL off", "TTL other", "extra", "local"}
	if len(table.Indexes) > 0 {
		kinds = append(kinds, "index gone", "index partition key", "index sort key", "index projection wider",
			"index projection narrower")
	}
	kind := rapid.SampledFrom(kinds).Draw(t, "kind")
	var x *store.Index
	if len(table.Indexes) > 0 {
		x = there.Table.Index(rapid.SampledFrom(table.Indexes).Draw(t, "index").Name)
	}
	switch kind {
	case "partition key":
		there.Table.PartitionKey = "other"
		return kind, bad
	case "sort key":
		there.Table.SortKey += "other"
		return kind, bad
	case "type":
		k := &there.Types[rapid.IntRange(0, len(there.Types)-1).Draw(t, "key")]
		k.Type = "N"
		return "type of key attribute " + k.Name, bad
	case "TTL off":
		table.TTL, there.Table.TTL = "TTL", ""
		return "TTL attribute", mends
	case "TTL other":
		there.Table.TTL = "other"
		return "TTL attribute", bad
	case "extra":
		there.Table.Indexes = append(there.Table.Indexes, store.Index{Name: "extra", PartitionKey: "x"})
		return "index extra", harmless
	case "local":
		there.LocalIndex = []string{"here"}
		return "local index here", harmless
	case "index gone":
		name := x.Name
		there.Table.Indexes = slices.DeleteFunc(there.Table.Indexes, func(i store.Index) bool { return i.Name == name })
		return "index " + name, bad
	case "index partition key":
		x.PartitionKey = "other"
		return "index " + x.Name + " partition key", bad
	case "index sort key":
		x.SortKey += "other"
		return "index " + x.Name + " sort key", bad
	}
	part = "index " + x.Name + " projection"
	if kind == "index projection wider" {
		if x.All {
			d := table.Index(x.Name)
			d.All, d.Include = false, []string{"x"}
		} else if x.All = rapid.Bool().Draw(t, "now all"); !x.All {
			x.Include = append(x.Include, "more")
		}
		return part, harmless
	}
	if !x.All {
		d := table.Index(x.Name)
		d.Include = append(slices.Clone(d.Include), "more")
	}
	x.All = false
	return part, bad
}

func TestCompare_Missing(t *testing.T) {
	got := Compare(store.Table{Name: "t1", PartitionKey: "PK", TTL: "TTL"}, Description{Missing: true})
	if len(got) != 1 || !got[0].Mends || got[0].String() != "table t1: table: expected one, got none" {
		t.Errorf("got %v", got)
	}
}
