package civil

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseInterval(t *testing.T) {
	tests := []struct {
		text      string
		want      Interval
		canonical string
	}{
		{"weekly", Interval{1, Week}, "week"},
		{"monthly", Interval{1, Month}, "month"},
		{"quarterly", Interval{3, Month}, "3 months"},
		{"yearly", Interval{1, Year}, "year"},
		{"annual", Interval{1, Year}, "year"},
		{"week", Interval{1, Week}, "week"},
		{"month", Interval{1, Month}, "month"},
		{"year", Interval{1, Year}, "year"},
		{"2 weeks", Interval{2, Week}, "2 weeks"},
		{"3 months", Interval{3, Month}, "3 months"},
		{"1 year", Interval{1, Year}, "year"},
		{"12 months", Interval{12, Month}, "12 months"},
		{" \tMonthly\n", Interval{1, Month}, "month"},
		{"2  WEEKS", Interval{2, Week}, "2 weeks"},
		{"520 weeks", Interval{520, Week}, "520 weeks"},
		{"1200 months", Interval{1200, Month}, "1200 months"},
		{"100 years", Interval{100, Year}, "100 years"},
		{"10 days", Interval{10, Day}, "10 days"},
		{"7 DAYS", Interval{7, Day}, "7 days"},
		{"3650 days", Interval{3650, Day}, "3650 days"},
	}
	for _, tt := range tests {
		got, err := ParseInterval(tt.text)
		if err != nil || got != tt.want || got.String() != tt.canonical {
			t.Errorf("ParseInterval(%q) = %v (%q), %v; want %q", tt.text, got, got.String(), err, tt.canonical)
		}
	}
}

func TestParseInterval_RefusesAndSaysWhatWouldBeRight(t *testing.T) {
	const form = "must be weekly, monthly, quarterly or yearly"
	tests := []struct{ text, says string }{
		{"", form},
		{"biweekly", form},
		{"months", form},
		{"2", form},
		{"2weeks", form},
		{"two weeks", form},
		{"-1 weeks", form},
		{"+1 weeks", form},
		{"1.5 months", form},
		{"every 2 weeks", form},
		{"2 weekss", form},
		{"day", "must be 7 to 3650 days"},
		{"daily", "must be 7 to 3650 days"},
		{"1 day", "must be 7 to 3650 days"},
		{"6 days", "must be 7 to 3650 days"},
		{"3651 days", "must be 7 to 3650 days"},
		{"10 hours", form},
		{"0 weeks", "must be 1 to 520 weeks"},
		{"521 weeks", "must be 1 to 520 weeks"},
		{"1201 months", "must be 1 to 1200 months"},
		{"101 years", "must be 1 to 100 years"},
		{"18446744073709551617 weeks", "must be 1 to 520 weeks"},
	}
	for _, tt := range tests {
		got, err := ParseInterval(tt.text)
		if err == nil || got != (Interval{}) {
			t.Errorf("ParseInterval(%q) = %v, %v; want an error", tt.text, got, err)
			continue
		}
		for _, want := range []string{fmt.Sprintf("%q", tt.text), tt.says} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("ParseInterval(%q): error %q does not say %s", tt.text, err, want)
			}
		}
	}
}

func TestInterval_StringRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := anyInterval(t)
		if got, err := ParseInterval(i.String()); err != nil || got != i {
			t.Fatalf("ParseInterval(%q) = %v, %v", i, got, err)
		}
	})
}

func TestInterval_Validate(t *testing.T) {
	for _, i := range []Interval{{}, {0, Week}, {-1, Month}, {1, 0}, {1, 9}, {521, Week}, {6, Day}, {3651, Day}, {1201, Month}, {101, Year}} {
		if err := i.Validate(); err == nil {
			t.Errorf("%v passed", i)
		}
	}
}

func FuzzParseInterval(f *testing.F) {
	for _, s := range []string{"weekly", "2 weeks", " Month ", "99999999999 years", "0 months", "10 days", "daily"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		i, err := ParseInterval(s)
		if err != nil {
			return
		}
		if err := i.Validate(); err != nil {
			t.Fatalf("ParseInterval(%q) = %v, which is not valid: %v", s, i, err)
		}
		if again, err := ParseInterval(i.String()); err != nil || again != i {
			t.Fatalf("%q read as %v, which read back as %v, %v", s, i, again, err)
		}
	})
}
