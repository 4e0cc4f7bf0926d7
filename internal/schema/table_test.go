package schema_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// model is what the published NoSQL Workbench model says of the table.
type model struct {
	DataModel []struct {
		KeyAttributes          keys
		NonKeyAttributes       []struct{ AttributeName, AttributeType string }
		GlobalSecondaryIndexes []struct {
			IndexName     string
			KeyAttributes keys
			Projection    struct {
				ProjectionType   string
				NonKeyAttributes []string
			}
		}
	}
}

type keys struct {
	PartitionKey, SortKey struct{ AttributeName, AttributeType string }
}

func readModel(t *testing.T) model {
	t.Helper()
	b, err := os.ReadFile("../book/testdata/RecurringPaymentsSchema.json")
	if err != nil {
		t.Fatal(err)
	}
	var m model
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	if len(m.DataModel) != 1 || len(m.DataModel[0].GlobalSecondaryIndexes) != 2 {
		t.Fatalf("the model has %d tables", len(m.DataModel))
	}
	return m
}

// TestTableIsThePublishedModel holds keys, indexes and projections to the model, name by name.
func TestTableIsThePublishedModel(t *testing.T) {
	want := readModel(t).DataModel[0]
	got := schema.New(schema.DefaultPrefix).RecurringPayments
	if got.PartitionKey != want.KeyAttributes.PartitionKey.AttributeName ||
		got.SortKey != want.KeyAttributes.SortKey.AttributeName {
		t.Errorf("keys %s, %s, want %+v", got.PartitionKey, got.SortKey, want.KeyAttributes)
	}
	if got.TTL != "TTL" {
		t.Errorf("TTL attribute %q", got.TTL)
	}
	if len(got.Indexes) != len(want.GlobalSecondaryIndexes) {
		t.Fatalf("%d indexes, want %d", len(got.Indexes), len(want.GlobalSecondaryIndexes))
	}
	for _, w := range want.GlobalSecondaryIndexes {
		x := got.Index(w.IndexName)
		if x == nil {
			t.Fatalf("no index %s", w.IndexName)
		}
		if x.PartitionKey != w.KeyAttributes.PartitionKey.AttributeName ||
			x.SortKey != w.KeyAttributes.SortKey.AttributeName {
			t.Errorf("%s: keys %s, %s, want %+v", x.Name, x.PartitionKey, x.SortKey, w.KeyAttributes)
		}
		if x.All || w.Projection.ProjectionType != "INCLUDE" {
			t.Errorf("%s: projects all: %v, want %s", x.Name, x.All, w.Projection.ProjectionType)
		}
		g, n := slices.Sorted(slices.Values(x.Include)), slices.Sorted(slices.Values(w.Projection.NonKeyAttributes))
		if !slices.Equal(g, n) {
			t.Errorf("%s: projects %v, want %v", x.Name, g, n)
		}
	}
}

// TestNames: every attribute of the model has its place in the list, no name has two, and
// the list still begins as it did when the first stores were written.
func TestNames(t *testing.T) {
	names := schema.Names()
	for _, a := range readModel(t).DataModel[0].NonKeyAttributes {
		if !slices.Contains(names, a.AttributeName) {
			t.Errorf("%s is missing", a.AttributeName)
		}
	}
	sorted := slices.Sorted(slices.Values(names))
	if len(slices.Compact(sorted)) != len(names) {
		t.Error("a name stands twice")
	}
	if names[0] != "PK" || names[14] != "TTL" || names[17] != "PaymentMethod" || names[18] != "Account" {
		t.Errorf("the order has changed: %v", names[:19])
	}
	if _, err := store.NewSchema(schema.New("x-").All()...); err != nil {
		t.Error(err)
	}
}

func TestCheckNames(t *testing.T) {
	for _, tt := range []struct {
		prefix, recurring string
		ok                bool
	}{
		{"duesday-", "", true}, {"", "", true}, {"a_b.C-9", "Old.Payments", true}, {"d-", "abc", true},
		{"a b-", "", false}, {"ä-", "", false}, {"d-", "ab", false}, {"d-", "a/b", false}, {"d-", "d-outbox", false},
		{strings.Repeat("x", 220), "", true}, {strings.Repeat("x", 230), "", false},
	} {
		err := schema.Named(tt.prefix, tt.recurring).CheckNames()
		if (err == nil) != tt.ok {
			t.Errorf("%.20q, %q: %v", tt.prefix, tt.recurring, err)
		}
	}
}
