package pebblestore

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// small keeps the thousands of stores that the tests open from adding up: Pebble
// reserves a log of a memtable's size on the disk for each.
func small(po *pebble.Options) {
	po.CacheSize = 8 << 20
	po.MemTableSize = 256 << 10
}

// openTest opens a store that fails the test when its disk fails. The caller closes.
func openTest(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	if o.tune == nil {
		o.tune = small
	}
	if o.Fatal == nil {
		o.Fatal = func(err error) { t.Errorf("the disk has failed: %v", err) }
	}
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
