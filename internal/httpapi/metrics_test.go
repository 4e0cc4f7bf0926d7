package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/web"
)

// TestMetrics: they need a key of scope read and of all merchants.
func TestMetrics(t *testing.T) {
	shown := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "duesday_up 1\n") })
	w := newWorld()
	reads, bound := w.key(t, key.Read, ""), w.key(t, key.Admin, account)
	for _, tt := range []struct {
		keys   web.Keys
		given  string
		method string
		status int
	}{
		{nil, "", "GET", 401}, {w.keys, "", "GET", 401}, {w.keys, "", "POST", 405}, {nil, apiKey, "GET", 401},
		{w.keys, "another-key-of-16-bytes", "GET", 401}, {w.keys, apiKey, "GET", 200},
		{w.keys, reads, "GET", 200}, {w.keys, bound, "GET", 403},
	} {
		h := httpapi.New(httpapi.Options{Options: web.Options{Metrics: shown, Keys: tt.keys}})
		r := httptest.NewRequest(tt.method, "/metrics", nil)
		if tt.given != "" {
			r.Header.Set("Authorization", "Bearer "+tt.given)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.status || (w.Body.String() == "duesday_up 1\n") != (tt.status == 200) {
			t.Errorf("%+v: %d %s", tt, w.Code, w.Body)
		}
	}
}

// noKeys are of a server with keys, which knows none.
type noKeys struct{}

func (noKeys) Find(context.Context, string) (*key.Key, error) { return nil, key.ErrRefused }

// TestRequestID: each answer has an id of its own, and its context has it for the log; a Lack is
// told where there are keys, and not at a listener for strangers.
func TestRequestID(t *testing.T) {
	var log bytes.Buffer
	var id string
	lack := func(ctx context.Context) error {
		id = web.RequestID(ctx)
		return fmt.Errorf("%w: private", web.Lack("the store does not answer"))
	}
	o := httpapi.Options{Options: web.Options{Ready: lack, Log: slog.New(slog.NewTextHandler(&log, nil))}}
	w := httptest.NewRecorder()
	httpapi.New(o).ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
	if text := w.Body.String(); !strings.Contains(text, `"detail":"not ready","code":"unready"`) {
		t.Error(text)
	}
	o.Keys = noKeys{}
	h := httpapi.New(o)
	seen := map[string]bool{}
	for range 10 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		if got := w.Header().Get("Request-Id"); !strings.HasPrefix(got, "req_") || got != id || seen[got] {
			t.Errorf("%q, in the context %q", got, id)
		}
		seen[id] = true
		if text := w.Body.String(); !strings.Contains(text, "not ready: the store does not answer") ||
			strings.Contains(text, "private") {
			t.Error(text)
		}
	}
}

// TestRequestID_OfCallers: a caller's own id is in the answer, in its problem and in the context, unless it
// has another form.
func TestRequestID_OfCallers(t *testing.T) {
	var id string
	h := httpapi.New(httpapi.Options{Options: web.Options{Ready: func(ctx context.Context) error {
		id = web.RequestID(ctx)
		return errors.New("down")
	}}})
	for given, taken := range map[string]bool{"a": true, "Order_7.x-1": true, strings.Repeat("a", 128): true, "": false, strings.Repeat("a", 129): false,
		"a b": false, "a\nb": false, "a/b": false, "é": false, "<a>": false, "a,b": false} {
		r, w := httptest.NewRequest("GET", "/readyz", nil), httptest.NewRecorder()
		r.Header["Request-Id"] = []string{given}
		h.ServeHTTP(w, r)
		got := w.Header().Get("Request-Id")
		if p := problem(t, 503, w.Header(), w.Body.Bytes()); (got == given) != taken || p.RequestID != got || id != got {
			t.Errorf("%q: got %q, %q in the context, %+v", given, got, id, p)
		}
	}
}

// TestSigned: each signature at a hook is told of.
func TestSigned(t *testing.T) {
	var told []string
	bad := errors.New("another secret")
	h := httpapi.New(httpapi.Options{Shop: &world{}, Inbox: &world{}, Hooks: []httpapi.Hook{{Path: platformPath,
		Secrets: []secret.Text{newSecret}}}, Signed: func(path string, good bool) { told = append(told, fmt.Sprint(path, good)) },
		Verify: func(header string, _ []secret.Text, _ time.Time) (func([]byte) (int, error), error) {
			switch header {
			case "bad":
				return nil, bad
			case "of another body":
				return func([]byte) (int, error) { return 0, bad }, nil
			}
			return func([]byte) (int, error) { return 0, nil }, nil
		}})
	for _, signature := range []string{"bad", "", "of another body", "good"} { // none is no signature
		r := httptest.NewRequest("POST", platformPath, strings.NewReader("{}"))
		if signature != "" {
			r.Header.Set("Stripe-Signature", signature)
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if want := []string{platformPath + "false", platformPath + "false", platformPath + "true"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
