package api

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/clock"
)

// passes lets n workers take slots until there are so many, and returns when they came.
func passes(t *testing.T, b *budget, endpoint string, workers, n int) []time.Time {
	t.Helper()
	var mu sync.Mutex
	var at []time.Time
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for {
				mu.Lock()
				if n--; n < 0 {
					mu.Unlock()
					return
				}
				mu.Unlock()
				if _, err := b.take(t.Context(), endpoint); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				at = append(at, time.Now())
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.SortFunc(at, time.Time.Compare)
	return at
}

func TestBudget_IsSpentEvenly(t *testing.T) {
	for _, workers := range []int{1, 16} {
		synctest.Test(t, func(t *testing.T) {
			at := passes(t, newBudget(25), "POST /v1/x", workers, 251)
			for i := 1; i < len(at); i++ {
				if got := at[i].Sub(at[i-1]); got != 40800*time.Microsecond { // 40 ms and the slack
					t.Fatalf("%d workers: request %d came after %v, want 40.8ms", workers, i, got)
				}
			}
			if got := at[250].Sub(at[0]); got != 10200*time.Millisecond {
				t.Errorf("%d workers: 250 requests took %v, want 10.2s", workers, got)
			}
		})
	}
}

func TestBudget_SavesNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10)
		first := passes(t, b, "e", 1, 1)[0]
		if err := clock.Wait(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		at := passes(t, b, "e", 4, 11)
		if got := at[10].Sub(at[0]); got != 1020*time.Millisecond || at[0].Sub(first) != time.Minute {
			t.Errorf("after a minute's rest 10 requests took %v, want 1.02s", got)
		}
	})
}

// A timer that is late by a moment must not make every request after it late as well.
func TestLane_MakesUpForLateTimers(t *testing.T) {
	l := newPace(25)
	start := time.Unix(0, 0)
	if wait := l.slot(start); wait != 0 {
		t.Fatalf("the first waits %v", wait)
	}
	now := start
	for n := range 100 {
		now = now.Add(l.slot(now) + time.Millisecond) // woken late
		if wait := l.slot(now); wait != 0 {
			t.Fatalf("request %d waits %v more", n, wait)
		}
	}
	if want := start.Add(4080*time.Millisecond + time.Millisecond); !now.Equal(want) {
		t.Errorf("100 requests took %v, want %v", now.Sub(start), want.Sub(start))
	}
}

func TestBudget_OfAllEndpointsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10)
		start := time.Now()
		var all sync.WaitGroup
		for _, e := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			all.Go(func() { passes(t, b, e, 2, 20) })
		}
		all.Wait()
		if got, want := time.Since(start), 159*25500*time.Microsecond; got != want { // 160 at 40 a second, the first at once
			t.Errorf("160 requests to 8 endpoints took %v, want %v", got, want)
		}
	})
}

func TestBudget_ServesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10)
		var mu sync.Mutex
		var order []int
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				if _, err := b.take(t.Context(), "e"); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
			})
			synctest.Wait()
		}
		all.Wait()
		if !slices.IsSorted(order) || len(order) != 8 {
			t.Errorf("served in the order %v", order)
		}
	})
}

func TestBudget_GivesUpWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(1)
		if _, err := b.take(t.Context(), "e"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		var all sync.WaitGroup
		for range 5 { // one at the head and four behind it
			all.Go(func() {
				if _, err := b.take(ctx, "e"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			})
		}
		all.Wait()
		if got := time.Since(start); got != 300*time.Millisecond {
			t.Errorf("they gave up after %v, want 300ms", got)
		}
		if _, err := b.take(t.Context(), "e"); err != nil || time.Since(start) != 1020*time.Millisecond {
			t.Errorf("the next came after %v, %v; want 1.02s: nobody else has used the slot", time.Since(start), err)
		}
	})
}

func TestLane_SlowsDownAndGrowsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(20)
		sent, err := b.take(t.Context(), "e")
		if err != nil {
			t.Fatal(err)
		}
		l := b.pace("e")
		start := time.Now()
		l.slow(sent, 2*time.Second)
		l.slow(sent, 2*time.Second) // another that was sent before the cut
		rates := map[time.Duration]int{0: 18, time.Second: 18, 2 * time.Second: 18, 3 * time.Second: 19, 4 * time.Second: 20,
			time.Hour: 20}
		at := passes(t, b, "e", 16, 20)
		if got := at[0].Sub(start); got != 2*time.Second {
			t.Errorf("the first came after %v, want the rest of 2s", got)
		}
		for i := 1; i < 10; i++ {
			if got := at[i].Sub(at[i-1]); got.Round(10*time.Microsecond) != 56670*time.Microsecond {
				t.Errorf("request %d came after %v, want 56.67ms: nine tenths of the rate", i, got)
			}
		}
		if got := b.total.current(time.Now()); got != 80 {
			t.Errorf("all endpoints together have %d, want 80: it was one endpoint's", got)
		}
		fresh := newPace(20)
		fresh.slow(start, 2*time.Second)
		began := time.Now()
		for after, want := range rates {
			again := &pace{full: fresh.full, until: fresh.until, cut: fresh.cut, rate: fresh.rate}
			if got := again.current(began.Add(after)); got != want {
				t.Errorf("%v after the cut: got %d a second, want %d", after, got, want)
			}
		}
		now := began.Add(5 * time.Second)
		if err := clock.Wait(t.Context(), 5*time.Second); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			fresh.slow(now, 0)
			now = now.Add(time.Second)
			if err := clock.Wait(t.Context(), time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if got := fresh.current(time.Now()); got != 10 {
			t.Errorf("after a cut each second: got %d a second, want 10: a tenth off and one more in between", got)
		}
	})
}
