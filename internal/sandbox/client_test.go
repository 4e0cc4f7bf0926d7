package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/billing"
)

// Whatever comes back that is no answer of a sandbox says nothing of what was done.
func TestClient_WhatIsNoAnswer(t *testing.T) {
	text := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	for name, h := range map[string]http.HandlerFunc{
		"a plain 500":             text(500, "oops"),
		"another server's 404":    text(404, "<html>"),
		"a 503 on the way":        text(503, `{"message":"no upstream"}`),
		"an unknown code":         text(500, `{"error":{"code":"odd","message":"odd"}}`),
		"an error with success":   text(200, `{"error":{"code":"not_executed","message":""}}`),
		"a success with an error": text(503, `{"intent":{"ref":"pi"}}`),
		"an empty object":         text(200, `{}`),
		"an end":                  text(200, `{"intent":{"ref":"pi"},"end":false}`),
		"no JSON":                 text(200, `hello`),
		"a half":                  text(200, `{"intent":{"ref":"pi_x","acc`),
		"nothing":                 text(200, ``),
		"an endless answer":       text(200, `{"intent":{"ref":"`+strings.Repeat("x", maxReply)),
		"an odd intent": text(200,
			`{"intent":{"ref":"pi_x","outcome":"fine","amount":"1","currency":"EUR","at":"2026-01-01T00:00:00Z"}}`),
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"no answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"an answer that breaks off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"intent":`)
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			everyCall(t, connect(t, httptest.NewServer(h)), func(op string, err error) {
				if op == OpList && name == "an error with success" {
					return // there it is a proper last line
				}
				if !errors.Is(err, billing.ErrUnknown) || errors.Is(err, billing.ErrNotExecuted) {
					t.Errorf("%s: %v, want ErrUnknown", op, err)
				}
			})
		})
	}
}

func TestClient_NobodyThere(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	client := connect(t, server)
	server.Close()
	everyCall(t, client, func(op string, err error) {
		if !errors.Is(err, billing.ErrNotExecuted) || errors.Is(err, billing.ErrUnknown) ||
			!strings.Contains(err.Error(), server.URL) {
			t.Errorf("%s: %v, want ErrNotExecuted and the address", op, err)
		}
	})
}

func TestClient_ContextEndedBefore(t *testing.T) {
	box := openSandbox(t, "", Options{})
	client := connect(t, httptest.NewServer(Handler(box)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Open(ctx, request(t, 1, 0, "pm_card_visa")); !errors.Is(err, billing.ErrUnknown) ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("%v, want ErrUnknown and the cancellation", err)
	}
	wantOutcomes(t, box, "")
}

// A list that breaks off ends with an error, wherever that happens: in a line, between two,
// before the first, and also when HTTP takes the end for a proper one.
func TestClient_ListBreaksOff(t *testing.T) {
	box := openSandbox(t, "", Options{})
	for period := range 3 {
		pay(t, box, period)
	}
	whole := httptest.NewRecorder()
	Handler(box).ServeHTTP(whole, httptest.NewRequest("GET", pathSuccesses+"?since=2000-01-01T00:00:00Z", nil))
	text := whole.Body.String()
	for cut := range len(text) - len("\n") {
		for _, proper := range []bool{true, false} {
			if cut%7 != 0 && text[cut] != '\n' {
				continue // each of them takes a server
			}
			client := connect(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, text[:cut])
				if !proper {
					panic(http.ErrAbortHandler)
				}
			})))
			var last error
			n := 0
			for _, last = range client.List(t.Context(), billing.ListRequest{}) {
				n++
			}
			if !errors.Is(last, billing.ErrUnknown) || n > 4 {
				t.Fatalf("cut at %d, proper end %v: %d and %v, want ErrUnknown", cut, proper, n, last)
			}
		}
	}
}

// piped is a client of the handler, over pipes: in a bubble of synctest, time passes when
// both wait.
func piped(t *testing.T, h http.Handler) *Client {
	t.Helper()
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: h}
	go server.Serve(l)
	client := Connect("http://pipe:1")
	client.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		near, far := net.Pipe()
		select {
		case l.conns <- far:
			return near, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client
}

type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func TestClient_Timeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := piped(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // or the server would not notice that the client leaves
			<-r.Context().Done()
		}))
		everyCall(t, client, func(op string, err error) {
			if !errors.Is(err, billing.ErrUnknown) || errors.Is(err, billing.ErrNotExecuted) {
				t.Errorf("%s: %v, want ErrUnknown", op, err)
			}
		})
		start := time.Now()
		_, err := client.Lookup(t.Context(), "pi")
		if took := time.Since(start); took != DefaultTimeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("took %v, %v", took, err)
		}
	})
}

// A list may take as long as it likes, but not fall silent; what the caller does with a
// line takes none of that time.
func TestClient_ListFallsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := openSandbox(t, "", Options{Latency: 20 * time.Second})
		pay(t, box, 1)
		whole := httptest.NewRecorder()
		Handler(box).ServeHTTP(whole, httptest.NewRequest("GET", pathSuccesses+"?since=2000-01-01T00:00:00Z", nil))
		line, _, _ := strings.Cut(whole.Body.String(), "\n")
		client := piped(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for range 10 {
				io.WriteString(w, line+"\n")
				http.NewResponseController(w).Flush()
				time.Sleep(DefaultTimeout - time.Second)
			}
			<-r.Context().Done()
		}))
		n := 0
		var last error
		start := time.Now()
		for _, last = range client.List(t.Context(), billing.ListRequest{}) {
			if n++; n == 3 {
				time.Sleep(time.Hour)
			}
		}
		if n != 11 || !errors.Is(last, billing.ErrUnknown) || !errors.Is(last, errSilent) || time.Since(start) < time.Hour {
			t.Errorf("%d and %v after %v", n, last, time.Since(start))
		}
	})
}

// mortal is a server that dies within its n-th call: every connection is cut, and nobody
// listens any more.
func mortal(t *testing.T, file string, n int64, phase Phase) (*Sandbox, *Client) {
	t.Helper()
	var calls atomic.Int64
	var server *httptest.Server
	box := openSandbox(t, file, Options{Hook: func(_ string, p Phase) error {
		if p == phase && calls.Add(1) == n {
			server.Listener.Close()
			server.CloseClientConnections()
		}
		return nil
	}})
	server = httptest.NewServer(Handler(box))
	return box, connect(t, server)
}

// TestClient_ServerDies kills the server in the middle of many calls, again and again, with
// another one on the same file after it. Every call has an answer that is true, or none.
func TestClient_ServerDies(t *testing.T) {
	const subscriptions, deaths = 24, 8
	file := ledgerFile(t)
	var refs, paid [subscriptions]string // each of one goroutine at a time
	for death := range deaths + 1 {
		n := int64(5 + 3*death)
		if death == deaths {
			n = -1 // this one lives
		}
		box, client := mortal(t, file, n, Phase(death%2))
		var wg sync.WaitGroup
		for i := range subscriptions {
			wg.Go(func() {
				err := func() error {
					in, err := client.Open(t.Context(), request(t, i, 0, "pm_card_visa"))
					if err != nil {
						return err
					}
					if refs[i] != "" && refs[i] != in.Ref {
						t.Errorf("%d: one key gave two intents", i)
					}
					refs[i] = in.Ref
					in, err = client.Confirm(t.Context(), billing.ConfirmRequest{Key: fmt.Sprint("k", i, death), Ref: in.Ref,
						Method: "pm_card_visa"})
					if err != nil {
						return err
					}
					if paid[i] != "" && paid[i] != in.Latest {
						t.Errorf("%d: paid twice", i)
					}
					paid[i] = in.Latest
					return nil
				}()
				if err != nil && (death == deaths || !errors.Is(err, billing.ErrUnknown) &&
					!errors.Is(err, billing.ErrNotExecuted)) {
					t.Errorf("server %d, %d: %v", death, i, err)
				}
			})
		}
		wg.Wait()
		if err := box.Close(); err != nil {
			t.Fatal(err)
		}
	}
	box := openSandbox(t, file, Options{})
	atMostOne(t, box)
	if got := strings.Fields(outcomes(box)); len(got) != 2*subscriptions {
		t.Errorf("%d lines, want %d", len(got), 2*subscriptions)
	}
	for i := range subscriptions {
		if in := mustLookup(t, box, refs[i]); in.State != billing.Succeeded || in.Latest != paid[i] {
			t.Errorf("%d: %+v, was answered %s", i, in, paid[i])
		}
	}
}

// The very call in which the server dies: not done before, done after, and unknown both times.
func TestClient_ServerDiesInTheCall(t *testing.T) {
	for phase, want := range map[Phase]string{Before: "opened", After: "opened succeeded"} {
		file := ledgerFile(t)
		box, client := mortal(t, file, 2, phase)
		ref := mustOpen(t, client, request(t, 1, 0, "pm_card_visa")).Ref
		_, err := client.Confirm(t.Context(), billing.ConfirmRequest{Key: "k", Ref: ref, Method: "pm_card_visa"})
		if !errors.Is(err, billing.ErrUnknown) || errors.Is(err, billing.ErrNotExecuted) {
			t.Errorf("phase %d: %v, want ErrUnknown", phase, err)
		}
		if err := box.Close(); err != nil {
			t.Fatal(err)
		}
		s := served(t, openSandbox(t, file, Options{}))
		if phase == After {
			wantOutcomes(t, s, want)
		} else if got := outcomes(s); got != "opened" && got != "opened succeeded" { // the server may not have noticed
			t.Errorf("phase %d: ledger has %q", phase, got)
		}
		if in := mustConfirm(t, s, ref, "k", "pm_card_visa"); in.State != billing.Succeeded {
			t.Errorf("again: %+v", in)
		}
		wantOutcomes(t, s, "opened succeeded")
	}
}
