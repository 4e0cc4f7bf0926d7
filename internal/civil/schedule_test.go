package civil

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func anyInterval(t *rapid.T) Interval {
	unit := rapid.SampledFrom([]Unit{Week, Month, Year, Day}).Draw(t, "unit")
	// Short intervals are where two periods meet in neighbouring months.
	least, most := unit.facts().least, unit.facts().most
	n := rapid.OneOf(rapid.IntRange(least, least+3), rapid.IntRange(least, most)).Draw(t, "count")
	return Interval{N: n, Unit: unit}
}

// anySchedule draws an anchor in the years 1900 to 2100, often near the end of
// a month, and moves it to a payment day.
func anySchedule(t *rapid.T) Schedule {
	s := Schedule{Interval: anyInterval(t), From: rapid.IntRange(-1000, 1000).Draw(t, "from")}
	if s.Interval.Unit == Week {
		s.Day = rapid.IntRange(1, 7).Draw(t, "weekday")
	} else {
		s.Day = rapid.OneOf(rapid.IntRange(28, 31), rapid.IntRange(1, 31)).Draw(t, "day")
	}
	start := MustParse("1900-01-01").AddDays(rapid.IntRange(0, 200*365).Draw(t, "start"))
	anchor, err := FirstOnOrAfter(start, s.Day, s.Interval)
	if err != nil {
		t.Fatalf("FirstOnOrAfter(%v, %d, %v): %v", start, s.Day, s.Interval, err)
	}
	s.Anchor = anchor
	if s.Interval.Unit == Day { // any date can be its anchor, and any number its day
		s.Anchor, s.Day = start, rapid.Int().Draw(t, "ignored")
	}
	return s
}

// wantDue computes a due date with the time package, apart from the code under
// test: the first and the last day of the right month, and the wanted day
// between them.
func wantDue(s Schedule, n int) Date {
	periods := n - s.From
	year, month, day := s.Anchor.Year(), s.Anchor.Month(), s.Anchor.Day()
	switch s.Interval.Unit {
	case Week:
		return Of(time.Date(year, month, day+7*s.Interval.N*periods, 0, 0, 0, 0, time.UTC))
	case Day:
		return Of(time.Date(year, month, day+s.Interval.N*periods, 0, 0, 0, 0, time.UTC))
	case Year:
		year += s.Interval.N * periods
	default:
		month += time.Month(s.Interval.N * periods)
	}
	last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC)
	return Of(last.AddDate(0, 0, min(s.Day, last.Day())-last.Day()))
}

// checkDue checks count periods of a rule for due dates against what every
// schedule promises. It takes the rule as a function so that tests can hand it
// a wrong one.
func checkDue(s Schedule, count int, due func(n int) (Date, error)) error {
	previous := Date{}
	for n := s.From; n < s.From+count; n++ {
		d, err := due(n)
		if err != nil {
			if errors.Is(err, ErrRange) && wantDue(s, n).IsZero() {
				return nil
			}
			return fmt.Errorf("due(%d): %w", n, err)
		}
		if n == s.From && d != s.Anchor {
			return fmt.Errorf("due(From) = %v, want the anchor %v", d, s.Anchor)
		}
		if !d.After(previous) {
			return fmt.Errorf("due(%d) = %v is not after %v", n, d, previous)
		}
		if err := checkStep(s, previous, d); err != nil {
			return fmt.Errorf("due(%d): %w", n, err)
		}
		if want := wantDue(s, n); d != want {
			return fmt.Errorf("due(%d) = %v, want %v", n, d, want)
		}
		previous = d
	}
	return nil
}

// checkStep checks the day that d falls on, and that no month or week between
// the previous date and d is skipped or paid twice.
func checkStep(s Schedule, previous, d Date) error {
	if s.Interval.Unit == Week {
		if !previous.IsZero() && d.DaysSince(previous) != 7*s.Interval.N {
			return fmt.Errorf("%v is %d days after %v", d, d.DaysSince(previous), previous)
		}
		return nil
	}
	if s.Interval.Unit == Day {
		if !previous.IsZero() && d.DaysSince(previous) != s.Interval.N {
			return fmt.Errorf("%v is %d days after %v", d, d.DaysSince(previous), previous)
		}
		return nil
	}
	isLast := d.AddDays(1).Day() == 1
	if d.Day() != s.Day && (!isLast || d.Day() > s.Day) {
		return fmt.Errorf("%v is neither day %d nor the last of a shorter month", d, s.Day)
	}
	if previous.IsZero() {
		return nil
	}
	want := s.Interval.N
	if s.Interval.Unit == Year {
		want *= 12
	}
	months := 12*(d.Year()-previous.Year()) + int(d.Month()-previous.Month())
	if months != want {
		return fmt.Errorf("%v is %d months after %v, want %d", d, months, previous, want)
	}
	return nil
}

func TestDue_KeepsItsPromisesFor200Years(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySchedule(t)
		days := map[Unit]int{Week: 7, Month: 30, Year: 365, Day: 1}[s.Interval.Unit] * s.Interval.N
		if err := checkDue(s, max(2, 200*365/days), s.Due); err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
	})
}

// chained is the classic bug: each date is one interval after the date before.
func chained(s Schedule, step func(Date) Date) func(n int) (Date, error) {
	return func(n int) (Date, error) {
		d := s.Anchor
		for range n - s.From {
			d = step(d)
		}
		return d, nil
	}
}

func TestDue_NotAnAddDateChain(t *testing.T) {
	monthly := Schedule{Anchor: MustParse("2026-01-31"), Day: 31, Interval: Interval{1, Month}}
	yearly := Schedule{Anchor: MustParse("2024-02-29"), Day: 29, Interval: Interval{1, Year}}
	tenDays := Schedule{Anchor: MustParse("2026-01-31"), Day: 31, Interval: Interval{10, Day}}
	clampedAnchor := Schedule{Anchor: MustParse("2026-02-28"), Day: 31, Interval: Interval{1, Month}}
	addDate := func(years, months int) func(Date) Date {
		return func(d Date) Date { return Of(d.In(time.UTC).AddDate(years, months, 0)) }
	}
	bugs := []struct {
		name string
		s    Schedule
		due  func(n int) (Date, error)
	}{
		{"AddDate chain of months: 31 Jan, 3 Mar", monthly, chained(monthly, addDate(0, 1))},
		{"AddDate chain of years: 29 Feb, 1 Mar", yearly, chained(yearly, addDate(1, 0))},
		{"clamped chain of months: 31 Jan, 28 Feb, 28 Mar", monthly, chained(monthly, func(d Date) Date {
			return addMonths(d, 1, d.Day())
		})},
		{"clamped chain of years: 29 Feb, 28 Feb for ever", yearly, chained(yearly, func(d Date) Date {
			return addMonths(d, 12, d.Day())
		})},
		{"AddDate from the anchor: 31 Jan, 3 Mar, 31 Mar", monthly, func(n int) (Date, error) {
			return addDate(0, n)(monthly.Anchor), nil
		}},
		{"the anchor's day for the wanted day", clampedAnchor, func(n int) (Date, error) {
			return addMonths(clampedAnchor.Anchor, n, clampedAnchor.Anchor.Day()), nil
		}},
		{"ten days as a third of a month", tenDays, func(n int) (Date, error) {
			return addMonths(tenDays.Anchor, n/3, 31).AddDays(n % 3 * 10), nil
		}},
		{"days moved to the payment day", tenDays, chained(tenDays, func(d Date) Date {
			next, _ := FirstOnOrAfter(d.AddDays(10), 31, tenDays.Interval)
			return next
		})},
		{"months of 30 days", monthly, chained(monthly, func(d Date) Date { return d.AddDays(30) })},
	}
	for _, bug := range bugs {
		if err := checkDue(bug.s, 24, bug.due); err == nil {
			t.Errorf("%s: the checker let it pass", bug.name)
		}
		if err := checkDue(bug.s, 24, bug.s.Due); err != nil {
			t.Errorf("%s: the checker refuses Due: %v", bug.name, err)
		}
	}
}

func TestDue_DoesNotDependOnThePath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySchedule(t)
		split := s.From + rapid.IntRange(0, 50).Draw(t, "split")
		n := split + rapid.IntRange(0, 50).Draw(t, "more")
		want, err := s.Due(n)
		if err != nil {
			return // past the calendar, which another test covers
		}
		middle, err := s.Due(split)
		if err != nil {
			t.Fatal(err)
		}
		resumed := s
		resumed.Anchor, resumed.From = middle, split
		if got, err := resumed.Due(n); err != nil || got != want {
			t.Fatalf("due(%d) = %v, %v when the schedule resumes at %v, want %v", n, got, err, middle, want)
		}
	})
}

func TestDue_Golden(t *testing.T) {
	tests := []struct {
		name   string
		anchor string
		day    int
		every  string
		want   string
	}{
		{"31 Jan", "2026-01-31", 31, "month",
			"2026-01-31 2026-02-28 2026-03-31 2026-04-30 2026-05-31 2026-06-30 " +
				"2026-07-31 2026-08-31 2026-09-30 2026-10-31 2026-11-30 2026-12-31 2027-01-31"},
		{"31 Jan of a leap year", "2028-01-31", 31, "month", "2028-01-31 2028-02-29 2028-03-31"},
		{"30 Jan", "2026-01-30", 30, "month", "2026-01-30 2026-02-28 2026-03-30"},
		{"clamped anchor", "2026-02-28", 31, "month", "2026-02-28 2026-03-31 2026-04-30"},
		{"28 Feb stays 28", "2026-02-28", 28, "month", "2026-02-28 2026-03-28 2026-04-28"},
		{"31 Mar quarterly", "2026-03-31", 31, "3 months", "2026-03-31 2026-06-30 2026-09-30 2026-12-31 2027-03-31"},
		{"30 Nov quarterly", "2025-11-30", 30, "quarterly", "2025-11-30 2026-02-28 2026-05-30"},
		{"29 Feb", "2024-02-29", 29, "year", "2024-02-29 2025-02-28 2026-02-28 2027-02-28 2028-02-29 2029-02-28"},
		{"29 Feb, clamped anchor", "2027-02-28", 29, "year", "2027-02-28 2028-02-29"},
		{"29 Feb over 2100", "2096-02-29", 29, "4 years", "2096-02-29 2100-02-28 2104-02-29"},
		{"every 10 days", "2026-02-20", 31, "10 days", "2026-02-20 2026-03-02 2026-03-12 2026-03-22 2026-04-01"},
		{"28 days are 4 weeks", "2026-12-18", 0, "28 days", "2026-12-18 2027-01-15 2027-02-12"},
		{"fortnightly Friday", "2026-12-18", 5, "2 weeks", "2026-12-18 2027-01-01 2027-01-15"},
	}
	for _, tt := range tests {
		i, err := ParseInterval(tt.every)
		if err != nil {
			t.Fatal(err)
		}
		s := Schedule{Anchor: MustParse(tt.anchor), From: 7, Day: tt.day, Interval: i}
		var got []string
		for n := range strings.Fields(tt.want) {
			d, err := s.Due(7 + n)
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			got = append(got, d.String())
		}
		if !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestDue_RangeIsAnErrorForAnyInt(t *testing.T) {
	ints := []int{math.MinInt, math.MinInt + 1, -1, 0, 1, 1200, 1 << 30, math.MaxInt - 1, math.MaxInt}
	for _, unit := range []Unit{Week, Month, Year, Day} {
		least, most := unit.facts().least, unit.facts().most
		for _, count := range []int{least, most} {
			for _, from := range ints {
				s := Schedule{Anchor: MustParse("9990-01-01"), From: from, Day: 1, Interval: Interval{count, unit}}
				for _, n := range ints {
					d, err := s.Due(n)
					if n == from && (err != nil || d != s.Anchor) {
						t.Errorf("%+v: due(From) = %v, %v", s, d, err)
					}
					if (n < from || uint64(n)-uint64(from) > 600) && (!errors.Is(err, ErrRange) || !d.IsZero()) {
						t.Errorf("%+v: due(%d) = %v, %v; want ErrRange", s, n, d, err)
					}
				}
			}
		}
	}
	s := Schedule{Anchor: MustParse("9999-11-30"), Day: 31, Interval: Interval{1, Month}}
	if d, err := s.Due(1); err != nil || d != MustParse("9999-12-31") {
		t.Errorf("the calendar's last day: %v, %v", d, err)
	}
	if d, err := s.Due(2); !errors.Is(err, ErrRange) {
		t.Errorf("the month after the calendar's last: %v, %v", d, err)
	}
}

func TestSchedule_ValidateSaysWhatIsWrong(t *testing.T) {
	month, week := Interval{1, Month}, Interval{1, Week}
	friday := MustParse("2026-12-18")
	tests := []struct {
		s    Schedule
		says string
	}{
		{Schedule{Day: 1, Interval: month}, "no anchor"},
		{Schedule{Interval: Interval{10, Day}}, "no anchor"},
		{Schedule{Day: 18, Interval: Interval{10, Day}}, "no anchor"},
		{Schedule{Anchor: friday, Interval: Interval{6, Day}}, "7 to 3650"},
		{Schedule{Anchor: friday, Day: 0, Interval: month}, "1 to 31"},
		{Schedule{Anchor: friday, Day: 32, Interval: month}, "1 to 31"},
		{Schedule{Anchor: friday, Day: 0, Interval: week}, "1 for Monday to 7 for Sunday"},
		{Schedule{Anchor: friday, Day: 8, Interval: week}, "1 for Monday to 7 for Sunday"},
		{Schedule{Anchor: friday, Day: 4, Interval: week}, "weekday 4 (got weekday 5)"},
		{Schedule{Anchor: friday, Day: 31, Interval: month}, "must be 2026-12-31"},
		{Schedule{Anchor: friday, Day: 18}, "must be day, week, month or year"},
		{Schedule{Anchor: friday, Day: 18, Interval: Interval{0, Month}}, "1 to 1200"},
	}
	for _, tt := range tests {
		d, err := tt.s.Due(0)
		if err == nil || !strings.Contains(err.Error(), tt.says) || errors.Is(err, ErrRange) {
			t.Errorf("%+v: due(0) = %v, %v; want an error with %q", tt.s, d, err, tt.says)
		}
	}
}

func TestFirstOnOrAfter_IsTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := anyInterval(t)
		d := anyDate(t, "d")
		day := rapid.IntRange(1, map[Unit]int{Week: 7, Month: 31, Year: 31, Day: 31}[i.Unit]).Draw(t, "day")
		want := d
		for !want.IsZero() && !isPaymentDay(want, day, i.Unit) {
			want = want.AddDays(1)
		}
		got, err := FirstOnOrAfter(d, day, i)
		if got != want || (err != nil) != want.IsZero() || err != nil && !errors.Is(err, ErrRange) {
			t.Fatalf("FirstOnOrAfter(%v, %d, %v) = %v, %v; want %v", d, day, i, got, err, want)
		}
	})
	if d, err := FirstOnOrAfter(MustParse("9999-12-31"), 1, Interval{1, Month}); !errors.Is(err, ErrRange) {
		t.Errorf("past the calendar: %v, %v", d, err)
	}
	if d, err := FirstOnOrAfter(Date{}, 1, Interval{1, Month}); err == nil {
		t.Errorf("from the zero Date: %v", d)
	}
	if d, err := FirstOnOrAfter(MustParse("2026-01-01"), 32, Interval{1, Year}); err == nil ||
		!strings.Contains(err.Error(), "1 to 31") {
		t.Errorf("day 32: %v, %v", d, err)
	}
}

func TestLastBefore_IsTheLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := anyInterval(t)
		d := anyDate(t, "d")
		day := rapid.IntRange(1, map[Unit]int{Week: 7, Month: 31, Year: 31, Day: 31}[i.Unit]).Draw(t, "day")
		want := d.AddDays(-1)
		for !want.IsZero() && !isPaymentDay(want, day, i.Unit) {
			want = want.AddDays(-1)
		}
		if got, err := LastBefore(d, day, i); !d.AddDays(-31).IsZero() && (got != want || err != nil) {
			t.Fatalf("LastBefore(%v, %d, %v) = %v, %v; want %v", d, day, i, got, err, want)
		}
	})
	if d, err := LastBefore(MustParse("2026-01-01"), 32, Interval{1, Month}); err == nil {
		t.Errorf("day 32: %v", d)
	}
}

func isPaymentDay(d Date, day int, unit Unit) bool {
	utc := d.In(time.UTC)
	if unit == Week {
		return (int(utc.Weekday())+6)%7 == day-1
	}
	return d.Day() == day || d.Day() < day && utc.AddDate(0, 0, 1).Day() == 1
}

func BenchmarkDue(b *testing.B) {
	for _, s := range []Schedule{
		{Anchor: MustParse("2026-01-31"), Day: 31, Interval: Interval{1, Month}},
		{Anchor: MustParse("2026-12-18"), Day: 5, Interval: Interval{2, Week}},
	} {
		b.Run(s.Interval.String(), func(b *testing.B) {
			n := 0
			for b.Loop() {
				if _, err := s.Due(n & 1023); err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
	}
}

// TestDue_LastWeekOfTheCalendar: the largest number of periods that any schedule has.
func TestDue_LastWeekOfTheCalendar(t *testing.T) {
	s := Schedule{Anchor: MustParse("0001-01-01"), From: -3, Day: 1, Interval: Interval{1, Week}}
	const last = -3 + lastNumber/7
	if got, err := s.Due(last); err != nil || got != MustParse("9999-12-27") {
		t.Errorf("Due of the last week = %v, %v; want 9999-12-27", got, err)
	}
	if got, err := s.Due(last + 1); !errors.Is(err, ErrRange) {
		t.Errorf("Due of the week after it = %v, %v; want ErrRange", got, err)
	}
}
