package screen

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

// A Flag is a pflag.Value that parses its text into a T. Value is zero if the flag is not given.
type Flag[T any] struct {
	Value T
	Text  string // as the user typed it
	Form  string // placeholder for the value in the help text
	Parse func(text string) (T, error)
}

// Set implements pflag.Value.
func (f *Flag[T]) Set(text string) error {
	v, err := f.Parse(text)
	if err == nil {
		f.Value, f.Text = v, text
	}
	return err
}

func (f *Flag[T]) String() string { return f.Text }

func (f *Flag[T]) Type() string { return f.Form }

// FirstYear is the earliest year that a date flag accepts.
const FirstYear = 1970

// DateFlag returns a flag that accepts a date.
func DateFlag() Flag[civil.Date] {
	return Flag[civil.Date]{Form: "DATE", Parse: func(text string) (civil.Date, error) {
		d, err := civil.Parse(text)
		if err == nil && d.Year() < FirstYear {
			err = Usagef("must be %d-01-01 or later", FirstYear)
		}
		return d, err
	}}
}

// MonthFlag returns a flag that accepts a month. Its value is the first day of that month.
func MonthFlag() Flag[civil.Date] {
	return Flag[civil.Date]{Form: "MONTH", Parse: func(text string) (civil.Date, error) {
		d, err := civil.Parse(text + "-01")
		if err != nil || d.Year() < FirstYear {
			return d, Usagef("must be a month such as 2026-01, not before %d-01", FirstYear)
		}
		return d, nil
	}}
}

// InstantFlag returns a flag that accepts a time in UTC, or a date, which means the start of that
// day.
func InstantFlag() Flag[time.Time] {
	return Flag[time.Time]{Form: "TIME", Parse: func(text string) (time.Time, error) {
		for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
			if t, err := time.Parse(layout, text); err == nil && t.Year() >= FirstYear {
				return t.UTC(), nil
			}
		}
		return time.Time{}, Usagef(
			"must be a time such as 2026-03-15T10:30:00Z, or a date such as 2026-03-15 for its beginning in UTC")
	}}
}

// ShareFlag returns a flag that accepts a share, such as 0.2 or 20%.
func ShareFlag() Flag[float64] {
	return Flag[float64]{Form: "SHARE", Parse: func(text string) (float64, error) {
		digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
		v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if percent {
			v /= 100
		}
		if err != nil || !(v > 0 && v <= 1) { // also rejects NaN
			return 0, Usagef("must be a share above 0 and at most 1, such as 0.2 or 20%%")
		}
		return v, nil
	}}
}

// ChoiceFlag returns a flag that accepts one of several words in lower case.
func ChoiceFlag[T ~string](choices ...T) Flag[T] {
	var words []string
	for _, choice := range choices {
		words = append(words, string(choice))
	}
	return Flag[T]{Form: strings.ToUpper(strings.Join(words, "|")), Parse: func(text string) (T, error) {
		if !slices.Contains(words, text) {
			return "", Usagef("must be one of %s", strings.Join(words, ", "))
		}
		return T(text), nil
	}}
}

// Given returns a pointer to the flag's value, or nil if the flag is not on the command line.
func Given[T any](flags *pflag.FlagSet, name string, value T) *T {
	if !flags.Changed(name) {
		return nil
	}
	return &value
}

// Between returns a UsageError unless the flag's value is between least and most.
func Between(flag string, value, least, most int) error {
	if value < least || value > most {
		return Usagef("--%s must be %d to %d (got %d)", flag, least, most, value)
	}
	return nil
}

// A DaySpan holds the flags --from and --to of a list. They are days in UTC, and both are included.
type DaySpan struct{ from, to Flag[civil.Date] }

// Check returns a UsageError if --to is before --from.
func (d *DaySpan) Check() error {
	if !d.to.Value.IsZero() && d.to.Value.Before(d.from.Value) {
		return Usagef("--to %s must not be before --from %s", d.to.Value, d.from.Value)
	}
	return nil
}

// Flags adds --from and --to to a list command. The help text says that the listed items happened
// in this span, with happened as the verb.
func (d *DaySpan) Flags(c *cobra.Command, happened string) {
	d.from, d.to = DateFlag(), DateFlag()
	c.Flags().Var(&d.from, "from", "only those that "+happened+" on this day or later")
	c.Flags().Var(&d.to, "to", "only those that "+happened+" on this day or earlier")
}

// Has reports whether the time is on one of the span's days.
func (d *DaySpan) Has(at time.Time) bool {
	day := civil.Of(at)
	return !day.Before(d.from.Value) && (d.to.Value.IsZero() || !day.After(d.to.Value))
}

// ParseAmount returns the amount of the flags --amount and --currency, or a UsageError.
func ParseAmount(amount, currency string) (money.Amount, error) {
	c, err := money.ParseCurrency(currency)
	if err != nil {
		return money.Amount{}, Usagef("--currency: %w", err)
	}
	return ParseMoney(amount, c)
}

// ParseMoney returns the amount of the flag --amount in the currency, or a UsageError.
func ParseMoney(amount string, c money.Currency) (money.Amount, error) {
	a, err := money.Parse(amount, c)
	if err != nil {
		return a, Usagef("--amount: %w", err)
	}
	return a, nil
}
