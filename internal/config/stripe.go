package config

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/duesday/duesday/internal/secret"
)

// Stripe has the settings for reaching Stripe. The key comes from the environment or from a file
// and never from the command line, which other people on the machine can read.
type Stripe struct {
	Key     secret.Text // the API key; none when it is in KeyFile
	KeyFile string      // the file of the key, readable by its owner alone
	APIBase string      // address of the API; "" for Stripe's own
}

// UsesStripe reports whether the processor is Stripe.
func (c *Config) UsesStripe() bool {
	return c.Processor == "stripe" || strings.HasPrefix(c.Processor, "stripe:")
}

// CheckKey returns an error if there is no key, or more than one.
func (s *Stripe) CheckKey() error {
	switch {
	case s.Key.IsZero() && s.KeyFile == "":
		return fmt.Errorf(
			"Stripe is to be asked, and there is no key: set %s, or %s to a file that holds it and that nobody else can read",
			EnvStripeKey, EnvStripeKeyFile)
	case !s.Key.IsZero() && s.KeyFile != "":
		return fmt.Errorf("%s and %s are both set: unset one", EnvStripeKey, EnvStripeKeyFile)
	}
	return nil
}

// newStripe reads the settings of Stripe. A key is only missed where Stripe is asked.
func newStripe(env func(string) string) (Stripe, error) {
	s := Stripe{Key: secret.New(env(EnvStripeKey)), KeyFile: env(EnvStripeKeyFile),
		APIBase: strings.TrimRight(env(EnvStripeAPIBase), "/")}
	if s.APIBase == "" {
		return s, nil
	}
	u, err := url.Parse(s.APIBase)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return s, fmt.Errorf("%s: want an address such as http://127.0.0.1:12111", EnvStripeAPIBase)
	}
	return s, nil
}

// checkCardURL requires a page of the merchant's own.
func checkCardURL(text string) error {
	if text == "" {
		return nil
	}
	filled := strings.NewReplacer("{account}", "1", "{subscription}", "1").Replace(text)
	u, err := url.Parse(filled)
	if err != nil || strings.ContainsAny(filled, "{}") || (u.Scheme != "http" && u.Scheme != "https") ||
		u.Host == "" || u.User != nil || strings.ContainsAny(text, " \t\r\n") {
		return fmt.Errorf(
			"%s %q: want an address such as https://shop.example/card?account={account}&subscription={subscription}",
			EnvCardURL, text)
	}
	return nil
}
