package billing

import (
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// Of several workers with one item, the version condition lets one win: each commit raises the
// version, and holds only while the version is as it was read.

func readVersion(v store.Value) int64 {
	n, _ := v.Int64()
	return n
}

// write returns the put of the subscription, if it is still as it was read.
func (s *Subscription) write(table string) store.Write {
	was := asRead(s.Raw)
	if s.Over() && s.Open == nil { // another tool may have left it on the agenda
		s.NextPayment, s.NextReminder = civil.Date{}, civil.Date{}
	}
	s.Version++
	return store.Put(table, s.Item(), was...)
}

// Create returns the put of a new subscription.
func (s *Subscription) Create(table string) store.Write {
	return store.Put(table, s.Item(), store.Absent())
}

// Ours reports whether Duesday has written the subscription before.
func (s *Subscription) Ours() bool {
	_, ours := s.Raw.Get(schema.Version).Int64()
	return ours
}

// asRead holds while the subscription's item is as it was read. A legacy item has no version:
// then it must still be there, not be moved, and have the same terms. PaymentDetails is not
// compared: it may hold a value that store.Item cannot, and would never be equal.
func asRead(it store.Item) []store.Condition {
	v := it.Get(schema.Version)
	if _, ours := v.Int64(); ours {
		return []store.Condition{store.AttributeEquals(schema.Version, v)}
	}
	was := []store.Condition{store.AttributeEquals(schema.PK, it.Get(schema.PK))}
	for _, name := range [...]string{schema.Version, schema.Moved,
		schema.NextPaymentDate, schema.NextReminderDate, schema.LastPaymentDate,
		schema.PaymentAmount, schema.PaymentDay, schema.Status} {
		was = append(was, Unchanged(name, it.Get(name)))
	}
	return was
}

// Unchanged holds while the attribute is as it was read; the zero value is an absent one.
func Unchanged(name string, was store.Value) store.Condition {
	if was.IsZero() {
		return store.AttributeAbsent(name)
	}
	return store.AttributeEquals(name, was)
}

// nextVersion returns the attribute with the item's next version, or none for a legacy item.
func nextVersion(it store.Item) store.Item {
	if v, ours := it.Get(schema.Version).Int64(); ours {
		return store.Item{{Name: schema.Version, Value: store.Int(v + 1)}}
	}
	return nil
}

// Unchanged holds while the account is as it was read.
func (a *Account) Unchanged() store.Condition {
	return Unchanged(schema.Version, a.Raw.Get(schema.Version))
}

// UnchangedCheck holds a commit to the account as it was read.
func (a *Account) UnchangedCheck(table string) store.Write {
	return store.Check(table, AccountKey(a.ID), a.Unchanged())
}

// BumpVersion returns the put of the account, if it is still as it was read. Each commit that
// changes the account's set of subscriptions has it: their ids stay unique.
func (a *Account) BumpVersion(table string) store.Write {
	a.Version++
	return store.Put(table, a.Item(), a.Unchanged())
}
