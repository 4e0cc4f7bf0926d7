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
		{"smtp", "", "", "`URL` of the server that sends mail, in place of the folder: smtps://USER@HOST:465, or " +
			"smtp://USER@HOST:587 with STARTTLS"},
		{"templates", "", "", "`FOLDER` with templates of mail in place of the built-in ones"},
		{"cache", "512", "", "`MIB` of memory for the data of a pebble: store, 16 or more"},
		{"log-level", "warn", "", "`LEVEL` of the log on standard error: debug, info, warn or error"},
		{"log-format", "text", "", "`FORM` of the log: text or json"},
		{"receipt-months", "", "receipt-months", "`MONTHS` until a receipt expires, 0 for never"},
		{"retry-days", "", "retry-days", "`DAYS` after the first decline it is tried again on, or none"},
		{"catch-up", "", "catch-up", "`NUMBER` of missed periods charged in one run before a person is asked"},
		{"action-days", "", "action-days",
			"`DAYS` that a customer has to authenticate a payment before it has failed, 0 for no end"},
		{"from", "", "sender", "`ADDRESS` that mail is from, Ada's Gym <billing@example.com>"},
		{"reply-to", "", "reply-to", "`ADDRESS` for answers to mail"},
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
