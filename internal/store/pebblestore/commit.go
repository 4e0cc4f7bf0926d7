package pebblestore

import (
	"context"
	"fmt"
	"sync/atomic"

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
	item  store.Item // of a put: the item, a copy
	value []byte     // of a put: its encoding
	marks marks      // of a put
}

// Commit implements store.Store. If ctx ends before the committer has taken the request, nothing
// is written. After that Commit awaits the outcome, however long it takes: a known outcome is
// worth more than an early answer.
func (s *Store) Commit(ctx context.Context, writes ...store.Write) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.schema.CheckCommit(writes); err != nil {
		return err
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

// submit hands the request to the committer and waits for the answer.
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
		return s.failed(false)
	}
	for ended := ctx.Done(); ; ended = nil { // a taken request is awaited without ctx
		select {
		case err := <-r.done:
			return err
		case <-s.failure.done:
			return s.failed(!r.state.CompareAndSwap(waiting, abandoned))
		case <-ended:
			if r.state.CompareAndSwap(waiting, abandoned) {
				return ctx.Err()
			}
		}
	}
}

// failed returns the answer after a failure of the disk, in a process that is about to end.
func (s *Store) failed(taken bool) error {
	if taken {
		return fmt.Errorf("%w: %w", store.ErrUnknown, s.failure.err)
	}
	return fmt.Errorf("%w: %w", store.ErrClosed, s.failure.err)
}
