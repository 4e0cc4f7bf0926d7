package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/duesday/duesday/internal/store"
)

func testLifecycle(t *testing.T, open Opener) {
	key := at("a", "1")
	play(t, open,
		scenario{"closed", func(r *rig) {
			r.put(item("a", "1"))
			rows := r.Query(r.Context(), in("a"))
			items := r.Scan(r.Context(), store.Scan{Table: ledger})
			r.close()
			r.refuseGet(store.ErrClosed, ledger, key)
			r.refuse(store.ErrClosed, put(item("a", "2")))
			r.refuseRead(store.ErrClosed, rows) // made before, iterated over after
			r.refuseRead(store.ErrClosed, items)
			r.refuseQuery(store.ErrClosed, inIndex(byState, "a"))
			r.refuseRead(store.ErrClosed, r.Scan(r.Context(), store.Scan{Table: ledger}))
			if err := r.Close(); !errors.Is(err, store.ErrClosed) {
				r.Errorf("second Close = %v, want ErrClosed", err)
			}
		}},
		scenario{"closed during an iteration", func(r *rig) {
			r.fill(r.manyItems())
			n := 0
			for it, err := range r.Query(r.Context(), in("a")) {
				switch {
				case err != nil && !errors.Is(err, store.ErrClosed):
					r.Fatalf("the iteration yields %v", err)
				case err == nil && it.Str("pk") != "a":
					r.Fatalf("the iteration yields %s", show(it))
				case n == 1:
					r.close()
				}
				n++
			}
		}},
		scenario{"cancelled", func(r *rig) {
			r.put(item("a", "1"))
			ctx, cancel := context.WithCancel(r.Context())
			rows := r.Query(ctx, in("a"))
			cancel()
			r.unchanged(func() {
				if err := r.Commit(ctx, put(item("a", "2"))); !errors.Is(err, context.Canceled) {
					r.Errorf("Commit = %v, want context.Canceled", err)
				}
			})
			if it, err := r.Get(ctx, ledger, key); !errors.Is(err, context.Canceled) || it != nil {
				r.Errorf("Get = %v, %v; want context.Canceled", it, err)
			}
			r.refuseRead(context.Canceled, rows)
			r.refuseRead(context.Canceled, r.Query(ctx, inIndex(byOwner, "a")))
			r.refuseRead(context.Canceled, r.Scan(ctx, store.Scan{Table: ledger}))
			r.want(ledger, item("a", "1"))
		}},
		scenario{"cancelled with a cause", func(r *rig) {
			ctx, cancel := context.WithCancelCause(r.Context())
			cancel(errors.New("the cause"))
			if err := r.Commit(ctx, put(item("a", "1"))); !errors.Is(err, context.Canceled) {
				r.Errorf("Commit = %v, want ctx.Err()", err)
			}
			r.wantNone(ledger, key)
		}},
	)
}

func (r *rig) close() {
	r.Helper()
	if err := r.Close(); err != nil {
		r.Fatalf("Close: %v", err)
	}
}

// An AnswerLoser is a store under test whose engine can lose the answer to a commit: after
// LoseAnswers, to every write. done says whether the write is carried out before, if the engine can
// tell the two apart. restore ends it, if the engine survives it.
type AnswerLoser interface {
	LoseAnswers(done bool) (restore func())
}

func classes() []error {
	return []error{store.ErrNotFound, store.ErrConflict, store.ErrTooLarge, store.ErrInvalid, store.ErrThrottled,
		store.ErrUnknown, store.ErrClosed, store.ErrLocked, store.ErrMissing, store.ErrFormat, store.ErrOvertaken,
		context.Canceled}
}

// wantClass checks the class of the error: want and no other.
func (r *rig) wantClass(err, want error) {
	r.Helper()
	for _, class := range classes() {
		if errors.Is(err, class) != (class == want) {
			r.Fatalf("Commit = %v, want %v and no other class", err, want)
		}
	}
}

func testUnknown(t *testing.T, open Opener) {
	play(t, open,
		scenario{"a refusal is not unknown", testRefusalClasses},
		scenario{"a commit cancelled under way", testCancelled},
		scenario{"a commit under way when the store is closed", testClosing},
	)
	t.Run("the answer is lost", func(t *testing.T) {
		if _, ok := setUp(t, open).Store.(AnswerLoser); !ok {
			t.Skip("this engine loses no answers")
		}
		for _, done := range []bool{false, true} {
			for name, writes := range lostWrites() {
				t.Run(fmt.Sprintf("%s, done %t", name, done), func(t *testing.T) { testLost(setUp(t, open), done, writes) })
			}
		}
	})
}

// testRefusalClasses has a commit of every refusal: of one class, not ErrUnknown, and no write.
func testRefusalClasses(r *rig) {
	r.put(item("a", "1"))
	good := put(item("b", "1"))
	cancelled, cancel := context.WithCancel(r.Context())
	cancel()
	refusals := func(ctx context.Context, want error, writes ...store.Write) {
		r.Helper()
		for _, w := range writes {
			r.wantClass(r.Commit(ctx, w), want)
			r.wantClass(r.Commit(ctx, good, w), want)
		}
	}
	r.unchanged(func() {
		refusals(r.Context(), store.ErrConflict, put(item("a", "1"), store.Absent()), remove(at("z", "1")),
			store.Check(plain, at("z", "")))
		refusals(r.Context(), store.ErrInvalid, put(item("", "1")), store.Put("nowhere", item("a", "1")))
		refusals(r.Context(), store.ErrTooLarge, put(item("a", strings.Repeat("k", store.MaxSortKeyBytes+1))))
		refusals(cancelled, context.Canceled, put(item("a", "2")))
	})
	r.close()
	refusals(r.Context(), store.ErrClosed, put(item("a", "2")))
}

// pair is a commit of two items, each if it is absent.
func pair(pk string) []store.Write {
	return []store.Write{put(item(pk, "1"), store.Absent()), put(item(pk, "2"), store.Absent())}
}

// testCancelled cancels commits at about the moment at which they land. A successful one has
// landed, a refused one never lands. An unknown one, tried again, finds both items or writes them.
func testCancelled(r *rig) {
	answers := make([][]error, workers)
	r.together(1, func(worker, _ int) error {
		for i, spins := 0, 1; i < r.each(); i++ {
			err := r.commitCancelled(spins, pair(fmt.Sprint(worker, "-", i))...)
			answers[worker] = append(answers[worker], err)
			switch {
			case err == nil:
				spins = spins*3/4 + 1 // a little earlier
			case errors.Is(err, store.ErrUnknown):
			case errors.Is(err, context.Canceled):
				spins = spins*3/2 + 1
			default:
				return fmt.Errorf("want success, the cancellation or ErrUnknown: %w", err)
			}
		}
		return nil
	})
	for worker := range answers {
		for i, err := range answers[worker] {
			pk := fmt.Sprint(worker, "-", i)
			if errors.Is(err, store.ErrUnknown) {
				if err := r.Commit(r.Context(), pair(pk)...); err != nil {
					r.wantClass(err, store.ErrConflict)
				}
				err = nil
			}
			if n := len(r.rows(in(pk))); (err == nil && n != 2) || (err != nil && n != 0) {
				r.Fatalf("%d items of two after Commit = %v", n, err)
			}
		}
	}
}

// commitCancelled commits and cancels its context after so many turns of the scheduler.
func (r *rig) commitCancelled(spins int, writes ...store.Write) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		for range spins {
			runtime.Gosched()
		}
		cancel()
	}()
	return r.Commit(ctx, writes...)
}

// testClosing closes the store while commits run. Close waits for commits that have begun and
// refuses the others; none is ErrUnknown.
func testClosing(r *rig) {
	var landed atomic.Int64
	var closed atomic.Bool
	errs := make(chan error, workers+1)
	enough := make(chan struct{})
	for worker := range workers {
		go func() {
			for i := 0; ; i++ {
				late := closed.Load()
				err := r.Commit(r.Context(), pair(fmt.Sprint(worker, "-", i))...)
				switch {
				case err == nil && late:
					errs <- errors.New("a commit after Close has succeeded")
					return
				case err != nil:
					errs <- err
					return
				case landed.Add(1) == workers:
					close(enough)
				}
			}
		}()
	}
	<-enough
	r.close()
	closed.Store(true)
	for range workers {
		r.wantClass(<-errs, store.ErrClosed)
	}
}

func lostWrites() map[string][]store.Write {
	it := item("a", "1", number("version", 2), text("owner", "o"))
	return map[string][]store.Write{
		"a put":           {put(it)},
		"an update":       {update(at("a", "1"), store.NewItem(number("amount", 2)), nil)},
		"a guarded put":   {put(it, equals("version", store.Int(1)))},
		"a delete":        {remove(at("a", "1"))},
		"several writes":  {put(it), put(item("a", "2", text("owner", "o"))), remove(at("b", "1"))},
		"an absent check": {check(at("c", "1"), store.Absent()), put(item("c", "2"))},
	}
}

// testLost loses the answer to a commit. Its outcome is ErrUnknown, and all or none of its writes
// have landed. A refusal by the engine itself is not unknown.
func testLost(r *rig, done bool, writes []store.Write) {
	r.put(item("a", "1", number("version", 1)), item("b", "1"))
	before := r.dump()
	restore := r.Store.(AnswerLoser).LoseAnswers(done)
	cancelled, cancel := context.WithCancel(r.Context())
	cancel()
	r.wantClass(r.Commit(cancelled, writes...), context.Canceled)
	r.wantClass(r.Commit(r.Context(), append(writes[:len(writes):len(writes)], writes...)...), store.ErrInvalid)
	r.wantClass(r.Commit(r.Context(), writes...), store.ErrUnknown)
	restore()
	r.wantAllOrNone(before, writes)
}

// wantAllOrNone checks the store: all of the writes have been applied, or none.
func (r *rig) wantAllOrNone(before []string, writes []store.Write) {
	r.Helper()
	landed, after := 0, r.dump()
	for _, w := range writes {
		t := r.table(w.Table)
		it, err := r.Get(r.Context(), w.Table, w.KeyIn(t))
		switch {
		case err != nil && !errors.Is(err, store.ErrNotFound):
			r.Fatalf("Get: %v", err)
		case w.Op == store.OpPut && it.Equal(w.Item), w.Op == store.OpDelete && it == nil, w.Op == store.OpCheck:
			landed++
		case w.Op == store.OpUpdate && it.Get(w.Set[0].Name).Equal(w.Set[0].Value):
			landed++
		}
	}
	if fmt.Sprint(before) != fmt.Sprint(after) && landed != len(writes) {
		r.Fatalf("%d of %d writes have landed:\nbefore %q\nafter  %q", landed, len(writes), before, after)
	}
}
