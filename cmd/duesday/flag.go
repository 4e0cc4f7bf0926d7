package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/civil"
)

// A valueFlag is a flag whose value has a form of its own; zero when it is not given.
type valueFlag[T any] struct {
	value T
	text  string // as it was given
	form  string // of the value, in the help
	parse func(text string) (T, error)
}

// Set implements pflag.Value.
func (f *valueFlag[T]) Set(text string) error {
	v, err := f.parse(text)
	if err == nil {
		f.value, f.text = v, text
	}
	return err
}

// String implements pflag.Value.
func (f *valueFlag[T]) String() string { return f.text }

// Type implements pflag.Value.
func (f *valueFlag[T]) Type() string { return f.form }

// The bounds of dates. A job walks the days one by one, and would walk to a mistyped year for
// minutes.
const (
	firstYear  = 1970 // of every date
	yearsAhead = 10   // after the clock's today, of a date to walk to
)

func dateFlag() valueFlag[civil.Date] {
	return valueFlag[civil.Date]{form: "DATE", parse: func(text string) (civil.Date, error) {
		d, err := civil.Parse(text)
		if err == nil && d.Year() < firstYear {
			err = usagef("want %d-01-01 or later", firstYear)
		}
		return d, err
	}}
}

// monthFlag takes a month, as its first day.
func monthFlag() valueFlag[civil.Date] {
	return valueFlag[civil.Date]{form: "MONTH", parse: func(text string) (civil.Date, error) {
		d, err := civil.Parse(text + "-01")
		if err != nil || d.Year() < firstYear {
			return d, usagef("want a month such as 2026-01, from %d-01 on", firstYear)
		}
		return d, nil
	}}
}

// walkable refuses a date too far ahead.
func (p *program) walkable(flag string, d civil.Date) error {
	if last := civil.Of(p.now().UTC().AddDate(yearsAhead, 0, 0)); d.After(last) {
		return usagef("--%s %s: want %s or earlier, %d years from today", flag, d, last, yearsAhead)
	}
	return nil
}

// instantFlag takes a time, or a date for its beginning; UTC.
func instantFlag() valueFlag[time.Time] {
	return valueFlag[time.Time]{form: "TIME", parse: func(text string) (time.Time, error) {
		for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
			if t, err := time.Parse(layout, text); err == nil && t.Year() >= firstYear {
				return t.UTC(), nil
			}
		}
		return time.Time{}, usagef(
			"want a time such as 2026-03-15T10:30:00Z, or a date such as 2026-03-15 for its beginning in UTC")
	}}
}

// shareFlag takes a share of a whole: 0.2 or 20%.
func shareFlag() valueFlag[float64] {
	return valueFlag[float64]{form: "SHARE", parse: func(text string) (float64, error) {
		digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
		v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if percent {
			v /= 100
		}
		if err != nil || !(v > 0 && v <= 1) { // so that NaN fails too
			return 0, usagef("want a share above 0 and at most 1, such as 0.2 or 20%%")
		}
		return v, nil
	}}
}

// choiceFlag takes one of a few words in lower case.
func choiceFlag[T ~string](choices ...T) valueFlag[T] {
	var words []string
	for _, choice := range choices {
		words = append(words, string(choice))
	}
	return valueFlag[T]{form: strings.ToUpper(strings.Join(words, "|")), parse: func(text string) (T, error) {
		if !slices.Contains(words, text) {
			return "", usagef("want %s", strings.Join(words, ", "))
		}
		return T(text), nil
	}}
}

// given returns the value of the flag; nil if the command line does not have it.
func given[T any](flags *pflag.FlagSet, name string, value T) *T {
	if !flags.Changed(name) {
		return nil
	}
	return &value
}

// between refuses a value of the flag outside of its bounds.
func between(flag string, value, least, most int) error {
	if value < least || value > most {
		return usagef("--%s %d: want %d to %d", flag, value, least, most)
	}
	return nil
}
