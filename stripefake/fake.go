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

// Options say how a Fake behaves. The zero value is a fake without faults.
type Options struct {
	Now      func() time.Time // the base of the fake's clock; nil: time.Now
	Real     func() time.Time // the clock of the rate limit and of the pauses between webhooks; nil: time.Now
	Keys     []Key            // nil: DefaultKeys
	Webhooks []Webhook        // endpoints of DefaultAccount, for events of every type and both modes
	// Connected are accounts connected to DefaultAccount without an event. Each must pass CheckAccount.
	Connected []string
	// Transport sends the webhooks; nil: http.DefaultTransport.
	Transport http.RoundTripper
	Log       *slog.Logger // nil discards
	Events    EventForm    // in which events are made; "": SnapshotEvents. It must pass Check.
	Faults
}

// A Key is an API key of the fake, and the account that it opens.
type Key = api.Key

// A Webhook is an endpoint for events.
type Webhook struct {
	URL     string    // http or https
	Secret  string    // whsec_…, which signs its webhooks
	Connect bool      // it gets the events of connected accounts instead of the account's own
	Events  EventForm // which it gets of those that are made; "": all
}

// An EventForm is the form of events.
type EventForm = api.EventForm

// The forms of events. At Stripe they follow from the event destinations; here they are an option.
const (
	SnapshotEvents = api.SnapshotEvents // those of API v1, with the object as it was
	ThinEvents     = api.ThinEvents     // those of API v2, which name the object: the v1 list has none
	BothEvents     = api.BothEvents     // two for each change, of which the thin one names the other
)

// The default version of the API, and the account of the default keys.
const (
	NewestVersion  = api.NewestVersion
	DefaultAccount = api.DefaultAccount
)

// DefaultKeys are the keys of a fake without Options.Keys. They are no secrets.
func DefaultKeys() []Key {
	return []Key{
		{Secret: "sk_test_duesday", Account: DefaultAccount},
		{Secret: "sk_live_duesday", Account: DefaultAccount},
		{Secret: "rk_test_duesday", Account: DefaultAccount},
	}
}

// A Fake is Stripe's API. It is safe for concurrent use, and carries out one request at a time.
type Fake struct {
	api     *api.Fake
	control http.Handler
	pages   http.Handler
}

// New returns a Fake. Its faults must pass Check. The caller must close it if it has webhooks.
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
	inner := api.Options{Now: o.Now, Real: o.Real, Keys: o.Keys, Connected: o.Connected, Transport: o.Transport, Log: o.Log,
		Events: o.Events, Faults: o.Faults, Resources: billing.Resources()}
	f := &Fake{api: api.New(inner)}
	f.control, f.pages = f.controls(), page.Handler(f.api)
	for _, hook := range o.Webhooks {
		f.api.AddWebhook(hook.URL, hook.Secret, hook.Connect, hook.Events)
	}
	return f
}

// ServeHTTP serves the API under /v1 and /v2, the control API under /_fake, and the pages elsewhere.
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

// Close stops the sending of webhooks. Undelivered ones are lost.
func (f *Fake) Close() error { return f.api.Close() }

// CheckURL returns an error if webhooks cannot be sent to the URL.
func CheckURL(text string) error { return api.CheckURL(text) }

// CheckAccount returns an error if no account can have the id.
func CheckAccount(id string) error { return api.CheckAccount(id) }

// Signature returns the header Stripe-Signature of a webhook at that time: a v1 for every secret.
func Signature(at time.Time, payload []byte, secrets ...string) string {
	return api.Signature(at, payload, secrets...)
}

// TB is Start's part of testing.TB.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// A Server is a Fake on a port of its own, with the values for a Stripe library.
type Server struct {
	*Fake
	URL           string // for the library's base address: http://127.0.0.1:PORT
	Key           string // the API key, in test mode
	WebhookSecret string // signs the webhooks of SendWebhooks
}

// Start starts a fake for one test, which stops when the test ends.
func Start(t TB) *Server {
	t.Helper()
	return StartWith(t, Options{})
}

// StartWith is Start with options. If they have keys, Server.Key is the first of them.
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

// SendWebhooks sends the events of DefaultAccount, of every type and in both modes, to the
// URL from now on. They are signed with s.WebhookSecret. It may be called before the receiver
// listens: a refused webhook is sent again.
func (s *Server) SendWebhooks(url string) error {
	if err := CheckURL(url); err != nil {
		return err
	}
	s.api.AddWebhook(url, s.WebhookSecret, false, "")
	return nil
}
