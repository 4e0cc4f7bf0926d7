package pebblestore

import (
	"testing"
)

// testCache keeps the many small stores of the tests from adding up.
const testCache = 8 << 20

// openTest opens a store that fails the test when its disk fails. The caller closes.
func openTest(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	o.CacheBytes = testCache
	if o.Fatal == nil {
		o.Fatal = func(err error) { t.Errorf("the disk has failed: %v", err) }
	}
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
