package stripe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/secret"
)

// DefaultBase is the address of Stripe's API.
const DefaultBase = "https://api.stripe.com"

// DefaultRate is how many requests a second are sent to one endpoint: Stripe allows 25.
const DefaultRate = 20

const maxRate = 1000

// Options say how Stripe is reached. Parse reads some of them from a text; Key is needed.
type Options struct {
	Key       secret.Text      // sk_test_…, rk_test_…, sk_live_… or rk_live_…
	Base      string           // address of the API; "": DefaultBase
	Now       func() time.Time // for what is recorded; nil: time.Now. Requests are spaced by the machine's own clock
	Log       *slog.Logger     // nil: nothing is logged
	Rate      int              // requests a second to each endpoint, 1 to 1000; 0: DefaultRate
	ReturnURL string           // where customers come back to from Stripe's pages, http or https; "": there are no such pages

	Proxy     func(*http.Request) (*url.URL, error) // as in http.Transport; nil: none
	Transport http.RoundTripper                     // nil: our own, with Proxy
}

// A Processor is Stripe, as billing.Processor, billing.Wallet, billing.Refunder,
// billing.Platform and billing.Identified have it. It is safe for concurrent use, and all requests made through
// it share one budget.
type Processor struct {
	client    *sdk.Client
	http      *http.Client
	budget    *budget
	now       func() time.Time
	log       *slog.Logger
	live      bool
	returnURL string
}

var (
	_ billing.Processor  = (*Processor)(nil)
	_ billing.Wallet     = (*Processor)(nil)
	_ billing.Refunder   = (*Processor)(nil)
	_ billing.Platform   = (*Processor)(nil)
	_ billing.Identified = (*Processor)(nil)
)

// New returns a Processor. It sends nothing yet. No error repeats the key.
func New(o Options) (*Processor, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	live, err := modeOf(o.Key)
	if err != nil {
		return nil, err
	}
	if err := checkClear(o.Base, live); err != nil {
		return nil, err
	}
	client := newClient(o.Transport, o.Proxy)
	base := strings.TrimSuffix(o.Base, "/")
	backends := sdk.NewBackendsWithConfig(&sdk.BackendConfig{
		HTTPClient: client, URL: &base, MaxNetworkRetries: new(int64(0)), EnableTelemetry: new(false), LeveledLogger: silent{},
	})
	b := newBudget(o.Rate)
	backends.API = &sender{next: backends.API, budget: b, now: o.Now, log: o.Log, cutoffs: map[string]time.Time{}}
	return &Processor{client: sdk.NewClient(o.Key.Reveal(), sdk.WithBackends(backends)), http: client, budget: b,
		now: o.Now, log: o.Log, live: live, returnURL: o.ReturnURL}, nil
}

// fill puts in the defaults and refuses what cannot be.
func (o *Options) fill() error {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Base == "" {
		o.Base = DefaultBase
	}
	if o.Rate == 0 {
		o.Rate = DefaultRate
	}
	if o.Rate < 1 || o.Rate > maxRate {
		return fmt.Errorf("stripe: rate %d: want 1 to %d requests a second", o.Rate, maxRate)
	}
	if err := checkURL(o.Base); err != nil {
		return fmt.Errorf("stripe: address of the API: %w", err)
	}
	if u, err := url.Parse(o.Base); err != nil || strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "" || u.ForceQuery { // the library builds on it
		return errors.New("stripe: address of the API: want a host, and a port at most, such as " + DefaultBase)
	}
	if o.ReturnURL != "" {
		if err := checkURL(o.ReturnURL); err != nil {
			return fmt.Errorf("stripe: return_url: %w", err)
		}
	}
	return nil
}

// modeOf tells the mode that the key is for. Its error does not repeat the key.
func modeOf(key secret.Text) (live bool, err error) {
	if key.IsZero() {
		return false, errors.New("stripe: there is no API key: want one that begins with rk_test_, sk_test_, rk_live_ or sk_live_")
	}
	for _, kind := range []string{"sk_", "rk_"} {
		if isID(key.Reveal(), kind+"test_") {
			return false, nil
		}
		if isID(key.Reveal(), kind+"live_") {
			return true, nil
		}
	}
	return false, errors.New("stripe: this is no secret or restricted API key: want one that begins with rk_test_, sk_test_, rk_live_ or sk_live_")
}

// checkClear keeps a live key off a line that others can read.
func checkClear(base string, live bool) error {
	u, err := url.Parse(base)
	if err != nil || !live || u.Scheme == "https" {
		return err
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip.IsLoopback() {
		return nil
	}
	return errors.New("stripe: address of the API: a live key is sent by https alone, or within this machine")
}

// Close lets go of idle connections.
func (p *Processor) Close() error {
	p.http.CloseIdleConnections()
	return nil
}

// silent is the logger of Stripe's library, which logs whole answers, with the secrets in
// them. What is worth knowing is in the errors.
type silent struct{}

func (silent) Debugf(context.Context, string, ...any) {}
func (silent) Infof(context.Context, string, ...any)  {}
func (silent) Warnf(context.Context, string, ...any)  {}
func (silent) Errorf(context.Context, string, ...any) {}
