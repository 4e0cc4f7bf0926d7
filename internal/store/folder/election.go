package folder

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/link"
)

const (
	retryEvery  = 20 * time.Millisecond
	patience    = 9 * time.Second // with a holder that is about to serve, or no longer serves
	endsIn      = time.Minute     // else a holder that hands over does not
	answersIn   = 4 * time.Second // else a holder that was greeted stands still
	servesIn    = time.Second     // else a holder without a socket serves nobody
	handingOver = 2 * time.Second // for a process that stays to take over
)

// errUnserved is connect's error for a holder without a socket, which has perhaps just become it.
var errUnserved = errors.New("it is not served")

// A session is the time for which a process holds the folder, or is the client of one holder.
type session struct {
	shared shared
	holder string // of a client, for people; "" in the holder
	end    func() error
}

// An election gives a process one session after the other. When the holder ends, its clients elect the
// next one. It is safe for concurrent use.
type election struct {
	hold     func() (*session, error)                // takes the folder, or returns store.ErrLocked
	connect  func(context.Context) (*session, error) // to the process that has taken it
	failures atomic.Int64                            // elections that have failed

	turn     chan struct{} // full while a goroutine looks at or changes the rest, or calls hold or connect
	now      *session      // nil: to be elected
	handover time.Time     // until then it is another process's to take
	failed   error         // of the last failed election
	closed   bool
}

func newElection(hold func() (*session, error), connect func(context.Context) (*session, error)) *election {
	return &election{hold: hold, connect: connect, turn: make(chan struct{}, 1)}
}

// lock waits for the turn, which unlock gives back.
func (e *election) lock() (unlock func()) {
	e.turn <- struct{}{}
	return func() { <-e.turn }
}

// holds reports whether this process is the holder.
func (e *election) holds() bool {
	defer e.lock()()
	return e.now != nil && e.now.holder == ""
}

// session returns the present one, or the one that it has elected.
func (e *election) session(ctx context.Context) (*session, error) {
	failures := e.failures.Load()
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case e.closed:
		return nil, store.ErrClosed
	case e.now == nil && e.failures.Load() != failures: // this call has waited for that election
		return nil, e.failed
	case e.now == nil:
		x, err := e.elect(ctx)
		if err != nil && ctx.Err() == nil {
			e.failed = err
			e.failures.Add(1)
		}
		if err != nil {
			return nil, err
		}
		e.now = x
	}
	return e.now, nil
}

// elect takes the folder, or connects to the process that has taken it.
func (e *election) elect(ctx context.Context) (*session, error) {
	began := time.Now()
	for served := began; ; {
		locked := store.ErrLocked
		if time.Now().After(e.handover) {
			x, err := e.hold()
			if !errors.Is(err, store.ErrLocked) {
				return x, err
			}
			locked = err
		}
		asking, cancel := context.WithTimeout(ctx, answersIn)
		x, err := e.connect(asking)
		cancel()
		if !errors.Is(err, errUnserved) {
			served = time.Now()
		}
		switch waited := time.Since(began); {
		case err == nil || errors.Is(err, link.ErrVersion) || errors.Is(err, link.ErrClock):
			return x, err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case time.Since(served) > servesIn && !e.handover.After(began):
			return nil, locked
		case errors.Is(err, context.DeadlineExceeded), waited > endsIn,
			waited > patience && !errors.Is(err, link.ErrHandOver):
			return nil, fmt.Errorf("%w; it does not answer; resume it, or stop it", locked)
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// finish ends the session, if it is the present one: a client's whose holder is gone, or a holder's in
// favour of a process that stays. The calls under way go on in the next one.
func (e *election) finish(x *session) error {
	defer e.lock()()
	if e.now != x {
		return nil
	}
	e.now = nil
	err := x.end()
	if x.holder == "" {
		e.handover = time.Now().Add(handingOver) // the end may have taken longer
	}
	return err
}

// do does the work in the present session, and in the next one if it ends with nothing written.
func (e *election) do(ctx context.Context, work func(shared) error) error {
	for {
		x, err := e.session(ctx)
		if err != nil {
			return err
		}
		err = work(x.shared)
		switch {
		case x.holder != "" && (errors.Is(err, link.ErrLost) || errors.Is(err, store.ErrClosed)):
			_ = e.finish(x) // the connection is gone
		case x.holder == "" && errors.Is(err, store.ErrClosed): // session tells whether it was handed over
		default:
			return err
		}
		if errors.Is(err, store.ErrUnknown) {
			return err
		}
	}
}

// iterate yields the items, at the next holder from where the last one has ended. after moves the
// cursor behind an item, and returns false if no more are wanted.
func (e *election) iterate(ctx context.Context, yield func(store.Item, error) bool,
	items func(shared) iter.Seq2[store.Item, error], after func(store.Item) (more bool)) {
	left := false
	err := e.do(ctx, func(now shared) error {
		for it, err := range items(now) {
			if err != nil {
				return err
			}
			more := after(it)
			if left = !yield(it, nil) || !more; left {
				return nil
			}
		}
		return nil
	})
	if err != nil && !left {
		yield(nil, err)
	}
}

// close ends the session. A holder answers its clients first.
func (e *election) close() error {
	defer e.lock()()
	x, closed := e.now, e.closed
	e.now, e.closed = nil, true
	switch {
	case closed:
		return store.ErrClosed
	case x == nil:
		return nil
	}
	return x.end()
}
