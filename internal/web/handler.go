package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"runtime"
	"runtime/debug"
	"time"
)

const (
	pathHealth = "/healthz"
	pathReady  = "/readyz"
	pathMetric = "/metrics"

	jsonType     = "application/json"
	linesType    = "application/x-ndjson"
	readyTimeout = 5 * time.Second
)

// Header values of every response, allocated only once because every event needs them.
var (
	jsonContent    = []string{jsonType}
	problemContent = []string{"application/problem+json"}
	noStore        = []string{"no-store"}
	noSniff        = []string{"nosniff"}
)

// An answer records the response's status.
type answer struct {
	http.ResponseWriter
	status int // 0: nothing was sent
}

func (a *answer) WriteHeader(status int) {
	a.status = cmp.Or(a.status, status)
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(text []byte) (int, error) {
	a.status = cmp.Or(a.status, http.StatusOK)
	return a.ResponseWriter.Write(text)
}

// Unwrap returns the writer for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{ResponseWriter: w}
	begun := s.o.Now()
	h := w.Header()
	id := requestID(r)
	r = r.WithContext(context.WithValue(r.Context(), idKey{}, id))
	q := &Request{Request: r, Server: s, w: a}
	h["Cache-Control"], h["X-Content-Type-Options"], h[headerRequest] = noStore, noSniff, []string{id}
	defer func() {
		if p := recover(); p != nil {
			s.o.Log.ErrorContext(r.Context(), "web: a request panicked", "route", routeOf(r), "panic", Shown(panicText(p)), "stack",
				string(debug.Stack()))
			if a.status == 0 {
				q.send(a, errFailed)
			}
		}
		if s.o.Answered != nil {
			s.o.Answered(routeOf(r), cmp.Or(a.status, http.StatusOK))
		}
		if s.o.Log.Enabled(r.Context(), slog.LevelDebug) {
			s.o.Log.DebugContext(r.Context(), "web: answered", "method", Shown(r.Method), "route", routeOf(r), "status", a.status, "took",
				s.o.Now().Sub(begun))
		}
	}()
	if r.Body != nil && r.Body != http.NoBody {
		in := &body{ReadCloser: r.Body, left: &s.left}
		defer in.release()
		r.Body = in
	}
	s.route(a, q)
}

// headerRequest is the header with the request's ID, which callers can choose. Each response has it.
const headerRequest = "Request-Id"

type idKey struct{}

// idForm matches a caller's request ID.
var idForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// requestID returns the caller's request ID if it is valid, or a new one.
func requestID(r *http.Request) string {
	if all := r.Header[headerRequest]; len(all) == 1 && idForm.MatchString(all[0]) {
		return all[0]
	}
	return "req_" + rand.Text()[:16]
}

// RequestID returns the ID of the request to which the context belongs, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(idKey{}).(string)
	return id
}

// panicText describes a panic without any part of the request.
func panicText(p any) string {
	if err, ok := p.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a %T", p)
}

func (s *Server) route(w http.ResponseWriter, r *Request) {
	err, p := error(errNoRoute), r.URL.Path
	switch do := s.o.Paths[p]; {
	case do != nil:
		r.Pattern = p
		err = do(w, r)
	case isAPI(p) && len(s.o.Routes) > 0:
		err = s.serveAPI(w, r)
	case p == pathMetric && s.o.Metrics != nil:
		r.Pattern = p
		err = s.serveMetrics(w, r)
	case isHealth(r.Request):
		r.Pattern = p
		err = s.serveState(w, r)
	}
	if err != nil {
		r.fail(w, err)
	}
}

var errNoRoute = &Problem{Status: http.StatusNotFound, Code: "no_route", Detail: "there is no such path"}

// WrongMethod returns the Problem for a request whose method is not in allow, such as "GET, HEAD".
func WrongMethod(w http.ResponseWriter, allow string) error {
	w.Header().Set("Allow", allow)
	return Problemf(http.StatusMethodNotAllowed, "method", "the method must be %s", allow)
}

// refused records the mux's own response to a request without a route.
type refused struct {
	header http.Header
	status int
}

func (n *refused) Header() http.Header         { return n.header }
func (n *refused) Write(p []byte) (int, error) { return len(p), nil }
func (n *refused) WriteHeader(status int)      { n.status = status }

// A Lack is the reason why a server is not ready. Anyone may read its text.
type Lack string

func (l Lack) Error() string { return string(l) }

// serveState serves /healthz and /readyz.
func (s *Server) serveState(w http.ResponseWriter, r *Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return WrongMethod(w, "GET, HEAD")
	}
	if r.URL.Path == pathReady && s.o.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := s.o.Ready(ctx); err != nil {
			s.Warn(r.Request, "unready", "web: the server is not ready", "error", Shown(err.Error()))
			text := "not ready"
			if lack, ok := errors.AsType[Lack](err); ok && s.o.Keys != nil {
				text += ": " + string(lack)
			}
			return Problemf(http.StatusServiceUnavailable, "unready", "%s", text)
		}
	}
	w.Header()["Content-Type"] = jsonContent
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, "{\"status\":\"ok\"}\n")
	return nil
}

// routeOf returns the route's pattern for the log. The path could contain anything.
func routeOf(r *http.Request) string {
	if r.Pattern == "" {
		return "none"
	}
	return r.Pattern
}
