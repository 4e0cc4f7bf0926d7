package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/processor"
)

// A Sandbox is a processor.Charger, safe for concurrent use. Each of its intents succeeds at most
// once, no matter how often or how late it is confirmed.
type Sandbox struct {
	o     Options
	fates *fates
	out   *journal // nil: in memory

	mu     sync.Mutex
	ledger *ledger           // guarded by mu
	spoilt map[keyHash]int64 // start of a key's ErrUnknown, in Unix milliseconds; guarded by mu
	closed bool              // guarded by mu

	// birth makes refs unique, also after a restored backup, and in memory after each start.
	birth string
	made  uint64 // guarded by mu; refs since birth
}

var _ processor.Charger = (*Sandbox)(nil)

var errClosed = errors.New("the sandbox processor is closed")

// Open opens the ledger in the file, or creates the file and its folder. Any number of the user's
// processes may have the file open. An empty name means a ledger in memory.
func Open(file string, o Options) (*Sandbox, error) {
	s, err := newSandbox(o)
	if err != nil || file == "" {
		return s, err
	}
	f, err := openFile(file)
	if err == nil {
		if err = s.openJournal(f); err != nil {
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox ledger: %w", err)
	}
	return s, nil
}

// ReadFile returns the file's ledger for reading, without locking the file. Calls change the ledger
// only in memory.
func ReadFile(file string, o Options) (*Sandbox, error) {
	s, err := newSandbox(o)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("sandbox ledger: %w", err)
	}
	if _, lines, _, bad := read(f, s.ledger); bad != nil {
		err = fmt.Errorf("sandbox ledger %s, line %d: %w", file, lines+1, bad)
	}
	return s, errors.Join(err, f.Close())
}

func newSandbox(o Options) (*Sandbox, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("sandbox processor: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.KeyLife = cmp.Or(o.KeyLife, DefaultKeyLife)
	s := &Sandbox{o: o, ledger: newLedger(), spoilt: map[keyHash]int64{}, birth: strings.ToLower(rand.Text()[:13])}
	s.fates = newFates(&s.o)
	return s, nil
}

// Close waits for running calls and closes the file. Later calls fail, except Entries.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if s.out == nil {
		return nil
	}
	return s.out.close()
}

// Open implements processor.Charger. Within KeyLife, a repeated key returns the first answer.
func (s *Sandbox) Open(ctx context.Context, r processor.OpenRequest) (processor.Intent, error) {
	return call(ctx, s, r.Key, func() (processor.Intent, error) { return s.open(r) })
}

// Confirm implements processor.Charger. Within KeyLife, a repeated key returns the first answer,
// even if the intent has changed since. For an intent that is processing or final, a new key has no
// effect and is not remembered.
func (s *Sandbox) Confirm(ctx context.Context, r processor.ConfirmRequest) (processor.Intent, error) {
	return call(ctx, s, r.Key, func() (processor.Intent, error) { return s.confirm(r) })
}

func (s *Sandbox) Cancel(ctx context.Context, ref string) (processor.Intent, error) {
	return call(ctx, s, "", func() (processor.Intent, error) { return s.cancel(ref) })
}

func (s *Sandbox) Lookup(ctx context.Context, ref string) (processor.Intent, error) {
	return call(ctx, s, "", func() (processor.Intent, error) {
		return s.answer(func(int64) (uint32, error) {
			in, err := s.find(ref)
			if err != nil {
				return 0, err
			}
			return in.last, nil
		})
	})
}

// List implements processor.Charger: it yields the successes in the ledger at the call, one for
// each line, oldest first, each as it was answered. r.Since counts in whole milliseconds, as the
// ledger does. r.Customer leaves nothing out, since there are no customers. An error comes last.
// The error of a lost answer may come after a part of the list.
func (s *Sandbox) List(ctx context.Context, r processor.ListRequest) iter.Seq2[processor.Intent, error] {
	return listCall(ctx, s, r, func() (int, func(int) processor.Intent) {
		v, numbers := s.ledger.view, slices.Clone(s.ledger.successes[s.ledger.from(r.Since):])
		return len(numbers), func(i int) processor.Intent { return v.intent(numbers[i]) }
	})
}

// Entries yields the current lines of the ledger in the order of the file, for the audit. It has no
// faults.
func (s *Sandbox) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		// What other processes have appended is read, unless the ledger is closed or has failed.
		_, _ = locked(s, func() (none struct{}, _ error) { return none, nil })
		s.mu.Lock()
		v, n := s.ledger.view, s.ledger.lines.n
		if s.out != nil {
			n = min(n, s.out.durable)
		}
		s.mu.Unlock()
		for number := range n {
			if !yield(v.entry(number)) {
				return
			}
		}
	}
}

// call is the frame of every call with one answer.
func call[T any](ctx context.Context, s *Sandbox, key string, do func() (T, error)) (T, error) {
	var none T
	f, err := s.begin(ctx, key)
	if err != nil {
		return none, err
	}
	v, err := do()
	if err = f.end(err); err != nil {
		return none, err
	}
	return v, nil
}

// listCall runs a call answered by a list. find is called with mu held, and returns the length and the
// elements of the list.
func listCall[T any](ctx context.Context, s *Sandbox, r processor.ListRequest,
	find func() (int, func(int) T)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if err := checkList(r); err != nil {
			yield(none, err)
			return
		}
		f, err := s.begin(ctx, "")
		if err != nil {
			yield(none, err)
			return
		}
		var value func(int) T
		n, err := locked(s, func() (n int, _ error) {
			n, value = find()
			return n, nil
		})
		if f == unknown { // the answer breaks off in the middle
			n /= 2
		}
		for i := range n {
			if ctx.Err() != nil {
				err = fmt.Errorf("%w: %w", processor.ErrUnknown, ctx.Err())
				break
			}
			if !yield(value(i), nil) {
				return
			}
		}
		if err = f.end(err); err != nil {
			yield(none, err)
		}
	}
}

// nextRef must be called with mu held.
func (s *Sandbox) nextRef(prefix string) string {
	s.made++
	return prefix + s.birth + "_" + strconv.FormatUint(s.made, 36)
}
