package civil

import (
	"errors"
	"fmt"
	"time"
)

// ErrRange is wrapped if a period is before the schedule's first period, or its due date is after
// the year 9999.
var ErrRange = errors.New("out of range")

// Schedule is a rule that computes one due date for every period from From on.
type Schedule struct {
	// Anchor is the due date of period From. It must be a payment day: its day of the month is Day,
	// or the month's last day when the month is shorter; for weeks, its weekday is Day. Intervals in days
	// have no payment day, so any date can be their anchor.
	Anchor Date
	// From is the number of the first period.
	From int
	// Day is the wanted day of the month, 1 to 31, or of weeks the ISO weekday, 1 (Monday) to 7. Intervals
	// in days ignore Day.
	Day int
	// Interval is the distance between two due dates.
	Interval Interval
}

// Validate returns an error if the schedule is not valid.
func (s Schedule) Validate() error {
	if s.Anchor.IsZero() {
		return errors.New("schedule has no anchor date")
	}
	if s.Interval.Unit == Day {
		s = s.OnAnchor()
	}
	if err := checkDay(s.Day, s.Interval); err != nil {
		return err
	}
	if s.Interval.Unit == Week {
		if got := isoWeekday(s.Anchor); got != s.Day {
			return fmt.Errorf("schedule: anchor %s must be on weekday %d (got weekday %d)", s.Anchor, s.Day, got)
		}
		return nil
	}
	if want := clamp(s.Anchor.Year(), s.Anchor.Month(), s.Day); want != s.Anchor {
		return fmt.Errorf("schedule: anchor must be %s for payment day %d (got %s)", want, s.Day, s.Anchor)
	}
	return nil
}

// OnAnchor returns the schedule with the anchor's own day.
func (s Schedule) OnAnchor() Schedule {
	if s.Day = s.Anchor.Day(); s.Interval.Unit == Week {
		s.Day = isoWeekday(s.Anchor)
	}
	return s
}

// Due returns the due date of period n; Due(From) is the anchor. Due computes the date from the
// anchor and n, never from the previous period. The error wraps [ErrRange] if n is before From or
// the date is after the year 9999. If the schedule is not valid, Due returns the error of
// [Schedule.Validate].
func (s Schedule) Due(n int) (Date, error) {
	if err := s.Validate(); err != nil {
		return Date{}, err
	}
	if n < s.From {
		return Date{}, fmt.Errorf("period %d is before the schedule's first period, %d: %w", n, s.From, ErrRange)
	}
	// Unsigned, because the difference of two ints may exceed an int. The calendar holds no more
	// periods than weeks, and that many of the longest interval still fits 32 bits.
	periods := uint64(n) - uint64(s.From)
	if periods > lastNumber/7 {
		return Date{}, pastLastYear(n)
	}
	var due Date
	if f := s.Interval.Unit.facts(); f.days > 0 {
		due = s.Anchor.AddDays(int(periods) * f.days * s.Interval.N)
	} else {
		due = addMonths(s.Anchor, int(periods)*f.months*s.Interval.N, s.Day)
	}
	if due.IsZero() {
		return Date{}, pastLastYear(n)
	}
	return due, nil
}

func pastLastYear(n int) error {
	return fmt.Errorf("period %d is due after year %d: %w", n, MaxYear, ErrRange)
}

// FirstOnOrAfter returns the first payment day on or after d. For weeks, this is the first date on
// the ISO weekday day. Otherwise, it is the first date on that day of the month, or on the last day
// of a shorter month; for days, only the first payment is due on such a date. If day is out of
// range, the error contains the range. If the date is after the year 9999, the error wraps [ErrRange].
func FirstOnOrAfter(d Date, day int, i Interval) (Date, error) {
	if err := checkDay(day, i); err != nil {
		return Date{}, err
	}
	if d.IsZero() {
		return Date{}, errors.New("the start date is missing")
	}
	var first Date
	if i.Unit == Week {
		first = d.AddDays((day - isoWeekday(d) + 7) % 7)
	} else if first = clamp(d.Year(), d.Month(), day); first.Before(d) {
		first = addMonths(d, 1, day)
	}
	if first.IsZero() {
		return Date{}, fmt.Errorf("the first payment day from %s is after year %d: %w", d, MaxYear, ErrRange)
	}
	return first, nil
}

// LastBefore returns the last payment day before d, with the payment days and errors of
// FirstOnOrAfter.
func LastBefore(d Date, day int, i Interval) (last Date, err error) {
	next, err := FirstOnOrAfter(d.AddDays(-31), day, i) // no two are further apart
	for err == nil && next.Before(d) {
		last = next
		next, err = FirstOnOrAfter(last.AddDays(1), day, i)
	}
	if !last.IsZero() {
		err = nil // that of a date after the calendar's end
	}
	return last, err
}

func checkDay(day int, i Interval) error {
	if err := i.Validate(); err != nil {
		return err
	}
	if i.Unit == Week {
		if day < 1 || day > 7 {
			return fmt.Errorf("payment day must be an ISO weekday, 1 for Monday to 7 for Sunday (got %d)", day)
		}
		return nil
	}
	if day < 1 || day > 31 {
		return fmt.Errorf("payment day must be a day of the month, 1 to 31 (got %d)", day)
	}
	return nil
}

// addMonths returns the wanted day, or the last, of the month that is months
// after d's, and the zero Date after year 9999. months is not negative.
func addMonths(d Date, months, day int) Date {
	fromYear0 := 12*d.Year() + int(d.Month()-time.January) + months
	year := fromYear0 / 12
	if year > MaxYear {
		return Date{}
	}
	return clamp(year, time.January+time.Month(fromYear0%12), day)
}

func clamp(year int, month time.Month, day int) Date {
	return pack(year, month, min(day, daysIn(year, month)))
}

// isoWeekday returns 1 for Monday to 7 for Sunday.
func isoWeekday(d Date) int { return (int(d.Weekday())+6)%7 + 1 }
