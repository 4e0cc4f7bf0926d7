package civil

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyDate draws over the whole calendar.
func anyDate(t *rapid.T, label string) Date {
	return fromNumber(rapid.IntRange(0, lastNumber).Draw(t, label))
}

func TestNumber_AgreesWithTimePackageOnEveryDay(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 97
	}
	for n := 0; n <= lastNumber; n += step {
		want := time.Unix(int64(n-unixNumber)*86400, 0).UTC()
		d := fromNumber(n)
		year, month, day := want.Date()
		if d.Year() != year || d.Month() != month || d.Day() != day {
			t.Fatalf("day %d is %v, want %s", n, d, want.Format(time.DateOnly))
		}
		if got := d.number(); got != n {
			t.Fatalf("%v has number %d, want %d", d, got, n)
		}
		if got := d.Weekday(); got != want.Weekday() {
			t.Fatalf("%v is a %v, want %v", d, got, want.Weekday())
		}
	}
}

func TestNew_AgreesWithTimePackage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		year := rapid.IntRange(-2, 10002).Draw(t, "year")
		month := time.Month(rapid.IntRange(-1, 14).Draw(t, "month"))
		day := rapid.IntRange(-1, 33).Draw(t, "day")
		// The time package normalizes a day that does not exist to another one.
		oracle := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
		exists := oracle.Year() == year && oracle.Month() == month && oracle.Day() == day &&
			year >= 1 && year <= 9999
		d, err := New(year, month, day)
		if (err == nil) != exists {
			t.Fatalf("New(%d, %d, %d) = %v, %v; the day exists: %v", year, month, day, d, err, exists)
		}
		if exists && d != Of(oracle) {
			t.Fatalf("New(%d, %d, %d) = %v, want %v", year, month, day, d, Of(oracle))
		}
	})
}

// TestOf_EndsOfTheCalendar has the first and the last year, and those beside them.
func TestOf_EndsOfTheCalendar(t *testing.T) {
	for _, c := range []struct {
		year int
		want string // "" for the zero Date
	}{{0, ""}, {MinYear, "0001-12-31"}, {MaxYear, "9999-12-31"}, {MaxYear + 1, ""}} {
		got := Of(time.Date(c.year, time.December, 31, 12, 0, 0, 0, time.UTC))
		if got.IsZero() != (c.want == "") || (c.want != "" && got != MustParse(c.want)) {
			t.Errorf("Of a noon in year %d = %v, want %q", c.year, got, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, s := range []string{"0001-01-01", "1970-01-01", "2000-02-29", "2024-02-29", "9999-12-31"} {
		d, err := Parse(s)
		if err != nil || d.String() != s {
			t.Errorf("Parse(%q) = %v, %v", s, d, err)
		}
	}
	refused := []struct{ text, says string }{
		{"", "2026-01-31"},
		{"2026-1-31", "2026-01-31"},
		{"2026-01-31 ", "2026-01-31"},
		{" 2026-01-31", "2026-01-31"},
		{"2026/01/31", "2026-01-31"},
		{"20260131", "2026-01-31"},
		{"+026-01-31", "2026-01-31"},
		{"2026-01--1", "2026-01-31"},
		{"２026-01-3", "2026-01-31"},
		{"2026-01-31T00:00:00Z", "2026-01-31"},
		{"0000-01-01", "(got 0)"},
		{"2026-00-10", "(got 0)"},
		{"2026-13-10", "(got 13)"},
		{"2026-01-00", "January 2026, which has 31 days"},
		{"2026-02-29", "February 2026, which has 28 days"},
		{"1900-02-29", "February 1900, which has 28 days"},
		{"2026-04-31", "April 2026, which has 30 days"},
	}
	for _, tt := range refused {
		d, err := Parse(tt.text)
		if err == nil {
			t.Errorf("Parse(%q) = %v, want an error", tt.text, d)
			continue
		}
		if !d.IsZero() {
			t.Errorf("Parse(%q) returned %v beside its error", tt.text, d)
		}
		for _, want := range []string{`"` + tt.text + `"`, tt.says} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Parse(%q): error %q does not say %s", tt.text, err, want)
			}
		}
	}
	if _, err := Parse(strings.Repeat("9", 1<<20)); err == nil || len(err.Error()) > 200 {
		t.Error("the error for a megabyte of text is not short")
	}
}

// MustParse is Parse of a day that there is.
func MustParse(s string) Date {
	d, err := Parse(s)
	if err != nil {
		panic(err)
	}
	return d
}

func TestDate_TextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyDate(t, "d")
		if got, err := Parse(d.String()); err != nil || got != d {
			t.Fatalf("Parse(%v) = %v, %v", d, got, err)
		}
		if want := time.Unix(int64(d.number()-unixNumber)*86400, 0).UTC().Format(time.DateOnly); d.String() != want {
			t.Fatalf("String() = %v, want %v", d, want)
		}
		text, err := json.Marshal(map[Date]Date{d: d})
		if want := fmt.Sprintf(`{"%v":"%[1]v"}`, d); err != nil || string(text) != want {
			t.Fatalf("JSON %s, %v; want %s", text, err, want)
		}
	})
}

func TestDate_ZeroValue(t *testing.T) {
	var zero Date
	if !zero.IsZero() || MustParse("0001-01-01").IsZero() {
		t.Error("IsZero does not tell the zero value from a date")
	}
	if zero.String() != "0000-00-00" {
		t.Errorf("String() = %q", zero.String())
	}
	if _, err := Parse(zero.String()); err == nil {
		t.Error("the zero value's text parses")
	}
	if !zero.Before(MustParse("0001-01-01")) {
		t.Error("the zero value does not sort first")
	}
	if !zero.AddDays(1).IsZero() || !zero.In(time.UTC).IsZero() {
		t.Error("the zero value turned into a date")
	}
	if got := MustParse("0001-01-01").DaysSince(zero); got != 1 {
		t.Errorf("DaysSince(zero) = %d, want 1", got)
	}
	text, err := json.Marshal(zero)
	if err != nil || string(text) != `""` {
		t.Errorf("JSON %s, %v", text, err)
	}
	if got := Of(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)); !got.IsZero() {
		t.Errorf("year 10000 gave %v", got)
	}
}

func TestDate_Arithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, e := anyDate(t, "d"), anyDate(t, "e")
		days := d.DaysSince(e)
		if got := e.AddDays(days); got != d {
			t.Fatalf("%v + %d days = %v, want %v", e, days, got, d)
		}
		if want := int(d.In(time.UTC).Unix()/86400 - e.In(time.UTC).Unix()/86400); days != want {
			t.Fatalf("%v - %v = %d days, want %d", d, e, days, want)
		}
		sign := min(max(days, -1), 1)
		if d.Compare(e) != sign || d.Before(e) != (sign < 0) || d.After(e) != (sign > 0) || (d == e) != (sign == 0) {
			t.Fatalf("the order of %v and %v does not follow the %d days between them", d, e, days)
		}
		n := rapid.Int().Draw(t, "n")
		if got := d.AddDays(n); !got.IsZero() && got.DaysSince(d) != n {
			t.Fatalf("%v + %d days = %v", d, n, got)
		}
	})
	last, first := MustParse("9999-12-31"), MustParse("0001-01-01")
	if !last.AddDays(1).IsZero() || !first.AddDays(-1).IsZero() {
		t.Error("a date outside years 1 to 9999 is not the zero Date")
	}
	for _, n := range []int{math.MinInt, math.MaxInt} {
		if got := last.AddDays(n); !got.IsZero() {
			t.Errorf("%v + %d days = %v", last, n, got)
		}
	}
	if first.AddDays(lastNumber) != last || last.AddDays(-lastNumber) != first {
		t.Error("AddDays cannot cross the whole calendar")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"2026-01-31", "2024-02-29", "2023-02-29", "0000-00-00", "2026-1-1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := Parse(s)
		want, wantErr := time.Parse(time.DateOnly, s)
		exists := wantErr == nil && want.Year() >= 1
		if (err == nil) != exists {
			t.Fatalf("Parse(%q) = %v, %v; the time package says %v", s, d, err, wantErr)
		}
		if exists && (d != Of(want) || d.String() != s) {
			t.Fatalf("Parse(%q) = %v, want %v", s, d, Of(want))
		}
	})
}

func TestEarlier_LeavesOutTheZeroDate(t *testing.T) {
	none, a, b := Date{}, MustParse("2024-01-31"), MustParse("2024-02-01")
	for _, test := range [...]struct{ a, b, earlier, later Date }{{a, b, a, b}, {b, a, a, b}, {none, a, a, a},
		{a, none, a, a}, {none, none, none, none}} {
		if got := Earlier(test.a, test.b); got != test.earlier {
			t.Errorf("Earlier(%v, %v) = %v, want %v", test.a, test.b, got, test.earlier)
		}
		if got := Later(test.a, test.b); got != test.later {
			t.Errorf("Later(%v, %v) = %v, want %v", test.a, test.b, got, test.later)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := Parse("2026-01-31"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarshalText(b *testing.B) {
	d := MustParse("2026-01-31")
	for b.Loop() {
		_, _ = d.MarshalText()
	}
}

func TestAfter_IsStrict(t *testing.T) {
	day := MustParse("2026-01-31")
	if day.After(day) || day.Before(day) || !day.AddDays(1).After(day) || !day.AddDays(-1).Before(day) {
		t.Error("a day is before or after itself, or not after the day before")
	}
}

func TestParse_BothHyphens(t *testing.T) {
	for _, s := range []string{"2026/01-31", "2026-01/31", "2026001-31", "2026-01031"} {
		if d, err := Parse(s); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", s, d)
		}
	}
}

// TestAddBusinessDays counts the days one by one, as a person does with a calendar.
func TestAddBusinessDays(t *testing.T) {
	for from, want := range map[string]string{"2024-01-31": "2024-02-20", "2024-02-02": "2024-02-22", "2024-02-03": "2024-02-22",
		"2024-02-04": "2024-02-22", "2024-12-30": "2025-01-17"} {
		d, err := Parse(from)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.AddBusinessDays(14).String(); got != want {
			t.Errorf("14 business days after %s: %s, want %s", from, got, want)
		}
		if got := d.AddBusinessDays(0); got != d {
			t.Errorf("none after %s: %s", from, got)
		}
	}
	if got := (Date{}).AddBusinessDays(3); !got.IsZero() {
		t.Errorf("after no date: %s", got)
	}
}
