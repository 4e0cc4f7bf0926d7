package sandbox

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/billing"
)

// A Ledger is the processor of a ledger that this process has open, or that another one serves.
type Ledger interface {
	billing.Processor
	billing.Refunder
	Close() error
	entries(ctx context.Context) iter.Seq2[Entry, error]
	latency() time.Duration // of each call, at least
}

// A shared is the Ledger of a file that many processes of one user have open at the same time.
type shared struct {
	file string
	o    Options

	failures atomic.Int64 // elections that have failed

	turn   chan struct{} // full while a goroutine looks at or changes the rest
	now    *session      // nil: to be elected
	failed error         // of the last failed election
	closed bool
}

// A session is the time for which a process holds the file, or is the client of one holder.
type session struct {
	Ledger
	holder string // of a client, for people; "" in the holder
	end    func() error
}

// ErrHolder: the ledger's file is held by a process that this one cannot be a client of, since its
// version or parameters differ, or it stands still. Its text names the process.
var ErrHolder = errors.New("the ledger's file cannot be shared")

const (
	patience   = 9 * time.Second // with a holder that does not serve yet, or no longer
	answersIn  = 4 * time.Second // else a holder that was asked stands still
	retryEvery = 20 * time.Millisecond
)

// Share is Open for a file that other processes of the user share at the same time. The first one
// holds it, and serves the others; when it ends, they elect the next. Share returns ErrHolder if
// this process cannot be a client of the holder. It makes the file's folder.
func Share(ctx context.Context, file string, o Options) (Ledger, error) {
	if file == "" {
		return Open("", o)
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("sandbox processor: %w", err)
	}
	err := checkOwner(file)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox ledger: %w", err)
	}
	s := &shared{file: file, o: o, turn: make(chan struct{}, 1)}
	if _, err := s.session(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// session returns the present one, or the one that it has elected.
func (s *shared) session(ctx context.Context) (*session, error) {
	failures := s.failures.Load()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.closed {
		return nil, errClosed
	}
	if s.now == nil {
		if s.failures.Load() != failures { // this call has waited for that election
			return nil, s.failed
		}
		x, err := s.elect(ctx)
		if err != nil && ctx.Err() == nil {
			s.failed = err
			s.failures.Add(1)
		}
		if err != nil {
			return nil, err
		}
		s.now = x
	}
	return s.now, nil
}

// elect takes the file, or connects to the process that has taken it.
func (s *shared) elect(ctx context.Context) (*session, error) {
	for late := time.After(patience); ; {
		x, err := s.hold()
		if !errors.Is(err, ErrLocked) {
			return x, err
		}
		locked := err
		if x, err = s.connect(ctx); err == nil || errors.Is(err, ErrHolder) {
			return x, err
		}
		select {
		case <-time.After(retryEvery):
		case <-late:
			return nil, fmt.Errorf("%w, and does not answer", locked)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// drop ends a session whose holder is gone.
func (s *shared) drop(x *session) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.now == x {
		s.now = nil
		_ = x.end() // the connection is gone
	}
}

// Close gives the file back, when the calls of the clients under way are answered.
func (s *shared) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.closed = true; s.now == nil {
		return nil
	}
	defer func() { s.now = nil }()
	return s.now.end()
}

func (s *shared) latency() time.Duration { return s.o.Latency }

// do does the work in the present session. While the holder is gone, it does so again in the next
// one, if nothing was sent, or if the work changes nothing.
func (s *shared) do(ctx context.Context, reads bool, work func(Ledger) error) error {
	for {
		x, err := s.session(ctx)
		switch {
		case errors.Is(err, ErrHolder) || errors.Is(err, ErrLocked):
			return fmt.Errorf("%w: %w", billing.ErrNotExecuted, err)
		case err != nil:
			return err
		}
		if err = work(x.Ledger); !errors.Is(err, errLost) {
			return err
		}
		if s.drop(x); !reads && errors.Is(err, billing.ErrUnknown) {
			return fmt.Errorf("%w; the ledger's file was held by %s", err, x.holder)
		}
	}
}

// shareCall is do for a call with one answer.
func shareCall[T any](ctx context.Context, s *shared, reads bool, call func(Ledger) (T, error)) (v T, err error) {
	err = s.do(ctx, reads, func(l Ledger) (err error) {
		v, err = call(l)
		return err
	})
	return v, err
}

// shareList is do for a list. At the next holder it goes on where it was: with the elements of the
// last instant that were not yielded. at is nil for a list that is in the order of the file.
func shareList[T any](ctx context.Context, s *shared, since time.Time, at func(T) time.Time,
	list func(l Ledger, since time.Time) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		since, yielded, left := since, 0, false
		err := s.do(ctx, true, func(l Ledger) error {
			skip := yielded
			for v, err := range list(l, since) {
				if err != nil {
					return err
				}
				if at != nil && at(v).After(since) {
					since, yielded, skip = at(v), 0, 0
				}
				if skip--; skip >= 0 {
					continue
				}
				yielded++
				if left = !yield(v, nil); left {
					return nil
				}
			}
			return nil
		})
		if err != nil && !left {
			var none T
			yield(none, err)
		}
	}
}

// Open implements billing.Processor.
func (s *shared) Open(ctx context.Context, r billing.OpenRequest) (billing.Intent, error) {
	return shareCall(ctx, s, false, func(l Ledger) (billing.Intent, error) { return l.Open(ctx, r) })
}

// Confirm implements billing.Processor.
func (s *shared) Confirm(ctx context.Context, r billing.ConfirmRequest) (billing.Intent, error) {
	return shareCall(ctx, s, false, func(l Ledger) (billing.Intent, error) { return l.Confirm(ctx, r) })
}

// Cancel implements billing.Processor.
func (s *shared) Cancel(ctx context.Context, ref string) (billing.Intent, error) {
	return shareCall(ctx, s, false, func(l Ledger) (billing.Intent, error) { return l.Cancel(ctx, ref) })
}

// Lookup implements billing.Processor.
func (s *shared) Lookup(ctx context.Context, ref string) (billing.Intent, error) {
	return shareCall(ctx, s, true, func(l Ledger) (billing.Intent, error) { return l.Lookup(ctx, ref) })
}

// List implements billing.Processor.
func (s *shared) List(ctx context.Context, r billing.ListRequest) iter.Seq2[billing.Intent, error] {
	return shareList(ctx, s, r.Since, func(in billing.Intent) time.Time { return in.Changed },
		func(l Ledger, since time.Time) iter.Seq2[billing.Intent, error] {
			r.Since = since
			return l.List(ctx, r)
		})
}

// Refund implements billing.Refunder.
func (s *shared) Refund(ctx context.Context, r billing.RefundRequest) (billing.Reversal, error) {
	return shareCall(ctx, s, false, func(l Ledger) (billing.Reversal, error) { return l.Refund(ctx, r) })
}

// ReversalsOf implements billing.Refunder.
func (s *shared) ReversalsOf(ctx context.Context, ref string) ([]billing.Reversal, error) {
	return shareCall(ctx, s, true, func(l Ledger) ([]billing.Reversal, error) { return l.ReversalsOf(ctx, ref) })
}

// Reversals implements billing.Refunder.
func (s *shared) Reversals(ctx context.Context, r billing.ListRequest) iter.Seq2[billing.Reversal, error] {
	return shareList(ctx, s, r.Since, nil,
		func(l Ledger, _ time.Time) iter.Seq2[billing.Reversal, error] { return l.Reversals(ctx, r) })
}

func (s *shared) entries(ctx context.Context) iter.Seq2[Entry, error] {
	return shareList(ctx, s, time.Time{}, nil,
		func(l Ledger, _ time.Time) iter.Seq2[Entry, error] { return l.entries(ctx) })
}
