// Package apitest provides the scripted Stripe server for the tests of internal/stripe. It does not
// validate the responses.
package apitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/test/stripetest"
	"github.com/duesday/duesday/stripefake"
)

// Key is a key of the form that Stripe's have; it opens nothing.
const Key = "sk_test_51NotARealKey"

// A Reply is a scripted answer.
type Reply struct {
	Status int // 0: the connection breaks
	Body   string
	Header map[string]string
	Check  func(Seen) // of the request that it answers, or nil
}

// A Seen is a request as it came.
type Seen struct {
	Method, Path string
	Form         url.Values // of the query or the body
	Header       http.Header
	At           time.Time
}

// A Script answers requests in order, and keeps them. Always answers all that follow.
type Script struct {
	T      *testing.T
	Always func(Seen) Reply

	mu      sync.Mutex
	Replies []Reply
	got     []Seen
}

// NewScript returns a Script of the replies. The test fails if one is never asked for.
func NewScript(t *testing.T, replies ...Reply) *Script {
	s := &Script{T: t, Replies: replies}
	t.Cleanup(func() {
		if len(s.Replies) > 0 {
			t.Errorf("%d replies were never asked for; the first is %.200s", len(s.Replies), s.Replies[0].Body)
		}
	})
	return s
}

func (s *Script) answer(r *http.Request) Reply {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.T.Errorf("reading a request: %v", err)
	}
	form, err := url.ParseQuery(string(body) + r.URL.RawQuery)
	if err != nil {
		s.T.Errorf("the form of %s cannot be read: %v", r.URL.Path, err)
	}
	got := Seen{r.Method, r.URL.Path, form, r.Header, time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, got)
	if len(s.Replies) == 0 && s.Always != nil {
		return s.Always(got)
	}
	if len(s.Replies) == 0 {
		s.T.Errorf("nobody expected %s %s %v", r.Method, r.URL.Path, form)
		return Reply{Status: 599}
	}
	next := s.Replies[0]
	s.Replies = s.Replies[1:]
	if next.Check != nil {
		next.Check(got)
	}
	return next
}

func (s *Script) Requests() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got
}

// RoundTrip answers without a connection, so that time can be the test's.
func (s *Script) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	canonical := http.Header{}
	for k, v := range r.Header {
		canonical[http.CanonicalHeaderKey(k)] = v
	}
	r = r.Clone(r.Context())
	r.Header = canonical
	a := s.answer(r)
	if a.Status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	w := httptest.NewRecorder()
	for k, v := range a.Header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(a.Status)
	_, _ = io.WriteString(w, a.Body)
	return w.Result(), nil
}

// Now is the clock of the tests' processors: a quarter to midnight on a leap day.
var Now = time.Date(2028, 2, 29, 23, 45, 0, 0, time.UTC)

// Object makes a JSON object of base and the changes to it.
func Object(base map[string]any, changes ...map[string]any) string {
	o := maps.Clone(base)
	for _, c := range changes {
		maps.Copy(o, c)
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // unreachable: the tests' own literals
	}
	return string(text)
}

type Fields = map[string]any

// ClientSecret is in every answer that has one at Stripe: it must come out nowhere.
const ClientSecret = "pi_1_secret_Hush123"

func IntentFields() Fields {
	return Fields{"id": "pi_1", "object": "payment_intent", "amount": 1299, "currency": "usd", "livemode": false,
		"created": 1000, "status": "requires_confirmation", "client_secret": ClientSecret, "metadata": Fields{
			"duesday_installation": "inst", "duesday_account": "acme", "duesday_subscription": "sub", "duesday_sku": "gold",
			"duesday_period": "3", "duesday_generation": "1"}}
}

// ChargeFields returns the fields of a charge, with the changes.
func ChargeFields(id string, changes ...Fields) Fields {
	c := Fields{"id": id, "object": "charge", "created": 5000, "amount": 1299, "currency": "usd"}
	for _, change := range changes {
		maps.Copy(c, change)
	}
	return c
}

func OK(body string) Reply { return Reply{Status: 200, Body: body} }

func OKIntent(changes ...Fields) Reply { return OK(Object(IntentFields(), changes...)) }

// Fails answers with an error of Stripe's.
func Fails(status int, e Fields) Reply {
	return Reply{Status: status, Body: Object(Fields{"error": e}), Header: map[string]string{"Request-Id": "req_1"}}
}

func List(more bool, items ...string) Reply {
	return OK(fmt.Sprintf(`{"object":"list","url":"/v1/x","has_more":%t,"data":[%s]}`, more, strings.Join(items, ",")))
}

func USD(t *testing.T, minor int64) money.Amount { return Money(t, "USD", minor) }

// Money returns the amount of minor units of the currency.
func Money(t interface{ Fatal(...any) }, code string, minor int64) money.Amount {
	c, err := money.ParseCurrency(code)
	if err != nil {
		t.Fatal(err)
	}
	return money.New(minor, c)
}

// Hush fails the test if the text shows a key or a card number.
func Hush(t *testing.T, text string) {
	t.Helper()
	for _, s := range []string{Key, "Hush123", "4242424242424242", "4242 4242"} {
		if strings.Contains(text, s) {
			t.Errorf("this shows %q: %s", s, text)
		}
	}
}

// WantError fails the test unless err is want, or if its text shows a key or a card number.
func WantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
	if err != nil {
		Hush(t, err.Error())
	}
}

// Log returns a log in which no secret may be.
func Log(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(watched{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type watched struct{ t *testing.T }

func (w watched) Write(line []byte) (int, error) {
	Hush(w.t, string(line))
	return len(line), nil
}

// NewFake starts a fake of Stripe, held against its specification, and returns the address.
func NewFake(t *testing.T) (base string, fake *stripefake.Fake) {
	t.Helper()
	fake = stripefake.New(stripefake.Options{Now: func() time.Time { return Now }})
	server := httptest.NewServer(stripetest.Load(t).Watch(t, fake))
	t.Cleanup(func() {
		server.Close()
		if err := fake.Close(); err != nil {
			t.Error(err)
		}
	})
	return server.URL, fake
}
