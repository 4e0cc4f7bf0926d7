// Package schema declares Duesday's tables as data: names, keys, indexes, projections and attribute
// names. The recurring-payments table is exactly the table of the published DynamoDB model
// (Recurring payments schema design in DynamoDB), plus Duesday's own attributes.
//
// It does not read or write items, and does not know their meaning; package billing does.
package schema

import (
	"fmt"
	"regexp"

	"github.com/duesday/duesday/internal/store"
)

// DefaultPrefix is the default prefix of every table's name.
const DefaultPrefix = "duesday-"

// The secondary indexes of the recurring-payments table, by their published names.
const (
	ReminderIndex = "GSI-1" // NextReminderDate, LastReminderDate
	PaymentIndex  = "GSI-2" // NextPaymentDate, LastPaymentDate
)

// Tables holds the tables of one installation.
type Tables struct {
	RecurringPayments store.Table
	Outbox            store.Table
	Tracking          Tracking
}

// Revision grows with each change of an index or TTL attribute of a table; see pebblestore.Options.
const Revision = 1

// New returns the tables whose names begin with prefix.
func New(prefix string) Tables {
	return Tables{
		RecurringPayments: store.Table{
			Name:         prefix + "recurring-payments",
			PartitionKey: PK, SortKey: SK, TTL: TTL,
			Indexes: []store.Index{
				{Name: ReminderIndex, PartitionKey: NextReminderDate, SortKey: LastReminderDate,
					Include: []string{SK, PK, SKU, Email, NextPaymentDate}},
				{Name: PaymentIndex, PartitionKey: NextPaymentDate, SortKey: LastPaymentDate,
					Include: []string{PK, SK, Email, PaymentDay, PaymentAmount, SKU, PaymentDetails}},
			},
		},
		Outbox:   store.Table{Name: prefix + "outbox", PartitionKey: PK, SortKey: SK},
		Tracking: newTracking(prefix),
	}
}

// Named returns the tables whose names begin with prefix, but for the recurring-payments
// table: if recurring is not "", it names an existing table.
func Named(prefix, recurring string) Tables {
	t := New(prefix)
	if recurring != "" {
		t.RecurringPayments.Name = recurring
	}
	return t
}

// All returns the tables in a fixed order, new ones last.
func (t Tables) All() []store.Table {
	return append([]store.Table{t.RecurringPayments, t.Outbox}, t.Tracking.All()...)
}

// tableName is the form of a table's name at DynamoDB.
var tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

// CheckNames returns an error unless all table names are distinct and valid in DynamoDB.
func (t Tables) CheckNames() error {
	seen := map[string]bool{}
	for _, table := range t.All() {
		switch {
		case !tableName.MatchString(table.Name):
			return fmt.Errorf("table name must be 3 to 255 letters, digits and _ . - (got %q)", table.Name)
		case seen[table.Name]:
			return fmt.Errorf("table name %q is used twice", table.Name)
		}
		seen[table.Name] = true
	}
	return nil
}
