package stripetest

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"testing"
)

// Transport returns a transport that checks every request below /v1/ and its answer. Each distinct
// problem fails the test once. Unlike Watch it reports a wrong request whatever the answer is. Nil
// means http.DefaultTransport.
//
// It passes requests with a Stripe-Version before 2025-03-31.basil on unchecked.
func (s *Spec) Transport(t testing.TB, next http.RoundTripper) http.RoundTripper {
	return &transport{spec: s, next: next, reporter: newReporter(t), answers: true}
}

// RequestTransport is Transport for requests alone: stripe-mock's samples have fields beyond the
// specification.
func (s *Spec) RequestTransport(t testing.TB, next http.RoundTripper) http.RoundTripper {
	return &transport{spec: s, next: next, reporter: newReporter(t)}
}

type transport struct {
	spec     *Spec
	next     http.RoundTripper
	reporter *reporter
	answers  bool // are checked, too
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(q *http.Request) (*http.Response, error) {
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	e := exchange{method: q.Method, path: q.URL.Path, header: q.Header, query: q.URL.Query()}
	if !e.judged() {
		return next.RoundTrip(q)
	}
	if q.Body != nil {
		sent, err := io.ReadAll(q.Body)
		if closed := q.Body.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return nil, err
		}
		e.sent = sent
		q = q.Clone(q.Context())
		q.Body = io.NopCloser(bytes.NewReader(sent))
	}
	problems, template, asked := t.spec.request(e)
	if _, err := url.ParseQuery(q.URL.RawQuery); err != nil {
		problems = append(problems, "the query is no form: "+err.Error())
	}
	response, err := next.RoundTrip(q)
	if err != nil {
		t.reporter.report(e, template, problems)
		return nil, err
	}
	e.status = response.StatusCode
	if t.answers {
		var cut error
		e.answered, cut = io.ReadAll(response.Body)
		response.Body = &replay{Reader: bytes.NewReader(e.answered), err: cut, Closer: response.Body}
		if cut == nil {
			problems = append(problems, t.spec.checkResponse(e.method, e.path, e.status, e.answered, asked)...)
		}
	}
	t.reporter.report(e, template, problems)
	return response, nil
}
