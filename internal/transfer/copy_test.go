package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/lookup"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/transfer"
)

func everything(t testing.TB, s move.Side) map[string]store.Item {
	t.Helper()
	all := map[string]store.Item{}
	for i, table := range s.Tables.All() {
		for it, err := range s.Store.Scan(t.Context(), store.Scan{Table: table.Name}) {
			if err != nil {
				t.Fatal(err)
			}
			k := table.KeyOf(it)
			all[fmt.Sprint(i, " ", k.PK, "/", k.SK)] = it
		}
	}
	return all
}

// TestCopy_SameItems: the destination has the source's items and no others, the source's
// charging state, and its own number of shards.
func TestCopy_SameItems(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for _, shards := range []int{0, 1, 16} {
			w := newWorld(t, shared)
			w.shards = shards
			if _, err := job.Payments(t.Context(), w.open(w.from, w.box), job.Options{Workers: 1}); err != nil {
				t.Fatal(err)
			}
			w.pass(time.Hour)
			before := resharded(t, everything(t, w.from), max(1, shards))
			r := w.finish()
			after := everything(t, w.to)
			filled := 0 // lookup rows that are not copied
			for key := range after {
				if shards > 1 && strings.HasPrefix(key, "0 "+lookup.Prefix) {
					filled++
				}
			}
			if !r.Live || !r.Charging || r.Shards != max(1, shards) || int(r.Items) != len(after)-1-filled {
				t.Errorf("shared %v: %+v, %d items", shared, r, len(after))
			}
			for key, it := range before {
				if key == "0 META/META" || strings.HasPrefix(key, "0 LEASE#") {
					continue
				}
				got := after[key]
				if strings.Contains(key, "/SUB#") {
					if shared {
						it.Set(schema.Version, store.Int(it.Int(schema.Version)+1))
					}
					it = move.Unmoved(it, max(1, shards))
				}
				if !it.Equal(got) {
					t.Errorf("%s: %v, want %v", key, got, it)
				}
				delete(after, key)
			}
			delete(after, "0 META/META")
			for key := range after {
				t.Errorf("the destination has %s", key)
			}
			w.settle(w.to)
		}
	}
}

// resharded returns the items with the lookup rows of a store of so many shards per date.
func resharded(t testing.TB, all map[string]store.Item, shards int) map[string]store.Item {
	t.Helper()
	want := map[string]store.Item{}
	for key, it := range all {
		if !strings.HasPrefix(key, "0 ") {
			want[key] = it
		} else if !strings.HasPrefix(key, "0 "+lookup.Prefix) {
			want[key] = it
			rows, err := lookup.Of(it, shards)
			if err != nil {
				t.Error(err)
			}
			for _, r := range rows {
				want["0 "+r.Str(schema.PK)+"/"+r.Str(schema.SK)] = r
			}
		}
	}
	return want
}

func TestCopy_TheSourceStaysOff(t *testing.T) {
	w := newWorld(t, true)
	live := w.open(w.from, w.box) // a process that has the source open all the time
	w.finish()
	if _, err := engine.Open(t.Context(), w.options(w.from, w.box)); !errors.Is(err, billing.ErrMoved) ||
		!strings.Contains(err.Error(), "mem:b") {
		t.Errorf("open: %v", err)
	}
	if err := live.SetCharging(t.Context(), true, ""); !errors.Is(err, billing.ErrMoved) {
		t.Errorf("charging on: %v", err)
	}
	if _, err := job.Payments(t.Context(), live, job.Options{Workers: 1}); err == nil {
		t.Log("a run on the source reports that charging is off")
	}
	if r := w.finish(); !r.Before {
		t.Errorf("again: %+v", r)
	}
	w.settle(w.to)
}

// TestCopy_ChargingOffStaysOff: what was off in the source is off in the destination, for
// the same reason.
func TestCopy_ChargingOffStaysOff(t *testing.T) {
	w := newWorld(t, false)
	if err := w.open(w.from, w.box).SetCharging(t.Context(), false, "holiday"); err != nil {
		t.Fatal(err)
	}
	if r := w.finish(); r.Charging || r.Reason != "holiday" {
		t.Errorf("%+v", r)
	}
	if m, err := w.open(w.to, w.box).Meta(t.Context()); err != nil || m.Charging || m.Reason != "holiday" ||
		m.Moved != "" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestCopy_Refused(t *testing.T) {
	empty := func() move.Side {
		tables := schema.New("c-")
		mem, err := memstore.Open(tables.All(), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		return move.Side{Store: mem, Tables: tables}
	}
	for name, test := range map[string]struct {
		arrange func(*world) *transfer.Copy
		want    string
	}{
		"no source": {func(w *world) *transfer.Copy { c := w.copy(nil); c.From = empty(); return c },
			"there is no store at mem:a"},
		"a store of its own": {func(w *world) *transfer.Copy {
			w.open(w.to, w.box)
			return w.copy(nil)
		}, "is already another store"},
		"a foreign item": {func(w *world) *transfer.Copy {
			table := w.to.Tables.Outbox
			it := store.NewItem(store.Attribute{Name: "PK", Value: store.S("x")},
				store.Attribute{Name: "SK", Value: store.S("y")})
			if err := w.to.Store.Commit(t.Context(), store.Put(table.Name, it)); err != nil {
				t.Fatal(err)
			}
			return w.copy(nil)
		}, "b-outbox of mem:b must be empty"},
		"moved elsewhere": {func(w *world) *transfer.Copy {
			w.finish()
			c := w.copy(nil)
			c.To = empty()
			return c
		}, "was already moved: mem:b"},
		"moved on": {func(w *world) *transfer.Copy {
			w.finish()
			c := w.copy(nil)
			c.From, c.To, c.ToName = w.to, empty(), "mem:c"
			if _, err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			return w.copy(nil)
		}, "which has since moved elsewhere: mem:c"},
		"claimed, and moved elsewhere since": {func(w *world) *transfer.Copy {
			w.interrupt(1)
			c := w.copy(nil)
			c.To, c.ToName = empty(), "mem:c"
			if _, err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			return w.copy(nil)
		}, "was moved elsewhere: mem:c"},
		"an unfinished copy of another": {func(w *world) *transfer.Copy {
			w.interrupt(6)
			other := newWorld(t, false)
			c := w.copy(nil)
			c.From = other.from
			return c
		}, "unfinished copy of another store"},
		"an unfinished copy as the source": {func(w *world) *transfer.Copy {
			w.interrupt(6)
			c := w.copy(nil)
			c.From, c.To = w.to, empty()
			return c
		}, "is not a live store"},
		"other shards": {func(w *world) *transfer.Copy {
			w.interrupt(6)
			w.shards = 7
			return w.copy(nil)
		}, "was started with 1 shards per date (got 7)"},
		"canceled": {func(w *world) *transfer.Copy {
			w.interrupt(6)
			if err := w.copy(nil).Cancel(t.Context()); err != nil {
				t.Fatal(err)
			}
			return w.copy(nil)
		}, "was canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, true)
			if _, err := test.arrange(w).Run(t.Context()); !errors.Is(err, transfer.ErrRefused) ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// interrupt begins a copy and kills it at its n-th commit.
func (w *world) interrupt(n int64) {
	w.t.Helper()
	if _, err := w.copy(crashAt(n, storetest.After, new(atomicInt))).Run(w.t.Context()); !errors.Is(err,
		storetest.ErrCrash) {
		w.t.Fatalf("interrupted at %d: %v", n, err)
	}
}

// TestCopy_DifferencesAreNamedAndMended: a copy that differs does not become live; taken up
// again, it is mended.
func TestCopy_DifferencesAreNamedAndMended(t *testing.T) {
	for _, shared := range []bool{false, true} {
		w := newWorld(t, shared)
		c := w.copy(nil)
		c.To.Store = &tamper{Store: w.to.Store, table: w.to.Tables.RecurringPayments}
		r, err := c.Run(t.Context())
		if err != nil || r.Live || r.Different != 3 {
			t.Fatalf("%+v, %v", r, err)
		}
		all := fmt.Sprint(r.Differences)
		for _, want := range []string{"SUB#s0#SKU#gold differs in Email", "SUB#s1#SKU#gold is missing in the destination",
			"ACC#strange/ACC is not in the source"} {
			if !strings.Contains(all, want) {
				t.Errorf("%q is not in %s", want, all)
			}
		}
		if able := w.able(); len(able) > 0 {
			t.Errorf("able to charge: %v", able)
		}
		if r := w.finish(); r.Different > 0 || r.Before {
			t.Errorf("%+v", r)
		}
		w.settle(w.to)
	}
}

// A tamper changes the store right after the last segment has been copied.
type tamper struct {
	store.Store
	table store.Table
	mu    sync.Mutex // of two segments that end together
}

func (s *tamper) Commit(ctx context.Context, writes ...store.Write) error {
	last := writes[len(writes)-1]
	err := s.Store.Commit(ctx, writes...)
	if err != nil || last.Key.PK != move.CopyPK || !last.Set.Get(schema.Completed).Bool() || last.Key.SK[0] != '0' {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for it := range s.Scan(ctx, store.Scan{Table: s.table.Name}) {
		key := s.table.KeyOf(it)
		switch {
		case strings.HasPrefix(key.SK, "SUB#s0#") && it.Str(schema.Email) != "x":
			err = s.Store.Commit(ctx, store.Update(s.table.Name, key,
				store.NewItem(store.Attribute{Name: schema.Email, Value: store.S("x")}), nil))
		case strings.HasPrefix(key.SK, "SUB#s1#"):
			err = s.Store.Commit(ctx, store.Delete(s.table.Name, key))
		}
		if err != nil {
			return err
		}
	}
	return s.Store.Commit(ctx, store.Put(s.table.Name,
		store.NewItem(store.Attribute{Name: "PK", Value: store.S("ACC#strange")},
			store.Attribute{Name: "SK", Value: store.S("ACC")})))
}

// TestCopy_WaitsForLeases: a worker that shows signs of life is waited for.
func TestCopy_WaitsForLeases(t *testing.T) {
	w := newWorld(t, true)
	until := w.now().Add(5 * time.Second).Format("2006-01-02T15:04:05.000Z")
	if err := w.from.Store.Commit(t.Context(), store.Put(w.from.Tables.RecurringPayments.Name, store.NewItem(
		store.Attribute{Name: "PK", Value: store.S("LEASE#payments")}, store.Attribute{Name: "SK",
			Value: store.S("2024-01-31")},
		store.Attribute{Name: schema.Owner, Value: store.S("somebody")}, store.Attribute{Name: schema.Until,
			Value: store.S(until)}))); err != nil {
		t.Fatal(err)
	}
	c := w.copy(nil)
	var seen []int
	c.Waits = func(held []string) { seen = append(seen, len(held)) }
	if r, err := c.Run(t.Context()); err != nil || !r.Live {
		t.Fatalf("%+v, %v", r, err)
	}
	if fmt.Sprint(seen) != "[1 1 1 1 1 0]" {
		t.Errorf("leases seen: %v", seen)
	}
	if _, ok := everything(t, w.to)["0 LEASE#payments/2024-01-31"]; ok {
		t.Error("the lease was copied")
	}
}

// TestCopy_Expired items stay behind, also when they expire on the way.
func TestCopy_Expired(t *testing.T) {
	w := newWorld(t, false)
	table := w.from.Tables.RecurringPayments.Name
	for i, in := range []time.Duration{-time.Minute, 2 * time.Second, time.Hour} {
		it := store.NewItem(store.Attribute{Name: "PK", Value: store.S("ACC#a0")},
			store.Attribute{Name: "SK", Value: store.S(fmt.Sprint("REC#", i))},
			store.Attribute{Name: schema.TTL, Value: store.Int(w.now().Add(in).Unix())})
		if err := w.from.Store.Commit(t.Context(), store.Put(table, it)); err != nil {
			t.Fatal(err)
		}
	}
	c := w.copy(nil)
	c.Rate = 2 // the clock passes at every wait
	if r, err := c.Run(t.Context()); err != nil || !r.Live {
		t.Fatalf("%+v, %v", r, err)
	}
	all := everything(t, w.to)
	if all["0 ACC#a0/REC#0"] != nil || all["0 ACC#a0/REC#1"] != nil || all["0 ACC#a0/REC#2"] == nil {
		t.Errorf("receipts: %v", all)
	}
}

func TestCopy_Pace(t *testing.T) {
	w := newWorld(t, false)
	c := w.copy(nil)
	c.Rate = 1
	begun := w.now()
	r, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Each item passes three times: copied, and compared there and back.
	if took, want := w.now().Sub(begun), time.Duration(3*r.Items-10)*time.Second; took < want {
		t.Errorf("%d items at one a second took %s, want at least %s", r.Items, took, want)
	}
}
