package api

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	requestTimeout = 30 * time.Second // of one request, its answer included
	maxBody        = 32 << 20         // of an answer
	connections    = 64
)

// An exchange is a request, in its own context, with parts of its answer that the library drops.
type exchange struct {
	keyless bool // has no idempotency key
	unsent  bool // no connection was made
	status  int
	header  http.Header
}

type exchangeKey struct{}

// A transport sends each request once and under its own key.
type transport struct{ next http.RoundTripper }

const keyHeader = "Idempotency-Key"

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	x, ok := r.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return t.next.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	// net/http sends a request with this header again when a connection breaks, and only the loop
	// in sender.go may do so. It does not know the header in another case; servers do.
	key := r.Header.Get(keyHeader)
	r.Header.Del(keyHeader)
	if key != "" && !x.keyless { // the library invents a key if there is none
		r.Header["idempotency-key"] = []string{key}
	}
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		op, ok := errors.AsType[*net.OpError](err)
		x.unsent = ok && op.Op == "dial"
		return nil, err
	}
	x.status, x.header = resp.StatusCode, resp.Header
	resp.Body = &limited{resp.Body, maxBody}
	return resp, nil
}

// limited is a body that ends with an error if it is too long.
type limited struct {
	io.ReadCloser
	left int
}

var errTooLong = errors.New("the answer is too long")

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.left -= n; l.left < 0 {
		return 0, errTooLong
	}
	return n, err
}

// newHTTPClient returns the HTTP client of all requests. It uses HTTP/1: each request under way has
// its own connection, and a broken one does not end the others.
func newHTTPClient(next http.RoundTripper, proxy func(*http.Request) (*url.URL, error)) *http.Client {
	if next == nil {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
		next = &http.Transport{Proxy: proxy, DialContext: dialer.DialContext, Protocols: protocols,
			TLSHandshakeTimeout: 10 * time.Second, MaxIdleConns: connections, MaxIdleConnsPerHost: connections,
			IdleConnTimeout: 45 * time.Second, MaxResponseHeaderBytes: 1 << 20}
	}
	return &http.Client{Transport: transport{next}, Timeout: requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	busyTries    = 8 // sends of one request while Stripe is too busy
	readTries    = 3 // sends of a look-up whose answer was lost
	advisedTries = 3 // sends of a request if Stripe itself asks for another
	firstRest    = 500 * time.Millisecond
	longestRest  = 8 * time.Second

	firstPaceRest = 50 * time.Millisecond
	longestAsked  = time.Minute // of a Retry-After
)

// retryable reports whether the request may be sent once more, with the same key.
func (c *call) retryable(x *exchange, e *Error) bool {
	if e.cause != nil || e.Verdict != Busy && e.Verdict != Unknown {
		return false
	}
	switch x.header.Get("Stripe-Should-Retry") {
	case "false":
		return false
	case "true":
		if e.Verdict == Unknown {
			return c.tries < advisedTries
		}
	}
	switch {
	case e.Verdict == Busy && x.unsent, e.Verdict == Unknown && c.method == http.MethodGet:
		return c.tries < readTries
	case e.Verdict == Busy:
		return c.tries < busyTries
	}
	return false // the caller looks the object up, and then decides on another send and its key
}

// restAfter returns the wait before the next send. Stripe may ask for one. Otherwise it doubles
// each time, with a spread so that workers do not come back together.
func restAfter(tries int, h http.Header) time.Duration {
	if asked, err := strconv.Atoi(h.Get("Retry-After")); err == nil && asked >= 0 {
		return min(time.Duration(asked)*time.Second, longestAsked)
	}
	d := min(longestRest, firstRest<<min(tries-1, 4))
	return d/2 + rand.N(d/2)
}

// paceRest returns how long all requests of a pace stop after a 429. It is a moment if a first send
// met the 429 and Stripe asks for no wait, since the pace is about right. Otherwise it is as long
// as the request itself waits.
func paceRest(tries int, rest time.Duration, h http.Header) time.Duration {
	if tries == 1 && h.Get("Retry-After") == "" {
		return min(rest, firstPaceRest)
	}
	return rest
}
