package pebblestore_test

import (
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/pebblestore"
)

// TestOlderStoreOpens: a folder that was made before the tracking tables were declared opens
// with all tables, keeps what it has, takes items of the new tables, and still opens in the
// program that made it.
func TestOlderStoreOpens(t *testing.T) {
	dir := t.TempDir()
	tables, names := schema.New(schema.DefaultPrefix), schema.Names()
	older := []store.Table{tables.RecurringPayments, tables.Outbox}
	olderNames := names[:slices.Index(names, "subscription")+1]
	if slices.Contains(olderNames, schema.TrackedID) || len(olderNames) < 80 {
		t.Fatalf("the older program's names are %v", olderNames)
	}
	had := schema.New(schema.DefaultPrefix).Describe()[0].Samples()[0]
	got := schema.New(schema.DefaultPrefix).Describe()[2].Samples()[1]
	events := tables.Tracking.Events

	within(t, dir, older, olderNames, func(s *pebblestore.Store) {
		if err := s.Commit(t.Context(), store.Put(tables.RecurringPayments.Name, had, store.Absent())); err != nil {
			t.Fatal(err)
		}
	})
	within(t, dir, tables.All(), names, func(s *pebblestore.Store) {
		holds(t, s, &tables.RecurringPayments, had)
		got.Set(events.TTL, store.Int(1<<40)) // not expired
		if err := s.Commit(t.Context(), store.Put(events.Name, got, store.Absent())); err != nil {
			t.Fatal(err)
		}
	})
	within(t, dir, older, olderNames, func(s *pebblestore.Store) { holds(t, s, &tables.RecurringPayments, had) })
	within(t, dir, tables.All(), names, func(s *pebblestore.Store) {
		holds(t, s, &events, got)
		rows := 0
		for row, err := range s.Query(t.Context(), store.Query{Table: events.Name, Index: schema.SubscriptionIndex,
			Partition: "sub_sample"}) {
			if err != nil || row.Str(schema.TrackedType) == "" || row.Has(schema.TrackedDate) {
				t.Errorf("row %v, %v", row, err)
			}
			rows++
		}
		if rows != 1 {
			t.Errorf("the index of the new table has %d rows", rows)
		}
	})
}

func within(t *testing.T, dir string, tables []store.Table, names []string, do func(*pebblestore.Store)) {
	t.Helper()
	s, err := pebblestore.Open(dir, pebblestore.Options{Tables: tables, Names: names, Create: true, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	do(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func holds(t *testing.T, s *pebblestore.Store, table *store.Table, want store.Item) {
	t.Helper()
	if it, err := s.Get(t.Context(), table.Name, table.KeyOf(want)); err != nil || !it.Equal(want) {
		t.Errorf("%s: %v, %v, want %v", table.Name, it, err, want)
	}
}
