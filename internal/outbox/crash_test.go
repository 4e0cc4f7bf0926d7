package outbox_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/storetest"
)

// world is the state of one crash test: a good effect, one that fails once, one that
// is never delivered, one that is not wanted, and one that cannot be read.
func world(t *testing.T) (*clock, store.Store, *receiver) {
	t.Helper()
	c := &clock{t: start}
	s := open(t, c)
	put(t, s, effect("good"), effect("fails once"), effect("never"), effect("later"))
	bad := outbox.Write(table.Name, effect("unreadable"))
	bad.Item.Remove("Kind")
	if err := s.Commit(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	return c, s, &receiver{fail: func(e outbox.Effect) error {
		switch {
		case e.ID == "never":
			return outbox.ErrPermanent
		case e.ID == "fails once" && e.Tries == 0:
			return errors.New("not now")
		}
		return nil
	}}
}

// finish drains without faults until nothing is left, and checks that nothing was
// lost.
func finish(t *testing.T, c *clock, s store.Store, to *receiver) {
	t.Helper()
	o := outbox.New(s, table, c.now, to, nil)
	for range 3 {
		drain(t, o)
		c.move(time.Minute)
	}
	wantPending(t, o, 0, 0, 2)
	for _, id := range []string{"good", "fails once", "later"} {
		if n := to.got[id]; n < 1 || n > 2 {
			t.Errorf("%s: delivered %d times, want once, or twice around the crash", id, n)
		}
	}
	ids := map[string]bool{}
	for _, e := range dead(t, o) {
		ids[e.ID] = true
	}
	if !ids["never"] || !ids["unreadable"] {
		t.Errorf("dead letters %v", ids)
	}
}

func TestDrain_CrashAtEveryCommit(t *testing.T) {
	hooks := map[string]func(int, storetest.Phase) storetest.Hook{"crash": storetest.CrashAt, "lost": storetest.LoseReply}
	phases := map[string]storetest.Phase{"before": storetest.Before, "after": storetest.After}
	for name, hook := range hooks {
		for when, phase := range phases {
			t.Run(name+" "+when, func(t *testing.T) {
				hits := 0
				for n := 1; ; n++ {
					c, s, to := world(t)
					faulty := storetest.NewFaulty(s)
					faulty.Hook = hook(n, phase)
					o := outbox.New(faulty, table, c.now, to, nil)
					var err error
					for range 2 { // the second drain has the retry
						_, drained := o.Drain(t.Context(), 1)
						err = errors.Join(err, drained)
						c.move(time.Minute)
					}
					if crashed := errors.Is(err, storetest.ErrCrash); (err != nil) != crashed || (name == "lost" && crashed) {
						t.Fatalf("commit %d: %v", n, err)
					}
					finish(t, c, s, to)
					if t.Failed() {
						t.Fatalf("at commit %d", n)
					}
					if faulty.Commits() < n {
						break // the fault came too late to happen
					}
					hits++
				}
				if hits < 6 {
					t.Errorf("only %d commits were hit", hits)
				}
			})
		}
	}
}

func TestReplay_CrashBeforeAndAfter(t *testing.T) {
	for _, phase := range []storetest.Phase{storetest.Before, storetest.After} {
		t.Run(fmt.Sprint(phase), func(t *testing.T) {
			c, s, to := world(t)
			o := outbox.New(s, table, c.now, to, nil)
			drain(t, o)
			faulty := storetest.NewFaulty(s)
			faulty.Hook = storetest.LoseReply(1, phase)
			err := outbox.New(faulty, table, c.now, to, nil).Replay(t.Context(), "never")
			if !errors.Is(err, store.ErrUnknown) {
				t.Fatalf("replay: %v, want unknown", err)
			}
			finish(t, c, s, to)
		})
	}
}

func TestDrain_StoreErrorStops(t *testing.T) {
	c, s, to := world(t)
	full := errors.New("disk full")
	for _, kind := range []storetest.Kind{storetest.Query, storetest.Commit} {
		faulty := storetest.NewFaulty(s)
		faulty.Hook = func(op storetest.Operation, phase storetest.Phase) error {
			if op.Kind == kind && phase == storetest.Before {
				return full
			}
			return nil
		}
		if _, err := outbox.New(faulty, table, c.now, to, nil).Drain(t.Context(), 2); !errors.Is(err, full) {
			t.Errorf("drain: %v, want the store's error", err)
		}
	}
}
