package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/store"
)

// tableRows counts the rows of all kinds of all tables.
func tableRows(t *testing.T, s *Store) int {
	t.Helper()
	v := s.acquire()
	defer v.release()
	it, err := v.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if it.Key()[0] != 0 {
			n++
		}
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

func session(i int, ttl int64) store.Item {
	it := store.NewItem(
		store.Attribute{Name: "PK", Value: store.S(fmt.Sprintf("p\x00%d", i%7))},
		store.Attribute{Name: "SK", Value: store.S(fmt.Sprint(i))},
		store.Attribute{Name: "owner", Value: store.S("me")},
	)
	if ttl != 0 {
		it.Set("TTL", store.Int(ttl))
	}
	return it
}

func TestDeleteExpired(t *testing.T) {
	var now atomic.Int64
	now.Store(1000)
	s := openTest(t, "store", Options{Tables: crashTables(), FS: vfs.NewMem(), Create: true,
		Now: func() time.Time { return time.Unix(now.Load(), 0) }})
	defer s.Close()
	const n = 3 * expiryBatch
	for i := range n {
		ttl := int64(2000 + i%2) // half of them a second later
		if i == n-1 {
			ttl = 0 // for ever
		}
		if err := s.Commit(t.Context(), store.Put("slots", session(i, ttl))); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(at int64, deleted, rows int) {
		t.Helper()
		now.Store(at)
		got, err := s.DeleteExpired(t.Context())
		if err != nil || got != deleted {
			t.Errorf("at %d DeleteExpired = %d, %v, want %d", at, got, err, deleted)
		}
		if got := tableRows(t, s); got != rows {
			t.Errorf("at %d the database has %d rows, want %d", at, got, rows)
		}
		if err := checkRows(s); err != nil {
			t.Error(err)
		}
	}
	const each = 3 // base, index "all", TTL entry
	expect(1999, 0, each*(n-1)+2)
	expect(2000, n/2, each*(n/2-1)+2)
	// One that is given more time is spared, and one that loses its TTL.
	extended := s.layouts["slots"].KeyOf(session(1, 0))
	if err := s.Commit(t.Context(), store.Update("slots", extended,
		store.NewItem(store.Attribute{Name: "TTL", Value: store.Int(3000)}), nil),
		store.Update("slots", s.layouts["slots"].KeyOf(session(3, 0)), nil, []string{"TTL"})); err != nil {
		t.Fatal(err)
	}
	expect(2500, n/2-3, each+2+2)
	expect(3000, 1, 2+2)
}

// What the entry says is held against the item again when the committer has it.
func TestExpiryIsCheckedAgain(t *testing.T) {
	s := openTest(t, "store", Options{Tables: crashTables(), FS: vfs.NewMem(), Create: true,
		Now: func() time.Time { return time.Unix(1000, 0) }})
	defer s.Close()
	if err := s.Commit(t.Context(), store.Put("slots", session(1, 2000))); err != nil {
		t.Fatal(err)
	}
	l := s.layouts["slots"]
	r := &request{expired: []expiredRow{{l, nil, l.KeyOf(session(1, 0))}, {l, nil, store.Key{PK: "gone", SK: "x"}}},
		done: make(chan error, 1)}
	if err := s.submit(t.Context(), r); err != nil || r.dropped != 0 {
		t.Errorf("%d items that are not expired were dropped, %v", r.dropped, err)
	}
	if _, err := s.Get(t.Context(), "slots", l.KeyOf(session(1, 0))); err != nil {
		t.Error(err)
	}
}

func TestExpiredItemsLeaveInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openTest(t, "store", Options{Tables: crashTables(), FS: vfs.NewMem(), Create: true})
		defer s.Close()
		if err := s.Commit(t.Context(), store.Put("slots", session(1, time.Now().Unix()+90))); err != nil {
			t.Fatal(err)
		}
		after := func(d time.Duration, want int, when string) {
			t.Helper()
			time.Sleep(d)
			if got := tableRows(t, s); got != want {
				t.Errorf("%d rows %s, want %d", got, when, want)
			}
		}
		after(10*time.Minute, 3, "without a guard")
		if err := s.Commit(t.Context(), store.Put("slots", session(2, time.Now().Unix()+90))); err != nil {
			t.Fatal(err)
		}
		var trusted atomic.Bool
		s.ExpireWhile(func(ctx context.Context, s store.Store) bool {
			_, err := s.Get(ctx, "slots", store.Key{PK: "none", SK: "-"}) // a guard reads
			return trusted.Load() && errors.Is(err, store.ErrNotFound)
		})
		after(80*time.Second, 6, "while the clock is in doubt")
		trusted.Store(true)
		after(expiryInterval, 0, "an interval after it was shown")
	})
}

func TestDeleteExpiredAfterClose(t *testing.T) {
	s := openTest(t, "store", Options{Tables: crashTables(), FS: vfs.NewMem(), Create: true})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteExpired(context.Background()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("DeleteExpired of a closed store: %v", err)
	}
	if err := s.Close(); !errors.Is(err, store.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
}
