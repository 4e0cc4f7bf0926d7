package transfer_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/numbering"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/transfer"
)

// give gives the number of receipts a number each, and returns the last one.
func (f *folder) give(receipts int) (last string) {
	f.t.Helper()
	f.open("store", false, func(e *engine.Engine) {
		for range receipts {
			receipt := store.Key{PK: "ACC#a1", SK: "REC#" + rand.Text()}
			if err := e.Store.Commit(f.t.Context(), store.Put(e.Table, billing.ItemAt(receipt))); err != nil {
				f.t.Fatal(err)
			}
			writes, err := numbering.New(e.Records, false).Give(f.t.Context(), []store.Key{receipt})
			if err == nil {
				err = e.Store.Commit(f.t.Context(), writes...)
			}
			if err != nil {
				f.t.Fatal(err)
			}
			x, err := numbering.Decode(writes[1].Item)
			if err != nil {
				f.t.Fatal(err)
			}
			last = x.String()
		}
	})
	return last
}

// TestRestore_BeginsASeries: a restored store never gives a number that the replaced store may have given, also if one
// backup is restored twice.
func TestRestore_BeginsASeries(t *testing.T) {
	f := newFolder(t)
	f.give(2)
	f.backup("backup")
	if last := f.give(3); last != "R-2024-000005" {
		t.Fatalf("last %s", last)
	}
	for _, want := range [][2]string{{"R-2024-000005", "R-2024B-000002"}, {"R-2024-000005 R-2024B-000002", "R-2024C-000002"}} {
		now := f.Now().Add(time.Second)
		f.Folders.Now = func() time.Time { return now }
		r, err := transfer.Restore(t.Context(), f.Folders, f.path("backup"), f.path("store"), true)
		if err != nil || r.Known != want[0] {
			t.Fatalf("%+v, %v; want %s", r, err, want[0])
		}
		if last := f.give(2); last != want[1] {
			t.Errorf("last %s, want %s", last, want[1])
		}
	}
}
