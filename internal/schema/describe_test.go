package schema_test

import (
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// kinds are the types of values as DynamoDB writes them.
var kinds = map[store.Kind]string{store.KindString: "S", store.KindNumber: "N", store.KindBool: "BOOL",
	store.KindMap: "M", store.KindList: "L"}

// TestDescriptionsFitTheirTables: every table is described once, every attribute that a facet,
// a sample or an index names is declared with its type, and the samples are items that the
// table can hold.
func TestDescriptionsFitTheirTables(t *testing.T) {
	tables := schema.New("x-")
	described := tables.Describe()
	if len(described) != len(tables.All()) {
		t.Fatalf("%d descriptions of %d tables", len(described), len(tables.All()))
	}
	for i, d := range described {
		t.Run(d.Table.Name, func(t *testing.T) {
			if want := tables.All()[i].Name; d.Table.Name != want {
				t.Errorf("stands in the place of %s", want)
			}
			types := declaredTypes(t, &d)
			for _, x := range d.Table.Indexes {
				for _, name := range append([]string{x.PartitionKey, x.SortKey}, x.Include...) {
					if types[name] == "" {
						t.Errorf("index %s: attribute %s is not declared", x.Name, name)
					}
				}
			}
			checkSamples(t, &d, types)
			for _, f := range d.Facets {
				for _, name := range f.Attributes {
					if types[name] == "" || d.Table.IsKey(name) {
						t.Errorf("facet %s: %s is a key or not declared", f.Name, name)
					}
				}
				for _, it := range f.Items {
					for _, a := range it {
						if !d.Table.IsKey(a.Name) && !slices.Contains(f.Attributes, a.Name) {
							t.Errorf("facet %s: its sample has %s, which is none of its attributes", f.Name, a.Name)
						}
					}
				}
			}
		})
	}
}

func declaredTypes(t *testing.T, d *schema.Description) map[string]string {
	t.Helper()
	types := map[string]string{d.Table.PartitionKey: "S", d.Table.SortKey: "S"}
	for _, a := range d.Attributes {
		if types[a.Name] != "" {
			t.Errorf("attribute %s is declared twice, or is a key", a.Name)
		}
		types[a.Name] = a.Type
		if !slices.Contains(schema.Names(), a.Name) {
			t.Errorf("attribute %s is not in Names", a.Name)
		}
	}
	return types
}

func checkSamples(t *testing.T, d *schema.Description, types map[string]string) {
	t.Helper()
	items := d.Samples()
	if len(items) == 0 {
		t.Error("has no sample")
	}
	keys := map[store.Key]bool{}
	indexed := map[string]bool{}
	for _, it := range items {
		k := d.Table.KeyOf(it)
		if err := d.Table.CheckKey(k); err != nil || keys[k] {
			t.Errorf("sample %v: %v, or twice", k, err)
		}
		keys[k] = true
		for _, a := range it {
			if types[a.Name] != kinds[a.Value.Kind()] {
				t.Errorf("sample %v: %s is of type %s, declared is %q", k, a.Name, kinds[a.Value.Kind()], types[a.Name])
			}
		}
		for i := range d.Table.Indexes {
			if _, ok := d.Table.Indexes[i].KeyOf(it); ok {
				indexed[d.Table.Indexes[i].Name] = true
			}
		}
	}
	if len(indexed) != len(d.Table.Indexes) {
		t.Errorf("the samples show %d of %d indexes", len(indexed), len(d.Table.Indexes))
	}
}

// TestTrackingIsTheDesign is the design of the events table and of the others' keys, written
// down a second time.
func TestTrackingIsTheDesign(t *testing.T) {
	got := schema.New("live-").Tracking
	type key struct{ pk, sk string }
	for _, tt := range []struct {
		table   store.Table
		name    string
		keys    key
		ttl     string
		indexes map[string]key
	}{
		{got.Events, "live-stripe-payments-events", key{"id", ""}, "expiration", map[string]key{
			"time": {"date", "time"}, "account": {"stripe_account", "timestamp"}, "subscription": {"subscription",
				"timestamp"}}},
		{got.Purchases, "live-stripe-payments-purchases", key{"id", ""}, "",
			map[string]key{"account": {"account", "created"}}},
		{got.Subscriptions, "live-stripe-payments-subscriptions", key{"stripe_account", "id"}, "", map[string]key{
			"account": {"account", "created"}, "purchase": {"purchase", "created"}}},
		{got.Payments, "live-stripe-payments-payments", key{"stripe_account", "id"}, "", map[string]key{
			"account": {"account", "created"}, "purchase": {"purchase", "created"}}},
	} {
		if tt.table.Name != tt.name || (key{tt.table.PartitionKey, tt.table.SortKey}) != tt.keys || tt.table.TTL != tt.ttl {
			t.Errorf("%+v, want %s %v %q", tt.table, tt.name, tt.keys, tt.ttl)
		}
		for _, x := range tt.table.Indexes {
			if want := tt.indexes[x.Name]; (key{x.PartitionKey, x.SortKey}) != want {
				t.Errorf("%s %s: %+v, want %v", tt.name, x.Name, x, want)
			}
			if x.All {
				t.Errorf("%s %s: projects all", tt.name, x.Name)
			}
		}
		if len(tt.table.Indexes) != len(tt.indexes) {
			t.Errorf("%s has %d indexes", tt.name, len(tt.table.Indexes))
		}
	}
	for name, want := range map[string][]string{"time": nil, "account": {"type", "subscription"},
		"subscription": {"type", "stripe_account"}} {
		if include := got.Events.Index(name).Include; !slices.Equal(include, want) {
			t.Errorf("events %s: projects %v, want %v", name, include, want)
		}
	}
}
