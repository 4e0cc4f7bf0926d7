package pebblestore

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestScheduler: a compaction that is due when the store opens waits until it is open, and begins
// then without another call. So does one that a later flush makes due.
func TestScheduler(t *testing.T) {
	files := vfs.NewMem()
	open := func(s *scheduler) *pebble.DB {
		o := Options{tune: tiny}.withDefaults()
		po := pebbleOptions(&o, files, pebbleLog{log: o.Logger})
		if po.DisableAutomaticCompactions = s == nil; s != nil {
			po.Experimental.CompactionScheduler = s
		}
		db, err := pebble.Open("d", po)
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	fill := func(db *pebble.DB) {
		for n := range 4 {
			for i := range 10 {
				if err := db.Set(fmt.Appendf(nil, "%d %d", i, n), make([]byte, 100), pebble.NoSync); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	db := open(nil)
	fill(db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := newScheduler()
	db = open(s)
	if m := db.Metrics().Compact; m.Count > 0 || m.NumInProgress > 0 {
		t.Errorf("%d compactions, and %d under way, before the store is open", m.Count, m.NumInProgress)
	}
	compacts := func(due func()) {
		t.Helper()
		before, tick := db.Metrics().Compact.DefaultCount, time.NewTicker(time.Millisecond)
		defer tick.Stop()
		due()
		for late := time.After(time.Minute); db.Metrics().Compact.DefaultCount == before; {
			select {
			case <-tick.C:
			case <-late:
				t.Fatal("no compaction")
			}
		}
	}
	compacts(s.open)
	compacts(func() { fill(db) })
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
