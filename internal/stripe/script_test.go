package stripe

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

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/secret"
)

// testKey is a key of the form that Stripe's have; it opens nothing.
const testKey = "sk_test_51NotARealKey"

// A reply is a scripted answer.
type reply struct {
	status int // 0: the connection breaks
	body   string
	header map[string]string
	delay  time.Duration
	check  func(seen) // of the request that it answers, or nil
}

// A seen is a request as it came.
type seen struct {
	method, path string
	form         url.Values // of the query or the body
	header       http.Header
	at           time.Time
}

// A script answers requests in the order written down, and keeps them. With always set, all
// that follow are answered by it.
type script struct {
	t      *testing.T
	always func(seen) reply

	mu      sync.Mutex
	replies []reply
	got     []seen
}

func newScript(t *testing.T, replies ...reply) *script {
	s := &script{t: t, replies: replies}
	t.Cleanup(func() {
		if len(s.replies) > 0 {
			t.Errorf("%d replies were never asked for; the first is %.200s", len(s.replies), s.replies[0].body)
		}
	})
	return s
}

func (s *script) answer(r *http.Request) reply {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Errorf("reading a request: %v", err)
	}
	form, err := url.ParseQuery(string(body) + r.URL.RawQuery)
	if err != nil {
		s.t.Errorf("the form of %s cannot be read: %v", r.URL.Path, err)
	}
	got := seen{r.Method, r.URL.Path, form, r.Header, monotonic()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, got)
	if len(s.replies) == 0 && s.always != nil {
		return s.always(got)
	}
	if len(s.replies) == 0 {
		s.t.Errorf("nobody expected %s %s %v", r.Method, r.URL.Path, form)
		return reply{status: 599}
	}
	next := s.replies[0]
	s.replies = s.replies[1:]
	if next.check != nil {
		next.check(got)
	}
	return next
}

func (s *script) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got
}

// ServeHTTP answers over a real connection.
func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := s.answer(r)
	if a.status == 0 {
		panic(http.ErrAbortHandler)
	}
	for k, v := range a.header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

// RoundTrip answers without a connection, so that time can be the test's.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
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
	if err := pause(r.Context(), a.delay); err != nil {
		return nil, err
	}
	if a.status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	w := httptest.NewRecorder()
	for k, v := range a.header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
	return w.Result(), nil
}

// testNow is the clock of the tests' processors: a quarter to midnight on a leap day.
var testNow = time.Date(2028, 2, 29, 23, 45, 0, 0, time.UTC)

// processor returns a Processor that the script answers.
func processor(t *testing.T, s *script, change ...func(*Options)) *Processor {
	t.Helper()
	o := Options{Key: secret.New(testKey), Transport: s, Rate: maxRate, Now: func() time.Time { return testNow }, Log: slog.New(&watched{t: t})}
	for _, c := range change {
		c(&o)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// object makes a JSON object of base and what is different.
func object(base map[string]any, changes ...map[string]any) string {
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

type fields = map[string]any

// clientSecret is in every answer that has one at Stripe: it must come out nowhere.
const clientSecret = "pi_1_secret_Hush123"

func intentFields() fields {
	return fields{"id": "pi_1", "object": "payment_intent", "amount": 1299, "currency": "usd", "livemode": false, "created": 1000,
		"status": "requires_confirmation", "client_secret": clientSecret, "metadata": fields{
			"duesday_installation": "inst", "duesday_account": "acme", "duesday_subscription": "sub", "duesday_sku": "gold",
			"duesday_period": "3", "duesday_generation": "1"}}
}

func chargeFields(id string, changes ...fields) fields {
	c := fields{"id": id, "object": "charge", "created": 5000, "amount": 1299, "currency": "usd"}
	for _, change := range changes {
		maps.Copy(c, change)
	}
	return c
}

var testTag = billing.Tag{Installation: "inst", Account: "acme", Subscription: "sub", SKU: "gold", Period: 3, Generation: 1}

func ok(body string) reply { return reply{status: 200, body: body} }

func okIntent(changes ...fields) reply { return ok(object(intentFields(), changes...)) }

// fails answers with an error of Stripe's.
func fails(status int, e fields) reply {
	return reply{status: status, body: object(fields{"error": e}), header: map[string]string{"Request-Id": "req_1"}}
}

func list(more bool, items ...string) reply {
	return ok(fmt.Sprintf(`{"object":"list","url":"/v1/x","has_more":%t,"data":[%s]}`, more, strings.Join(items, ",")))
}

func usd(t *testing.T, minor int64) money.Amount { return amount(t, "USD", minor) }

func amount(t interface{ Fatal(...any) }, code string, minor int64) money.Amount {
	c, err := money.ParseCurrency(code)
	if err != nil {
		t.Fatal(err)
	}
	return money.New(minor, c)
}

// hush fails when the text shows what nobody may see.
func hush(t *testing.T, text string) {
	t.Helper()
	for _, s := range []string{testKey, "Hush123", "4242424242424242", "4242 4242"} {
		if strings.Contains(text, s) {
			t.Errorf("this shows %q: %s", s, text)
		}
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
	if err != nil {
		hush(t, err.Error())
	}
}
