package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/civil"
)

// A dateFlag is a flag that takes a date; zero when it is not given.
type dateFlag struct{ civil.Date }

var _ pflag.Value = (*dateFlag)(nil)

// Set implements pflag.Value.
func (d *dateFlag) Set(text string) (err error) {
	d.Date, err = civil.Parse(text)
	return err
}

func (d *dateFlag) String() string { return date(d.Date) }

// Type implements pflag.Value.
func (d *dateFlag) Type() string { return "DATE" }

// A choiceFlag is a flag that takes one of a few words.
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
