package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
)

const eventBody = `{"id":"evt_1","object":"event"}`

func signed(w *world, body string, key secret.Text) string {
	return event.Sign([]byte(body), key, w.now)
}

func TestHook_TakesWhatIsSigned(t *testing.T) {
	w := newWorld()
	server := w.serve(t)
	var got []byte
	w.take = func(_ context.Context, body []byte, _ tracking.Origin) (tracking.Verdict, error) {
		got = bytes.Clone(body)
		return tracking.Verdict{Event: "evt_1", Status: tracking.Quarantined, Reason: "nobody\nknows it", Duplicate: true},
			nil
	}
	for _, tt := range []struct {
		path string
		key  secret.Text
		want tracking.Origin
	}{
		{platformPath, oldSecret, tracking.Origin{Source: tracking.FromWebhook}},
		{platformPath, newSecret, tracking.Origin{Source: tracking.FromWebhook}},
		{connectPath, connectSecret, tracking.Origin{Connect: true, Source: tracking.FromWebhook}},
	} {
		a := do(t, request(t, "POST", server.URL+tt.path, eventBody, "Stripe-Signature", signed(w, eventBody, tt.key)))
		all := w.origins()
		if from := all[len(all)-1]; a.status != 200 || from != tt.want || string(got) != eventBody {
			t.Errorf("%s: got %d, %+v, %q; want 200, %+v", tt.path, a.status, from, got, tt.want)
		}
		if want := `{"event":"evt_1","status":"quarantined","reason":"nobody\nknows it","duplicate":true}`; strings.TrimSpace(a.text) != want {
			t.Errorf("got %s, want %s", a.text, want)
		}
	}
	if text := w.logged(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, `nobody\\u000aknows it`) {
		t.Errorf("a quarantined event is not in the log as a warning of one line: %s", text)
	}
}

func TestHook_Refuses(t *testing.T) {
	w := newWorld()
	server := w.serve(t)
	large := strings.Repeat("a", 1<<20+1)
	sign := func(key secret.Text, at time.Duration) string {
		return event.Sign([]byte(eventBody), key, w.now.Add(at))
	}
	good := sign(newSecret, 0)
	texts := map[string]bool{}
	for _, tt := range []struct {
		name, method, path, body, signature, encoding string
		status                                        int
		code                                          string
	}{
		{"missing", "POST", platformPath, eventBody, "", "", 400, "signature"},
		{"no signature", "POST", platformPath, eventBody, "what is this", "", 400, "signature"},
		{"forged", "POST", platformPath, eventBody, sign(secret.New("whsec_forged"), 0), "", 400, "signature"},
		{"another body", "POST", platformPath, eventBody + " ", good, "", 400, "signature"},
		{"the other endpoint's", "POST", platformPath, eventBody, sign(connectSecret, 0), "", 400, "signature"},
		{"the other endpoint's", "POST", connectPath, eventBody, good, "", 400, "signature"},
		{"stale", "POST", platformPath, eventBody, sign(newSecret, -301*time.Second), "", 400, "signature"},
		{"future", "POST", platformPath, eventBody, sign(newSecret, 301*time.Second), "", 400, "signature"},
		{"oversized", "POST", platformPath, large, signed(w, large, newSecret), "", 413, "too_large"},
		{"encoded", "POST", platformPath, eventBody, good, "gzip", 415, "encoding"},
		{"read", "GET", platformPath, "", good, "", 405, "method"},
		{"put", "PUT", platformPath, eventBody, good, "", 405, "method"},
		{"nearly there", "POST", platformPath + "/", eventBody, good, "", 404, "no_route"},
	} {
		a := do(t, request(t, tt.method, server.URL+tt.path, tt.body, "Stripe-Signature", tt.signature, "Content-Encoding",
			tt.encoding))
		if a.status != tt.status || a.code != tt.code {
			t.Errorf("%s: got %d %s, want %d %s", tt.name, a.status, a.text, tt.status, tt.code)
		}
		if tt.code == "method" && a.header.Get("Allow") != "POST" {
			t.Errorf("%s: got Allow %q", tt.name, a.header.Get("Allow"))
		}
		if strings.Contains(a.text, "whsec_") {
			t.Errorf("%s: a secret in %s", tt.name, a.text)
		}
		texts[a.err] = true
	}
	if len(texts) != 9 {
		t.Errorf("got %d texts, want 9, one for each reason: %v", len(texts), texts)
	}
	if n := len(w.origins()); n != 0 {
		t.Errorf("%d of them were taken", n)
	}
}

// TestHook_StrangersBodyIsNotRead: a header without the form or the time of a signature is refused
// before the body.
func TestHook_StrangersBodyIsNotRead(t *testing.T) {
	w := newWorld()
	h := w.handler(t)
	for signature, read := range map[string]bool{
		"": false, "t=1": false, "what is this": false,
		"t=1,v1=" + strings.Repeat("a", 64):                              false,
		fmt.Sprintf("t=%d,v1=%s", w.now.Unix(), "0123"):                  false,
		event.Sign(nil, newSecret, w.now.Add(-301*time.Second)):          false,
		event.Sign(nil, newSecret, w.now.Add(301*time.Second)):           false,
		event.Sign(nil, secret.New("whsec_forged"), w.now):               true,
		fmt.Sprintf("t=%d,v1=%s", w.now.Unix(), strings.Repeat("a", 64)): true,
	} {
		body := strings.NewReader(eventBody)
		r := httptest.NewRequest("POST", platformPath, body)
		r.Header.Set("Stripe-Signature", signature)
		a := httptest.NewRecorder()
		h.ServeHTTP(a, r)
		if a.Code != 400 || (body.Len() == 0) != read {
			t.Errorf("%q: got %d, and %d bytes of the body are left", signature, a.Code, body.Len())
		}
	}
}

func TestHook_SizeOfBodies(t *testing.T) {
	w := newWorld()
	server := w.serve(t)
	for _, tt := range []struct {
		size, status int
		chunked      bool
	}{{1 << 20, 200, false}, {1 << 20, 200, true}, {1<<20 + 1, 413, false}, {1<<20 + 1, 413, true}, {0, 200, false}} {
		body := strings.Repeat("a", tt.size)
		r := request(t, "POST", server.URL+platformPath, body, "Stripe-Signature", signed(w, body, newSecret))
		if tt.chunked {
			r.ContentLength = -1
		}
		if a := do(t, r); a.status != tt.status {
			t.Errorf("%d bytes, chunked %v: got %d, want %d", tt.size, tt.chunked, a.status, tt.status)
		}
	}
}

func TestHook_TruncatedBody(t *testing.T) {
	w := newWorld()
	server := w.serve(t)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\nStripe-Signature: %s\r\n\r\n%s",
		platformPath, len(eventBody)+1, signed(w, eventBody, newSecret), eventBody)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: "POST"})
	if err != nil {
		t.Fatal(err)
	}
	response.Request = &http.Request{Method: "POST"}
	if a := read(t, response); a.status != 400 || a.code != "broken" || len(w.origins()) != 0 {
		t.Errorf("got %d %s, %d taken; want 400 and none", a.status, a.text, len(w.origins()))
	}
}

func TestHook_WhatTakeSays(t *testing.T) {
	const private = "4000 0000 of a body"
	for _, tt := range []struct {
		name   string
		err    error
		status int
	}{
		{"no event", fmt.Errorf("%w: %s", tracking.ErrBody, private), 400},
		{"store down", errors.New("disk " + private), 503},
		{"given up", context.Canceled, 503},
		{"not found", fmt.Errorf("a link: %w", tracking.ErrUnregistered), 503},
	} {
		w := newWorld()
		w.take = func(context.Context, []byte, tracking.Origin) (tracking.Verdict, error) {
			return tracking.Verdict{}, tt.err
		}
		a := do(t, request(t, "POST", w.serve(t).URL+platformPath, eventBody, "Stripe-Signature",
			signed(w, eventBody, newSecret)))
		if a.status != tt.status || (a.header.Get("Retry-After") != "") != (tt.status == 503) {
			t.Errorf("%s: got %d, Retry-After %q; want %d", tt.name, a.status, a.header.Get("Retry-After"), tt.status)
		}
		if tt.status == 503 && strings.Contains(a.text, private) {
			t.Errorf("%s: the answer tells what is wrong inside: %s", tt.name, a.text)
		}
		if tt.status == 400 && strings.Contains(w.logged(), private) {
			t.Errorf("%s: the body is in the log: %s", tt.name, w.logged())
		}
	}
}

func TestHook_Panic(t *testing.T) {
	w := newWorld()
	server := w.serve(t)
	calls := 0
	w.take = func(_ context.Context, body []byte, _ tracking.Origin) (tracking.Verdict, error) {
		if calls++; calls == 1 {
			panic("poison: " + string(body))
		}
		if calls == 2 {
			_ = body[:0][calls] // a runtime.Error
		}
		return tracking.Verdict{}, nil
	}
	post := func() reply {
		return do(t, request(t, "POST", server.URL+platformPath, eventBody, "Stripe-Signature",
			signed(w, eventBody, newSecret)))
	}
	for i, want := range []int{500, 500, 200} {
		if a := post(); a.status != want {
			t.Errorf("call %d: got %d, want %d", i, a.status, want)
		}
	}
	text := w.logged()
	if strings.Contains(text, "evt_1") || !strings.Contains(text, "a string") ||
		!strings.Contains(text, "index out of range") || !strings.Contains(text, "hook_test.go") {
		t.Errorf("the log wants what it was and where, and nothing of the body: %s", text)
	}
}

// TestHook_Concurrent: buffers are used again, and never while somebody reads them: not
// while Ingest runs, and not after it has failed.
func TestHook_Concurrent(t *testing.T) {
	w := newWorld()
	type kept struct {
		body []byte
		sum  [32]byte
	}
	var mu sync.Mutex
	var left []kept
	w.take = func(_ context.Context, body []byte, _ tracking.Origin) (tracking.Verdict, error) {
		sum := sha256.Sum256(body)
		for range 10 {
			runtime.Gosched()
		}
		if sha256.Sum256(body) != sum {
			return tracking.Verdict{}, tracking.ErrBody
		}
		if body[0]%4 == 0 {
			mu.Lock()
			defer mu.Unlock()
			left = append(left, kept{body, sum})
			return tracking.Verdict{}, errors.New("down")
		}
		return tracking.Verdict{Event: string(body[:8])}, nil
	}
	h := w.handler(t)
	var all sync.WaitGroup
	for g := range 64 {
		all.Go(func() {
			for i := range 50 {
				body := fmt.Sprintf("%c%03d%04d", 'a'+(g+i)%8, g, i) + strings.Repeat(string(rune('a'+i%26)), 100*(i%30))
				r := httptest.NewRequest("POST", platformPath, strings.NewReader(body))
				r.Header.Set("Stripe-Signature", signed(w, body, newSecret))
				a := httptest.NewRecorder()
				h.ServeHTTP(a, r)
				if body[0]%4 == 0 {
					if a.Code != 503 {
						t.Errorf("got %d, want 503", a.Code)
					}
				} else if a.Code != 200 || !strings.Contains(a.Body.String(), body[:8]) {
					t.Errorf("%s: got %d %s", body[:8], a.Code, a.Body)
				}
			}
		})
	}
	all.Wait()
	if len(left) != 64*50/4 {
		t.Errorf("got %d that failed, want %d", len(left), 64*50/4)
	}
	for _, k := range left {
		if sha256.Sum256(k.body) != k.sum {
			t.Fatal("the body of an event whose Ingest failed was overwritten")
		}
	}
}

// nobody is a ResponseWriter of the benchmark.
type nobody struct{ h http.Header }

func (n nobody) Header() http.Header       { return n.h }
func (nobody) Write(p []byte) (int, error) { return len(p), nil }
func (nobody) WriteHeader(int)             {}

func BenchmarkHook(b *testing.B) {
	w := newWorld()
	w.take = func(context.Context, []byte, tracking.Origin) (tracking.Verdict, error) {
		return tracking.Verdict{Event: "evt_1", Status: tracking.Applied}, nil
	}
	o := w.options()
	o.Inbox, o.Log = taker{w}, nil
	h := httpapi.New(o)
	body := strings.Repeat("a", 3000)
	r := httptest.NewRequest("POST", platformPath, nil)
	r.Header.Set("Stripe-Signature", signed(w, body, newSecret))
	in := strings.NewReader(body)
	b.ReportAllocs()
	for b.Loop() {
		in.Reset(body)
		r.Body = io.NopCloser(in)
		h.ServeHTTP(nobody{http.Header{}}, r)
	}
}

// A taker is an inbox that notes nothing.
type taker struct{ w *world }

func (t taker) Ingest(ctx context.Context, body []byte, from tracking.Origin) (tracking.Verdict, error) {
	return t.w.take(ctx, body, from)
}
