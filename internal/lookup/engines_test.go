package lookup_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/account"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/pebblestore"
	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/test/storetest"
)

// TestEngines fills an older store in a folder and on DynamoDB, killed on the way, changes items in two
// processes, and compares rows and lists with the items.
func TestEngines(t *testing.T) {
	stores := map[string]func(t *testing.T, w *world) (store.Store, error){
		"pebble": func(t *testing.T, w *world) (store.Store, error) {
			return pebblestore.Open(t.TempDir(), pebblestore.Options{Tables: w.tables.All(), Names: schema.Names(), Now: w.now,
				Create: true, CacheBytes: 32 << 20})
		},
		"dynamodb": func(t *testing.T, w *world) (store.Store, error) {
			w.tables = schema.New(dynamotest.Prefix(t))
			client := dynamotest.Client(t)
			if _, err := dynamotable.Create(t.Context(), client, w.tables.All(), dynamotable.Settings{}, nil); err != nil {
				return nil, err
			}
			return dynamostore.Open(t.Context(), dynamostore.Options{Tables: w.tables.All(), Now: w.now, Client: client})
		},
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			s, err := open(t, w)
			w.must(err)
			w.store = s
			t.Cleanup(func() { w.must(s.Close()) })
			w.older(6)
			if _, err := w.open(storetest.CrashAt(7, storetest.After)); !errors.Is(err, storetest.ErrCrash) {
				t.Fatal(err)
			}
			one, other := w.engine(), w.engine()
			w.wantExact("filled")
			for i := range 5 {
				n, email := billing.Name{Account: fmt.Sprintf("a%05d", i), ID: "s"}, "Gold@example.com"
				_, err := one.Pause(t.Context(), n)
				w.must(err)
				_, err = account.Update(t.Context(), other.Records, n.Account, account.Change{Email: &email})
				w.must(err)
				if i%2 == 0 {
					_, err = other.Cancel(t.Context(), n, false)
				}
				w.must(err)
			}
			w.wantExact("changed")
			w.wantLists(one)
			if report, err := one.Verify(t.Context()); err != nil || !report.OK {
				t.Errorf("%+v, %v", report, err)
			}
		})
	}
}
