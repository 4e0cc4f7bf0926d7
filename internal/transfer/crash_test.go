package transfer_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/transfer"
)

type atomicInt = atomic.Int64

var phases = []storetest.Phase{storetest.Before, storetest.After}

// TestCrash_EveryCommitOfACopy: killed at any commit, on either store, at most one store is
// able to charge; taken up again, the destination becomes live with everything in it. With a
// second crash, and on embedded and shared sources.
func TestCrash_EveryCommitOfACopy(t *testing.T) {
	cases, programme := 0, soaktest.Start(t)
	for _, shared := range []bool{false, true} {
		total := commits(t, shared)
		for n := range total {
			for _, phase := range phases {
				stride := 1 + total/2
				if soaktest.On() {
					stride = 1
				}
				for second := int64(0); second <= total && programme.Next(); second += stride {
					cases++
					w := newWorld(t, shared)
					crash(t, w, n+1, phase)
					if second > 0 {
						_, err := w.copy(crashAt(second, storetest.After, new(atomicInt))).Run(t.Context())
						if err != nil && !errors.Is(err, storetest.ErrCrash) {
							t.Errorf("shared %v, %d then %d: %v", shared, n+1, second, err)
						}
					}
					if able := w.able(); len(able) > 1 {
						t.Fatalf("shared %v, crash at %d: both stores are able to charge", shared, n+1)
					}
					w.finish()
					if able := w.able(); !slices.Equal(able, []string{"destination"}) {
						t.Fatalf("shared %v, crash at %d: able to charge: %v", shared, n+1, able)
					}
					w.settle(w.to)
				}
			}
		}
	}
	t.Logf("%d cases", cases)
}

// commits counts the commits of a copy that nothing befalls.
func commits(t *testing.T, shared bool) int64 {
	var points atomicInt
	if _, err := newWorld(t, shared).copy(crashAt(-1, storetest.After, &points)).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return points.Load()
}

// crash runs a copy that is killed at its n-th commit.
func crash(t *testing.T, w *world, n int64, phase storetest.Phase) {
	t.Helper()
	if _, err := w.copy(crashAt(n, phase, new(atomicInt))).Run(t.Context()); !errors.Is(err, storetest.ErrCrash) {
		t.Fatalf("crash at %d: %v", n, err)
	}
}

// TestCrash_EveryCommitOfACancellation: a copy is killed at any commit, then its cancellation
// at any commit, before the source is live again.
func TestCrash_EveryCommitOfACancellation(t *testing.T) {
	cases := 0
	for _, shared := range []bool{false, true} {
		total := commits(t, shared)
		for n := int64(2); n < total; n++ { // the first claims the destination, the last activates it
			var points atomicInt
			w := newWorld(t, shared)
			crash(t, w, n, storetest.After)
			if err := w.copy(crashAt(-1, storetest.After, &points)).Cancel(t.Context()); err != nil {
				t.Fatal(err)
			}
			for m := range points.Load() {
				for _, phase := range phases {
					cases++
					w := newWorld(t, shared)
					crash(t, w, n, storetest.After)
					// How many marks were set before the crash is chance: the last commits may not come.
					if err := w.copy(crashAt(m+1, phase, new(atomicInt))).Cancel(t.Context()); err != nil &&
						!errors.Is(err, storetest.ErrCrash) {
						t.Fatalf("shared %v, cancel after %d, crash at %d: %v", shared, n, m+1, err)
					}
					if able := w.able(); len(able) > 1 {
						t.Fatalf("able to charge: %v", able)
					}
					if m > 0 || phase == storetest.After { // from here on it can never become live
						if r, err := w.copy(nil).Run(t.Context()); err == nil {
							t.Fatalf("a canceled copy went on: %+v", r)
						}
					}
					if err := w.copy(nil).Cancel(t.Context()); err != nil {
						t.Fatal(err)
					}
					if able := w.able(); !slices.Equal(able, []string{"source"}) {
						t.Fatalf("able to charge: %v", able)
					}
					w.settle(w.from)
				}
			}
		}
	}
	t.Logf("%d cases", cases)
}

// TestCancel_RefusedWhenLive: from the activation on there is no way back.
func TestCancel_RefusedWhenLive(t *testing.T) {
	w := newWorld(t, true)
	crash(t, w, commits(t, true), storetest.After)
	if err := w.copy(nil).Cancel(t.Context()); err == nil {
		t.Error("a live copy was canceled")
	}
	if able := w.able(); !slices.Equal(able, []string{"destination"}) {
		t.Errorf("able to charge: %v", able)
	}
}

// TestSleeper_AtEveryCall: a worker on the shared source falls asleep before any one of its
// calls of store and processor. The copy is made. More than a day later, when the processor
// has forgotten all idempotency keys, the worker wakes: before the destination has charged,
// or after it. Nothing is charged twice, and nothing is left out.
func TestSleeper_AtEveryCall(t *testing.T) {
	calls := sleeperCalls(t)
	for n := 1; n <= calls; n++ {
		for _, late := range []bool{false, true} {
			w := newWorld(t, true)
			s, ended := w.work(n)
			w.finish()
			w.pass(25 * time.Hour)
			if late {
				w.settle(w.to)
			}
			close(s.awake)
			<-ended
			w.settle(w.to)
			if t.Failed() {
				t.Fatalf("asleep before call %d of %d, late %v", n, calls, late)
			}
		}
	}
	t.Logf("%d cases", 2*calls)
}

// sleeperCalls counts the calls of a run.
func sleeperCalls(t *testing.T) int {
	s, ended := newWorld(t, true).work(-1)
	<-ended
	return int(s.calls.Load())
}

// TestSleeper_WakesWhileCopying: the worker wakes at any commit of the copy, works until its
// end, and then the copy goes on, perhaps killed there.
func TestSleeper_WakesWhileCopying(t *testing.T) {
	calls, total := sleeperCalls(t), commits(t, true)
	stride := 7 // of calls
	if soaktest.On() {
		stride = 1
	}
	cases, mended, programme := 0, 0, soaktest.Start(t)
	for n := 1; n <= calls; n++ {
		for when := int64(1); when <= total; when++ {
			if (n+int(when))%stride != 0 || !programme.Next() {
				continue
			}
			cases++
			w := newWorld(t, true)
			s, ended := w.work(n)
			var points atomicInt
			var wake sync.Once
			crashed := crashAt(when+int64(n%3)*2, storetest.After, new(atomicInt)) // some time after
			if n%2 == 0 {
				crashed = nil
			}
			woken := at(when, storetest.Before, &points, func() error {
				wake.Do(func() { w.pass(25 * time.Hour); close(s.awake); <-ended })
				return nil
			})
			r, err := w.copy(func(side int, op storetest.Operation, phase storetest.Phase) error {
				if err := woken(side, op, phase); err != nil || crashed == nil {
					return err
				}
				return crashed(side, op, phase)
			}).Run(t.Context())
			if err != nil && !errors.Is(err, storetest.ErrCrash) {
				t.Fatalf("asleep before call %d, woken at commit %d: %v", n, when, err)
			}
			if err == nil && !r.Live {
				mended++
			}
			wake.Do(func() { close(s.awake); <-ended })
			w.finish()
			w.settle(w.to)
			if t.Failed() {
				t.Fatalf("asleep before call %d, woken at commit %d", n, when)
			}
		}
	}
	t.Logf("%d cases, %d of them with differences that were mended", cases, mended)
}

// TestUnknownAnswers: every commit's request, or its answer, is lost once.
func TestUnknownAnswers(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for n := range commits(t, shared) {
			for _, phase := range phases {
				w := newWorld(t, shared)
				var points atomicInt
				lost := at(n+1, phase, &points, func() error { return store.ErrUnknown })
				r, err := w.copy(lost).Run(t.Context())
				if err != nil || !r.Live {
					t.Fatalf("shared %v, commit %d, phase %d: %+v, %v", shared, n+1, phase, r, err)
				}
				w.settle(w.to)
			}
		}
	}
}

// TestZombieCopier: a copier falls asleep before any one of its commits. Another one makes
// the copy live, and the destination charges for days. Then the first wakes, and changes
// nothing there. With half, the other comes only as far as a crash, and both go on.
func TestZombieCopier(t *testing.T) {
	for _, half := range []bool{false, true} {
		total := commits(t, true)
		for n := range total {
			w := newWorld(t, true)
			var before map[string]store.Item
			var points atomicInt
			var sleep sync.RWMutex // held while it sleeps: then all of its goroutines do
			asleep := at(n+1, storetest.Before, &points, func() error {
				sleep.Lock()
				defer sleep.Unlock()
				if half {
					_, err := w.copy(crashAt(total/2, storetest.After, new(atomicInt))).Run(t.Context())
					if err != nil && !errors.Is(err, storetest.ErrCrash) && !errors.Is(err, transfer.ErrOvertaken) {
						t.Error(err)
					}
					return nil
				}
				w.finish()
				w.settle(w.to)
				before = everything(t, w.to)
				return nil
			})
			_, err := w.copy(func(side int, op storetest.Operation, phase storetest.Phase) error {
				if phase == storetest.Before {
					sleep.RLock()
					defer func() { _ = asleep(side, op, phase) }()
					defer sleep.RUnlock()
				}
				return nil
			}).Run(t.Context())
			if half {
				if err != nil && !errors.Is(err, transfer.ErrOvertaken) && !errors.Is(err, transfer.ErrRefused) {
					t.Errorf("commit %d: %v", n+1, err)
				}
				w.finish()
				w.settle(w.to)
				continue
			}
			after := everything(t, w.to)
			for key, it := range before {
				if !it.Equal(after[key]) {
					t.Errorf("asleep before commit %d (%v): %s was %v, is %v", n+1, err, key, it, after[key])
				}
			}
			if len(after) != len(before) {
				t.Errorf("asleep before commit %d (%v): %d items, now %d", n+1, err, len(before), len(after))
			}
			w.settle(w.to)
		}
	}
}

// TestCancel_LostDestination: a copy is killed at any commit and its destination is lost. It
// can be given up as long as it cannot have become live; then the source charges again. Should
// the destination be found, the copy can be gone on with, and again only one of them charges.
func TestCancel_LostDestination(t *testing.T) {
	for _, shared := range []bool{false, true} {
		total := commits(t, shared)
		for n := int64(2); n <= total; n++ { // the last but two makes the source final
			w := newWorld(t, shared)
			crash(t, w, n, storetest.After)
			lost := w.copy(nil)
			lost.To = newWorld(t, shared).to
			err := lost.Cancel(t.Context())
			if final := n >= total-2; (err != nil) != final {
				t.Fatalf("shared %v, lost after commit %d of %d: %v", shared, n, total, err)
			} else if final {
				continue
			}
			if able := w.able(); !slices.Equal(able, []string{"source"}) {
				t.Fatalf("able to charge: %v", able)
			}
			w.settle(w.from)
			for range 2 { // the first may find what the source has done since
				if _, err := w.copy(nil).Run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if able := w.able(); !slices.Equal(able, []string{"destination"}) {
				t.Fatalf("shared %v, found again after commit %d: able to charge: %v", shared, n, able)
			}
			w.settle(w.to)
		}
	}
}
