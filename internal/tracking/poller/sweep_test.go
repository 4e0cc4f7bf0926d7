package poller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/tracking"
)

// sweep runs a sweep that must succeed for all accounts.
func (w *pollWorld) sweep(t *testing.T, all bool) SweepReport {
	t.Helper()
	r, err := w.poller().Sweep(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	w.check(t)
	return r
}

func TestSweep_ComparesObjects(t *testing.T) {
	w := newPollWorld("acct_own", "acct_a", "acct_b")
	w.accounts = append(w.accounts,
		&tracking.ConnectedAccount{StripeAccount: "acct_gone", Status: tracking.Disconnected, Updated: pollStart})
	w.objects["acct_own"] = []tracking.Object{{ID: "pi_1", Status: "changed"}}
	w.objects["acct_a"] = []tracking.Object{{ID: "sub_1"}, {ID: "sub_2", Status: "changed"},
		{ID: "pi_2", Status: "changed"}}
	w.state("acct_b").Swept = pollStart.Add(-7*day + time.Second)
	// An event of sub_2 is on its way, and one about pi_2 of long ago was applied.
	w.events = append(w.events,
		pollEvent{id: "evt_1", account: "acct_a", created: pollStart.Add(-time.Minute), about: `{"data":{"object":{"id":"sub_2"}}}`},
		pollEvent{id: "evt_2", account: "acct_a", created: pollStart.Add(-5 * day), about: `{"data":{"object":{"id":"pi_2"}}}`})
	r := w.sweep(t, false)
	if want := (SweepReport{Accounts: 2, Skipped: 1, Objects: 4, Changed: 3, Untold: 2}); fmt.Sprint(r) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", r, want)
	}
	slices.Sort(w.applied)
	equalLists(t, "applied", w.applied, []string{"/pi_1", "acct_a/pi_2", "acct_a/sub_1", "acct_a/sub_2"})
	if got, want := w.swept["acct_a"], pollStart.Add(-30*day); !got.Equal(want) {
		t.Errorf("a new account: since %v, want %v", got, want)
	}
	for name, c := range map[string]struct {
		swept time.Time
		all   bool
		since time.Time // zero: it is not asked
	}{
		"a second early":      {swept: pollStart.Add(-7*day + time.Second)},
		"early, and wanted":   {pollStart.Add(-time.Hour), true, pollStart.Add(-time.Hour - 30*day)},
		"a week ago":          {pollStart.Add(-7 * day), false, pollStart.Add(-37 * day)},
		"far behind":          {pollStart.Add(-70 * day), false, pollStart.Add(-100 * day)},
		"a clock was wrong":   {pollStart.Add(400 * day), false, pollStart.Add(-30 * day)},
		"wrong, and wanted":   {pollStart.Add(400 * day), true, pollStart.Add(-30 * day)},
		"never, and the rest": {time.Time{}, true, pollStart.Add(-30 * day)},
	} {
		w := newPollWorld("acct_a")
		before := tracking.PollState{Through: pollStart.Add(-time.Hour), Quiet: 3, Next: pollStart.Add(time.Hour), Error: "x",
			Swept: c.swept}
		*w.state("acct_a") = before
		w.sweep(t, c.all)
		if got := w.swept["acct_a"]; !got.Equal(c.since) {
			t.Errorf("%s: since %v, want %v", name, got, c.since)
		}
		if !c.since.IsZero() {
			before.Swept = pollStart
		}
		if got := *w.state("acct_a"); got != before {
			t.Errorf("%s: saved %+v, want %+v", name, got, before)
		}
	}
}

func TestSweep_AFailureIsOneAccounts(t *testing.T) {
	for op, c := range map[string]struct {
		of      string // what it fails for
		applied int
	}{"list": {"acct_a", 1}, "apply": {"acct_a/sub_2", 3}, "save": {"acct_a", 4}} {
		w := newPollWorld("acct_a", "acct_b")
		w.objects["acct_a"] = []tracking.Object{{ID: "sub_1"}, {ID: "sub_2"}, {ID: "sub_3"}}
		w.objects["acct_b"] = []tracking.Object{{ID: "sub_4"}}
		w.fail = func(failing, account string) error {
			if failing == op && account == c.of {
				return errors.New("out of order")
			}
			return nil
		}
		r := w.sweep(t, false)
		if r.Failed != 1 || len(r.Failures) != 1 || r.Failures[0].StripeAccount != "acct_a" ||
			!strings.Contains(r.Failures[0].Error, "out of order") || len(w.applied) != c.applied {
			t.Errorf("%s: got %+v, applied %v", op, r, w.applied)
		}
		if a, b := w.state("acct_a").Swept, w.state("acct_b").Swept; !a.IsZero() || !b.Equal(pollStart) {
			t.Errorf("%s: swept %v and %v", op, a, b)
		}
	}
}

// TestSweep_GivesUp checks that a sweep stops at an account whose objects all fail.
func TestSweep_GivesUp(t *testing.T) {
	w := newPollWorld("acct_a")
	for range 50 {
		w.objects["acct_a"] = append(w.objects["acct_a"], tracking.Object{ID: "sub"})
	}
	n := 0
	w.fail = func(op, _ string) error {
		if op != "apply" {
			return nil
		}
		n++
		return errors.New("down")
	}
	if r := w.sweep(t, false); r.Failed != 1 || n != sweepErrors || r.Objects != n {
		t.Errorf("got %+v after %d objects, want %d", r, n, sweepErrors)
	}
}

func TestSweep_CutShort(t *testing.T) {
	w := newPollWorld("acct_a", "acct_b")
	w.objects["acct_a"] = []tracking.Object{{ID: "sub_1"}, {ID: "sub_2"}}
	ctx, cancel := context.WithCancel(t.Context())
	w.fail = func(op, _ string) error {
		if op == "apply" {
			cancel()
		}
		return ctx.Err()
	}
	if _, err := w.poller().Sweep(ctx, false); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if s := w.state("acct_a").Swept; !s.IsZero() {
		t.Errorf("swept %v", s)
	}
}
