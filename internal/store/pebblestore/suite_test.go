package pebblestore

import (
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/duesday/duesday/internal/soaktest"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/storetest"
)

func TestSuiteInMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, tables []store.Table, now func() time.Time) store.Store {
		s := &inMemory{t: t, failing: new(atomic.Bool)}
		s.options = Options{Tables: tables, Now: now, Create: true,
			FS: errorfs.Wrap(vfs.NewCrashableMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
				if s.failing.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
					return errorfs.ErrInjected
				}
				return nil
			})),
			Fatal: func(err error) {
				if !s.failing.Load() {
					t.Errorf("the disk has failed: %v", err)
				}
			}}
		s.Store = openTest(t, "store", s.options)
		return s
	})
}

// inMemory is a store whose disk can fail, and whose items can be damaged.
type inMemory struct {
	*Store
	t       *testing.T
	options Options
	failing *atomic.Bool
}

var (
	_ storetest.AnswerLoser = (*inMemory)(nil)
	_ storetest.Damager     = (*inMemory)(nil)
)

// LoseAnswers lets the disk fail, for good: nothing is written from now on.
func (s *inMemory) LoseAnswers(bool) (restore func()) {
	s.failing.Store(true)
	return func() {}
}

// Damage cuts the item's bytes in the middle, and opens the store anew.
func (s *inMemory) Damage(table string, key store.Key) error {
	k := s.layouts[table].key(key)
	value, closer, err := s.db.Get(k)
	if err != nil {
		return err
	}
	err = errors.Join(s.db.Set(k, value[:len(value)-1], pebble.Sync), closer.Close(), s.Store.Close())
	s.Store = openTest(s.t, "store", s.options)
	return err
}

// Close abandons a store whose disk has failed: its process would be gone.
func (s *inMemory) Close() error {
	if s.failing.Load() {
		return store.ErrClosed
	}
	return s.Store.Close()
}

func TestSuiteOnDisk(t *testing.T) {
	soaktest.Long(t)
	t.Parallel()
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
