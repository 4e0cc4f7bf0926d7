package stripefake

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/listen"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/test/stripetest"
	"github.com/duesday/duesday/stripefake/internal/api"
)

const (
	testKey = "sk_test_duesday"
	liveKey = "sk_live_duesday"
)

// A world is a fake whose every exchange is held against Stripe's specification, asked
// without a network.
type world struct {
	t *testing.T
	*Fake
	handler  http.Handler
	webhooks *webhookWay
}

// A webhookWay leads webhooks to their real receivers, or to the one of receive.
type webhookWay struct{ http.RoundTripper }

var testStart = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// newWorld has a fake whose clock stands still until it is moved.
func newWorld(t *testing.T, o Options) *world {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return testStart }
	}
	webhooks := &webhookWay{http.DefaultTransport}
	o.Transport = webhooks
	f := New(o)
	t.Cleanup(func() { _ = f.Close() })
	return &world{t, f, stripetest.Load(t).Watch(t, f), webhooks}
}

// An answer is what came back.
type answer struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

// at returns what the path of names leads to: error.code.
func (a answer) at(path string) any {
	var v any = a.body
	for name := range strings.SplitSeq(path, ".") {
		if list, ok := v.([]any); ok {
			if i, err := strconv.Atoi(name); err == nil && i < len(list) {
				v = list[i]
				continue
			}
		}
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func (a answer) id() string { s, _ := a.body["id"].(string); return s }

// ids are those of a list, in its order.
func (a answer) ids() (list []string) {
	data, _ := a.body["data"].([]any)
	for _, o := range data {
		list = append(list, o.(map[string]any)["id"].(string))
	}
	return list
}

// do sends a request with the test key, unless a header says otherwise. Headers are names
// and values in turn.
func (w *world) do(method, path, params string, headers ...string) answer {
	w.t.Helper()
	target, body := path, ""
	if method == "POST" {
		body = params
	} else if params != "" {
		target += "?" + params
	}
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+testKey)
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	return w.send(r)
}

func (w *world) send(r *http.Request) answer {
	w.t.Helper()
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return w.answerOf(rec.Result())
}

func (w *world) answerOf(res *http.Response) answer {
	w.t.Helper()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	a := answer{status: res.StatusCode, header: res.Header, text: string(text)}
	if len(text) > 0 && json.Unmarshal(text, &a.body) != nil {
		w.t.Fatalf("the answer is no JSON object: %s", text)
	}
	return a
}

// ok is do that has to succeed.
func (w *world) ok(method, path, params string, headers ...string) answer {
	w.t.Helper()
	a := w.do(method, path, params, headers...)
	if a.status != http.StatusOK {
		w.t.Fatalf("%s %s: %d %s", method, path, a.status, a.text)
	}
	return a
}

func (w *world) customer(params string, headers ...string) string {
	w.t.Helper()
	return w.ok("POST", "/v1/customers", params, headers...).id()
}

// refused wants an error with the status, the code and the param.
func (a answer) refused(t *testing.T, what string, status int, code, param any) {
	t.Helper()
	if a.status != status || a.at("error.code") != code || a.at("error.param") != param {
		t.Errorf("%s: got %d, code %v, param %v (%v), want %d, %v, %v", what, a.status, a.at("error.code"),
			a.at("error.param"), a.at("error.message"), status, code, param)
	}
}

// Seeded plays a test n times in make check, two fifths of them in go test and one fifth with -short,
// each with dice of another seed. A failure prints the seed of its dice.
func Seeded(t *testing.T, n int, play func(t *testing.T, dice *rand.Rand)) {
	n = soaktest.Cases(t, n/5, soaktest.Share(n*2/5, n), n)
	first := rand.Uint64N(1 << 32)
	for i := range uint64(n) {
		if !t.Run("", func(t *testing.T) {
			t.Logf("seed %d", first+i)
			play(t, rand.New(rand.NewPCG(first+i, 0)))
		}) {
			return
		}
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestServer_Refuses(t *testing.T) {
	w := newWorld(t, Options{})
	long := "name=" + strings.Repeat("a", api.MaxBody)
	for _, tt := range []struct {
		what, method, path, params string
		headers                    []string
		status                     int
		code, param                any
		says                       string
	}{
		{"a path that is none", "GET", "/v1/nothing", "", nil, 404, nil, nil, "Unrecognized request URL (GET: /v1/nothing)"},
		{"a method that is none", "DELETE", "/v1/events", "", nil, 404, nil, nil,
			"Unrecognized request URL (DELETE: /v1/events)"},
		{"an unknown parameter", "POST", "/v1/customers", "nome=x", nil, 400, "parameter_unknown", "nome",
			"Received unknown parameter: nome"},
		{"a missing parameter", "POST", "/v1/webhook_endpoints", "url=http://a.example", nil, 400, "parameter_missing",
			"enabled_events", "Missing required param: enabled_events."},
		{"no object", "GET", "/v1/customers/cus_none", "", nil, 404, "resource_missing", nil, "No such customer: 'cus_none'"},
		{"a version", "GET", "/v1/customers", "", []string{"Stripe-Version", "latest"}, 400, nil, nil,
			"Invalid Stripe API version: latest"},
		{"another content type", "POST", "/v1/customers", "{}", []string{"Content-Type", "application/json"}, 400, nil, nil,
			"application/x-www-form-urlencoded"},
		{"a large body", "POST", "/v1/customers", long, nil, 400, nil, nil, "larger than 1 MiB"},
		{"no form", "POST", "/v1/customers", "name=%zz", nil, 400, nil, nil, "not form-encoded"},
		{"metadata", "POST", "/v1/customers", "metadata[" + strings.Repeat("k", 41) + "]=v", nil, 400,
			"parameter_invalid_string_blank", "metadata", "at most 40 characters"},
		{"a limit", "GET", "/v1/customers", "limit=101", nil, 400, "parameter_invalid_integer", "limit", "from 1 to 100"},
		{"no limit", "GET", "/v1/customers", "limit=0", nil, 400, "parameter_invalid_integer", "limit", "from 1 to 100"},
		{"a limit of letters", "GET", "/v1/customers", "limit=ten", nil, 400, "parameter_invalid_integer", "limit",
			"Invalid integer: ten"},
		{"a cursor", "GET", "/v1/customers", "starting_after=cus_none", nil, 400, "resource_missing", "starting_after",
			"cus_none"},
		{"an expansion", "GET", "/v1/customers", "expand[]=data.name", nil, 400, nil, "expand",
			"This property cannot be expanded (data.name)."},
	} {
		a := w.do(tt.method, tt.path, tt.params, tt.headers...)
		if a.status != tt.status || a.at("error.code") != tt.code || tt.param != nil && a.at("error.param") != tt.param ||
			!strings.Contains(fmt.Sprint(a.at("error.message")), tt.says) {
			t.Errorf("%s: got %d %s, want %d, code %v, param %v, %q", tt.what, a.status, a.text, tt.status, tt.code, tt.param,
				tt.says)
		}
		if a.at("error.type") != "invalid_request_error" || !strings.HasPrefix(a.header.Get("Request-Id"), "req_") {
			t.Errorf("%s: got type %v, request %q", tt.what, a.at("error.type"), a.header.Get("Request-Id"))
		}
	}
	equal(t, "customers made by refused requests", len(w.ok("GET", "/v1/customers", "").ids()), 0)
}

func TestServer_Headers(t *testing.T) {
	w := newWorld(t, Options{})
	a := w.ok("POST", "/v1/customers", "name=A", "Idempotency-Key", "k1")
	got := []string{a.header.Get("Content-Type"), a.header.Get("Stripe-Version"), a.header.Get("Idempotency-Key"),
		a.header.Get("Idempotent-Replayed")}
	equal(t, "headers", got, []string{"application/json", NewestVersion, "k1", ""})
	a = w.ok("GET", "/v1/customers", "", "Stripe-Version", "2024-06-20")
	equal(t, "Stripe-Version", a.header.Get("Stripe-Version"), "2024-06-20")
}

func TestMetadata(t *testing.T) {
	w := newWorld(t, Options{})
	id := w.customer("metadata[a]=1&metadata[b]=2&metadata[3]=x")
	step := func(params string, want map[string]any) {
		t.Helper()
		equal(t, params, w.ok("POST", "/v1/customers/"+id, params).body["metadata"], any(want))
	}
	step("name=B", map[string]any{"a": "1", "b": "2", "3": "x"})
	step("metadata[a]=&metadata[c]=4", map[string]any{"b": "2", "3": "x", "c": "4"})
	step("metadata=", map[string]any{})
	many := url.Values{}
	for i := range 50 {
		many.Set(fmt.Sprintf("metadata[k%d]", i), "v")
	}
	equal(t, "50 keys", len(w.ok("POST", "/v1/customers/"+id, many.Encode()).body["metadata"].(map[string]any)), 50)
	w.do("POST", "/v1/customers/"+id, "metadata[more]=v").refused(t, "51 keys", 400, nil, "metadata")
	w.do("POST", "/v1/customers/"+id, "metadata[k1]="+strings.Repeat("ä", 501)).refused(t, "501 characters", 400,
		"parameter_invalid_string_blank", "metadata[k1]")
	w.ok("POST", "/v1/customers/"+id, "metadata[k1]="+url.QueryEscape(strings.Repeat("ä", 500)))
}

func TestServe_Page(t *testing.T) {
	w := newWorld(t, Options{})
	r := httptest.NewRequest("GET", "/nothing/here", nil)
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, r)
	if rec.Code != http.StatusNotFound || bytes.Contains(rec.Body.Bytes(), []byte("panic")) {
		t.Errorf("got %d %s, want 404", rec.Code, rec.Body)
	}
}

// TestServe_Stops: what is under way when the server is to stop is finished.
func TestServe_Stops(t *testing.T) {
	w := newWorld(t, Options{Faults: Faults{Latency: 50 * time.Millisecond}})
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- listen.Serve(ctx, l, &http.Server{Handler: w.Fake, ReadHeaderTimeout: time.Minute},
			slog.New(slog.DiscardHandler))
	}()
	asked := make(chan int, 1)
	go func() {
		r, _ := http.NewRequest("POST", "http://"+l.Addr().String()+customers, strings.NewReader("name=A"))
		r.Header.Set("Authorization", "Bearer "+testKey)
		r.Header.Set("Idempotency-Key", "k")
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			asked <- 0
			return
		}
		res.Body.Close()
		asked <- res.StatusCode
	}()
	for { // until the request has its key
		w.api.Mu.Lock()
		begun := w.api.In(DefaultAccount, false).Knows("k")
		w.api.Mu.Unlock()
		if begun {
			break
		}
		runtime.Gosched()
	}
	cancel()
	equal(t, "answer", <-asked, http.StatusOK)
	if err := <-served; err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

func TestCounts(t *testing.T) {
	w := newWorld(t, Options{})
	for range 3 {
		w.customer("", "Idempotency-Key", "k")
	}
	w.do("GET", "/v1/nothing", "")
	equal(t, "counts", w.Counts(), []Count{
		{Endpoint: "POST /v1/customers", Status: 200, Requests: 3, Replays: 2},
		{Endpoint: "unknown", Status: 404, Requests: 1}})
}
