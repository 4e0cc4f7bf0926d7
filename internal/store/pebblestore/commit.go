package pebblestore

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/duesday/duesday/internal/store"
)

// A request is a commit on its way: to the committer, which decides it, and to the
// finisher, which answers it.
type request struct {
	writes  []store.Write
	plans   []plan
	expired []expiredRow // instead of writes, from the deletion of expired items
	dropped int          // how many of them were deleted; set before done
	bytes   int
	state   atomic.Int32
	err     error      // the committer's decision
	done    chan error // takes one answer
}

// A request is either taken by the committer or abandoned by its caller. The outcome of a taken
// request is always awaited. The committer passes an abandoned one over.
const (
	waiting int32 = iota
	taken
	abandoned
)

// A plan is the part of a write that does not depend on the stored item. The caller's goroutine
// computes it, to leave less work to the one committer.
type plan struct {
	*layout
	id    store.Key
	key   []byte
	item  store.Item // of a put: the item, a copy; of an update, set by the stage
	value []byte     // the encoding of item
	marks marks      // of item
}

// Commit implements store.Store. If ctx ends before the committer has taken the request, nothing
// is written. After that Commit awaits the outcome, however long it takes: a known outcome is
// worth more than an early answer.
func (s *Store) Commit(ctx context.Context, writes ...store.Write) error {
	if err := s.schema.CheckCommit(ctx, writes); err != nil {
		return err
	}
	if s.reader {
		return fmt.Errorf("%w: the store %s is open only for reading", store.ErrInvalid, s.dir)
	}
	return s.submit(ctx, s.plan(writes))
}

func (s *Store) plan(writes []store.Write) *request {
	r := &request{writes: writes, plans: make([]plan, len(writes)), done: make(chan error, 1)}
	for i := range writes {
		w, p := &writes[i], &r.plans[i]
		p.layout = s.layouts[w.Table]
		p.id = w.KeyIn(p.Table)
		p.key = p.layout.key(p.id)
		if w.Op == store.OpPut {
			p.item = w.Item.Clone()
			p.value = p.layout.value(w.Item)
			p.marks = p.layout.marks(p.id, w.Item)
		}
		r.bytes += len(p.key) + 2*len(p.value)
	}
	return r
}

// submit hands the request to the committer and waits for the answer. After a failure of the disk
// the process is about to end.
func (s *Store) submit(ctx context.Context, r *request) error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return store.ErrClosed
	}
	select {
	case s.requests <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.failure.done:
		return fmt.Errorf("%w: %w", store.ErrClosed, s.failure.err)
	}
	for ended := ctx.Done(); ; ended = nil { // a taken request is awaited without ctx
		select {
		case err := <-r.done:
			return err
		case <-s.failure.done:
			outcome := store.ErrUnknown
			if r.state.CompareAndSwap(waiting, abandoned) {
				outcome = store.ErrClosed
			}
			return fmt.Errorf("%w: %w", outcome, s.failure.err)
		case <-ended:
			if r.state.CompareAndSwap(waiting, abandoned) {
				return ctx.Err()
			}
		}
	}
}

// A group ends at the first of these limits, or when the sync before it has ended and no other
// request is expected (see fill).
const (
	maxGroupRequests = 1024
	maxGroupBytes    = 8 << 20
)

// A group is the set of requests that share one batch and one sync.
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
	st := &stage{Store: s, recent: &recent{young: map[string]*entry{}, old: map[string]*entry{}}}
	timer, before := time.NewTimer(0), 0
	for first := range s.requests {
		g := &group{}
		if st.fill(g, first, before, timer); len(g.requests) == 0 {
			continue
		}
		if err := st.apply(g); err != nil {
			s.failure.fail(err)
			return
		}
		before = len(g.requests)
		s.inFlight.Add(1)
		select {
		case s.groups <- g:
		case <-s.failure.done:
			return
		}
	}
}

// fill decides the first request and all that arrive until the group before has been synced,
// because a sync costs the same for one request as for a hundred. Then it waits for as many
// requests as the group before had, because the callers just answered are about to send their next
// ones. The wait takes at most a part of the time of a sync. (With 128 workers and syncs of 3 ms
// a group carried 43 requests without this wait, 100 with it.) A single writer never waits.
func (st *stage) fill(g *group, first *request, before int, timer *time.Timer) {
	st.take(g, first)
	for st.inFlight.Load() > 0 {
		select {
		case r, open := <-st.requests:
			if !open {
				return
			}
			st.take(g, r)
		case <-st.synced: // look again
		case <-st.failure.done:
			return
		}
		if g.full() {
			return
		}
	}
	timer.Reset(time.Duration(st.syncTime.Load()) / maxWaitPart)
	for !g.full() {
		if len(g.requests) >= before { // as many as expected: take the waiting ones and end
			select {
			case r, open := <-st.requests:
				if !open {
					return
				}
				st.take(g, r)
				continue
			default:
				return
			}
		}
		select {
		case r, open := <-st.requests:
			if !open {
				return
			}
			st.take(g, r)
		case <-timer.C:
			return
		}
	}
}

// maxWaitPart is the part of a sync (a half) that fill waits at most for expected requests.
const maxWaitPart = 2

// take decides the request, unless its caller has abandoned it. It asks the clock for each
// request: a group lasts as long as a sync, and a caller that has just read an item as expired
// must not find it present.
func (st *stage) take(g *group, r *request) {
	if !r.state.CompareAndSwap(waiting, taken) {
		return
	}
	g.requests = append(g.requests, r)
	g.bytes += r.bytes
	if now := st.now().Unix(); r.expired != nil {
		r.dropped, r.err = st.dropExpired(r.expired, now)
	} else {
		r.err = st.add(r, now)
	}
}

// failOnPanic turns a panic into the failure, which ends the process: Pebble panics, for
// instance, if it cannot close a log during its rotation.
func (s *Store) failOnPanic() {
	if p := recover(); p != nil {
		s.failure.fail(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
}

// maxSyncTime bounds the share of one slow sync in their mean, in nanoseconds.
const maxSyncTime = 5_000_000

// finishGroups is the finisher. It waits for the sync of each group in order, publishes the
// group to readers, and answers. A conflict is answered no earlier than a success, because it
// may conflict with a write of an earlier group that is not durable yet.
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
		default: // an earlier signal is still unread
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
