package outbox_test

import (
	"errors"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/storetest"
)

func always(f outbox.Fate) func(outbox.Effect) (outbox.Fate, error) {
	return func(outbox.Effect) (outbox.Fate, error) { return f, nil }
}

// TestDecide_Killed: killed at any point, held and released mail is there once in the end, and the sums of
// its cause are counted once; no drain delivers what is held.
func TestDecide_Killed(t *testing.T) {
	for _, last := range []outbox.Fate{outbox.Release, outbox.Drop} {
		for point := 1; ; point++ {
			c := &clock{t: start}
			s := open(t, c)
			a, b := effect("a"), effect("b")
			a.Sums = "collected 1.00 USD 2023-06-28T09:15"
			put(t, s, a, b)
			died := false
			for _, f := range []outbox.Fate{outbox.Hold, last} {
				queue := map[outbox.Fate]outbox.Queue{outbox.Hold: outbox.Mail, last: outbox.Held}[f]
				faulty := storetest.NewFaulty(s)
				at, phase := (point+1)/2, storetest.Phase(storetest.Before)
				if point%2 == 0 {
					phase = storetest.After
				}
				faulty.Hook = storetest.CrashAt(at, phase)
				_, err := outbox.New(faulty, table, c.now, nil, nil).On(queue).Decide(t.Context(), always(f))
				died = died || errors.Is(err, storetest.ErrCrash)
				if _, err := outbox.New(s, table, c.now, nil, nil).On(queue).Decide(t.Context(), always(f)); err != nil {
					t.Fatal(err)
				}
				to := &receiver{}
				if o := outbox.New(s, table, c.now, to, nil); f == outbox.Hold {
					if drain(t, o); len(to.all) != 0 {
						t.Fatalf("point %d: a drain delivered held mail", point)
					}
				}
			}
			to := &receiver{}
			o := outbox.New(s, table, c.now, to, nil)
			sums := 0
			for e, err := range o.Uncounted(t.Context()) {
				if err != nil || e.Sums != a.Sums || e.Kind != outbox.KindSum {
					t.Errorf("point %d: %+v, %v", point, e, err)
				}
				sums++
			}
			drain(t, o)
			if want := map[outbox.Fate]int{outbox.Release: 1}[last]; sums != 1 || to.got["a"] != want || to.got["b"] != want {
				t.Errorf("point %d: %d sums, delivered %v, want %d of each", point, sums, to.got, want)
			}
			if !died {
				break
			}
		}
	}
}

// TestDecide_BesideACount: a row that a drain counts at the same time keeps its sums.
func TestDecide_BesideACount(t *testing.T) {
	c := &clock{t: start}
	s := open(t, c)
	e := effect("a")
	e.Sums = "collected 1.00 USD 2023-06-28T09:15"
	put(t, s, e)
	o := outbox.New(s, table, c.now, &receiver{}, nil)
	count, err := o.Decide(t.Context(), func(outbox.Effect) (outbox.Fate, error) {
		w := outbox.Write(table.Name, effect("a"))
		return outbox.Hold, s.Commit(t.Context(), store.Update(table.Name, table.KeyOf(w.Item), nil, []string{schema.Sums}))
	})
	if err != nil || count[outbox.Hold] != 0 {
		t.Errorf("%v, %v", count, err)
	}
	c.move(time.Minute)
	if b, err := o.Backlog(t.Context(), 0); err != nil || b.Due != 1 {
		t.Errorf("%+v, %v", b, err)
	}
}
