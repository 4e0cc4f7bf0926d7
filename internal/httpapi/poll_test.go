package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
)

var givenPoll = secret.New("0123456789abcdef0123456789abcdef")

// polled is the world with pollers: marks are noted, and an event is Stripe's if it is evt_1.
func polled(w *world, o *httpapi.Options) {
	o.Poll = httpapi.Poll{Given: givenPoll,
		Event: func(_ context.Context, body []byte, connect bool) ([]byte, error) {
			w.note("asked, connect %v", connect)
			if string(body) == "down" {
				return nil, errors.New("Stripe is away")
			} else if string(body) != eventBody {
				return nil, fmt.Errorf("%w: Stripe has no event with this ID", tracking.ErrBody)
			}
			return []byte("as Stripe has it"), nil
		},
		Mark: func(_ context.Context, at string, p tracking.PollState) error {
			w.note("mark %s %s %d %q %v", at, p.Through.Format(time.RFC3339), p.Quiet, p.Error, p.Thin)
			if p.Through.After(w.now) {
				return field.Wrong("verified_through", "must not be ahead of Stripe's clock")
			}
			return nil
		}}
}

// TestHook_Pollers: events of a poller elsewhere are taken as Stripe has them, and do not count as a
// signature of Stripe's.
func TestHook_Pollers(t *testing.T) {
	w := newWorld()
	var bodies, told []string
	w.take = func(_ context.Context, body []byte, from tracking.Origin) (tracking.Verdict, error) {
		bodies = append(bodies, fmt.Sprintf("%s %s %v", from.Source, body, from.Connect))
		return tracking.Verdict{Event: "evt_1"}, nil
	}
	o := w.options()
	polled(w, &o)
	o.Signed = func(path string, good bool) { told = append(told, fmt.Sprint(path, good)) }
	url := newServer(t, httpapi.New(o))
	for _, tt := range []struct {
		path, body string
		key        secret.Text
		status     int
		taken      string
	}{
		{platformPath, eventBody, newSecret, 200, "webhook " + eventBody + " false"},
		{connectPath, eventBody, givenPoll, 200, "poll as Stripe has it true"},
		{platformPath, `{"id":"evt_forged"}`, givenPoll, 400, ""},
		{platformPath, "down", givenPoll, 503, ""},
		{platformPath, eventBody, secret.New(apiKey), 400, ""},
	} {
		bodies = nil
		a := do(t, request(t, "POST", url+tt.path, tt.body, "Stripe-Signature", signed(w, tt.body, tt.key)))
		if got := strings.Join(bodies, ", "); a.status != tt.status || got != tt.taken {
			t.Errorf("%s: got %d %s, %q was taken, want %d, %q", tt.body, a.status, a.text, got, tt.status, tt.taken)
		}
	}
	if want := platformPath + "true " + platformPath + "false"; strings.Join(told, " ") != want {
		t.Errorf("told of %q, want %s", told, want)
	}
}

// TestHook_NoSecret: an endpoint without any secret takes nothing, also not what the empty one signed.
func TestHook_NoSecret(t *testing.T) {
	w := newWorld()
	o := w.options()
	polled(w, &o)
	o.Poll.Given, o.Hooks[0].Secrets = secret.Text{}, nil
	url := newServer(t, httpapi.New(o))
	for _, key := range []secret.Text{{}, newSecret, givenPoll, secret.New(apiKey)} {
		if a := do(t, request(t, "POST", url+platformPath, eventBody, "Stripe-Signature", signed(w, eventBody, key))); a.status/100 != 4 {
			t.Errorf("got %d %s", a.status, a.text)
		}
	}
}

func TestPoll_Marks(t *testing.T) {
	w := newWorld()
	o := w.options()
	polled(w, &o)
	url := newServer(t, httpapi.New(o))
	ok := `{"stripe_account":"acct_1","verified_through":"2026-11-21T11:00:00Z","quiet":3,"error":"a\nline","thin":true}`
	for _, tt := range []struct {
		method, body string
		key          secret.Text
		status       int
		code, field  string
	}{
		{"POST", ok, givenPoll, 200, "", ""},
		{"POST", strings.Replace(ok, "21T11", "22T11", 1), givenPoll, 422, "field", "verified_through"},
		{"POST", `{"stripe_account":"acct 1"}`, givenPoll, 422, "field", "stripe_account"},
		{"POST", `{"stripe_account":"acct_1","quiet":-1}`, givenPoll, 422, "field", "quiet"},
		{"POST", `{"stripe_account":"acct_1","swept":"2026-11-21T11:00:00Z"}`, givenPoll, 422, "field", "#"},
		{"POST", ok + ok, givenPoll, 400, "json", ""},
		{"POST", ok, newSecret, 400, "signature", ""},
		{"POST", ok, secret.New(apiKey), 400, "signature", ""},
		{"POST", ok, secret.Text{}, 400, "signature", ""},
		{"GET", "", givenPoll, 405, "method", ""},
	} {
		signature := ""
		if !tt.key.IsZero() {
			signature = event.Sign([]byte(tt.body), tt.key, w.now)
		}
		a := do(t, request(t, tt.method, url+httpapi.PollPath, tt.body, "Stripe-Signature", signature, "Authorization",
			"Bearer "+apiKey))
		if a.status != tt.status || a.code != tt.code || a.field != tt.field {
			t.Errorf("%s: got %d %s, want %d %s %s", tt.body, a.status, a.text, tt.status, tt.code, tt.field)
		}
	}
	if got, want := strings.Join(w.calls(), "\n"), `mark acct_1 2026-11-21T11:00:00Z 3 "a\\u000aline" true`+"\n"+
		`mark acct_1 2026-11-22T11:00:00Z 3 "a\\u000aline" true`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	o.Poll.Given = secret.Text{}
	url = newServer(t, httpapi.New(o))
	if a := do(t, request(t, "POST", url+httpapi.PollPath, ok, "Stripe-Signature", signed(w, ok, newSecret))); a.status != 404 {
		t.Errorf("a mark without a given secret: got %d", a.status)
	}
}

// TestInternal_IsGone: nothing answers below /internal, with any key, signature and method. It reported
// payments that had never been made.
func TestInternal_IsGone(t *testing.T) {
	w := newWorld()
	o := w.options()
	polled(w, &o)
	url := newServer(t, httpapi.New(o))
	body := `{"object":{"id":"pi_1","object":"payment_intent","status":"succeeded"}}`
	for _, path := range []string{"/internal", "/internal/", "/internal/objects", "/internal/events", "/internal/poll",
		"/internal/accounts", "/internal/purchases", "/v1/../internal/objects", "//internal/objects", "/hooks/../internal/objects"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT"} {
			for _, key := range []string{"", apiKey, newSecret.Reveal(), givenPoll.Reveal()} {
				r := request(t, method, url, body, "Authorization", "Bearer "+key, "Content-Type", "application/json",
					"Stripe-Signature", signed(w, body, secret.New(key)))
				r.URL.Opaque = "//" + r.URL.Host + path // as it is
				a, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				keyless := strings.HasPrefix(path, "/v1/") && a.StatusCode == http.StatusUnauthorized
				if a.Body.Close(); a.StatusCode != http.StatusNotFound && !keyless {
					t.Errorf("%s %s with %q: got %d, want 404", method, path, key, a.StatusCode)
				}
			}
		}
	}
	if len(w.calls())+len(w.origins()) != 0 {
		t.Errorf("asked %v, took %v", w.calls(), w.origins())
	}
}
