package stripe

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/stripe/api"
)

// Options say how Stripe is reached. Parse reads some of them from a text.
type Options struct {
	API       api.Options
	ReturnURL string // address to which customers return from Stripe's pages, http or https; "": no pages
}

const knownParameters = "rate, return_url"

// Parse reads stripe, stripe: or stripe:?PARAMETERS. The parameters are rate (requests a second to
// each endpoint) and return_url (the address to which customers return from Stripe's pages). The
// API key is no parameter, since others see command lines. Errors do not repeat a text that may be
// a key.
func Parse(text string) (Options, error) {
	rest, ok := strings.CutPrefix(text, "stripe")
	query, hasQuery := strings.CutPrefix(rest, ":?")
	if !ok || !hasQuery && rest != "" && rest != ":" {
		return Options{}, errors.New("processor: want stripe, stripe: or stripe:?PARAMETERS, with nothing else in it: the " +
			"API key is not given here, but by the environment or a file")
	}
	if !hasQuery {
		query = ""
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return Options{}, errors.New("processor stripe: the parameters cannot be read: want " +
			"stripe:?rate=20&return_url=https://example.com/thanks")
	}
	var o Options
	for name, list := range values {
		if len(list) > 1 {
			return Options{}, fmt.Errorf("processor stripe: parameter %s is given %d times", api.Quote(name), len(list))
		}
		if err := o.set(name, list[0]); err != nil {
			return Options{}, fmt.Errorf("processor stripe: %w", err)
		}
	}
	return o, nil
}

func (o *Options) set(name, value string) error {
	switch name {
	case "rate":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > api.MaxRate {
			return fmt.Errorf("parameter rate: want a whole number from 1 to %d, not %s", api.MaxRate, api.Quote(value))
		}
		o.API.Rate = n
	case "return_url":
		if err := api.CheckURL(value); err != nil {
			return fmt.Errorf("parameter return_url: %w", err)
		}
		o.ReturnURL = value
	case "key", "api_key", "apikey", "secret", "secret_key", "token":
		return fmt.Errorf("parameter %s: the API key is not given here, where others may see it, but by the environment "+
			"or a file", name)
	default:
		return fmt.Errorf("unknown parameter %s; known: %s", api.Quote(name), knownParameters)
	}
	return nil
}
