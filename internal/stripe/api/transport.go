package api

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
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

var errTooLong = errors.New("the answer from Stripe is too long")

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
