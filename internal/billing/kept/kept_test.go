package kept_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/duesday/duesday/internal/billing/kept"
)

// TestKept: what was noted for a period is known for it, and nothing for those before the first.
func TestKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text string
		want, steps, last := map[int]int{}, 0, -1
		first := rapid.IntRange(0, 9).Draw(t, "first")
		for period := first; period < 30; period += rapid.IntRange(1, 4).Draw(t, "step") {
			months := rapid.IntRange(0, 3).Draw(t, "months")
			text = kept.Note(text, period, months)
			if want[period] = months; months != last {
				steps, last = steps+1, months
			}
		}
		for period, months := range want {
			if got, known := kept.Months(text, period); !known || got != months {
				t.Fatalf("%q of period %d: %d, %t; want %d", text, period, got, known, months)
			}
		}
		if _, known := kept.Months(text, first-1); known {
			t.Fatalf("%q tells of period %d", text, first-1)
		}
		if got := len(strings.Fields(text)); got != steps {
			t.Fatalf("%q has %d steps, want %d", text, got, steps)
		}
	})
	for _, foreign := range []string{"", "x", "0:", "0:x", ":", "0:-1", "0 : 6"} {
		if months, known := kept.Months(foreign, 3); known {
			t.Errorf("%q: %d months", foreign, months)
		}
	}
}
