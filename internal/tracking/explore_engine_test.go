package tracking_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/pebblestore"
	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/stripefake"
)

// fill empties the tables of the other store and then copies the stored data into it.
func fill(t testing.TB, to, from store.Store) {
	t.Helper()
	for _, table := range used {
		var writes []store.Write
		for it, err := range to.Scan(t.Context(), store.Scan{Table: table.Name}) {
			if err != nil {
				t.Fatal(err)
			}
			writes = append(writes, store.Delete(table.Name, table.KeyOf(it)))
		}
		for it, err := range from.Scan(t.Context(), store.Scan{Table: table.Name}) {
			if err != nil {
				t.Fatal(err)
			}
			writes = append(writes, store.Put(table.Name, it))
		}
		for _, w := range writes {
			if err := to.Commit(t.Context(), w); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// onEngine takes every flow through the engine: its events in order, and in others with repetitions
// and faults, once with the thin ones among them. Without DUESDAY_SOAK it is each so many flows.
func onEngine(t *testing.T, s store.Store, each int) {
	for i, f := range flows() {
		if i%each != 0 && !soaktest.On() {
			continue
		}
		tp := play(t, f, oldestVersion)
		for j, events := range [][]stripefake.Event{tp.events[stripefake.NewestVersion], tp.events[oldestVersion],
			tp.inForm(stripefake.BothEvents, oldestVersion)} {
			shuffled := j > 0
			empty := memory0(t)
			fill(t, s, empty) // what the flow before has left is gone
			fill(t, s, tp.roots[(i+j)%len(tp.roots)])
			w := newWalk(t, tp, s, uint64(i), 3*min(j, 1))
			if err := w.run(t, events, shuffled); err != nil {
				t.Errorf("%s, shuffled %v: %v%s", f.name, shuffled, err, w.path())
			}
		}
	}
}

func TestFlows_OnPebble(t *testing.T) {
	t.Parallel()
	s, err := pebblestore.Open(t.TempDir(),
		pebblestore.Options{Tables: used, Now: func() time.Time { return shopStart }, Create: true, CacheBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	each := soaktest.Share(3, 1)
	if testing.Short() {
		each = 5
	}
	onEngine(t, s, each)
	followsOn(t, s)
}

// TestFlows_OnDynamoDB runs the same test on DynamoDB Local.
func TestFlows_OnDynamoDB(t *testing.T) {
	t.Parallel()
	client := dynamotest.ClientAt(dynamotest.Endpoint(t))
	lasting := slices.Clone(used) // DynamoDB Local deletes what has expired, by the machine's clock
	for i := range lasting {
		lasting[i].TTL = ""
	}
	if _, err := dynamotable.Create(t.Context(), client, lasting, dynamotable.Settings{}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := dynamotable.Drop(context.Background(), client, lasting, nil); err != nil {
			t.Error(err)
		}
	})
	s, err := dynamostore.Open(t.Context(),
		dynamostore.Options{Tables: used, Now: func() time.Time { return shopStart }, Client: client,
			Pace: dynamostore.Pace{First: time.Millisecond, Longest: 20 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	onEngine(t, s, 9)
	followsOn(t, s)
}
