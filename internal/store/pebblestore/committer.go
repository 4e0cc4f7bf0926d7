package pebblestore

import (
	"fmt"
	"runtime/debug"

	"github.com/cockroachdb/pebble/v2"
)

// A group ends at whichever comes first. Nothing waits for a group to fill: while one
// is being synced the next collects by itself.
const (
	maxGroupRequests = 1024
	maxGroupBytes    = 8 << 20
)

// A group is what one batch and one sync carry.
type group struct {
	requests []*request
	batch    *pebble.Batch // nil when the group changes nothing
	view     *view         // the state that the batch leaves; nil with batch
}

// commitGroups is the committer. It ends when requests is closed.
func (s *Store) commitGroups() {
	defer close(s.groups)
	defer s.failOnPanic()
	st := &stage{store: s, recent: newRecent()}
	for first := range s.requests {
		g := s.gather(first)
		if len(g.requests) == 0 {
			continue
		}
		if err := st.decide(g); err != nil {
			s.failure.fail(err)
			return
		}
		select {
		case s.groups <- g:
		case <-s.failure.done:
			return
		}
	}
}

// failOnPanic ends the process by way of the failure: Pebble panics when a log that
// is being rotated cannot be closed, for instance.
func (s *Store) failOnPanic() {
	if p := recover(); p != nil {
		s.failure.fail(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
}

// gather takes first and whatever else waits.
func (s *Store) gather(first *request) *group {
	g := &group{}
	bytes := 0
	for r := first; ; {
		if r.state.CompareAndSwap(waiting, taken) {
			g.requests = append(g.requests, r)
			bytes += r.bytes
		}
		if len(g.requests) >= maxGroupRequests || bytes >= maxGroupBytes {
			return g
		}
		var open bool
		select {
		case r, open = <-s.requests:
			if !open {
				return g
			}
		default:
			return g
		}
	}
}

// finishGroups is the finisher: it waits for the sync of each group in order, lets
// readers see it, and answers. A conflict is answered no earlier than a success, for
// what it conflicts with may be in an earlier group that is not durable yet.
func (s *Store) finishGroups() {
	defer close(s.finished)
	defer s.failOnPanic()
	for g := range s.groups {
		if g.batch != nil && s.sync.Sync {
			if err := g.batch.SyncWait(); err != nil {
				s.failure.fail(fmt.Errorf("sync: %w", err))
			}
		}
		if s.failure.begun.Load() {
			return
		}
		if g.batch != nil {
			s.publish(g.view)
			_ = g.batch.Close() // gives the buffer back; it was committed
		}
		for _, r := range g.requests {
			r.done <- r.err
		}
	}
}
