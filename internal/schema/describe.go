package schema

import "github.com/duesday/duesday/internal/store"

// A Description is for people, beside the declaration of a table: which attributes its items have,
// which kinds of items there are, and samples. Nothing of it decides anything at run time.
type Description struct {
	Table      store.Table
	Attributes []Attribute  // all but the table's own keys
	Facets     []Facet      // the kinds of items, in a table with several
	Items      []store.Item // samples, in a table without facets
}

// An Attribute is a name and its type as DynamoDB writes it: S, N, BOOL, M or L.
type Attribute struct{ Name, Type string }

// A Facet is one kind of items.
type Facet struct {
	Name           string
	PartitionAlias string // name of the partition key for people
	SortAlias      string
	Attributes     []string     // names, without the table's keys
	Items          []store.Item // samples
}

// The capacity of the published model, for each table and each index: a provisioned one
// begins with, and between which bounds it is scaled. Units are DynamoDB's, per second.
const (
	ReadUnits   = 5
	WriteUnits  = 5
	LeastUnits  = 1
	MostUnits   = 10
	TargetUse   = 70 // percent of the provisioned units
	ScalingRole = "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
)

// Describe returns the descriptions of all tables, in the order of All.
func (t Tables) Describe() []Description {
	return append([]Description{describeRecurring(t.RecurringPayments), describeOutbox(t.Outbox)},
		t.Tracking.describe()...)
}

// Samples returns the table's sample items, facet by facet.
func (d *Description) Samples() []store.Item {
	items := d.Items
	for _, f := range d.Facets {
		items = append(items[:len(items):len(items)], f.Items...)
	}
	return items
}

// typed returns the names as attributes of one type.
func typed(kind string, names ...string) []Attribute {
	list := make([]Attribute, len(names))
	for i, name := range names {
		list[i] = Attribute{name, kind}
	}
	return list
}

func text(name, value string) store.Attribute {
	return store.Attribute{Name: name, Value: store.S(value)}
}

func number(name string, n int64) store.Attribute {
	return store.Attribute{Name: name, Value: store.Int(n)}
}

func truth(name string, b bool) store.Attribute {
	return store.Attribute{Name: name, Value: store.Bool(b)}
}

func object(name string, members ...store.Attribute) store.Attribute {
	return store.Attribute{Name: name, Value: store.M(store.NewItem(members...))}
}
