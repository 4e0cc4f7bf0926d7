package config

import (
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/billing"
)

// Settings returns the settings that the flags and variables ask for, over the defaults. They are
// the store's if it has none of its own.
func (c *Config) Settings() billing.Settings {
	s := billing.DefaultSettings()
	s.SetAll(c.Given)
	return s
}

// givenSettings returns the settings of flags and environment. Its errors name the wrong flag or
// variable, because a person may have forgotten that a variable is set.
func givenSettings(f Flags, env func(string) string) (given []billing.Given, err error) {
	for _, g := range []struct{ flag, name, variable string }{
		{f.ReceiptMonths, "receipt-months", EnvReceiptMonths},
		{f.RetryDays, "retry-days", EnvRetryDays},
		{f.CatchUp, "catch-up", EnvCatchUp},
		{f.ActionDays, "action-days", EnvActionDays},
		{f.From, "sender", EnvFrom},
		{f.ReplyTo, "reply-to", EnvReplyTo},
	} {
		text, source := g.flag, "--"+g.name
		if g.name == "sender" {
			source = "--from"
		}
		if text == "" {
			text, source = env(g.variable), g.variable
		}
		if text == "" {
			continue
		}
		var s billing.Settings
		if err := s.Set(g.name, text); err != nil {
			if wrong, ok := errors.AsType[*billing.FieldError](err); ok {
				err = fmt.Errorf("%s %s", source, wrong.Problem)
			}
			return nil, err
		}
		given = append(given, billing.Given{Source: source, Name: g.name, Text: s.Text(g.name)})
	}
	return given, nil
}
