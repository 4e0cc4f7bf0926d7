package transfer_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/storetest"
)

// setMeta changes META of the source, as another Duesday would.
func (w *world) setMeta(attributes ...store.Attribute) {
	w.t.Helper()
	table := w.from.Tables.RecurringPayments.Name
	if err := w.from.Store.Commit(w.t.Context(), store.Update(table, billing.MetaKey, store.NewItem(attributes...),
		nil)); err != nil {
		w.t.Fatal(err)
	}
}

// TestMigrate: a store of an older format gets the present one, killed before or after any of the
// commits: it is fenced until no lease lives, then charges as before, or stays switched off.
func TestMigrate(t *testing.T) {
	for _, charging := range []bool{true, false} {
		for n := int64(1); ; n++ {
			w := newWorld(t, true)
			w.setMeta(store.Attribute{Name: schema.Format, Value: store.Int(1)},
				store.Attribute{Name: schema.Charging, Value: store.Bool(charging)})
			until := w.now().Add(time.Minute)
			lease := billing.ItemAt(store.Key{PK: billing.LeasePK(billing.Payments), SK: "2024-01-31"},
				store.Attribute{Name: schema.Until, Value: store.S(billing.Stamp(until))})
			if err := w.from.Store.Commit(t.Context(), store.Put(w.from.Tables.RecurringPayments.Name, lease)); err != nil {
				t.Fatal(err)
			}
			var points atomic.Int64
			point, phase := (n+1)/2, storetest.Before
			if n%2 == 0 {
				phase = storetest.After
			}
			_, err := w.copy(crashAt(point, phase, &points)).Migrate(t.Context(), "v2")
			st, rerr := w.from.State(t.Context())
			if rerr != nil {
				t.Fatal(rerr)
			}
			if st.Format == billing.FormatVersion && w.now().Before(until) {
				t.Errorf("point %d: raised beside a lease", n)
			}
			if err != nil {
				if _, open := engine.Open(t.Context(), w.options(w.from, w.box)); st.Moved != "" &&
					!errors.Is(open, billing.ErrMoved) {
					t.Errorf("point %d: opened while it is fenced: %v", n, open)
				}
				if _, err := w.copy(nil).Migrate(t.Context(), "v2"); err != nil {
					t.Fatalf("point %d: again: %v", n, err)
				}
			}
			st, rerr = w.from.State(t.Context())
			if rerr != nil || st.Format != billing.FormatVersion || st.Moved != "" || st.Charging != charging || st.MovedID != "" {
				t.Errorf("point %d: %+v, %v", n, st, rerr)
			}
			if had, err := w.copy(nil).Migrate(t.Context(), "v2"); had != billing.FormatVersion || err != nil {
				t.Errorf("migrated once more: %d, %v", had, err)
			}
			if points.Load() < point {
				break
			}
		}
	}
}

// TestMigrate_Moved: a store that is fenced for a copy is not migrated.
func TestMigrate_Moved(t *testing.T) {
	w := newWorld(t, true)
	if err := w.from.Fence(t.Context(), "copy", "mem:b"); err != nil {
		t.Fatal(err)
	}
	w.setMeta(store.Attribute{Name: schema.Format, Value: store.Int(1)})
	if _, err := w.copy(nil).Migrate(t.Context(), "v2"); !errors.Is(err, billing.ErrMoved) {
		t.Errorf("%v, want ErrMoved", err)
	}
}

// TestNewerFormat: a process that works on a store stops when another Duesday has raised its format,
// and names the version to use.
func TestNewerFormat(t *testing.T) {
	w := newWorld(t, true)
	e := w.open(w.from, w.box)
	w.setMeta(store.Attribute{Name: schema.Format, Value: store.Int(billing.FormatVersion + 1)},
		store.Attribute{Name: schema.Program, Value: store.S("v9.1")})
	r, err := job.Payments(t.Context(), e, job.Options{Workers: 1})
	if !errors.Is(err, store.ErrFormat) || r != nil && r.Counts[engine.OutcomePaid] > 0 {
		t.Errorf("a run: %v, %+v", err, r)
	}
	if err == nil || !strings.Contains(err.Error(), "use Duesday v9.1") {
		t.Errorf("%v does not name the version", err)
	}
}
