// Package config is what an invocation of Duesday works with: flags, environment and
// defaults become one Config, checked once. Flags win over the environment.
//
// It opens nothing, and it knows nothing of commands; what only one command takes is that
// command's business.
package config

import (
	"fmt"
	"log/slog"
	"strings"
)

// The environment variables that are read.
const (
	EnvStore     = "DUESDAY_STORE"
	EnvProcessor = "DUESDAY_PROCESSOR"
	EnvMail      = "DUESDAY_MAIL"
	EnvLogLevel  = "DUESDAY_LOG_LEVEL"

	EnvReceiptMonths = "DUESDAY_RECEIPT_MONTHS"
	EnvRetryDays     = "DUESDAY_RETRY_DAYS"
	EnvCatchUp       = "DUESDAY_CATCH_UP"
)

// The defaults: everything in the folder that one stands in.
const (
	DefaultStore     = "pebble:./duesday-data"
	DefaultProcessor = "sandbox:./duesday-sandbox.jsonl"
	DefaultMail      = "./duesday-mail"
	DefaultLogLevel  = "warn"
)

// KnownProcessors says which processors there are, for messages.
const KnownProcessors = "sandbox:FILE and sandbox:http://HOST:PORT"

// A Config is what every command works with.
type Config struct {
	Store     string     // URL of the store; package storeurl knows the schemes
	Processor string     // URL of the payment processor: sandbox:FILE, or sandbox:http://HOST:PORT
	Mail      string     // folder for mail that leaves
	LogLevel  slog.Level // what is logged to standard error
	JSON      bool       // output and errors are JSON
	Policy    Policy     // how it charges

	StoreGiven, ProcessorGiven, MailGiven bool // by flag or environment, not by default
}

// Flags are the values of the global flags; "" when not given.
type Flags struct {
	Store, Processor, Mail, LogLevel  string
	ReceiptMonths, RetryDays, CatchUp string
	JSON                              bool
}

// New makes the Config of flags, environment and defaults. Its errors say what is wrong
// with which of them.
func New(f Flags, env func(string) string) (Config, error) {
	c := Config{JSON: f.JSON}
	pick := func(flag, name, usual string) (value string, given bool) {
		if flag != "" {
			return flag, true
		}
		if value := env(name); value != "" {
			return value, true
		}
		return usual, false
	}
	c.Store, c.StoreGiven = pick(f.Store, EnvStore, DefaultStore)
	c.Processor, c.ProcessorGiven = pick(f.Processor, EnvProcessor, DefaultProcessor)
	c.Mail, c.MailGiven = pick(f.Mail, EnvMail, DefaultMail)
	level, _ := pick(f.LogLevel, EnvLogLevel, DefaultLogLevel)
	if err := c.LogLevel.UnmarshalText([]byte(level)); err != nil {
		return c, fmt.Errorf("log level %q: want debug, info, warn or error", level)
	}
	if scheme, _, ok := strings.Cut(c.Processor, ":"); !ok || scheme != "sandbox" {
		return c, fmt.Errorf("unknown processor %q: the known ones are %s", c.Processor, KnownProcessors)
	}
	var err error
	c.Policy, err = newPolicy(f, env)
	return c, err
}

// Live reports whether the processor moves real money.
func (c *Config) Live() bool { return !strings.HasPrefix(c.Processor, "sandbox:") }
