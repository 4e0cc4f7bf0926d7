package capacity_test

import (
	"testing"

	"github.com/duesday/duesday/internal/capacity"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotest"
)

// TestTheEngineSendsWhatIsCounted does the same to the engine on DynamoDB Local, which says what
// it was told that it has consumed, and to a Meter: single writes, with the token, and reads.
func TestTheEngineSendsWhatIsCounted(t *testing.T) {
	l := newLocal(t, table)
	engine, err := dynamostore.Open(t.Context(), dynamostore.Options{Tables: []store.Table{l.table},
		Client: dynamotest.Client(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()
	meter := newMeter(t, capacity.Options{Tables: []store.Table{l.table}, TokenBytes: capacity.TokenBytes})
	both := func(what string, do func(s store.Store) error) {
		t.Helper()
		read, write := engine.Consumed()
		before := meter.Usage()
		if err := do(engine); err != nil {
			t.Fatal(what, err)
		}
		if err := do(meter); err != nil {
			t.Fatal(what, err)
		}
		r, w := engine.Consumed()
		if got, want := sumOf(meter.Usage().Since(before)).Units, (capacity.Units{Read: r - read,
			Write: w - write}); got != want {
			t.Errorf("%s: the meter counts %v, the engine has consumed %v", what, got, want)
		}
	}
	write := func(what string, w store.Write) {
		t.Helper()
		both(what, func(s store.Store) error { return s.Commit(t.Context(), w) })
	}
	day, last := text("Day", "2026-01-05"), text("Last", "2025")
	fits := capacity.WriteUnitBytes - capacity.TokenBytes
	write("put, just in one unit", store.Put(l.table.Name, item(1, fits, day, last)))
	write("put, just not", store.Put(l.table.Name, item(2, fits+1, day, last), store.Absent()))
	write("put over it", store.Put(l.table.Name, item(1, fits, text("Day", "2026-02-05"), last),
		store.AttributeEquals("Day", store.S("2026-01-05"))))
	write("into the index that projects all", store.Update(l.table.Name, key(1), store.NewItem(text("SKU", "1")), nil))
	write("its row changes with the token", store.Update(l.table.Name, key(1), store.NewItem(text("SKU", "1")), nil))
	write("check, which is a read", store.Check(l.table.Name, key(2)))
	both("get", func(s store.Store) error { _, err := s.Get(t.Context(), l.table.Name, key(1)); return err })
	for _, q := range []store.Query{{Partition: "ACC#1"}, {Partition: "ACC#1", Limit: 1},
		{Index: "by-day", Partition: "2026-02-05"}, {Index: "by-sku", Partition: "1"}} {
		q.Table = l.table.Name
		both("query "+q.Index, func(s store.Store) (err error) {
			for _, err = range s.Query(t.Context(), q) {
				continue
			}
			return err
		})
	}
	write("delete", store.Delete(l.table.Name, key(1)))
}
