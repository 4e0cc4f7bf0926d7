package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/duesday/duesday/internal/billing"
)

// A Flag is a global flag with a value.
type Flag struct {
	Name    string
	Default string
	Setting string // of the store, that it must not differ from; "": none
	Usage   string
}

// Flags lists the global flags with a value.
func Flags() []Flag {
	return []Flag{
		{"store", DefaultStore, "", "`URL` of the store: pebble:DIR, dynamodb:?region=REGION or mem:"},
		{"processor", DefaultProcessor, "", "`URL` of the payment processor: " + KnownProcessors},
		{"mail", DefaultMail, "", "`FOLDER` that mail is written to"},
		{"smtp", "", "", "`URL` of the server that sends mail, instead of the folder: smtps://USER@HOST:465, or " +
			"smtp://USER@HOST:587 with STARTTLS"},
		{"templates", "", "", "`FOLDER` with mail templates that replace the built-in ones"},
		{"cache", "512", "", "memory for a pebble: store's data in `MIB`, at least 16"},
		{"log-level", "warn", "", "`LEVEL` of the log on standard error: debug, info, warn or error"},
		{"log-format", "text", "", "`FORMAT` of the log: text or json"},
		{"receipt-months", "", "receipt-months", "`MONTHS` until a receipt expires, 0 for never"},
		{"retry-days", "", "retry-days", "`DAYS` after the first decline on which a payment is retried, or none"},
		{"catch-up", "", "catch-up", "`NUMBER` of missed periods that one run charges before it asks an operator"},
		{"action-days", "", "action-days",
			"`DAYS` in which a customer must authenticate a payment before it fails, 0 for no limit"},
		{"from", "", "sender", "sender `ADDRESS` of mail, such as Ada's Gym <billing@example.com>"},
		{"reply-to", "", "reply-to", "`ADDRESS` for replies to mail"},
	}
}

// Variable returns the environment variable that stands for the flag.
func (f *Flag) Variable() string {
	return "DUESDAY_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// Help returns the flag's usage, and what holds without it.
func (f *Flag) Help() string {
	absent := ""
	switch {
	case f.Default != "":
		absent = "default " + f.Default + ", "
	case f.Setting != "":
		absent = "default: the store's setting; "
	}
	return f.Usage + " (" + absent + "or $" + f.Variable() + ")"
}

// A value is the text of a flag.
type value struct{ text, source string } // source: the flag or its variable; "" for the default

func read(flag, env func(name string) string) map[string]value {
	values := map[string]value{}
	for _, f := range Flags() {
		switch {
		case flag(f.Name) != "":
			values[f.Name] = value{flag(f.Name), "--" + f.Name}
		case env(f.Variable()) != "":
			values[f.Name] = value{env(f.Variable()), f.Variable()}
		default:
			values[f.Name] = value{f.Default, ""}
		}
	}
	return values
}

// givenSettings returns the store's settings among the values. An error names the flag or variable.
func givenSettings(values map[string]value) (given []billing.Given, err error) {
	for _, f := range Flags() {
		v := values[f.Name]
		if f.Setting == "" || v.source == "" {
			continue
		}
		g, err := Given(v.source, f.Setting, v.text)
		if err != nil {
			return nil, err
		}
		given = append(given, g)
	}
	return given, nil
}

// Given returns the setting that the source, a flag or a variable, gives. An error names the source.
func Given(source, name, text string) (billing.Given, error) {
	var s billing.Settings
	err := s.Set(name, text)
	if wrong, ok := errors.AsType[*billing.FieldError](err); ok {
		err = fmt.Errorf("%s %s", source, wrong.Problem)
	}
	return billing.Given{Source: source, Name: name, Text: s.Text(name)}, err
}

// Settings returns the settings of flags and variables, over the defaults, for a store without any.
func (c *Config) Settings() billing.Settings {
	s := billing.DefaultSettings()
	s.SetAll(c.Given)
	return s
}
