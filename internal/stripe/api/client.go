package api

import (
	"cmp"
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

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/secret"
)

// The defaults of Options, and the highest rate.
const (
	DefaultBase = "https://api.stripe.com"
	DefaultRate = 20 // requests a second to one endpoint; Stripe allows 25
	MaxRate     = 1000
)

// Options configure a Client. Key is required.
type Options struct {
	Key  secret.Text      // sk_test_…, rk_test_…, sk_live_… or rk_live_…
	Base string           // address of the API; "": DefaultBase
	Now  func() time.Time // for records; nil: time.Now. The machine's own clock spaces requests
	Log  *slog.Logger     // nil: no log
	Rate int              // requests a second to each endpoint, 1 to maxRate; 0: DefaultRate

	Proxy     func(*http.Request) (*url.URL, error) // as in http.Transport; nil: none
	Transport http.RoundTripper                     // nil: our own, with Proxy
}

// A Client sends requests to Stripe, all under one budget. It is safe for concurrent use.
type Client struct {
	SDK  *sdk.Client // Stripe's library, which sends through this client
	Now  func() time.Time
	Log  *slog.Logger
	live bool // the mode of the key

	http   *http.Client
	sender *sender
}

// New returns a Client without sending a request. Its errors do not contain the key.
func New(o Options) (*Client, error) {
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
	c := newHTTPClient(o.Transport, o.Proxy)
	base := strings.TrimSuffix(o.Base, "/")
	// The library must not log: it logs whole answers with the secrets in them. The errors tell enough.
	backends := sdk.NewBackendsWithConfig(&sdk.BackendConfig{
		HTTPClient: c, URL: &base, MaxNetworkRetries: new(int64(0)), EnableTelemetry: new(false),
		LeveledLogger: &sdk.LeveledLogger{},
	})
	s := &sender{next: backends.API, budget: newBudget(o.Rate), now: o.Now, log: o.Log}
	backends.API = s
	return &Client{SDK: sdk.NewClient(o.Key.Reveal(), sdk.WithBackends(backends)), Now: o.Now, Log: o.Log, live: live,
		http: c, sender: s}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// ClockAhead returns how far Stripe's clock was ahead of Options.Now when Stripe last answered, and
// that time. The time is zero if Stripe has not answered.
func (c *Client) ClockAhead() (ahead time.Duration, at time.Time) { return c.sender.clock.Ahead() }

// KeyRefused reports whether Stripe's last answer refused the key, because it is revoked or
// expired.
func (c *Client) KeyRefused() bool { return c.sender.refused.Load() }

// Silent returns the time since which Stripe has not answered, or has only answered with server errors.
// It is zero if Stripe answered the last request. A reply that does not have Stripe's format, such as a
// proxy's page, does not count as an answer.
func (c *Client) Silent() (since time.Time) {
	if ms := c.sender.silent.Load(); ms != 0 {
		since = time.UnixMilli(ms)
	}
	return since
}

// fill sets the defaults and refuses invalid options.
func (o *Options) fill() error {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Base, o.Rate = cmp.Or(o.Base, DefaultBase), cmp.Or(o.Rate, DefaultRate)
	if o.Rate < 1 || o.Rate > MaxRate {
		return fmt.Errorf("stripe: the rate must be 1 to %[2]d requests per second (got %[1]d)", o.Rate, MaxRate)
	}
	if err := CheckURL(o.Base); err != nil {
		return fmt.Errorf("stripe: the API address %w", err)
	}
	// the library appends paths to it
	if u, err := url.Parse(o.Base); err != nil || strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "" || u.ForceQuery {
		return errors.New("stripe: the API address must contain only a host, and a port if needed, such as " + DefaultBase)
	}
	return nil
}

// modeOf returns the mode of the key. Its error does not repeat the key.
func modeOf(key secret.Text) (live bool, err error) {
	for _, prefix := range []string{"sk_test_", "rk_test_", "sk_live_", "rk_live_"} {
		if IsID(key.Reveal(), prefix) {
			return strings.HasSuffix(prefix, "live_"), nil
		}
	}
	wrong := "this is not a secret or restricted API key"
	if key.IsZero() {
		wrong = "the API key is missing"
	}
	return false, errors.New("stripe: " + wrong + "; it must begin with rk_test_, sk_test_, rk_live_ or sk_live_")
}

// checkClear refuses to send a live key unencrypted beyond this machine.
func checkClear(base string, live bool) error {
	u, err := url.Parse(base)
	if err != nil || !live || u.Scheme == "https" {
		return err
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip.IsLoopback() {
		return nil
	}
	return errors.New("stripe: the API address must begin with https, or be on this machine, because the key is a live key")
}

// CheckMode returns an error if an object has the other mode, because it then comes from an API
// other than the key's.
func (c *Client) CheckMode(id string, live bool) error {
	if live == c.live {
		return nil
	}
	return fmt.Errorf("%w: %s is in %s mode, but the key is in %s mode; check that the API address is Stripe's",
		processor.ErrRefused, id, Mode(live), Mode(c.live))
}

// Mode returns the name of a mode.
func Mode(live bool) string {
	if live {
		return "live"
	}
	return "test"
}

// AccountID fetches the ID of the connected account at, or of our own account if at is empty.
func (c *Client) AccountID(ctx context.Context, at string) (string, error) {
	a, err := c.SDK.V1Accounts.Retrieve(ctx, &sdk.AccountRetrieveParams{Params: Params(at, "")})
	if err != nil {
		return "", err
	}
	return IDOf(a)
}

// IDOf returns the ID of an account, or an error if the object is not an account.
func IDOf(a *sdk.Account) (string, error) {
	if !IsID(a.ID, "acct_") {
		return "", Unusable("account", "Stripe returned a %q with ID %q", a.Object, a.ID)
	}
	return a.ID, nil
}

// Own fetches the ID of the account that the key belongs to, and returns it with the key's mode.
func (c *Client) Own(ctx context.Context) (id string, live bool, err error) {
	id, err = c.AccountID(ctx, "")
	return id, c.live, err
}

// Live reports whether the key is for live mode.
func (c *Client) Live() bool { return c.live }

// Forget lets the next request to a disconnected account through.
func (c *Client) Forget(at string) {
	c.sender.disconnected.Delete(at)
}
