package config

import "strings"

// A Flag is a global flag with a value.
type Flag struct {
	Name    string
	Default string
	Usage   string
}

// Flags lists the global flags with a value.
func Flags() []Flag {
	return []Flag{
		{"store", DefaultStore, "`URL` of the store: pebble:DIR, dynamodb:?region=REGION or mem:"},
		{"processor", DefaultProcessor, "`URL` of the payment processor: " + KnownProcessors},
		{"mail", DefaultMail, "`FOLDER` that mail is written to"},
		{"smtp", "", "`URL` of the server that sends mail, instead of the folder: smtps://USER@HOST:465, or " +
			"smtp://USER@HOST:587 with STARTTLS"},
		{"templates", "", "`FOLDER` with mail templates that replace the built-in ones"},
		{"cache", "512", "memory for a pebble: store's data in `MIB`, at least 16"},
		{"log-level", "warn", "`LEVEL` of the log on standard error: debug, info, warn or error"},
		{"log-format", "text", "`FORMAT` of the log: text or json"},
	}
}

// Variable returns the environment variable that sets the flag.
func (f *Flag) Variable() string {
	return "DUESDAY_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// Help returns the flag's usage, with its default.
func (f *Flag) Help() string {
	absent := ""
	if f.Default != "" {
		absent = "default " + f.Default + ", "
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
