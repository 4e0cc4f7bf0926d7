package stripetest

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
)

// Watch returns the handler with a check of every request below /v1/ and its answer. Each distinct
// problem fails the test once, with method, path and problem. Handler and client notice nothing.
//
// A wrong request is a problem only if the handler accepts it, with the status 200 or 402. A test
// may therefore send a wrong request to a handler that refuses it. Answers are always checked,
// with three exceptions: a Stripe-Version before 2025-03-31.basil, a panic of the handler
// (http.ErrAbortHandler), and a hijacked connection. The check comes when the handler returns, so
// a test must close its server before it ends.
func (s *Spec) Watch(t testing.TB, next http.Handler) http.Handler {
	r := newReporter(t, s, true, true)
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		e, q, err := exchangeOf(q)
		if !e.judged() {
			next.ServeHTTP(w, q)
			return
		}
		tee := &teeWriter{ResponseWriter: w}
		next.ServeHTTP(tee, q)
		if err != nil || tee.hijacked {
			return
		}
		e.status, e.answered = cmp.Or(tee.status, http.StatusOK), tee.body.Bytes()
		r.judge(e)
	})
}

// Transport returns a transport that checks every request below /v1/ and its answer. Each distinct
// problem fails the test once. Unlike Watch it reports a wrong request whatever the answer is. Nil
// means http.DefaultTransport.
//
// It passes requests with a Stripe-Version before 2025-03-31.basil on unchecked.
func (s *Spec) Transport(t testing.TB, next http.RoundTripper) http.RoundTripper {
	return &transport{next, newReporter(t, s, false, true)}
}

// RequestTransport is Transport for requests alone: stripe-mock's samples have fields beyond the
// specification.
func (s *Spec) RequestTransport(t testing.TB, next http.RoundTripper) http.RoundTripper {
	return &transport{next, newReporter(t, s, false, false)}
}

type transport struct {
	next     http.RoundTripper
	reporter *reporter
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(q *http.Request) (*http.Response, error) {
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	e, q, err := exchangeOf(q)
	if !e.judged() {
		return next.RoundTrip(q)
	}
	if err != nil {
		return nil, errors.Join(err, q.Body.Close())
	}
	response, err := next.RoundTrip(q)
	if err == nil {
		e.status = response.StatusCode
	}
	if err == nil && t.reporter.answers {
		var cut error
		e.answered, cut = io.ReadAll(response.Body)
		response.Body = &replay{Reader: bytes.NewReader(e.answered), err: cut, Closer: response.Body}
		e.cut = cut != nil
	}
	t.reporter.judge(e)
	return response, err
}

// replay is a body read before, with the error at its end.
type replay struct {
	*bytes.Reader
	err error
	io.Closer
}

func (b *replay) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF && b.err != nil {
		err = b.err
	}
	return n, err
}

// WriteTo of bytes.Reader would leave the error out.
func (b *replay) WriteTo(w io.Writer) (int64, error) {
	n, err := b.Reader.WriteTo(w)
	if err == nil {
		err = b.err
	}
	return n, err
}

// teeWriter keeps a handler's answer.
type teeWriter struct {
	http.ResponseWriter
	status   int
	body     bytes.Buffer
	hijacked bool
}

func (w *teeWriter) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *teeWriter) Write(p []byte) (int, error) {
	w.body.Write(p)
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *teeWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Hijack implements http.Hijacker.
func (w *teeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.hijacked = true
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Unwrap serves http.ResponseController.
func (w *teeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
