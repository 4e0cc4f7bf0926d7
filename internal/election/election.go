// Package election elects the process that holds a shared lock and serves the other processes of the same
// user. The lock is on a resource that only one process can use, such as a folder. When the holder ends,
// its clients elect the next holder and repeat their unanswered calls, unless the outcome of a call is
// unknown. The package does not know the resource, how it is locked, or how it is served. The packages
// that use it list the failures.
package election

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"
)

const (
	retryEvery  = 20 * time.Millisecond
	patience    = 9 * time.Second // with a holder that is about to serve, or no longer serves
	endsIn      = time.Minute     // else a holder that hands over does not
	answersIn   = 4 * time.Second // else a holder that was greeted stands still
	servesIn    = time.Second     // else a holder without a socket serves nobody
	handingOver = 2 * time.Second // for a process that stays to take over
)

// ErrUnserved is Connect's error for a holder without a socket, which has perhaps just become it.
var ErrUnserved = errors.New("it is not served")

// Options say how to hold and to share. Hold and Connect are called by one goroutine at a time.
type Options[T any] struct {
	Hold    func() (*Session[T], error)                // takes the thing, or returns Locked
	Connect func(context.Context) (*Session[T], error) // to the process that has taken it

	Locked    error   // of Hold: another process has it
	Refusals  []error // of Connect: this process cannot be the holder's client
	HandsOver error   // of Connect: the holder makes room for this process; nil: it never does
	Lost      []error // of a call of a client: the holder is gone
	Closed    error   // after Close; of a call of the holder: it is handed over, or closed
}

// A Session is the time for which a process holds the thing, or is the client of one holder.
type Session[T any] struct {
	Shared T
	Holder string // of a client, for people; "" in the holder
	End    func() error
}

// An Election gives a process one session after the other. It is safe for concurrent use.
type Election[T any] struct {
	o        Options[T]
	failures atomic.Int64 // elections that have failed

	turn     chan struct{} // full while a goroutine looks at or changes the rest
	now      *Session[T]   // nil: to be elected
	handover time.Time     // until then it is another process's to take
	failed   error         // of the last failed election
	closed   bool
}

// New returns an Election without a session.
func New[T any](o Options[T]) *Election[T] { return &Election[T]{o: o, turn: make(chan struct{}, 1)} }

// lock waits for the turn, which unlock gives back.
func (e *Election[T]) lock() (unlock func()) {
	e.turn <- struct{}{}
	return func() { <-e.turn }
}

// Holds reports whether this process is the holder.
func (e *Election[T]) Holds() bool {
	defer e.lock()()
	return e.now != nil && e.now.Holder == ""
}

// Session returns the present one, or the one that it has elected.
func (e *Election[T]) Session(ctx context.Context) (*Session[T], error) {
	failures := e.failures.Load()
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case e.closed:
		return nil, e.o.Closed
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

// elect takes the thing, or connects to the process that has taken it.
func (e *Election[T]) elect(ctx context.Context) (*Session[T], error) {
	began := time.Now()
	for served := began; ; {
		locked := e.o.Locked
		if time.Now().After(e.handover) {
			x, err := e.o.Hold()
			if !errors.Is(err, e.o.Locked) {
				return x, err
			}
			locked = err
		}
		asking, cancel := context.WithTimeout(ctx, answersIn)
		x, err := e.o.Connect(asking)
		cancel()
		if !errors.Is(err, ErrUnserved) {
			served = time.Now()
		}
		switch waited := time.Since(began); {
		case err == nil || isAny(err, e.o.Refusals):
			return x, err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case time.Since(served) > servesIn && !e.handover.After(began):
			return nil, locked
		case errors.Is(err, context.DeadlineExceeded), waited > endsIn,
			waited > patience && (e.o.HandsOver == nil || !errors.Is(err, e.o.HandsOver)):
			return nil, fmt.Errorf("%w; it does not answer; resume it, or stop it", locked)
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func isAny(err error, list []error) bool {
	return slices.ContainsFunc(list, func(one error) bool { return errors.Is(err, one) })
}

// End ends the session, if it is the present one: a client's whose holder is gone, or a holder's in
// favour of a process that stays. The calls under way go on in the next one.
func (e *Election[T]) End(x *Session[T]) error {
	defer e.lock()()
	if e.now != x {
		return nil
	}
	e.now = nil
	err := x.End()
	if x.Holder == "" {
		e.handover = time.Now().Add(handingOver) // the end may have taken longer
	}
	return err
}

// Do does the work in the present session, and again in the next one while the session has ended and
// the work's error is not unknown (nil: the work changes nothing). It returns the session of the last
// try, nil for none.
func (e *Election[T]) Do(ctx context.Context, unknown error, work func(T) error) (*Session[T], error) {
	for {
		x, err := e.Session(ctx)
		if err != nil {
			return nil, err
		}
		err = work(x.Shared)
		switch {
		case x.Holder != "" && isAny(err, e.o.Lost):
			_ = e.End(x) // the connection is gone
		case x.Holder == "" && errors.Is(err, e.o.Closed): // Session tells which
		default:
			return x, err
		}
		if unknown != nil && errors.Is(err, unknown) {
			return x, err
		}
	}
}

// Iterate yields the elements of a list, at the next holder from where the last one has ended. do is
// Do. after moves the list behind an element, and returns false if no more are wanted.
func Iterate[T, V any](do func(work func(T) error) error, yield func(V, error) bool,
	list func(T) iter.Seq2[V, error], after func(V) (more bool)) {
	left := false
	err := do(func(now T) error {
		for v, err := range list(now) {
			if err != nil {
				return err
			}
			more := after(v)
			if left = !yield(v, nil) || !more; left {
				return nil
			}
		}
		return nil
	})
	if err != nil && !left {
		var none V
		yield(none, err)
	}
}

// Close ends the session. A holder answers its clients first.
func (e *Election[T]) Close() error {
	defer e.lock()()
	x, closed := e.now, e.closed
	e.now, e.closed = nil, true
	switch {
	case closed:
		return e.o.Closed
	case x == nil:
		return nil
	}
	return x.End()
}
