package storetest

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"

	"github.com/duesday/duesday/internal/store"
)

// ErrCrash is the error of every operation after a simulated crash of the process.
var ErrCrash = errors.New("crashed")

// A Kind is the store's method behind an Operation.
type Kind uint8

// The kinds of operations.
const (
	Get Kind = iota + 1
	Query
	Scan
	Commit
	Close
)

// A Phase is the moment of an operation at which its hook is called.
type Phase uint8

// The phases: before the wrapped store is called, and after it has returned.
const (
	Before Phase = iota + 1
	After
)

// An Operation is one call of a method of a Faulty.
type Operation struct {
	Kind   Kind
	N      int           // its number among the operations of this Faulty, from 1
	Commit int           // its number among the commits, from 1; 0 for another kind
	Writes []store.Write // of a commit; they are the caller's: not to be changed
}

// A Hook is called around every operation, by the calling goroutine and without a lock. An error
// returned Before prevents the operation; one returned After does not. The caller gets the error.
type Hook func(op Operation, phase Phase) error

// Faulty wraps a store and fails operations on demand: before they are done (nothing is written) or
// after (the writes have landed, the reply is lost). Without a hook it is the wrapped store.
//
// A Query or Scan counts when it is iterated over, not when it is made. Its After comes at the
// end of the iteration; if the loop was left early, its error is dropped.
type Faulty struct {
	Hook Hook // may be changed only while no operation runs

	inner      store.Store
	operations atomic.Int64
	commits    atomic.Int64
}

var _ store.Store = (*Faulty)(nil)

// NewFaulty returns a Faulty around s, without a hook.
func NewFaulty(s store.Store) *Faulty { return &Faulty{inner: s} }

// Commits returns how many commits have begun, failed ones included.
func (f *Faulty) Commits() int { return int(f.commits.Load()) }

// Get implements store.Store.
func (f *Faulty) Get(ctx context.Context, table string, key store.Key) (it store.Item, err error) {
	err = f.around(Operation{Kind: Get}, func() error {
		it, err = f.inner.Get(ctx, table, key)
		return err
	})
	if err != nil {
		it = nil
	}
	return it, err
}

// Query implements store.Store.
func (f *Faulty) Query(ctx context.Context, q store.Query) iter.Seq2[store.Item, error] {
	return f.iterate(Operation{Kind: Query}, f.inner.Query(ctx, q))
}

// Scan implements store.Store.
func (f *Faulty) Scan(ctx context.Context, s store.Scan) iter.Seq2[store.Item, error] {
	return f.iterate(Operation{Kind: Scan}, f.inner.Scan(ctx, s))
}

// Commit implements store.Store.
func (f *Faulty) Commit(ctx context.Context, writes ...store.Write) error {
	op := Operation{Kind: Commit, Commit: int(f.commits.Add(1)), Writes: writes}
	return f.around(op, func() error { return f.inner.Commit(ctx, writes...) })
}

// Close implements store.Store.
func (f *Faulty) Close() error { return f.around(Operation{Kind: Close}, f.inner.Close) }

// around does the work between the calls of the hook. The hook's error replaces the work's.
func (f *Faulty) around(op Operation, work func() error) error {
	op.N = int(f.operations.Add(1))
	if f.Hook == nil {
		return work()
	}
	if err := f.Hook(op, Before); err != nil {
		return err
	}
	err := work()
	if hooked := f.Hook(op, After); hooked != nil {
		return hooked
	}
	return err
}

func (f *Faulty) iterate(op Operation, rows iter.Seq2[store.Item, error]) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		left := false
		err := f.around(op, func() error {
			for it, err := range rows {
				if err != nil {
					return err
				}
				if !yield(it, nil) {
					left = true
					return nil
				}
			}
			return nil
		})
		if err != nil && !left {
			yield(nil, err)
		}
	}
}

// CrashAt returns a hook that simulates a crash at the n-th commit, before or after it has landed.
// The commit and all later operations, Close included, return ErrCrash and leave the wrapped
// store as it is, for the next process. The hook belongs to one Faulty.
func CrashAt(n int, phase Phase) Hook {
	var dead atomic.Bool
	return func(op Operation, now Phase) error {
		if op.Commit == n && now == phase || dead.Load() {
			dead.Store(true)
			return ErrCrash
		}
		return nil
	}
}

// LoseReply returns a hook that makes the n-th commit return store.ErrUnknown: the request was lost
// (Before: nothing is written), or the reply (After: the writes have landed).
func LoseReply(n int, phase Phase) Hook {
	return func(op Operation, now Phase) error {
		if op.Commit == n && now == phase {
			return store.ErrUnknown
		}
		return nil
	}
}
