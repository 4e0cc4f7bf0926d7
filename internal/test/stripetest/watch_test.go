package stripetest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// A recorder is a test that may fail without failing the real one.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	errors   []string
	cleanups []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) { r.Errorf("skipped: "+format, args...) }

func (r *recorder) Fatalf(format string, args ...any) { r.Errorf("fatal: "+format, args...) }

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// take returns the errors since the last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.errors = nil }()
	return r.errors
}

// canned answers everything with the same.
type canned struct {
	status int
	body   string
	got    string // the last request's body
}

func (c *canned) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	got, _ := io.ReadAll(q.Body)
	c.got = string(got)
	if c.status != http.StatusOK {
		w.WriteHeader(c.status)
	}
	_, _ = io.WriteString(w, c.body)
}

func post(path, form string, header ...string) *http.Request {
	q := httptest.NewRequest("POST", path, strings.NewReader(form))
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	return q
}

const (
	goodForm   = "amount=5&currency=usd"
	wrongForm  = "amount=5&currency=usd&tip=1"
	wrongParam = "Stripe's specification: POST /v1/payment_intents (status %d): parameter tip is unknown to Stripe"
	refusal    = `{"error":{"type":"invalid_request_error","code":"parameter_unknown","message":"x","param":"tip"}}`
	decline    = `{"error":{"type":"card_error","code":"card_declined","message":"x"}}`
)

func TestWatch(t *testing.T) {
	spec := Load(t)
	good := sample(t, "payment_intent", plain())
	wrong := sample(t, "payment_intent", with("paid", true))
	const invented = "Stripe's specification: POST /v1/payment_intents (status 200): field paid is unknown to Stripe"
	for name, c := range map[string]struct {
		handler canned
		request *http.Request
		want    []string
	}{
		"good":         {canned{status: 200, body: good}, post("/v1/payment_intents", goodForm), nil},
		"wrong answer": {canned{status: 200, body: wrong}, post("/v1/payment_intents", goodForm), []string{invented}},
		"went along": {canned{status: 200, body: good}, post("/v1/payment_intents", wrongForm),
			[]string{fmt.Sprintf(wrongParam, 200)}},
		"went along, 402": {canned{status: 402, body: decline}, post("/v1/payment_intents", wrongForm),
			[]string{fmt.Sprintf(wrongParam, 402)}},
		"refused": {canned{status: 400, body: refusal}, post("/v1/payment_intents", wrongForm), nil},
		"refused badly": {canned{status: 400, body: "{}"}, post("/v1/payment_intents", wrongForm),
			[]string{"Stripe's specification: POST /v1/payment_intents (status 400): field error is missing"}},
		"elsewhere": {canned{status: 200, body: "hello"}, post("/pay/1", "x=y"), nil},
		"old version": {canned{status: 200, body: wrong}, post("/v1/payment_intents", wrongForm, "Stripe-Version",
			"2024-06-20"), nil},
		"new version": {canned{status: 200, body: wrong}, post("/v1/payment_intents", goodForm, "Stripe-Version",
			"2025-03-31.basil"), []string{invented}},
		"no form": {canned{status: 200, body: good}, post("/v1/payment_intents", "{}", "Content-Type",
			"application/json"), []string{"Stripe's specification: POST /v1/payment_intents (status 200): the body is " +
			"application/json; Stripe wants application/x-www-form-urlencoded"}},
		"expand forgotten": {canned{status: 200, body: sample(t, "payment_intent", with("customer", "cus_1"))},
			post("/v1/payment_intents", goodForm+"&expand[]=customer"), []string{"Stripe's specification: POST " +
				"/v1/payment_intents (status 200): field customer is an id, but was asked to be expanded"}},
	} {
		sent, err := io.ReadAll(c.request.Body)
		if err != nil {
			t.Fatal(err)
		}
		c.request.Body = io.NopCloser(strings.NewReader(string(sent)))
		r := &recorder{TB: t}
		w := httptest.NewRecorder()
		spec.Watch(r, &c.handler).ServeHTTP(w, c.request)
		if got := r.take(); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if c.handler.got != string(sent) || w.Code != c.handler.status || w.Body.String() != c.handler.body {
			t.Errorf("%s: the handler got %q for %q; its answer came as %d %q", name, c.handler.got, sent, w.Code, w.Body)
		}
	}
}

// TestWatchSaysItOnce: also when many ask at once, and nothing after the test's end.
func TestWatchSaysItOnce(t *testing.T) {
	spec := Load(t)
	answer := sample(t, "payment_intent", with("paid", true))
	r := &recorder{TB: t}
	handler := spec.Watch(r, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = io.WriteString(w, answer)
	}))
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			q := httptest.NewRequest("GET", fmt.Sprintf("/v1/payment_intents/pi_%d", i), nil)
			handler.ServeHTTP(httptest.NewRecorder(), q)
		})
	}
	all.Wait()
	if got := r.take(); len(got) != 1 {
		t.Errorf("got %q, want one", got)
	}
	for _, f := range r.cleanups {
		f()
	}
	handler.ServeHTTP(httptest.NewRecorder(), post("/v1/payment_intents", wrongForm))
	if got := r.take(); got != nil {
		t.Errorf("after the end: %q", got)
	}
}

// TestWatchLeavesConnectionsAlone: a handler may cut its connection in each of the ways
// that Go has, and what it wrote until then is not held against it.
func TestWatchLeavesConnectionsAlone(t *testing.T) {
	spec := Load(t)
	for name, cut := range map[string]http.HandlerFunc{
		"panic": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "{")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		"hijack": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close()
		},
		"controller": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close()
		},
	} {
		r := &recorder{TB: t}
		server := httptest.NewServer(spec.Watch(r, cut))
		response, err := http.Get(server.URL + "/v1/payment_intents")
		if err == nil {
			_, err = io.ReadAll(response.Body)
			_ = response.Body.Close()
		}
		server.Close()
		if got := r.take(); err == nil || got != nil {
			t.Errorf("%s: error %v, problems %q", name, err, got)
		}
	}
}

func TestWatchRequests(t *testing.T) {
	spec := Load(t)
	wrong := sample(t, "payment_intent", with("paid", true))
	for name, c := range map[string]struct {
		handler canned
		request *http.Request
		want    []string
	}{
		"good": {canned{status: 402, body: decline}, post("/v1/payment_intents", goodForm), nil},
		"refused": {canned{status: 400, body: refusal}, post("/v1/payment_intents", wrongForm),
			[]string{fmt.Sprintf(wrongParam, 400)}},
		"wrong answer": {canned{status: 200, body: wrong}, post("/v1/payment_intents", goodForm), nil},
		"no answer":    {canned{status: 502}, post("/v1/payment_intents", wrongForm), []string{fmt.Sprintf(wrongParam, 502)}},
		"key": {canned{status: 402, body: decline}, post("/v1/payment_intents", goodForm, "Idempotency-Key",
			strings.Repeat("k", 256)),
			[]string{"Stripe's specification: POST /v1/payment_intents (status 402): the header Idempotency-Key is too long"}},
		"old version": {canned{status: 200, body: wrong}, post("/v1/payment_intents", wrongForm, "Stripe-Version",
			"2024-06-20"), nil},
	} {
		r := &recorder{TB: t}
		w := httptest.NewRecorder()
		spec.WatchRequests(r, &c.handler).ServeHTTP(w, c.request)
		if got := r.take(); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if w.Code != c.handler.status || w.Body.String() != c.handler.body {
			t.Errorf("%s: the answer came as %d %q", name, w.Code, w.Body)
		}
	}
}

// TestWatchPassesFailuresOn: the handler reads as much of a broken request as came, and then the
// error. Such a request is not judged.
func TestWatchPassesFailuresOn(t *testing.T) {
	broken := errors.New("the connection broke")
	q := post("/v1/payment_intents", "")
	q.Body = io.NopCloser(io.MultiReader(strings.NewReader("tip=1"), iotest.ErrReader(broken)))
	r := &recorder{TB: t}
	Load(t).Watch(r, http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		if got, err := io.ReadAll(q.Body); string(got) != "tip=1" || !errors.Is(err, broken) {
			t.Errorf("the handler got %q, %v", got, err)
		}
	})).ServeHTTP(httptest.NewRecorder(), q)
	if got := r.take(); got != nil {
		t.Errorf("got %q", got)
	}
}
