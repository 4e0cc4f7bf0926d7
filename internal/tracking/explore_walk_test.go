package tracking_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/test/storetest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/stripefake"
)

// A walk takes one path through a flow with all of its events. Dice choose the order. The walk
// delivers each event one to three times, and until it is answered with 200. In between it drains
// queues and processes single rows. Processes die at a commit, commits lose their request or reply,
// and another process acts between a read and the following commit.
type walk struct {
	tape   *tape
	dice   *rand.Rand
	house  *house
	other  *house // another process
	events []stripefake.Event
	store  store.Store
	before *view
	steps  []string
	faults int
	change []func(*tracking.Options)
	past   *past // the Finder, unless it is nil
	lost   func(stripefake.Event) bool
	poll   *lister // that finds lost events in the end; nil: they never come
	heard  int
	drains bool // the step under way works on many rows
}

// newWalk starts a walk on the store. The argument faults sets how many of ten steps have a fault.
func newWalk(t testing.TB, tp *tape, on store.Store, seed uint64, faults int, change ...func(*tracking.Options)) *walk {
	t.Helper()
	w := &walk{tape: tp, dice: rand.New(rand.NewPCG(seed, 5)), store: on, faults: faults}
	w.house = tp.house(t, on, change...)
	w.change = append(slices.Clone(change), with(w.house.robot))
	w.other = tp.house(t, on, w.change...)
	return w
}

// deck returns every event one to three times, shuffled. Without a shuffle it returns each event
// once, in order.
func (w *walk) deck(events []stripefake.Event, shuffled bool) (deck []stripefake.Event) {
	if !shuffled {
		return slices.Clone(events)
	}
	for _, e := range events {
		for range 1 + w.dice.IntN(3) {
			deck = append(deck, e)
		}
	}
	w.dice.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	return deck
}

// run walks to the end, and returns the first problem.
func (w *walk) run(t testing.TB, events []stripefake.Event, shuffled bool) error {
	t.Helper()
	came := slices.Clone(events)
	if w.lost != nil {
		came = slices.DeleteFunc(came, w.lost)
	}
	deck := w.deck(came, shuffled)
	if w.events = came; w.poll == nil {
		events = came
	}
	for len(deck) > 0 {
		if w.dice.IntN(3) == 0 {
			if err := w.step(t, w.work); err != nil && !errors.Is(err, errLost) {
				return err
			}
			continue
		}
		e := deck[0]
		deck = deck[1:]
		err := w.step(t, func(on store.Store) error {
			w.steps = append(w.steps, e.ID+" "+e.Type)
			w.house.stage.Store = on
			w.heard++
			w.past.comes(e)
			switch status := w.house.hear(e.Body); status {
			case 200:
				return nil
			case 503:
				return errLost
			default:
				return fmt.Errorf("it is answered with %d", status)
			}
		})
		if errors.Is(err, errLost) { // Stripe sends it again, later
			deck = slices.Insert(deck, w.dice.IntN(len(deck)+1), e)
		} else if err != nil {
			return err
		}
	}
	return w.end(t, events)
}

// errLost is returned if an injected fault prevented an operation or a part of it.
var errLost = errors.New("lost")

// work drains a queue or processes one outbox row.
func (w *walk) work(on store.Store) error {
	if rows := w.before; rows != nil && len(rows.rows) > 0 && w.dice.IntN(2) == 0 {
		r := rows.rows[w.dice.IntN(len(rows.rows))]
		w.steps = append(w.steps, "row "+r.id)
		_, err := w.house.work(on, r)
		return err
	}
	w.steps, w.drains = append(w.steps, "drains"), true
	w.house.stage.Store = on
	_, err := w.house.service.DrainInbox(context.Background())
	_, wrong := w.house.service.Deliver(context.Background())
	return errors.Join(err, wrong)
}

// step performs an operation, perhaps with a fault, and then checks the stored data.
func (w *walk) step(t testing.TB, do func(on store.Store) error) error {
	faulty := storetest.NewFaulty(w.store)
	crash, overtaken := false, false
	w.drains = false
	switch dice := w.dice.IntN(10); {
	case dice >= 10-w.faults:
		overtaken = true
		w.overtake(faulty)
	case dice < w.faults:
		n, phase := 1+w.dice.IntN(3), storetest.Before+storetest.Phase(w.dice.IntN(2))
		if crash = w.dice.IntN(2) == 0; crash {
			faulty.Hook = storetest.CrashAt(n, phase)
		} else {
			faulty.Hook = storetest.LoseReply(n, phase)
		}
		w.steps = append(w.steps, fmt.Sprintf("with a fault at commit %d (%d), the process dies: %v", n, phase, crash))
	}
	err := do(faulty)
	if (faulty.Hook == nil || overtaken) && err != nil {
		return err
	}
	done := w.house.robot.jobs()
	if crash {
		w.house = w.tape.house(t, w.store, w.change...) // the next process
	}
	v, wrong := see(w.store, w.tape.purchase, false)
	if wrong != nil {
		return wrong
	}
	if w.before != nil {
		v.wrong = append(v.wrong, v.after(w.before, !overtaken && !w.drains, w.tape.billed())...)
	}
	if _, text := order(done, w.tape.purchase); text != "" {
		v.wrong = append(v.wrong, text)
	}
	if w.before = v; len(v.wrong) > 0 {
		return errors.New(strings.Join(v.wrong, "; "))
	}
	if err != nil {
		return errLost
	}
	return nil
}

// end drains everything as time passes, and then checks the result.
func (w *walk) end(t testing.TB, events []stripefake.Event) error {
	t.Helper()
	if w.poll != nil {
		w.house.stage.Store = w.store
		if err := w.poll.round(w.house); err != nil {
			return err
		}
	}
	w.past.comes(events...)
	if err := w.house.settle(w.store); err != nil {
		return err
	}
	v, err := see(w.store, w.tape.purchase, false)
	if err != nil {
		return err
	}
	jobs, wrong := order(w.house.robot.jobs(), w.tape.purchase)
	if w.before != nil {
		v.wrong = append(v.wrong, v.after(w.before, false, w.tape.billed())...)
	}
	v.wrong = append(v.wrong, w.tape.judge(v, jobs, events)...)
	for _, e := range events {
		if !v.events[e.ID].Final() {
			v.wrong = append(v.wrong, fmt.Sprintf("event %s is %q", e.ID, v.events[e.ID]))
		}
	}
	if wrong != "" || len(v.wrong) > 0 {
		return errors.New(strings.Join(append(v.wrong, wrong), "; "))
	}
	return nil
}

// overtake lets another process receive an event or drain right before this process's first commit.
func (w *walk) overtake(faulty *storetest.Faulty) {
	e := w.events[w.dice.IntN(len(w.events))]
	drains := w.dice.IntN(4) == 0
	w.past.comes(e)
	w.steps = append(w.steps, fmt.Sprintf("overtaken by %s, or a drain: %v", e.ID, drains))
	var once sync.Once
	faulty.Hook = func(op storetest.Operation, phase storetest.Phase) error {
		if op.Kind != storetest.Commit || phase != storetest.Before {
			return nil
		}
		once.Do(func() {
			w.other.stage.Store = w.store
			if !drains {
				w.other.hear(e.Body)
				return
			}
			_, _ = w.other.service.DrainInbox(context.Background()) // what it does is seen in the store
			_, _ = w.other.service.Deliver(context.Background())
		})
		return nil
	}
}

func (w *walk) path() string { return "\n\t" + strings.Join(w.steps, "\n\t") }

// walkVersions lists the API versions of the events in the samples.
var walkVersions = []string{oldestVersion, "2022-11-15", "2024-04-10", "2025-03-31.basil", stripefake.NewestVersion}

// TestSampledOrders walks through all flows with all of their events, in several API versions.
// DUESDAY_SOAK=1 walks 2,000 times through each flow in each version.
func TestSampledOrders(t *testing.T) {
	times := 2
	if soaktest.On() {
		times = 2000
	}
	soaktest.Divide(t, len(flows()))
	for _, f := range flows() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			tp := play(t, f, walkVersions...)
			walks, steps, most := 0, 0, 0
			programme := soaktest.Start(t)
			for i := range times * len(walkVersions) {
				if !programme.Next() {
					break
				}
				walks++
				version := walkVersions[i%len(walkVersions)]
				root := tp.roots[i%len(tp.roots)].Snapshot()
				w := newWalk(t, tp, root, uint64(i), 3)
				if err := w.run(t, tp.events[version], i >= len(walkVersions)); err != nil {
					t.Fatalf("walk %d from root %d in %s: %v%s", i, i%len(tp.roots), version, err, w.path())
				}
				steps += len(w.steps)
				most = max(most, len(tp.events[version]))
			}
			t.Logf("%d walks of up to %d events, %d steps", walks, most, steps)
		})
	}
}
