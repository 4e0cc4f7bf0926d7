package pebblestore

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// A group ends at whichever comes first, and otherwise when the sync before it has ended
// and nobody else is expected (see fill).
const (
	maxGroupRequests = 1024
	maxGroupBytes    = 8 << 20
)

// A group is what one batch and one sync carry.
type group struct {
	requests []*request
	batch    *pebble.Batch // nil when the group changes nothing
	view     *view         // the state that the batch leaves; nil with batch
	bytes    int
}

func (g *group) full() bool { return len(g.requests) >= maxGroupRequests || g.bytes >= maxGroupBytes }

// commitGroups is the committer. It ends when requests is closed.
func (s *Store) commitGroups() {
	defer close(s.groups)
	defer s.failOnPanic()
	st := &stage{store: s, recent: newRecent()}
	c := committer{Store: s, stage: st, timer: time.NewTimer(0)}
	for first := range s.requests {
		g := &group{}
		if c.fill(g, first); len(g.requests) == 0 {
			continue
		}
		if err := st.apply(g); err != nil {
			s.failure.fail(err)
			return
		}
		c.before = len(g.requests)
		s.inFlight.Add(1)
		select {
		case s.groups <- g:
		case <-s.failure.done:
			return
		}
	}
}

// A committer is the state of commitGroups.
type committer struct {
	*Store
	stage  *stage
	timer  *time.Timer
	before int // requests in the group before
}

// fill decides first and whatever comes until the group before has been synced, for a sync
// costs the same for one request as for a hundred. Then it waits for as many as the group
// before had, but no longer than a part of what a sync takes: those who were just answered
// are on their way with their next request, and would otherwise find that a nearly empty
// group has left without them. (With 128 workers and syncs of 3 ms a group carried 43
// requests before, 100 after.) A single writer is never waited for.
func (c *committer) fill(g *group, first *request) {
	c.take(g, first)
	for c.inFlight.Load() > 0 {
		select {
		case r, open := <-c.requests:
			if !open {
				return
			}
			c.take(g, r)
		case <-c.synced: // look again
		case <-c.failure.done:
			return
		}
		if g.full() {
			return
		}
	}
	c.timer.Reset(time.Duration(c.syncTime.Load()) / lingerPart)
	for !g.full() {
		if len(g.requests) >= c.before { // as many as can be expected: what else is here, and off
			select {
			case r, open := <-c.requests:
				if !open {
					return
				}
				c.take(g, r)
				continue
			default:
				return
			}
		}
		select {
		case r, open := <-c.requests:
			if !open {
				return
			}
			c.take(g, r)
		case <-c.timer.C:
			return
		}
	}
}

// lingerPart of the time of a sync is waited at most for those who are expected.
const lingerPart = 2

// take decides the request, unless its caller has given it up. Each is decided by the
// clock of its own moment: a group lasts as long as a sync, and a caller who has just been
// told that an item has expired must not find it present.
func (c *committer) take(g *group, r *request) {
	if !r.state.CompareAndSwap(waiting, taken) {
		return
	}
	g.requests = append(g.requests, r)
	g.bytes += r.bytes
	c.stage.decide(r, c.now().Unix())
}

// failOnPanic ends the process by way of the failure: Pebble panics when a log that
// is being rotated cannot be closed, for instance.
func (s *Store) failOnPanic() {
	if p := recover(); p != nil {
		s.failure.fail(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
}

// maxSyncTime bounds what one slow sync adds to the mean of them, in nanoseconds.
const maxSyncTime = 5_000_000

// finishGroups is the finisher: it waits for the sync of each group in order, lets
// readers see it, and answers. A conflict is answered no earlier than a success, for
// what it conflicts with may be in an earlier group that is not durable yet.
func (s *Store) finishGroups() {
	defer close(s.finished)
	defer s.failOnPanic()
	for g := range s.groups {
		if g.batch != nil && s.sync.Sync {
			began := time.Now()
			if err := g.batch.SyncWait(); err != nil {
				s.failure.fail(fmt.Errorf("sync: %w", err))
			}
			took := time.Since(began).Nanoseconds()
			s.syncTime.Store((7*s.syncTime.Load() + min(took, maxSyncTime)) / 8)
		}
		if s.failure.begun.Load() {
			return
		}
		s.inFlight.Add(-1)
		select {
		case s.synced <- struct{}{}:
		default: // the committer has a signal that it has not looked at yet
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
