package civil

import (
	"cmp"
	"fmt"
	"time"
)

// The first and last year that a Date can represent.
const (
	MinYear = 1
	MaxYear = 9999
)

// Day numbers count from 0001-01-01, which is number 0 and a Monday.
const (
	lastNumber = 3652058 // 9999-12-31
	unixNumber = 719162  // 1970-01-01
)

// Date is one day of the proleptic Gregorian calendar, in years 1 to 9999. It is comparable with ==
// and can be a map key. The zero value is not a date: it has year 0 and sorts before every date.
type Date struct {
	// year<<9 | month<<5 | day: dates order as these numbers, and fields need no division.
	packed int32
}

// New returns the given day. It returns an error if the day does not exist or the year is not 1 to
// 9999.
func New(year int, month time.Month, day int) (Date, error) {
	if year < MinYear || year > MaxYear {
		return Date{}, fmt.Errorf("date: year must be %d to %d (got %d)", MinYear, MaxYear, year)
	}
	if month < time.January || month > time.December {
		return Date{}, fmt.Errorf("date: month must be 1 to 12 (got %d)", int(month))
	}
	if last := daysIn(year, month); day < 1 || day > last {
		return Date{}, fmt.Errorf("date: there is no day %d in %s %d, which has %d days", day, month, year, last)
	}
	return pack(year, month, day), nil
}

// Of returns the date of t in t's own location, or the zero Date if the year is outside 1 to 9999.
func Of(t time.Time) Date {
	year, month, day := t.Date()
	if year < MinYear || year > MaxYear {
		return Date{}
	}
	return pack(year, month, day)
}

// pack does not check the day.
func pack(year int, month time.Month, day int) Date {
	return Date{packed: int32(year<<9 | int(month)<<5 | day)}
}

// IsZero reports whether d is the zero value.
func (d Date) IsZero() bool { return d.packed == 0 }

// Year returns the year, 1 to 9999.
func (d Date) Year() int { return int(d.packed >> 9) }

// Month returns the month of the year.
func (d Date) Month() time.Month { return time.Month(d.packed >> 5 & 15) }

// Day returns the day of the month, 1 to 31.
func (d Date) Day() int { return int(d.packed & 31) }

// Weekday returns the day of the week.
func (d Date) Weekday() time.Weekday { return time.Weekday((d.number() + 1) % 7) }

// AddBusinessDays returns the nth day from Monday to Friday after d. It does not know holidays.
func (d Date) AddBusinessDays(n int) Date {
	for n > 0 && !d.IsZero() {
		if d = d.AddDays(1); d.Weekday() != time.Saturday && d.Weekday() != time.Sunday {
			n--
		}
	}
	return d
}

// AddDays returns the date n days after d, or before d if n is negative. It returns the zero Date
// if d is zero or the result is outside the years 1 to 9999.
func (d Date) AddDays(n int) Date {
	// A sum that exceeds an int wraps to a negative one, so it is refused too.
	number := d.number() + n
	if d.IsZero() || number < 0 || number > lastNumber {
		return Date{}
	}
	return fromNumber(number)
}

// DaysSince returns the number of days from e to d: 1 when d is the day after e, negative when d is
// before e. The zero Date counts as the day before 0001-01-01.
func (d Date) DaysSince(e Date) int { return d.number() - e.number() }

// Before reports whether d is strictly earlier than e.
func (d Date) Before(e Date) bool { return d.packed < e.packed }

// After reports whether d is strictly later than e.
func (d Date) After(e Date) bool { return d.packed > e.packed }

// Compare returns -1 when d is earlier than e, 0 when they are the same day and +1 when d is later.
func (d Date) Compare(e Date) int { return cmp.Compare(d.packed, e.packed) }

const secondsPerDay = 24 * 60 * 60

// number returns the days from 0001-01-01 to d, and -1 for the zero Date.
func (d Date) number() int {
	if d.IsZero() {
		return -1
	}
	return unixNumber + int(time.Date(d.Year(), d.Month(), d.Day(), 0, 0, 0, 0, time.UTC).Unix()/secondsPerDay)
}

// fromNumber inverts number for 0 to lastNumber, both inclusive.
func fromNumber(number int) Date {
	return Of(time.Unix(int64(number-unixNumber)*secondsPerDay, 0).UTC())
}

// daysIn returns the days of the month, ten times faster than time.Date: each due date needs two.
func daysIn(year int, month time.Month) int {
	switch month {
	case time.February:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case time.April, time.June, time.September, time.November:
		return 30
	default:
		return 31
	}
}

// Earlier returns the earlier of two dates. It ignores a zero date.
func Earlier(a, b Date) Date {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// Later returns the later of two dates.
func Later(a, b Date) Date {
	if b.After(a) {
		return b
	}
	return a
}

const dateLen = len("2006-01-02")

// Parse reads a date written exactly as 2006-01-02. The error quotes the text and explains what is
// wrong.
func Parse(s string) (Date, error) {
	if len(s) != dateLen || s[4] != '-' || s[7] != '-' {
		return Date{}, formError(s)
	}
	year, ok1 := digits(s[:4])
	month, ok2 := digits(s[5:7])
	day, ok3 := digits(s[8:])
	if !ok1 || !ok2 || !ok3 {
		return Date{}, formError(s)
	}
	d, err := New(year, time.Month(month), day)
	if err != nil {
		return Date{}, fmt.Errorf("%q is not a day: %w", s, err)
	}
	return d, nil
}

// formError cuts long text, for log lines.
func formError(s string) error {
	return fmt.Errorf("date must be year-month-day with 4, 2 and 2 digits, such as 2026-01-31 (got %.40q)", s)
}

// digits reads at most four decimal digits.
func digits(s string) (n int, ok bool) {
	for i := range len(s) {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = 10*n + int(c)
	}
	return n, true
}

// String returns the date as 2006-01-02, and 0000-00-00 for the zero Date, which [Parse] refuses.
func (d Date) String() string {
	year, month, day := d.Year(), int(d.Month()), d.Day()
	return string([]byte{
		digit(year / 1000), digit(year / 100), digit(year / 10), digit(year), '-',
		digit(month / 10), digit(month), '-',
		digit(day / 10), digit(day)})
}

// MarshalText returns the date as 2006-01-02, and empty text for the zero Date. It never fails.
func (d Date) MarshalText() ([]byte, error) {
	if d.IsZero() {
		return nil, nil
	}
	return []byte(d.String()), nil
}

// digit returns the last decimal digit of a non-negative n.
func digit(n int) byte { return '0' + byte(n%10) }
