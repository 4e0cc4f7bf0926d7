package stripefake

import (
	"cmp"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/billing"
	"github.com/duesday/duesday/stripefake/internal/page"
)

// Options configure a Fake. The zero value is a fake without faults. Now and Real default to time.Now,
// Keys to DefaultKeys, Transport to http.DefaultTransport, Log to a logger that discards.
type Options struct {
	Now       func() time.Time  // the base of the fake's clock
	Real      func() time.Time  // the clock that measures the rate limit and the pauses between webhooks
	Keys      []Key             // the valid API keys
	Webhooks  []Webhook         // endpoints of DefaultAccount that receive all event types in both modes
	Connected []string          // accounts that are connected to DefaultAccount from the start, as in CheckAccount
	Transport http.RoundTripper // sends the webhooks
	Log       *slog.Logger
	Events    EventForm // the form of events; "" is SnapshotEvents
	Faults              // the faults at the start
}

// Check returns an error if New cannot use the options.
func (o Options) Check() error {
	err := cmp.Or(o.Faults.Check(), o.Events.Check())
	for _, hook := range o.Webhooks {
		err = cmp.Or(err, CheckURL(hook.URL), hook.Events.Check())
	}
	for _, id := range o.Connected {
		err = cmp.Or(err, CheckAccount(id))
	}
	return err
}

// A Key is an API key of the fake.
type Key struct {
	Secret  string   // sk_test_…, rk_test_…, sk_live_… or rk_live_…; the prefix sets the mode
	Account string   // the account that the key opens: acct_…
	Refused []string // requests that the key may not send: "/v1/refunds" or "POST /v1/customers"
}

// A Webhook is an endpoint that receives events.
type Webhook struct {
	URL     string    // http://… or https://…
	Secret  string    // whsec_…; signs the endpoint's webhooks
	Connect bool      // receives the events of connected accounts instead of the account's own
	Events  EventForm // the form that the endpoint receives; "" is every form that the fake makes
}

const (
	NewestVersion  = api.NewestVersion  // the API version of accounts whose version is not set
	DefaultAccount = api.DefaultAccount // the account of DefaultKeys
)

// DefaultKeys returns the keys of a fake without Options.Keys. They are not secrets.
func DefaultKeys() []Key {
	return []Key{
		{Secret: "sk_test_duesday", Account: DefaultAccount},
		{Secret: "sk_live_duesday", Account: DefaultAccount},
		{Secret: "rk_test_duesday", Account: DefaultAccount},
	}
}

// A Fake is an http.Handler that serves Stripe's API. It is safe for concurrent use, and carries out
// one request at a time.
type Fake struct {
	api     *api.Fake
	control http.Handler
	pages   http.Handler
}

// New returns a Fake. The options must pass Check. Call Close if the fake has webhooks.
func New(o Options) *Fake {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Real == nil {
		o.Real = time.Now
	}
	if o.Keys == nil {
		o.Keys = DefaultKeys()
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	inner := api.Options{Now: o.Now, Real: o.Real, Connected: o.Connected, Transport: o.Transport, Log: o.Log,
		Events: api.EventForm(o.Events), Faults: api.Faults(o.Faults), Resources: billing.Resources()}
	for _, k := range o.Keys {
		inner.Keys = append(inner.Keys, api.Key(k))
	}
	f := &Fake{api: api.New(inner)}
	f.control, f.pages = f.controls(), page.Handler(f.api)
	for _, hook := range o.Webhooks {
		f.api.AddWebhook(hook.URL, hook.Secret, hook.Connect, api.EventForm(hook.Events))
	}
	return f
}

// ServeHTTP serves the API under /v1 and /v2, the control API under /_fake, and pages for customers
// under every other path.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/v1/"), strings.HasPrefix(path, "/v2/"):
		f.api.ServeHTTP(w, r)
	case path == "/_fake" || strings.HasPrefix(path, "/_fake/"):
		f.serveControl(w, r)
	default:
		f.pages.ServeHTTP(w, r)
	}
}

// Close stops sending webhooks. Webhooks that were not delivered are lost.
func (f *Fake) Close() error { return f.api.Close() }

// CheckURL returns an error if the fake cannot send webhooks to the URL.
func CheckURL(text string) error { return api.CheckURL(text) }

// CheckAccount returns an error unless the text is an account's id: acct_ and letters or digits.
func CheckAccount(id string) error { return api.CheckAccount(id) }

// Signature returns a webhook's Stripe-Signature header at the given time, with one v1 signature for
// each secret.
func Signature(at time.Time, payload []byte, secrets ...string) string {
	return api.Signature(at, payload, secrets...)
}

// TB is the part of testing.TB that Start needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// A Server runs a Fake on its own port and holds the values that a Stripe library needs.
type Server struct {
	*Fake
	URL           string // the library's base URL: http://127.0.0.1:PORT
	Key           string // the API key, in test mode
	WebhookSecret string // the signing secret of SendWebhooks
}

// Start starts a fake that stops when the test ends.
func Start(t TB) *Server {
	t.Helper()
	return StartWith(t, Options{})
}

// StartWith is Start with options. Server.Key is the first of Options.Keys, if any.
func StartWith(t TB, o Options) *Server {
	t.Helper()
	if err := o.Check(); err != nil {
		t.Fatalf("stripefake: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("stripefake: %v", err)
	}
	s := &Server{Fake: New(o), URL: "http://" + l.Addr().String(), Key: "sk_test_duesday",
		WebhookSecret: "whsec_stripefake"} // no secrets
	if len(o.Keys) > 0 {
		s.Key = o.Keys[0].Secret
	}
	server := &http.Server{Handler: s.Fake, ReadHeaderTimeout: time.Minute}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = server.Serve(l) // it ends by Close
	}()
	t.Cleanup(func() {
		_ = server.Close() // the test has ended
		<-stopped
		_ = s.Close()
	})
	return s
}

// SendWebhooks sends DefaultAccount's events to the URL from now on: all types, in both modes, signed
// with s.WebhookSecret. The receiver may start later, because the fake sends refused webhooks again.
func (s *Server) SendWebhooks(url string) error {
	if err := CheckURL(url); err != nil {
		return err
	}
	s.api.AddWebhook(url, s.WebhookSecret, false, "")
	return nil
}
