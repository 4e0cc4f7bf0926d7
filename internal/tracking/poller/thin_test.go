package poller

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/tracking"
)

// TestThin_WhoIsAsked checks that the poller lists no thin events before an account has sent one.
// After that it lists those of this account in every round, and those of the others once a day.
func TestThin_WhoIsAsked(t *testing.T) {
	w := newPollWorld("acct_a", "acct_b", "acct_own")
	p := w.poller(func(o *Options) { o.Parallel = 1 })
	asks := func(want ...string) {
		t.Helper()
		w.askedThin = nil
		w.round(t, p, true)
		equalLists(t, "asked for thin events", w.askedThin, want)
		w.stripe = w.stripe.Add(10 * time.Minute)
	}
	asks()
	w.state("acct_b").Thin = true
	asks("acct_b")
	w.stripe = w.stripe.Add(day)
	lost := w.happenThin("acct_a", w.stripe.Add(-time.Hour)) // no webhook of it ever came
	asks("acct_a", "acct_b", "acct_own")
	if _, there := w.stored[lost.id]; !there {
		t.Errorf("%s is not found", lost.id)
	}
	asks("acct_b")
}

// TestThin_First checks that after an account's first thin event a round lists its thin events from
// the beginning, once. The account's other events are verified, but earlier thin ones may be lost.
func TestThin_First(t *testing.T) {
	w := newPollWorld("acct_a")
	e := w.happenThin("acct_a", pollStart.Add(-20*day))
	*w.state("acct_a") = tracking.PollState{Through: pollStart.Add(-time.Minute), Thin: true}
	w.fail = func(op, _ string) error {
		if op == "thin" {
			return errors.New("no answer")
		}
		return nil
	}
	w.round(t, w.poller(), true)
	w.fail = nil
	w.round(t, w.poller(), true)
	if _, there := w.stored[e.id]; !there {
		t.Errorf("%s is not found", e.id)
	}
	if w.round(t, w.poller(), true); w.since["acct_a"].Before(pollStart.Add(-2 * day)) {
		t.Errorf("listed since %v again", w.since["acct_a"])
	}
}

// TestThin_Swept checks an account whose thin events were all lost. A sweep finds the changed
// objects and does not count them as untold, and the next round lists the thin events.
func TestThin_Swept(t *testing.T) {
	w := newPollWorld("acct_a", "acct_b")
	for _, account := range []string{"acct_a", "acct_b"} {
		w.objects[account] = []tracking.Object{{ID: "pi_1", Status: "changed"}}
	}
	e := w.happenThin("acct_a", pollStart.Add(-time.Minute))
	w.events[0].about = `{"related_object":{"id":"pi_1"}}`
	w.happenThin("acct_b", pollStart.Add(-time.Minute)) // about something else
	if r := w.sweep(t, false); r.Changed != 2 || r.Untold != 1 || !w.state("acct_a").Thin || w.state("acct_b").Thin {
		t.Errorf("got %+v, %+v, %+v", r, w.state("acct_a"), w.state("acct_b"))
	}
	if r := w.sweep(t, false); r.Skipped != 2 {
		t.Errorf("again: %+v", r)
	}
	w.events[0].about = ""
	w.state("acct_a").Through = pollStart
	w.round(t, w.poller(), true)
	if _, there := w.stored[e.id]; !there {
		t.Errorf("%s is not found", e.id)
	}
}

// TestThin_Refused checks that an account without a list of thin events is polled as before. Any
// other error fails the account's round, and the mark stays.
func TestThin_Refused(t *testing.T) {
	for _, c := range []struct {
		err    error
		failed int
	}{{fmt.Errorf("%w: not for this key", ErrNoThin), 0}, {errors.New("no answer"), 1}} {
		w := newPollWorld("acct_a")
		w.state("acct_a").Thin = true
		e := w.happen("acct_a", pollStart.Add(-time.Hour), 0)
		w.fail = func(op, _ string) error {
			if op == "thin" {
				return c.err
			}
			return nil
		}
		r := w.round(t, w.poller(), true)
		if _, there := w.stored[e.id]; r.Failed != c.failed || there != (c.failed == 0) ||
			w.state("acct_a").Through.IsZero() != (c.failed == 1) {
			t.Errorf("%v: %+v, %+v", c.err, r, w.state("acct_a"))
		}
	}
}

// TestThin_MoreThanMemoryHolds checks that a round reads both lists to the end, however few events
// it may hold, and that the mark never passes a missing event.
func TestThin_MoreThanMemoryHolds(t *testing.T) {
	for seed := range uint64(40) {
		dice := rand.New(rand.NewPCG(seed, 1))
		w := newPollWorld("acct_a")
		w.state("acct_a").Thin = true
		for range 40 {
			at := pollStart.Add(-time.Duration(dice.IntN(48*60)) * time.Minute)
			if dice.IntN(2) == 0 {
				w.happenThin("acct_a", at)
			} else {
				w.happen("acct_a", at, 0)
			}
		}
		r := w.round(t, w.poller(func(o *Options) { o.Batch = 1 + dice.IntN(6) }), true)
		if r.Failed > 0 || len(w.stored) != len(w.events) || !w.state("acct_a").Through.Equal(pollStart) {
			t.Errorf("seed %d: %d of %d events, %+v\n%s", seed, len(w.stored), len(w.events), r, strings.Join(w.sent, " "))
		}
	}
}
