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

// Options configure a Fake. The zero value configures a fake without faults.
type Options struct {
	Now       func() time.Time  // the base of the fake's clock; the default is time.Now
	Real      func() time.Time  // the clock for the rate limit and for the pauses between webhook attempts; the default is time.Now
	Keys      []Key             // the API keys that the fake accepts; the default is DefaultKeys
	Webhooks  []Webhook         // endpoints of DefaultAccount that receive all event types in both modes
	Connected []string          // IDs of accounts that are connected to DefaultAccount from the start
	Transport http.RoundTripper // sends the webhooks; the default is http.DefaultTransport
	Log       *slog.Logger      // receives the fake's log; the default discards it
	Events    EventForm         // the form of events; the default is SnapshotEvents
	Faults                      // the initial faults
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

// A Key is an API key that the fake accepts.
type Key struct {
	Secret  string   // sk_test_…, rk_test_…, sk_live_… or rk_live_…; the prefix sets the mode
	Account string   // the account that the key belongs to: acct_…
	Refused []string // requests that the key is not allowed to send: "/v1/refunds" or "POST /v1/customers"
}

// A Webhook is a webhook endpoint that receives events.
type Webhook struct {
	URL     string    // http://… or https://…
	Secret  string    // whsec_…; signs the endpoint's webhooks
	Connect bool      // receives the events of connected accounts instead of the account's own
	Events  EventForm // the form of the events that the endpoint receives; the default is every form that the fake emits
}

const (
	NewestVersion  = api.NewestVersion  // the newest API version that the fake supports, and the default of every account
	DefaultAccount = api.DefaultAccount // the account that DefaultKeys belong to
)

// DefaultKeys returns the API keys that a fake accepts if Options.Keys is nil. They are not secret.
func DefaultKeys() []Key {
	return []Key{
		{Secret: "sk_test_duesday", Account: DefaultAccount},
		{Secret: "sk_live_duesday", Account: DefaultAccount},
		{Secret: "rk_test_duesday", Account: DefaultAccount},
	}
}

// A Fake is an http.Handler that serves Stripe's API. It is safe for concurrent use, but executes one
// request at a time.
type Fake struct {
	api     *api.Fake
	control http.Handler
	pages   http.Handler
}

// New returns a Fake with the given options, which must pass Options.Check. If the fake sends webhooks,
// the caller must call Close.
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

// ServeHTTP serves Stripe's API under /v1 and /v2, the control API under /_fake, and customer pages
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

// Close stops sending webhooks and returns nil. Webhooks that were not delivered are lost.
func (f *Fake) Close() error { return f.api.Close() }

// CheckURL returns an error unless text is an http or https URL to which the fake can send webhooks.
func CheckURL(text string) error { return api.CheckURL(text) }

// CheckAccount returns an error unless id is a valid account ID: acct_ followed by letters and digits.
func CheckAccount(id string) error { return api.CheckAccount(id) }

// Signature returns the Stripe-Signature header for a webhook with the given payload. The header contains
// the timestamp at and one v1 signature for each secret.
func Signature(at time.Time, payload []byte, secrets ...string) string {
	return api.Signature(at, payload, secrets...)
}

// TB is the subset of testing.TB that Start uses.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// A Server runs a Fake on its own port and holds the URL and key that a Stripe library needs.
type Server struct {
	*Fake
	URL           string // the base URL for the library: http://127.0.0.1:PORT
	Key           string // an API key for the library: the first of Options.Keys, or a default test-mode key
	WebhookSecret string // the signing secret of the webhooks that SendWebhooks enables
}

// Start runs a fake on a free local port until the test ends. It fails the test if it cannot listen.
func Start(t TB) *Server {
	t.Helper()
	return StartWith(t, Options{})
}

// StartWith is Start with options. Server.Key is the first key in o.Keys, or a default key if
// o.Keys is nil. It fails the test if the options are invalid.
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

// SendWebhooks makes the fake send all later events of DefaultAccount to url, in both modes. The fake
// signs them with s.WebhookSecret. The receiver may start later, because the fake retries failed
// webhooks. SendWebhooks returns an error if url does not pass CheckURL.
func (s *Server) SendWebhooks(url string) error {
	if err := CheckURL(url); err != nil {
		return err
	}
	s.api.AddWebhook(url, s.WebhookSecret, false, "")
	return nil
}
