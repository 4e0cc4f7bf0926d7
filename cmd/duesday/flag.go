package main

import (
	"slices"
	"strings"

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

var _ pflag.Value = (*dateFlag)(nil)

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

// A choiceFlag is a flag with one of a few words.
type choiceFlag struct {
	value   string
	choices []string
}

var _ pflag.Value = (*choiceFlag)(nil)

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
