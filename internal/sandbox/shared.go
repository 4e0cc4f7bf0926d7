package sandbox

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/election"
)

// A Ledger is the processor of a ledger that this process has open, or that another one serves.
type Ledger interface {
	billing.Processor
	billing.Refunder
	Close() error
	latency() time.Duration // of each call, at least
}

// A shared is the Ledger of a file that many processes of one user have open at the same time.
type shared struct {
	file     string
	o        Options
	election *election.Election[Ledger]
}

type session = election.Session[Ledger]

// ErrHolder: the ledger's file is held by a process that this one cannot be a client of, since its
// version or parameters differ. Its text names the process.
var ErrHolder = errors.New("the ledger's file cannot be shared")

// Share is Open for a file that other processes of the user share at the same time. The first one
// holds it, and serves the others; when it ends, they elect the next. Share returns ErrHolder if
// this process cannot be a client of the holder, and ErrLocked if the holder does not answer. It makes
// the file's folder.
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
	s := &shared{file: file, o: o}
	s.election = s.elections(s.hold)
	if _, err := s.election.Session(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *shared) elections(hold func() (*session, error)) *election.Election[Ledger] {
	return election.New(election.Options[Ledger]{Hold: hold, Connect: s.connect, Locked: ErrLocked,
		Refusals: []error{ErrHolder}, Lost: []error{errLost}, Closed: errClosed})
}

// Close gives the file back, when the calls of the clients under way are answered.
func (s *shared) Close() error { return s.election.Close() }

func (s *shared) latency() time.Duration { return s.o.Latency }

// do does the work in the present session. While the holder is gone, it does so again in the next
// one, if nothing was sent, or if the work changes nothing.
func (s *shared) do(ctx context.Context, reads bool, work func(Ledger) error) error {
	unknown := billing.ErrUnknown
	if reads {
		unknown = nil
	}
	x, err := s.election.Do(ctx, unknown, work)
	switch {
	case x == nil && (errors.Is(err, ErrHolder) || errors.Is(err, ErrLocked)):
		return fmt.Errorf("%w: %w", billing.ErrNotExecuted, err)
	case x != nil && !reads && errors.Is(err, errLost) && errors.Is(err, billing.ErrUnknown):
		return fmt.Errorf("%w; the ledger's file was held by %s", err, x.Holder)
	}
	return err
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
		since, yielded := since, 0
		rest := func(l Ledger) iter.Seq2[T, error] {
			skip := yielded
			return func(yield func(T, error) bool) {
				for v, err := range list(l, since) {
					if err == nil && at != nil && at(v).After(since) {
						since, yielded, skip = at(v), 0, 0
					}
					if skip--; (err != nil || skip < 0) && !yield(v, err) {
						return
					}
				}
			}
		}
		election.Iterate(func(work func(Ledger) error) error { return s.do(ctx, true, work) }, yield, rest,
			func(T) (more bool) { yielded++; return true })
	}
}

func (s *shared) Open(ctx context.Context, r billing.OpenRequest) (billing.Intent, error) {
	return shareCall(ctx, s, false, func(l Ledger) (billing.Intent, error) { return l.Open(ctx, r) })
}

func (s *shared) Confirm(ctx context.Context, r billing.ConfirmRequest) (billing.Intent, error) {
	return shareCall(ctx, s, false, func(l Ledger) (billing.Intent, error) { return l.Confirm(ctx, r) })
}

func (s *shared) Cancel(ctx context.Context, ref string) (billing.Intent, error) {
	return shareCall(ctx, s, false, func(l Ledger) (billing.Intent, error) { return l.Cancel(ctx, ref) })
}

func (s *shared) Lookup(ctx context.Context, ref string) (billing.Intent, error) {
	return shareCall(ctx, s, true, func(l Ledger) (billing.Intent, error) { return l.Lookup(ctx, ref) })
}

func (s *shared) List(ctx context.Context, r billing.ListRequest) iter.Seq2[billing.Intent, error] {
	return shareList(ctx, s, r.Since, func(in billing.Intent) time.Time { return in.Changed },
		func(l Ledger, since time.Time) iter.Seq2[billing.Intent, error] {
			r.Since = since
			return l.List(ctx, r)
		})
}

func (s *shared) Refund(ctx context.Context, r billing.RefundRequest) (billing.Reversal, error) {
	return shareCall(ctx, s, false, func(l Ledger) (billing.Reversal, error) { return l.Refund(ctx, r) })
}

func (s *shared) ReversalsOf(ctx context.Context, ref string) ([]billing.Reversal, error) {
	return shareCall(ctx, s, true, func(l Ledger) ([]billing.Reversal, error) { return l.ReversalsOf(ctx, ref) })
}

func (s *shared) Reversals(ctx context.Context, r billing.ListRequest) iter.Seq2[billing.Reversal, error] {
	return shareList(ctx, s, r.Since, nil,
		func(l Ledger, _ time.Time) iter.Seq2[billing.Reversal, error] { return l.Reversals(ctx, r) })
}
