// Package config builds one validated Config from flags, environment variables and defaults. Flags
// override the environment.
//
// It opens no files except secret files, and does not know the commands. A setting for a single command
// belongs to that command.
package config

import (
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/secret"
)

// The environment variables without a flag that all commands use, and the variable for --store.
const (
	EnvStore        = "DUESDAY_STORE"
	EnvSMTPPassword = "DUESDAY_SMTP_PASSWORD"
	EnvClock        = "DUESDAY_CLOCK" // a test clock

	EnvStripeKey     = "DUESDAY_STRIPE_KEY"
	EnvStripeAPIBase = "DUESDAY_STRIPE_API_BASE"
	EnvCardURL       = "DUESDAY_CARD_URL"
)

// The defaults: everything is in the current folder.
const (
	DefaultStore     = "pebble:./duesday-data"
	DefaultProcessor = "sandbox:./duesday-sandbox.jsonl"
	DefaultMail      = "./duesday-mail"
)

// KnownProcessors lists the processors, for messages.
const KnownProcessors = "stripe or sandbox:FILE"

// A Config holds the settings that all commands share.
type Config struct {
	Store     string // URL of the store; package storeurl knows the schemes
	Processor string // URL of the payment processor: stripe or sandbox:FILE
	Stripe    Stripe // zero unless the processor is Stripe
	// the merchant's page for giving a card, with {account} and {subscription}; "" for the processor's
	CardURL string
	Mail    string // folder for outgoing mail, if SMTP is ""
	SMTP    SMTP
	// folder of mail templates in place of the built-in ones; ""
	Templates  string
	CacheBytes int64      // of memory for the blocks of a pebble: store
	LogLevel   slog.Level // of the log on standard error
	LogJSON    bool       // the log is JSON, a line for each message

	StoreGiven, ProcessorGiven, MailGiven bool // by flag or environment, not by default
}

// New returns the Config from flags, environment and defaults. Its errors name the wrong setting.
func New(flag, env func(name string) string) (Config, error) {
	v := read(flag, env)
	level, format := v["log-level"].text, v["log-format"].text
	c := Config{Store: v["store"].text, StoreGiven: v["store"].source != "", Processor: v["processor"].text,
		ProcessorGiven: v["processor"].source != "", Mail: v["mail"].text, MailGiven: v["mail"].source != "",
		Templates: v["templates"].text, LogJSON: format == "json", CardURL: env(EnvCardURL),
		SMTP: SMTP{v["smtp"].text, newSecret(env, EnvSMTPPassword)}}
	if err := c.SMTP.Password.check(); err != nil {
		return c, err
	}
	mib, err := strconv.ParseInt(v["cache"].text, 10, 64)
	if err != nil || mib < 16 || mib > 1<<20 {
		return c, fmt.Errorf("%s must be a whole number of MiB, 16 to 1048576 (got %q)", v["cache"].source, v["cache"].text)
	}
	c.CacheBytes = mib << 20
	if err := c.LogLevel.UnmarshalText([]byte(level)); err != nil {
		return c, fmt.Errorf("%s must be debug, info, warn or error (got %q)", v["log-level"].source, level)
	}
	if !c.LogJSON && format != "text" {
		return c, fmt.Errorf("%s must be text or json (got %q)", v["log-format"].source, format)
	}
	if !c.UsesStripe() && !strings.HasPrefix(c.Processor, "sandbox:") {
		return c, fmt.Errorf("%s must be %s (got %q)", v["processor"].source, KnownProcessors, secret.Redact(c.Processor))
	}
	if c.UsesStripe() {
		if c.Stripe, err = newStripe(env); err != nil {
			return c, err
		}
	}
	if err := checkCardURL(c.CardURL); err != nil {
		return c, err
	}
	return c, nil
}

// SMTP holds the settings for sending mail.
type SMTP struct {
	Server   string // its address; package smtp knows the form. "": mail is written to a folder
	Password Secret
}

// Live reports whether the processor moves real money. It also returns true for a Stripe key that
// has not been read yet.
func (c *Config) Live() bool {
	key := c.Stripe.Key.Reveal()
	return c.UsesStripe() && !strings.HasPrefix(key, "sk_test_") && !strings.HasPrefix(key, "rk_test_")
}

// AtStripe returns where cards are charged, for people: Stripe in one of its modes, or its fake. It returns "" for the
// sandbox.
func (c *Config) AtStripe() string {
	switch {
	case !c.UsesStripe():
		return ""
	case c.Stripe.APIBase != "":
		return "the fake Stripe at " + secret.Redact(c.Stripe.APIBase)
	case c.Live():
		return "Stripe in live mode, so with real money"
	}
	return "Stripe in test mode"
}

// Stripe holds the settings for Stripe's API.
type Stripe struct {
	Key     Secret // of the API
	APIBase string // address of the API; "" for Stripe's own
}

// UsesStripe reports whether the processor is Stripe.
func (c *Config) UsesStripe() bool {
	return c.Processor == "stripe" || strings.HasPrefix(c.Processor, "stripe:")
}

// CheckKey returns an error unless exactly one key is set.
func (s *Stripe) CheckKey() error {
	if !s.Key.Given() {
		return fmt.Errorf("this command needs a Stripe key: set %s, or set %[1]s%s to a file that contains it and that "+
			"no one else can read", EnvStripeKey, InFile)
	}
	return s.Key.check()
}

// newStripe reads the settings of Stripe. CheckKey reports a missing key to a command that asks it.
func newStripe(env func(string) string) (Stripe, error) {
	s := Stripe{Key: newSecret(env, EnvStripeKey), APIBase: strings.TrimRight(env(EnvStripeAPIBase), "/")}
	if s.APIBase == "" {
		return s, nil
	}
	if u := webAddress(s.APIBase); u == nil || u.RawQuery != "" || u.Fragment != "" {
		return s, fmt.Errorf("%s must be an address such as http://127.0.0.1:12111", EnvStripeAPIBase)
	}
	return s, nil
}

// checkCardURL requires a page of the merchant's own.
func checkCardURL(text string) error {
	if text == "" {
		return nil
	}
	filled := strings.NewReplacer("{account}", "1", "{subscription}", "1").Replace(text)
	if webAddress(filled) == nil || strings.ContainsAny(filled, "{}") || strings.ContainsAny(text, " \t\r\n") {
		return fmt.Errorf(
			"%s must be an address such as https://shop.example/card?account={account}&subscription={subscription} (got %q)",
			EnvCardURL, text)
	}
	return nil
}

// webAddress returns the address of a web server, or nil if the text is none.
func webAddress(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		return nil
	}
	return u
}
