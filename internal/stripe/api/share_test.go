package api

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// process returns the budget of another process with the file.
func process(t testing.TB, file string, rate int) *budget {
	t.Helper()
	s, err := openShare(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return newBudget(rate, s)
}

func budgetFile(t testing.TB) string { return filepath.Join(t.TempDir(), "STRIPE.budget") }

// together lets every budget take so many slots by some workers, and returns when all came.
func together(t *testing.T, budgets []*budget, endpoint string, workers, n int) []time.Time {
	t.Helper()
	var mu sync.Mutex
	var at []time.Time
	var all sync.WaitGroup
	for _, b := range budgets {
		all.Go(func() {
			mine := passes(t, b, endpoint, workers, n)
			mu.Lock()
			defer mu.Unlock()
			at = append(at, mine...)
		})
	}
	all.Wait()
	slices.SortFunc(at, time.Time.Compare)
	return at
}

// TestShare_OneBudget: three processes together are as fast as one, and no faster.
func TestShare_OneBudget(t *testing.T) {
	file := budgetFile(t)
	synctest.Test(t, func(t *testing.T) {
		budgets := []*budget{process(t, file, 25), process(t, file, 25), process(t, file, 25)}
		at := together(t, budgets, "POST /v1/x", 4, 50)
		for i := 1; i < len(at); i++ {
			if got := at[i].Sub(at[i-1]); got < 30*time.Millisecond {
				t.Errorf("request %d came after %v, want 40.8ms, 10 of which can be made up for", i, got)
			}
		}
		if got := at[149].Sub(at[0]); got < 149*40*time.Millisecond || got > 149*42*time.Millisecond {
			t.Errorf("149 requests took %v, want 6.1s", got)
		}
	})
}

// TestShare_AnyProcesses: whatever processes send, a second has no more requests of one endpoint than
// the highest rate, nor of all endpoints than four times that.
func TestShare_AnyProcesses(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rates := rapid.SliceOfN(rapid.IntRange(1, 25), 1, 4).Draw(r, "rates")
		workers := rapid.IntRange(1, 3).Draw(r, "workers")
		endpoints := []string{"a", "b", "c", "d", "e", "f"}[:rapid.SampledFrom([]int{1, 6}).Draw(r, "endpoints")]
		file := budgetFile(t)
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var sent []time.Time
			var all sync.WaitGroup
			var budgets []*budget
			for _, rate := range rates {
				budgets = append(budgets, process(t, file, rate))
			}
			for _, e := range endpoints {
				all.Go(func() {
					at := together(t, budgets, e, workers, 8)
					if len(endpoints) == 1 { // else a request also waits for the others
						atMost(t, at, slices.Max(rates))
					}
					mu.Lock()
					defer mu.Unlock()
					sent = append(sent, at...)
				})
			}
			all.Wait()
			slices.SortFunc(sent, time.Time.Compare)
			atMost(t, sent, totalFactor*slices.Max(rates))
		})
	})
}

func atMost(t *testing.T, at []time.Time, rate int) {
	t.Helper()
	for i := range at {
		if i+rate < len(at) && at[i+rate].Sub(at[i]) < time.Second {
			t.Fatalf("%d requests in %v, want at most %d a second", rate+1, at[i+rate].Sub(at[i]), rate)
		}
	}
}

// TestShare_TooMany: a 429 of one process slows the others.
func TestShare_TooMany(t *testing.T) {
	file := budgetFile(t)
	synctest.Test(t, func(t *testing.T) {
		a, b := process(t, file, 20), process(t, file, 20)
		sent, err := a.take(t.Context(), "e")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		a.pace("e").slow(sent, 2*time.Second)
		b.pace("e").slow(sent, time.Second) // sent before the cut that another process knows of
		at := passes(t, b, "e", 4, 10)
		if got := at[0].Sub(start); got != 2*time.Second {
			t.Errorf("the other process went on after %v, want 2s", got)
		}
		if got := at[9].Sub(at[0]); got < 9*56*time.Millisecond || got > 9*58*time.Millisecond {
			t.Errorf("9 requests took %v, want 510ms: nine tenths of the rate", got)
		}
		if at := passes(t, b, "f", 1, 1); at[0].Sub(start) > 3*time.Second {
			t.Errorf("another endpoint waited until %v", at[0].Sub(start))
		}
	})
}

// TestShare_Stuck: a process that stands still with the lock costs a second, and then nothing. The
// pace stays.
func TestShare_Stuck(t *testing.T) {
	file := budgetFile(t)
	synctest.Test(t, func(t *testing.T) {
		b, stuck := process(t, file, 25), process(t, file, 25).share.file
		first := passes(t, b, "e", 1, 1)[0]
		if err := syscall.Flock(int(stuck.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		at := passes(t, b, "e", 4, 26)
		if got := at[0].Sub(first); got < time.Second || got > 1100*time.Millisecond {
			t.Errorf("the next request came after %v, want a second", got)
		}
		atMost(t, at, 25)
		if err := syscall.Flock(int(stuck.Fd()), syscall.LOCK_UN); err != nil {
			t.Fatal(err)
		}
		at = append(at, passes(t, b, "e", 1, 1)...) // which tells the others
		atMost(t, append(at, together(t, []*budget{b, process(t, file, 25)}, "e", 2, 20)...), 25)
	})
}

// TestShare_Damaged: whatever the file says, a request waits a minute at most, and the pace of a
// process is its own again.
func TestShare_Damaged(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": "\x00\x00\x00", "torn": `{"e":{"next":"2000-01-01T0`, "other": `{"e":{"next":7}}`, "a list": `[]`,
		"tail": `{}{"e":{}}`, "long": strings.Repeat("x", 2*maxShare),
		"the clock has stepped back": `{"e":{"next":"2000-01-02T00:00:00Z","until":"2000-01-02T00:00:00Z",` +
			`"cut":"2000-01-02T00:00:00Z","rate":1},"total":{"next":"2031-01-01T00:00:00Z"}}`,
		"no rate": `{"e":{"cut":"1999-12-31T23:59:59Z","rate":-5}}`,
	} {
		file := budgetFile(t)
		synctest.Test(t, func(t *testing.T) {
			b := process(t, file, 25)
			start := passes(t, b, "e", 1, 1)[0]
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if at := passes(t, b, "e", 2, 26); at[0].Sub(start) != 40800*time.Microsecond ||
				at[25].Sub(at[0]) != 25*40800*time.Microsecond {
				t.Errorf("%s: 26 requests from %v to %v", name, at[0].Sub(start), at[25].Sub(start))
			}
			if at := together(t, []*budget{b, process(t, file, 25)}, "e", 1, 13); at[25].Sub(at[0]) < time.Second {
				t.Errorf("%s: two processes sent 26 requests in %v", name, at[25].Sub(at[0]))
			}
		})
	}
	if _, err := openShare(filepath.Join(t.TempDir(), "none", "x")); err == nil || !strings.Contains(err.Error(), "budget") {
		t.Errorf("no folder: %v", err)
	}
}

// TestShare_ClockSteppedBack: what a process knows itself is cut too, to what it can have meant.
func TestShare_ClockSteppedBack(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	p := &pace{record: record{Next: now.Add(time.Hour), Until: now.Add(time.Hour)}}
	if p.merge(record{}, now); !p.Next.Equal(now) || !p.Until.Equal(now) {
		t.Errorf("the next request waits until %s and %s, at %s", p.Next, p.Until, now)
	}
	p = &pace{record: record{Next: now.Add(time.Second), Until: now.Add(longestAsked)}}
	if p.merge(record{}, now); p.Next.Equal(now) || p.Until.Equal(now) {
		t.Errorf("the next request does not wait: %s and %s, at %s", p.Next, p.Until, now)
	}
}
