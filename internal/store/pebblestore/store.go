package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/duesday/duesday/internal/store"
)

// A Store is an open store. Create it with Open.
type Store struct {
	schema  store.Schema
	layouts map[string]*layout
	now     func() time.Time
	log     *slog.Logger
	dir     string // as the user names it
	reader  bool   // opened for reading only
	failure *failure
	lock    *lock
	db      *pebble.DB
	disk    *failStopFS
	sync    *pebble.WriteOptions // pebble.Sync; tests plant a bug here

	current  atomic.Pointer[view]
	requests chan *request // to the committer
	groups   chan *group   // from the committer to the finisher
	inFlight atomic.Int32  // groups applied and not yet synced
	synced   chan struct{} // to the committer: look at inFlight again
	syncTime atomic.Int64  // mean, in nanoseconds
	finished chan struct{} // closed when both have ended

	stop       context.CancelFunc // ends background
	background sync.WaitGroup     // the deletion of expired items
	expiry     chan expiryGuard   // begins it; takes one

	checkpoints sync.Mutex // held during a checkpoint

	// gate is held shared during every use of the database, and exclusively to close it. It
	// is never held while the caller's code runs.
	gate   sync.RWMutex
	closed bool // guarded by gate
}

var _ store.Store = (*Store)(nil)

// start begins serving; db and the layouts are ready.
func (s *Store) start() {
	s.publish(newView(s.db))
	s.requests = make(chan *request, maxGroupRequests)
	s.groups = make(chan *group) // unbuffered: one group syncs, one is decided
	s.synced = make(chan struct{}, 1)
	s.finished = make(chan struct{})
	go s.commitGroups()
	go s.finishGroups()

	ctx, cancel := context.WithCancel(context.Background())
	s.stop, s.expiry = cancel, make(chan expiryGuard, 1)
	if s.reader {
		return
	}
	s.background.Go(func() { s.expire(ctx) })
}

// Close implements store.Store. It waits for running commits, flushes the memtables, so that
// the next Open has no log to replay, and releases the folder.
func (s *Store) Close() error {
	s.stop()
	s.background.Wait()
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	s.closed = true
	close(s.requests)
	select {
	case <-s.finished:
	case <-s.failure.done:
	}
	if s.failure.begun.Load() {
		<-s.failure.done
		return fmt.Errorf("close: %w", s.failure.err) // Pebble may be stuck for ever
	}
	s.current.Load().release()
	var err error
	if !s.reader {
		err = s.db.Flush()
	}
	return errors.Join(err, s.db.Close(), s.lock.release())
}

// A view is a durable state of the database. It is closed when the finisher and the last reader
// have released it: an open view keeps old versions from being compacted away.
type view struct {
	*pebble.Snapshot
	refs atomic.Int64
}

func newView(db *pebble.DB) *view {
	v := &view{Snapshot: db.NewSnapshot()}
	v.refs.Store(1)
	return v
}

func (v *view) release() {
	if v.refs.Add(-1) == 0 {
		// Close fails only for a closed snapshot, which refs rules out.
		_ = v.Close()
	}
}

// acquire returns the current view, which the caller must release.
func (s *Store) acquire() *view {
	for {
		v := s.current.Load()
		// A count of zero means that it has been replaced since the Load.
		for n := v.refs.Load(); n > 0; n = v.refs.Load() {
			if v.refs.CompareAndSwap(n, n+1) {
				return v
			}
		}
	}
}

// publish makes v the current view and takes over its reference.
func (s *Store) publish(v *view) {
	if old := s.current.Swap(v); old != nil {
		old.release()
	}
}
