// Package schema declares Duesday's tables as data: names, keys, indexes, projections
// and the attribute names in them. The recurring-payments table is, letter by letter,
// the one of the published DynamoDB model (Recurring payments schema design in
// DynamoDB) with Duesday's own attributes beside it.
//
// It does not read or write items; what they mean is billing's business.
package schema

import "github.com/duesday/duesday/internal/store"

// DefaultPrefix begins the name of every table unless another is configured.
const DefaultPrefix = "duesday-"

// The secondary indexes of the recurring-payments table, by their published names.
const (
	ReminderIndex = "GSI-1" // NextReminderDate, LastReminderDate
	PaymentIndex  = "GSI-2" // NextPaymentDate, LastPaymentDate
)

// Tables are the tables of one installation.
type Tables struct {
	RecurringPayments store.Table
	Outbox            store.Table
}

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
		Outbox: store.Table{Name: prefix + "outbox", PartitionKey: PK, SortKey: SK},
	}
}

// Named returns the tables whose names begin with prefix, but for the recurring-payments
// table, which is called recurring when that is not "": a table that exists already.
func Named(prefix, recurring string) Tables {
	t := New(prefix)
	if recurring != "" {
		t.RecurringPayments.Name = recurring
	}
	return t
}

// All returns the tables in a fixed order.
func (t Tables) All() []store.Table { return []store.Table{t.RecurringPayments, t.Outbox} }
