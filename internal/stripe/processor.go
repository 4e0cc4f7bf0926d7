package stripe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"strings"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sequence"
	"github.com/duesday/duesday/internal/stripe/api"
)

// A Processor implements package processor's interfaces with Stripe. It is safe for concurrent use.
type Processor struct {
	api       *api.Client
	client    *sdk.Client // of api
	returnURL string
}

var (
	_ processor.Charger    = (*Processor)(nil)
	_ processor.Wallet     = (*Processor)(nil)
	_ processor.Refunder   = (*Processor)(nil)
	_ processor.Platform   = (*Processor)(nil)
	_ processor.Identified = (*Processor)(nil)
	_ processor.Settler    = (*Processor)(nil)
)

// New returns a Processor without sending a request. Its errors do not contain the key.
func New(o Options) (*Processor, error) {
	c, err := api.New(o.API)
	if err != nil {
		return nil, err
	}
	if o.ReturnURL != "" {
		if err := api.CheckURL(o.ReturnURL); err != nil {
			return nil, fmt.Errorf("stripe: return_url: %w", err)
		}
	}
	return &Processor{api: c, client: c.SDK, returnURL: o.ReturnURL}, nil
}

// API returns the processor's Client, so that other packages can share its request budget.
func (p *Processor) API() *api.Client { return p.api }

// Close closes idle connections. It never fails.
func (p *Processor) Close() error {
	p.api.Close()
	return nil
}

// Options configure a Processor. Parse reads some of them from a text.
type Options struct {
	API       api.Options
	ReturnURL string // address to which customers return from Stripe's pages, http or https; "": no pages
}

// Parse reads stripe, stripe: or stripe:?PARAMETERS. The parameters are rate (requests a second to
// each endpoint) and return_url (the address to which customers return from Stripe's pages). The API
// key is not a parameter, because other users can see command lines. Errors do not contain text that
// may be a key.
func Parse(text string) (Options, error) {
	rest, ok := strings.CutPrefix(text, "stripe")
	query, hasQuery := strings.CutPrefix(rest, ":?")
	if !ok || !hasQuery && rest != "" && rest != ":" {
		return Options{}, errors.New("processor: must be stripe, stripe: or stripe:?PARAMETERS, and nothing more; set the " +
			"API key in the environment or in a file")
	}
	if !hasQuery {
		query = ""
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return Options{}, errors.New("processor stripe: the parameters are malformed; they must look like " +
			"stripe:?rate=20&return_url=https://example.com/thanks")
	}
	var o Options
	for name, list := range values {
		if len(list) > 1 {
			return Options{}, fmt.Errorf("processor stripe: parameter %s appears %d times", api.Quote(name), len(list))
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
			return fmt.Errorf("parameter rate must be a whole number from 1 to %d (got %s)", api.MaxRate, api.Quote(value))
		}
		o.API.Rate = n
	case "return_url":
		if err := api.CheckURL(value); err != nil {
			return fmt.Errorf("parameter return_url: %w", err)
		}
		o.ReturnURL = value
	case "key", "api_key", "apikey", "secret", "secret_key", "token":
		return fmt.Errorf("parameter %s: others could see an API key here; set it in the environment "+
			"or in a file", name)
	default:
		return fmt.Errorf("unknown parameter %s; must be rate or return_url", api.Quote(name))
	}
	return nil
}

// CheckConnected implements processor.Platform. It returns ErrInvalid if at is not an account ID,
// or if it is our own account, whose payments would be listed twice. It returns ErrAccountRefused
// if the account is not connected to us.
func (p *Processor) CheckConnected(ctx context.Context, at string) error {
	if err := api.CheckID("connected account", at, "acct_"); err != nil {
		return err
	}
	own, err := p.api.AccountID(ctx, "")
	if err != nil {
		return err
	}
	if at == own {
		return api.Unsent("%s is the platform's own Stripe account, which cannot be connected to itself; to charge there, "+
			"name no account", at)
	}
	got, err := p.api.AccountID(ctx, at)
	if err == nil && got != at {
		return api.Unusable("account", "requested %s, but Stripe returned %s", at, got)
	}
	return err
}

// Connected implements processor.Platform. It omits disconnected accounts.
func (p *Processor) Connected(ctx context.Context) iter.Seq2[string, error] {
	return list(p.rows(ctx, "/v1/accounts", processor.ListRequest{}), api.IDOf)
}

// Identity implements processor.Identified. It fetches the account from Stripe and returns a text
// such as "stripe acct_123 test".
func (p *Processor) Identity(ctx context.Context) (string, error) {
	id, live, err := p.api.Own(ctx)
	if err != nil {
		return "", err
	}
	return "stripe " + id + " " + api.Mode(live), nil
}

// rows yields the objects of a list for a request. The pairs are further parameters.
func (p *Processor) rows(ctx context.Context, path string, r processor.ListRequest,
	pairs ...string) iter.Seq2[json.RawMessage, error] {
	query := api.CreatedBetween(r.Since, r.Until)
	if r.Customer != "" {
		query.Set("customer", r.Customer)
	}
	for i := 0; i < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	if err := checkList(r); err != nil {
		return sequence.Fail[json.RawMessage](err)
	}
	return p.api.Rows(ctx, r.At, path, query, nil)
}

func checkList(r processor.ListRequest) error {
	if r.Customer == "" {
		return api.CheckAt(r.At)
	}
	return cmp.Or(api.CheckID("customer", r.Customer, "cus_"), api.CheckAt(r.At))
}

// list yields the results of read for each object. It ends at the first error.
func list[S, T any](rows iter.Seq2[json.RawMessage, error], read func(*S) (T, error)) iter.Seq2[T, error] {
	return sequence.Map(rows, func(raw json.RawMessage) (v T, err error) {
		object := new(S)
		if json.Unmarshal(raw, object) != nil {
			return v, api.Unusable("list", "Stripe returned an object that cannot be decoded")
		}
		return read(object)
	})
}

// whole reads an object as it is.
func whole[S any](object *S) (*S, error) { return object, nil }
