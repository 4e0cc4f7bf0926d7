package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/processor"
)

func TestFault_Unknown(t *testing.T) {
	s := openSandbox(t, "", Options{UnknownRate: 1})
	r := request(t, 1, 0, "pm_card_visa")
	if in, err := s.Open(t.Context(), r); !errors.Is(err, processor.ErrUnknown) || in != (processor.Intent{}) {
		t.Errorf("%+v, %v, want ErrUnknown", in, err)
	}
	wantOutcomes(t, s, "opened")
	s.o.UnknownRate, s.fates = 0, newFates(&Options{})
	mustOpen(t, s, r)
	wantOutcomes(t, s, "opened")
}

func TestFault_NotDone(t *testing.T) {
	for want, o := range map[error]Options{processor.ErrUnknown: {LostRate: 1}, processor.ErrNotExecuted: {BusyRate: 1}} {
		s := openSandbox(t, "", o)
		if _, err := s.Open(t.Context(), request(t, 1, 0, "pm_card_visa")); !errors.Is(err, want) {
			t.Errorf("open: %v, want %v", err, want)
		}
		if _, err := s.Lookup(t.Context(), "pi_none"); !errors.Is(err, want) {
			t.Errorf("lookup: %v, want %v", err, want)
		}
		if _, err := s.Cancel(t.Context(), "pi_none"); !errors.Is(err, want) {
			t.Errorf("cancel: %v, want %v", err, want)
		}
		for _, err := range s.List(t.Context(), processor.ListRequest{}) {
			if !errors.Is(err, want) {
				t.Errorf("list: %v, want %v", err, want)
			}
		}
		wantOutcomes(t, s, "")
	}
}

func TestFault_Cached(t *testing.T) {
	c := newClock()
	s := openSandbox(t, "", Options{Now: c.Now, CachedRate: 1})
	faulty, sound := s.fates, newFates(&Options{})
	s.fates = sound
	ref := mustOpen(t, s, request(t, 1, 0, "pm_card_visa")).Ref
	s.fates = faulty
	r := processor.ConfirmRequest{Key: "spoilt", Ref: ref, Method: "pm_card_visa"}
	if _, err := s.Confirm(t.Context(), r); !errors.Is(err, processor.ErrUnknown) {
		t.Errorf("%v, want ErrUnknown", err)
	}
	if _, err := s.Lookup(t.Context(), ref); !errors.Is(err, processor.ErrUnknown) {
		t.Errorf("a lookup: %v, want ErrUnknown", err)
	}
	s.fates = sound
	c.move(DefaultKeyLife - time.Millisecond)
	if _, err := s.Confirm(t.Context(), r); !errors.Is(err, processor.ErrUnknown) {
		t.Errorf("the same key: %v, want ErrUnknown", err)
	}
	wantOutcomes(t, s, "opened")
	r.Key = "other"
	in, err := s.Confirm(t.Context(), r)
	if err != nil || in.State != processor.Succeeded {
		t.Errorf("another key: %+v, %v", in, err)
	}
	s.fates = faulty // a key with a saved answer keeps it
	if again, err := s.Confirm(t.Context(), r); err != nil || again != in {
		t.Errorf("saved answer: %+v, %v", again, err)
	}
	s.fates = sound
	c.move(time.Millisecond)
	r.Key = "spoilt"
	if again, err := s.Confirm(t.Context(), r); err != nil || again != in {
		t.Errorf("the key after its life: %+v, %v", again, err)
	}
}

func TestFault_Seeded(t *testing.T) {
	run := func(seed uint64) (fates []string) {
		s := openSandbox(t, "", Options{UnknownRate: 0.1, LostRate: 0.2, BusyRate: 0.1, CachedRate: 0.1, Seed: seed})
		for i := range 200 {
			_, err := s.Open(t.Context(), request(t, i, 0, "pm_card_visa"))
			fates = append(fates, fmt.Sprint(err, outcomes(s)))
		}
		return fates
	}
	if !slices.Equal(run(7), run(7)) {
		t.Error("the same seed gave other fates")
	}
	if slices.Equal(run(7), run(8)) {
		t.Error("another seed gave the same fates")
	}
}

func TestDice_Rates(t *testing.T) {
	const draws = 100_000
	d := newFates(&Options{UnknownRate: 0.1, LostRate: 0.2, BusyRate: 0.3, CachedRate: 0.05, Seed: 1})
	count := map[fate]float64{}
	for range draws {
		count[d.draw()]++
	}
	for f, want := range map[fate]float64{normal: 0.35, unknown: 0.1, lost: 0.2, busy: 0.3, cached: 0.05} {
		if got := count[f] / draws; got < want-0.01 || got > want+0.01 {
			t.Errorf("fate %d: %v, want %v", f, got, want)
		}
	}
}

func TestList_LostHalfway(t *testing.T) {
	s := openSandbox(t, "", Options{})
	for period := range 4 {
		pay(t, s, period)
	}
	s.fates = newFates(&Options{UnknownRate: 1})
	seen, ends := 0, 0
	for _, err := range s.List(t.Context(), processor.ListRequest{}) {
		if err == nil {
			seen++
		} else if ends++; !errors.Is(err, processor.ErrUnknown) {
			t.Error(err)
		}
	}
	if seen != 2 || ends != 1 {
		t.Errorf("saw %d and %d errors, want a part and one error", seen, ends)
	}
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openSandbox(t, "", Options{Latency: 200 * time.Millisecond})
		start := time.Now()
		in := mustOpen(t, s, request(t, 1, 0, "pm_card_visa"))
		if took := time.Since(start); took != 200*time.Millisecond {
			t.Errorf("took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := s.Confirm(ctx, processor.ConfirmRequest{Key: "k", Ref: in.Ref, Method: "pm_card_visa"})
		if !errors.Is(err, processor.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want ErrUnknown and the deadline", err)
		}
		if took := time.Since(start); took != 300*time.Millisecond {
			t.Errorf("took %v", took)
		}
		wantOutcomes(t, s, "opened")
	})
}

func TestContextEndedBefore(t *testing.T) {
	s := openSandbox(t, "", Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Open(ctx, request(t, 1, 0, "pm_card_visa")); !errors.Is(err, processor.ErrUnknown) ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("%v, want ErrUnknown and the cancellation", err)
	}
	wantOutcomes(t, s, "")
}
