package pebblestore

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/storetest"
)

func TestSuiteInMemory(t *testing.T) {
	storetest.Run(t, func(t *testing.T, tables []store.Table, now func() time.Time) store.Store {
		return openTest(t, "store", Options{Tables: tables, Now: now, FS: vfs.NewCrashableMem(), Create: true})
	})
}

func TestSuiteOnDisk(t *testing.T) {
	storetest.Run(t, func(t *testing.T, tables []store.Table, now func() time.Time) store.Store {
		dir := t.TempDir()
		return onDisk{openTest(t, dir, Options{Tables: tables, Now: now, Create: true}), dir}
	})
}

// onDisk takes its folder away when it is closed: the model opens a store for every check,
// each preallocates a log, and t.TempDir would keep them all until the test has ended.
type onDisk struct {
	*Store
	dir string
}

func (s onDisk) Close() error { return errors.Join(s.Store.Close(), os.RemoveAll(s.dir)) }
