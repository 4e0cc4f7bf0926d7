package bench

import (
	"errors"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/consumption"
)

// TestWebhooks runs both sides small: every event that is sent has to be applied.
func TestWebhooks(t *testing.T) {
	for _, verifyOnly := range []bool{true, false} {
		testWebhooks(t, verifyOnly)
	}
	b, err := OpenBare(t.TempDir(), 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	units, took, err := b.Take(0, 8, 50, 100*time.Millisecond)
	if err != nil || units == 0 || len(took) != units {
		t.Errorf("got %d events, %d times, %v, want some", units, len(took), err)
	}
	if _, _, err := b.Take(0, 1, 50, time.Second); err == nil {
		t.Error("the same events again: got no error")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func testWebhooks(t *testing.T, verifyOnly bool) {
	w, err := OpenWebhooks(t.Context(), t.TempDir(), 64<<20, verifyOnly)
	if err != nil {
		t.Fatal(err)
	}
	if n := w.BodyBytes(); n < 3000 || n > 6000 {
		t.Errorf("bodies have %d bytes, want about 4000", n)
	}
	for range 2 {
		if err := w.Prepare(t.Context(), 50, 1000); err != nil {
			t.Fatal(err)
		}
		units, took, err := w.Run(t.Context(), 8, time.Hour)
		if err != nil || units != 1000 || len(took) != units || took[0] <= 0 {
			t.Fatalf("got %d events, %d times, %v, want 1000", units, len(took), err)
		}
	}
	if _, err := w.service.Event(t.Context(), stripeID("evt", consumption.Scatter(0))); errors.Is(err, store.ErrNotFound) != verifyOnly {
		t.Errorf("verify only %t: the event: %v", verifyOnly, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMakeEvents(t *testing.T) {
	dir := t.TempDir()
	if err := MakeEvents(t.Context(), dir, 64<<20, 8, 1500); err != nil {
		t.Fatal(err)
	}
	w, err := openWebhooks(t.Context(), dir, 64<<20, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]bool{0: true, 1499: true, 5000: false} {
		_, err := w.service.Event(t.Context(), stripeID("evt", consumption.Scatter(n)))
		if want && err != nil || !want && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("event %d: %v, want it there: %t", n, err, want)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestPercentile(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	for percent, want := range map[int]time.Duration{0: 1, 50: 51, 99: 100, 100: 100} {
		if got := Percentile(hundred, percent); got != want {
			t.Errorf("%d %%: got %d, want %d", percent, got, want)
		}
	}
	if got := Percentile(nil, 99); got != 0 {
		t.Errorf("of none: got %d, want 0", got)
	}
}
