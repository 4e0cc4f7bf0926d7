package stripetest

import (
	"bufio"
	"bytes"
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
	r := newReporter(t)
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		e := exchange{method: q.Method, path: q.URL.Path, header: q.Header.Clone(), query: q.URL.Query()}
		if !e.judged() {
			next.ServeHTTP(w, q)
			return
		}
		sent, err := io.ReadAll(q.Body)
		q.Body = &replay{Reader: bytes.NewReader(sent), err: err, Closer: q.Body}
		tee := &teeWriter{ResponseWriter: w}
		next.ServeHTTP(tee, q)
		if err != nil || tee.hijacked {
			return
		}
		e.sent, e.status, e.answered = sent, tee.status, tee.body.Bytes()
		if e.status == 0 {
			e.status = http.StatusOK
		}
		problems, template, asked := s.request(e)
		if e.status != http.StatusOK && e.status != http.StatusPaymentRequired {
			problems = nil
		}
		answer := s.checkResponse(e.method, e.path, e.status, e.answered, asked)
		r.report(e, template, append(problems, answer...))
	})
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
