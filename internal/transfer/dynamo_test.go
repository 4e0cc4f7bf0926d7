package transfer_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/pebblestore"
	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/test/storetest"
)

// onDynamo returns a side on DynamoDB Local, with its tables made, reached over an endpoint.
func (w *world) onDynamo(endpoint string) move.Side {
	w.t.Helper()
	tables := schema.New(dynamotest.Prefix(w.t))
	if _, err := dynamotable.Create(w.t.Context(), dynamotest.Client(w.t), tables.All(), dynamotable.Settings{}, nil); err != nil {
		w.t.Fatal(err)
	}
	s, err := dynamostore.Open(w.t.Context(), dynamostore.Options{Tables: tables.All(), Now: w.now,
		Client: dynamotest.ClientAt(endpoint)})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.closing(move.Side{Store: s, Tables: tables})
}

func (w *world) onPebble() move.Side {
	w.t.Helper()
	tables := schema.New(schema.DefaultPrefix)
	s, err := pebblestore.Open(w.t.TempDir(), pebblestore.Options{Tables: tables.All(), Names: schema.Names(),
		Now: w.now, Create: true, CacheBytes: 32 << 20})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.closing(move.Side{Store: s, Tables: tables})
}

func (w *world) closing(s move.Side) move.Side {
	w.t.Cleanup(func() {
		if err := s.Store.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return s
}

// TestCopy_EnginesThereAndBack: from memory to DynamoDB, to a folder, and to other tables of
// DynamoDB, each time killed once on the way and, where the source is shared, with a worker
// on it that sleeps meanwhile.
func TestCopy_EnginesThereAndBack(t *testing.T) {
	w := newWorld(t, false)
	if _, err := job.Payments(t.Context(), w.open(w.from, w.box), job.Options{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	endpoint := dynamotest.Endpoint(t)
	for i, next := range []struct {
		shards int
		side   move.Side
	}{{4, w.onDynamo(endpoint)}, {1, w.onPebble()}, {3, w.onDynamo(endpoint)}} {
		w.to, w.shards = next.side, next.shards
		w.pass(25 * time.Hour)
		wake := func() {}
		if w.shared {
			s, ended := w.work(5)
			wake = func() { close(s.awake); <-ended }
		}
		crash(t, w, int64(3+i), storetest.After)
		if r := w.finish(); r.Shards != next.shards {
			t.Errorf("copy %d: %+v", i, r)
		}
		w.alike()
		wake()
		w.from, w.shared = w.to, i != 1
	}
	w.settle(w.to)
}

// alike holds the destination against the source, item by item.
func (w *world) alike() {
	w.t.Helper()
	from, to := resharded(w.t, everything(w.t, w.from), w.shards), everything(w.t, w.to)
	for key, it := range from {
		if strings.HasPrefix(key, "0 META") || strings.HasPrefix(key, "0 LEASE#") {
			continue
		}
		if !move.Unmoved(it, w.shards).Equal(to[key]) {
			w.t.Errorf("%s is %v, want %v", key, to[key], it)
		}
		delete(to, key)
	}
	delete(to, "0 META/META")
	for key := range to {
		w.t.Errorf("the destination has %s", key)
	}
}

// TestCopy_OverAFaultyWire: between two sets of DynamoDB tables, over a wire that throttles,
// conflicts, loses requests and replies, and cuts pages short; killed again and again.
func TestCopy_OverAFaultyWire(t *testing.T) {
	w := newWorld(t, true)
	endpoint := dynamotest.Endpoint(t)
	w.to = w.onDynamo(endpoint)
	w.finish()
	wire := func() *dynamotest.Proxy {
		return dynamotest.NewProxy(t, endpoint, dynamotest.Options{Seed: 7,
			Rates: dynamotest.Rates{dynamotest.Throttling: 0.05, dynamotest.ErrorAfter: 0.05,
				dynamotest.RequestLost: 0.05, dynamotest.ReplyLost: 0.1, dynamotest.Conflict: 0.05, dynamotest.SmallPage: 0.5,
				dynamotest.EmptyPage: 0.1}})
	}
	w.from, w.to, w.shards = w.over(w.to, wire().URL()), w.onDynamo(wire().URL()), 5
	for n := int64(1); n <= 16; n += 3 {
		if _, err := w.copy(crashAt(n, storetest.After, new(atomicInt))).Run(t.Context()); err != nil &&
			!errors.Is(err, storetest.ErrCrash) {
			t.Error(err)
		}
		if able := w.able(); len(able) > 1 {
			t.Errorf("able to charge: %v", able)
		}
	}
	w.finish()
	w.alike()
	w.settle(w.to)
}

// over returns the same tables, reached over another endpoint.
func (w *world) over(s move.Side, endpoint string) move.Side {
	w.t.Helper()
	other, err := dynamostore.Open(w.t.Context(), dynamostore.Options{Tables: s.Tables.All(), Now: w.now,
		Client: dynamotest.ClientAt(endpoint)})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.closing(move.Side{Store: other, Tables: s.Tables})
}
