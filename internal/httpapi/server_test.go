package httpapi_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/listen"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/web"
)

func newServer(t testing.TB, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// pipes are a network in memory, for a clock that is not real.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

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

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: p.dial}}
}

// running serves the world until stop is called, which returns what Serve returned.
func running(t *testing.T, w *world, p *pipes) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- web.Serve(ctx, p, w.handler(t), listen.Limits{Connections: 100}, slog.New(slog.NewTextHandler(w, nil)))
	}()
	return func() error {
		cancel()
		return <-done
	}
}

// TestServe_SlowCallers: a connection is not held by who sends a byte now and then.
func TestServe_SlowCallers(t *testing.T) {
	for name, tt := range map[string]struct {
		text  string
		limit time.Duration
	}{
		"header": {"POST " + platformPath + " HTTP/1.1\r\nHost: here\r\n", 5 * time.Second},
		"body": {"POST " + platformPath +
			" HTTP/1.1\r\nHost: here\r\nStripe-Signature: " + signed(newWorld(), "", newSecret) +
			"\r\nContent-Length: 1000\r\n\r\n{", 15 * time.Second},
		"idle": {"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n", time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			w, p := newWorld(), newPipes()
			stop := running(t, w, p)
			conn, err := p.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			gone := make(chan time.Duration)
			go func() {
				_, _ = io.Copy(io.Discard, conn)
				gone <- time.Since(begun)
			}()
			if _, err := io.WriteString(conn, tt.text); err != nil {
				t.Fatal(err)
			}
			if took := <-gone; took < tt.limit || took > tt.limit+time.Second {
				t.Errorf("%s: the connection was closed after %v, want %v", name, took, tt.limit)
			}
			_ = conn.Close()
			if err := stop(); err != nil || len(w.origins()) != 0 {
				t.Errorf("%s: got %v, %d taken", name, err, len(w.origins()))
			}
		})
	}
}

func TestServe_LargeHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPipes()
		stop := running(t, w, p)
		client := p.client()
		r := request(t, "GET", "http://here/healthz", "", "X-Large", strings.Repeat("a", 32<<10))
		response, err := client.Do(r)
		if err == nil {
			_ = response.Body.Close()
		}
		if err == nil && response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("got %d, want 431", response.StatusCode)
		}
		client.CloseIdleConnections()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestServe_Stop: what has begun is finished, unless it takes more than 20 seconds.
func TestServe_Stop(t *testing.T) {
	for _, tt := range []struct {
		takes time.Duration
		cut   bool
	}{{19 * time.Second, false}, {25 * time.Second, true}} {
		synctest.Test(t, func(t *testing.T) {
			w, p := newWorld(), newPipes()
			begun := make(chan struct{})
			w.take = func(context.Context, []byte, tracking.Origin) (tracking.Verdict, error) {
				close(begun)
				<-time.After(tt.takes)
				return tracking.Verdict{Event: "evt_1"}, nil
			}
			stop := running(t, w, p)
			client := p.client()
			answered := make(chan error, 1)
			go func() {
				response, err := client.Do(request(t, "POST", "http://here"+platformPath, eventBody, "Stripe-Signature",
					signed(w, eventBody, newSecret)))
				if err == nil {
					_ = response.Body.Close()
					if response.StatusCode != 200 {
						err = errors.New(response.Status)
					}
				}
				answered <- err
			}()
			<-begun
			err := stop()
			if got := <-answered; (got != nil) != tt.cut || (err != nil) != tt.cut {
				t.Errorf("a request of %v: it got %v, and Serve %v", tt.takes, got, err)
			}
			if _, err := p.dial(t.Context(), "", ""); err == nil {
				t.Error("the listener is open after the stop")
			}
			client.CloseIdleConnections()
			synctest.Wait()
			<-time.After(tt.takes) // so that Ingest of the one that was cut is over
		})
	}
}

func TestServe_ListenerFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if err := web.Serve(t.Context(), l, http.NotFoundHandler(), listen.Limits{Connections: 1}, slog.New(slog.DiscardHandler)); !errors.Is(err,
		net.ErrClosed) {
		t.Errorf("got %v, want that the listener is closed", err)
	}
}

// TestServe_LongList: a list takes as long as its reader goes on reading, and no longer.
func TestServe_LongList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPipes()
		for range 20_000 {
			w.payments = append(w.payments, &tracking.Payment{ID: "pi_" + strings.Repeat("a", 60)})
		}
		stop := running(t, w, p)
		read := func(after int, pause time.Duration) (lines int) {
			conn, err := p.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, "GET /v1/payments?merchant="+account+" HTTP/1.1\r\nHost: here\r\n"+
				"Accept: application/x-ndjson\r\nAuthorization: Bearer "+apiKey+"\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			text := make([]byte, 16<<10)
			for {
				n, err := conn.Read(text)
				lines += strings.Count(string(text[:n]), `{"id":`)
				if err != nil || strings.Contains(string(text[:n]), `{"end":true}`) {
					return lines
				}
				if lines > after {
					<-time.After(pause)
				}
			}
		}
		if got := read(0, 2*time.Second); got < 19_000 { // a line in two reads is not counted
			t.Errorf("a slow reader got %d lines of %d", got, len(w.payments))
		}
		for _, after := range []int{0, 5_000} {
			if got := read(after, 2*time.Minute); got > after+2_000 {
				t.Errorf("a reader that had stopped after %d lines got %d", after, got)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestServe_SlowAnswer: a request that takes longer than its answer may is answered all the same.
func TestServe_SlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPipes()
		w.take = func(ctx context.Context, _ []byte, _ tracking.Origin) (tracking.Verdict, error) {
			<-time.After(5 * time.Minute)
			return tracking.Verdict{Event: "evt_1"}, ctx.Err()
		}
		stop := running(t, w, p)
		client := p.client()
		response, err := client.Do(request(t, "POST", "http://here"+platformPath, eventBody, "Stripe-Signature", signed(w, eventBody, newSecret)))
		if err != nil || response.StatusCode != 200 {
			t.Errorf("%v, %v", response, err)
		} else {
			_ = response.Body.Close()
		}
		client.CloseIdleConnections()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
