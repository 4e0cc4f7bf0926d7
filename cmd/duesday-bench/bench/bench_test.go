package bench

import (
	"testing"
	"time"

	"github.com/duesday/duesday/internal/test/soaktest"
)

// TestSides runs both sides small, so that the command bench cannot rot.
func TestSides(t *testing.T) {
	n, secs := soaktest.Cases(t, 4000, 20_000, 1_000_000), 100*time.Millisecond
	if soaktest.On() {
		secs = 5 * time.Second
	}
	o, err := OpenOurs(t.Context(), t.TempDir(), 512<<20)
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenBare(t.TempDir(), 512<<20)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := o.Load(t.Context(), n, 1, 8); err != nil {
		t.Fatal(err)
	}
	ours := time.Since(begun)
	if err := b.Load(n); err != nil {
		t.Fatal(err)
	}
	bare := time.Since(begun) - ours
	t.Logf("load: ours %s bare %s ratio %.2f", ours, bare, bare.Seconds()/ours.Seconds())
	o.Settle()
	b.Settle()
	// Before the payments, which may leave nothing due.
	rows, err := o.Scan(t.Context(), o.Day(0))
	if err != nil {
		t.Fatal(err)
	}
	brows, err := b.Scan(0)
	if err != nil || brows == 0 {
		t.Fatal(brows, err)
	}
	t.Logf("scan: ours %d rows, bare %d rows", rows, brows)
	first := 0
	for range 2 {
		paid, took, err := o.Pay(t.Context(), o.Day(0), 128, secs)
		if err != nil || paid == 0 {
			t.Fatal(paid, err)
		}
		units, err := b.Pay(first, 128, secs)
		if err != nil || units == 0 {
			t.Fatal(units, err)
		}
		first += units
		t.Logf("pay: ours %.0f/s bare %.0f/s", float64(paid)/took.Seconds(), float64(units)/secs.Seconds())
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkCharges charges a book of 200,000 subscriptions, 128 at a time: the one to
// profile.
func BenchmarkCharges(b *testing.B) {
	const n = 200_000
	for range b.N {
		b.StopTimer()
		o, err := OpenOurs(b.Context(), b.TempDir(), 512<<20)
		if err != nil {
			b.Fatal(err)
		}
		if err := o.Load(b.Context(), n, 1, 8); err != nil {
			b.Fatal(err)
		}
		o.Settle()
		b.StartTimer()
		paid, took, err := o.Pay(b.Context(), o.Day(0), 128, 0)
		if err != nil || paid != n {
			b.Fatal(paid, err)
		}
		b.StopTimer()
		b.ReportMetric(float64(paid)/took.Seconds(), "charges/s")
		if err := o.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
