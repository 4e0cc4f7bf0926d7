package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/billing"
)

// A Sandbox is a billing.Processor, safe for concurrent use. Its intents succeed at
// most once, whatever is confirmed how often, at once or years later.
type Sandbox struct {
	o    Options
	dice *dice
	out  *writer // nil: in memory

	mu     sync.Mutex
	ledger *ledger           // guarded by mu
	spoilt map[keyHash]int64 // guarded by mu; since when the key answers ErrUnknown, in Unix milliseconds
	closed bool              // guarded by mu

	// birth makes refs unique for ever: a count that goes on where the file ends would
	// repeat itself after a restored backup of the file, and in memory after each start.
	birth string
	made  uint64 // guarded by mu; refs since birth
}

var _ billing.Processor = (*Sandbox)(nil)

var errClosed = errors.New("the sandbox processor is closed")

// Open opens the ledger in the file, which it makes if there is none; the directory has
// to be there. An empty name is a ledger in memory. Two cannot have one file open.
func Open(file string, o Options) (*Sandbox, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("sandbox processor: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.KeyLife = cmp.Or(o.KeyLife, DefaultKeyLife)
	s := &Sandbox{o: o, ledger: newLedger(), spoilt: map[keyHash]int64{}, birth: strings.ToLower(rand.Text()[:13])}
	s.dice = newDice(&s.o)
	if file != "" {
		f, err := openFile(file, s.ledger)
		if err != nil {
			return nil, fmt.Errorf("sandbox ledger: %w", err)
		}
		s.out = newWriter(f, s.ledger.lines.n)
		s.out.returned.Store(s.ledger.returns.lines)
	}
	return s, nil
}

// Close writes what has been executed and gives the file free. Calls after it fail;
// Entries goes on to work.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if s.out == nil {
		return nil
	}
	return s.out.close()
}

// Open implements billing.Processor. Within KeyLife the key answers as it did first.
func (s *Sandbox) Open(ctx context.Context, r billing.OpenRequest) (billing.Intent, error) {
	return call(ctx, s, OpOpen, r.Key, func() (billing.Intent, error) { return s.open(r) })
}

// Confirm implements billing.Processor. Within KeyLife the key answers as it did first,
// also when the intent has moved since. A new key on an intent that is processing finds
// nothing to do, as on one that is final, and is not remembered.
func (s *Sandbox) Confirm(ctx context.Context, r billing.ConfirmRequest) (billing.Intent, error) {
	return call(ctx, s, OpConfirm, r.Key, func() (billing.Intent, error) { return s.confirm(r) })
}

// Cancel implements billing.Processor.
func (s *Sandbox) Cancel(ctx context.Context, ref string) (billing.Intent, error) {
	return call(ctx, s, OpCancel, "", func() (billing.Intent, error) { return s.cancel(ref) })
}

// Lookup implements billing.Processor.
func (s *Sandbox) Lookup(ctx context.Context, ref string) (billing.Intent, error) {
	return call(ctx, s, OpLookup, "", func() (billing.Intent, error) {
		return s.answer(func(int64) (uint32, error) {
			in, err := s.find(ref)
			if err != nil {
				return 0, err
			}
			return in.last, nil
		})
	})
}

// List implements billing.Processor: it yields the successes that were in the ledger
// when it was called, one for each line, oldest first, each as it was answered. r.Since counts
// in whole milliseconds, as the ledger does; r.Customer leaves nothing out, since there are
// none. An error comes last; one of a lost answer may come after a part of the list.
func (s *Sandbox) List(ctx context.Context, r billing.ListRequest) iter.Seq2[billing.Intent, error] {
	return func(yield func(billing.Intent, error) bool) {
		if err := checkList(r); err != nil {
			yield(billing.Intent{}, err)
			return
		}
		f, err := s.begin(ctx, OpList, "")
		if err != nil {
			yield(billing.Intent{}, err)
			return
		}
		v, numbers, err := s.successes(r.Since)
		if f == unknown {
			numbers = numbers[:len(numbers)/2]
		}
		for _, number := range numbers {
			if ctx.Err() != nil {
				err = fmt.Errorf("%w: %w", billing.ErrUnknown, ctx.Err())
				break
			}
			if !yield(v.intent(number), nil) {
				return
			}
		}
		if err = s.end(OpList, f, err); err != nil {
			yield(billing.Intent{}, err)
		}
	}
}

// Entries yields the ledger as it is now, in the order of the file. It takes part in
// none of the faults: it is the auditor's view, which no processor offers.
func (s *Sandbox) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		s.mu.Lock()
		v := s.ledger.view
		s.mu.Unlock()
		for number := range s.durable(v.lines.n) {
			if !yield(v.entry(number)) {
				return
			}
		}
	}
}

// call is the frame of every call that has one answer.
func call[T any](ctx context.Context, s *Sandbox, op, key string, do func() (T, error)) (T, error) {
	var none T
	f, err := s.begin(ctx, op, key)
	if err != nil {
		return none, err
	}
	v, err := do()
	if err = s.end(op, f, err); err != nil {
		return none, err
	}
	return v, nil
}

// nextRef must be called with mu held.
func (s *Sandbox) nextRef() string {
	s.made++
	return refPrefix + s.birth + "_" + strconv.FormatUint(s.made, 36)
}
