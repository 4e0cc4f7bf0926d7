package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/civil"
)

// A dateFlag is a flag that takes a date; zero when it is not given.
type dateFlag struct{ civil.Date }

// The bounds of dates. A job walks the days one by one, and would walk to a mistyped year for
// minutes.
const (
	firstYear  = 1970 // of every date
	yearsAhead = 10   // after the clock's today, of a date to walk to
)

// Set implements pflag.Value.
func (d *dateFlag) Set(text string) (err error) {
	if d.Date, err = civil.Parse(text); err == nil && d.Year() < firstYear {
		return usagef("want %d-01-01 or later", firstYear)
	}
	return err
}

// walkable refuses a date too far ahead.
func (p *program) walkable(flag string, d dateFlag) error {
	if last := civil.Of(p.now().UTC().AddDate(yearsAhead, 0, 0)); d.After(last) {
		return usagef("--%s %s: want %s or earlier, %d years from today", flag, d.Date, last, yearsAhead)
	}
	return nil
}

func (d *dateFlag) String() string { return date(d.Date) }

// Type implements pflag.Value.
func (d *dateFlag) Type() string { return "DATE" }

// An instantFlag is a flag that takes a time, or a date for its beginning; UTC. Zero when it is
// not given.
type instantFlag struct{ time.Time }

// Set implements pflag.Value.
func (i *instantFlag) Set(text string) error {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= firstYear {
			i.Time = t.UTC()
			return nil
		}
	}
	return usagef("want a time such as 2026-03-15T10:30:00Z, or a date such as 2026-03-15 for its beginning in UTC")
}

func (i *instantFlag) String() string { return stamp(i.Time) }

// Type implements pflag.Value.
func (i *instantFlag) Type() string { return "TIME" }

// A shareFlag takes a share of a whole: 0.2 or 20%.
type shareFlag struct {
	value float64
	text  string
}

// Set implements pflag.Value.
func (s *shareFlag) Set(text string) error {
	digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v > 0 && v <= 1) { // so that NaN fails too
		return usagef("want a share above 0 and at most 1, such as 0.2 or 20%%")
	}
	s.value, s.text = v, text
	return nil
}

func (s *shareFlag) String() string { return s.text }

// Type implements pflag.Value.
func (s *shareFlag) Type() string { return "SHARE" }

// A choiceFlag is a flag with one of a few words.
type choiceFlag struct {
	value   string
	choices []string
}

func choiceOf[T ~string](choices ...T) (c choiceFlag) {
	for _, choice := range choices {
		c.choices = append(c.choices, string(choice))
	}
	return c
}

// Set implements pflag.Value.
func (c *choiceFlag) Set(text string) error {
	if !slices.Contains(c.choices, text) {
		return usagef("want %s", strings.Join(c.choices, ", "))
	}
	c.value = text
	return nil
}

func (c *choiceFlag) String() string { return c.value }

// Type implements pflag.Value.
func (c *choiceFlag) Type() string { return strings.ToUpper(strings.Join(c.choices, "|")) }

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
