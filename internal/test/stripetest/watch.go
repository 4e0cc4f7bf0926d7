package stripetest

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
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
	return s.watch(t, next, true)
}

// WatchRequests is Watch for requests alone. It reports a wrong request whatever the answer is. It
// is for stripe-mock, whose samples have fields beyond the specification.
func (s *Spec) WatchRequests(t testing.TB, next http.Handler) http.Handler {
	return s.watch(t, next, false)
}

func (s *Spec) watch(t testing.TB, next http.Handler, answers bool) http.Handler {
	r := &reporter{spec: s, answers: answers, t: t, seen: map[string]bool{}}
	t.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.t = nil
	})
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

func (w *teeWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

func (w *teeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.hijacked = true
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Unwrap serves http.ResponseController.
func (w *teeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A reporter fails a test, once for each distinct problem, until the test has ended.
type reporter struct {
	spec    *Spec
	answers bool // are checked, and a wrong request is a problem only with the status 200 or 402

	mu   sync.Mutex
	t    testing.TB // nil after the end
	seen map[string]bool
}

func (r *reporter) judge(e exchange) {
	problems, template, asked := r.spec.request(e)
	if r.answers {
		if e.status != http.StatusOK && e.status != http.StatusPaymentRequired {
			problems = nil
		}
		problems = append(problems, r.spec.checkResponse(e.method, e.path, e.status, e.answered, asked)...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, problem := range problems {
		key := e.method + " " + template + ": " + problem
		if r.t == nil || r.seen[key] {
			continue
		}
		r.seen[key] = true
		r.t.Errorf("Stripe's specification: %s %s (status %d): %s", e.method, e.path, e.status, problem)
	}
}

// An exchange is a request and the answer to it.
type exchange struct {
	method, path string
	header       http.Header // of the request
	query        string
	sent         []byte
	status       int
	answered     []byte
}

// exchangeOf reads a request, which next gets as it came.
func exchangeOf(q *http.Request) (e exchange, next *http.Request, err error) {
	e = exchange{method: q.Method, path: q.URL.Path, header: q.Header.Clone(), query: q.URL.RawQuery}
	if !e.judged() || q.Body == nil {
		return e, q, nil
	}
	e.sent, err = io.ReadAll(q.Body)
	body := io.Reader(bytes.NewReader(e.sent))
	if err != nil {
		body = io.MultiReader(body, iotest.ErrReader(err))
	}
	next = q.Clone(q.Context())
	next.Body = io.NopCloser(body)
	return e, next, err
}

// judged reports whether the specification describes the exchange: below /v1/, and not of a
// version before 2025-03-31.basil. An exchange without a version is judged.
func (e exchange) judged() bool {
	version := e.header.Get("Stripe-Version")
	return strings.HasPrefix(e.path, "/v1/") && (version == "" || version >= basil)
}

func (e exchange) form(op *operation) (values url.Values, problems []string) {
	if len(e.sent) == 0 {
		return nil, nil
	}
	kind, _, _ := strings.Cut(e.header.Get("Content-Type"), ";")
	if kind = strings.TrimSpace(kind); op != nil && kind != op.contentType {
		return nil, []string{"the body is " + kind + "; Stripe wants " + op.contentType}
	}
	if kind == "multipart/form-data" {
		return nil, nil // a file: nobody here sends one
	}
	values, err := url.ParseQuery(string(e.sent))
	if err != nil {
		return nil, []string{"the body is no form: " + err.Error()}
	}
	return values, nil
}

// idempotencyKey is Stripe's limit of the header Idempotency-Key, in characters.
const idempotencyKey = 255

// request returns the problems of the request, its template, and its expansions.
func (s *Spec) request(e exchange) (problems []string, template string, asked []string) {
	op, template, _ := s.find(e.method, e.path)
	form, problems := e.form(op)
	query, err := url.ParseQuery(e.query)
	if len(problems) == 0 {
		problems = s.CheckRequest(e.method, e.path, query, form)
	}
	if err != nil {
		problems = append(problems, "the query is no form: "+err.Error())
	}
	if len(e.header.Get("Idempotency-Key")) > idempotencyKey {
		problems = append(problems, "the header Idempotency-Key is too long")
	}
	asked = expand(query, form)
	slices.Sort(asked)
	return problems, template, append([]string{}, asked...)
}
