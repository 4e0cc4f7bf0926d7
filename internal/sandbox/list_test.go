package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/processor"
)

func list(t *testing.T, s processor.Charger, since time.Time) (periods []int) {
	t.Helper()
	for in, err := range s.List(t.Context(), processor.ListRequest{Since: since}) {
		if err != nil {
			t.Fatal(err)
		}
		if in.State != processor.Succeeded {
			t.Errorf("listed %+v", in)
		}
		periods = append(periods, in.Tag.Period)
	}
	return periods
}

func pay(t testing.TB, s processor.Charger, period int) processor.Intent {
	t.Helper()
	ref := mustOpen(t, s, request(t, period, 0, "pm_card_visa")).Ref
	return mustConfirm(t, s, ref, fmt.Sprint("k", period), "pm_card_visa")
}

func TestList(t *testing.T) {
	everyWhere(t, func(t *testing.T, s *subject, c *handClock) {
		start := c.Now()
		for period := range 5 {
			pay(t, s, period)
			c.move(time.Minute)
		}
		declined := mustOpen(t, s, request(t, 99, 0, "")).Ref
		mustConfirm(t, s, declined, "no", "pm_card_visa_chargeDeclined")
		for _, test := range []struct {
			since time.Time
			want  []int
		}{
			{time.Time{}, []int{0, 1, 2, 3, 4}},
			{start, []int{0, 1, 2, 3, 4}},
			{start.Add(3 * time.Minute), []int{3, 4}},
			{start.Add(3*time.Minute + time.Microsecond), []int{3, 4}}, // the ledger counts milliseconds
			{start.Add(3*time.Minute + time.Millisecond), []int{4}},
			{start.Add(time.Hour), nil},
			{time.Date(1<<30, 1, 1, 0, 0, 0, 0, time.UTC), nil},
			{time.Date(-(1 << 30), 1, 1, 0, 0, 0, 0, time.UTC), []int{0, 1, 2, 3, 4}},
		} {
			if got := list(t, s, test.since); !slices.Equal(got, test.want) {
				t.Errorf("since %v: %v, want %v", test.since, got, test.want)
			}
		}
	})
}

func TestList_ClockWentBack(t *testing.T) {
	c := newClock()
	s := openSandbox(t, "", Options{Now: c.Now})
	start := c.Now()
	for period, d := range []time.Duration{0, time.Hour, -2 * time.Hour, time.Hour, 30 * time.Minute} {
		c.move(d)
		pay(t, s, period) // at 0h, 1h, -1h, 0h, 0.5h
	}
	if got, want := list(t, s, time.Time{}), []int{2, 0, 3, 4, 1}; !slices.Equal(got, want) {
		t.Errorf("all: %v, want %v", got, want)
	}
	if got, want := list(t, s, start.Add(time.Minute)), []int{4, 1}; !slices.Equal(got, want) {
		t.Errorf("late: %v, want %v", got, want)
	}
}

// A list holds no lock while it yields, and shows what was there when it began.
func TestList_Snapshot(t *testing.T) {
	c := newClock()
	s := openSandbox(t, "", Options{Now: c.Now})
	for period := range 3 {
		pay(t, s, period)
	}
	next, seen := 100, 0
	for in, err := range s.List(t.Context(), processor.ListRequest{}) {
		if err != nil || in.Tag.Period >= 100 {
			t.Fatalf("%+v, %v", in, err)
		}
		c.move(-time.Hour)
		pay(t, s, next)
		next++
		seen++
	}
	if seen != 3 {
		t.Errorf("saw %d, want 3", seen)
	}
	for range s.List(t.Context(), processor.ListRequest{}) {
		break // and may be left
	}
}

func TestList_ContextEnds(t *testing.T) { everyWhere(t, testContextEnds) }

func testContextEnds(t *testing.T, s *subject, _ *handClock) {
	for period := range 3 {
		pay(t, s, period)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errs []error
	for _, err := range s.List(ctx, processor.ListRequest{}) {
		errs = append(errs, err)
		cancel()
	}
	if len(errs) != 2 || errs[0] != nil || !errors.Is(errs[1], processor.ErrUnknown) ||
		!errors.Is(errs[1], context.Canceled) {
		t.Errorf("errors %v, want nil and then an unknown end", errs)
	}
}
