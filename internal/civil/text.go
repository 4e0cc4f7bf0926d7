package civil

import (
	"fmt"
	"time"
)

const dateLen = len("2006-01-02")

// Parse reads a date written exactly as 2006-01-02. Its error quotes the text
// and says whether the form is wrong or the day does not exist.
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
	return fmt.Errorf("date %.40q: want year-month-day with 4, 2 and 2 digits, such as 2026-01-31", s)
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

// MustParse is [Parse] for constants and tests: it panics on an error.
func MustParse(s string) Date {
	d, err := Parse(s)
	if err != nil {
		panic(err)
	}
	return d
}

// String returns the date as 2006-01-02, and 0000-00-00 for the zero Date,
// which [Parse] refuses.
func (d Date) String() string {
	return string(d.appendDigits(make([]byte, 0, dateLen)))
}

// AppendText appends the date as 2006-01-02, and nothing for the zero Date.
// It never fails.
func (d Date) AppendText(b []byte) ([]byte, error) {
	if d.IsZero() {
		return b, nil
	}
	return d.appendDigits(b), nil
}

// MarshalText returns the date as 2006-01-02, and empty text for the zero Date.
// It never fails.
func (d Date) MarshalText() ([]byte, error) {
	return d.AppendText(make([]byte, 0, dateLen))
}

// UnmarshalText is the inverse of [Date.MarshalText]: empty text is the zero
// Date, and other text is read by [Parse]. On an error d is unchanged.
func (d *Date) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*d = Date{}
		return nil
	}
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

func (d Date) appendDigits(b []byte) []byte {
	year, month, day := d.Year(), int(d.Month()), d.Day()
	return append(b,
		digit(year/1000), digit(year/100), digit(year/10), digit(year), '-',
		digit(month/10), digit(month), '-',
		digit(day/10), digit(day))
}

// digit returns the last decimal digit of a non-negative n.
func digit(n int) byte { return '0' + byte(n%10) }
