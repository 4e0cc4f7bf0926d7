package stripefake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"
)

const (
	readTimeout  = 30 * time.Second // of a request
	writeTimeout = time.Minute      // of an answer, beside what a request has to wait
	idleTimeout  = 5 * time.Minute  // of a connection
	graceTime    = 20 * time.Second // for what has begun, once the server is to stop
	maxBody      = 1 << 20          // bytes of a request
	maxHeader    = 64 << 10         // bytes of a request's header
)

// Serve serves the fake until ctx ends, then finishes what has begun, within 20 seconds, and
// returns nil. It closes the listener, and leaves the fake open. Whoever reaches the
// listener can use it and control it.
func Serve(ctx context.Context, l net.Listener, f *Fake, log *slog.Logger) error {
	server := &http.Server{
		Handler: f, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: maxLatency + writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	stopped := make(chan error, 1)
	cancel := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
		defer cancel()
		err := server.Shutdown(grace)
		if err != nil {
			err = errors.Join(fmt.Errorf("requests were cut off %v after the stop: %w", graceTime, err), server.Close())
		}
		stopped <- err
	})
	err := server.Serve(l)
	if cancel() { // it ended by itself
		return errors.Join(err, server.Close())
	}
	return <-stopped
}

// ServeHTTP serves the API under /v1, the control API under /_fake, and the pages that
// customers see everywhere else.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/v1/"):
		f.serveAPI(w, r)
	case path == "/_fake" || strings.HasPrefix(path, "/_fake/"):
		f.serveControl(w, r)
	default:
		f.pages.ServeHTTP(w, r)
	}
}

// A reply is an answer, ready to be sent, now and whenever its idempotency key comes again.
type reply struct {
	status int
	body   []byte
	retry  string // Stripe-Should-Retry; "": Stripe does not say
}

// An exchange is a request from its arrival to its answer.
type exchange struct {
	f       *Fake
	w       http.ResponseWriter
	r       *http.Request
	call    *call
	expand  [][]string
	fate    fate
	attempt *attempt // of the idempotency key; nil without one
	replay  *attempt // whose reply is to be repeated
	name    string   // of the endpoint, in counts
}

func (f *Fake) serveAPI(w http.ResponseWriter, r *http.Request) {
	x := &exchange{f: f, w: w, r: r, name: "unknown"}
	params, err := readForm(w, r)
	if err = x.admit(params, err); err != nil {
		x.answer(x.failure(err))
		return
	}
	x.carryOut()
}

// admit is what comes before a request is carried out. Its errors are saved under no
// idempotency key.
func (x *exchange) admit(params form, err error) error {
	f := x.f
	f.mu.Lock()
	defer f.mu.Unlock()
	x.call = f.system(f.in(DefaultAccount, false))
	c := x.call
	c.id, c.url, c.base = f.newID("req"), x.r.URL.Path, baseOf(x.r)
	if x.r.Method == http.MethodPost {
		c.key = x.r.Header.Get("Idempotency-Key")
	}
	route, names := f.router.find(x.r.Method, x.r.URL.Path)
	if route == nil {
		return unrecognized(x.r)
	}
	c.route, c.path, c.form, x.name = route, names, params, route.endpoint()
	if err := x.enter(); err != nil {
		return err
	}
	if err != nil { // of the parameters: whoever has no key learns nothing about them
		return err
	}
	if err := route.know(params, c.version); err != nil {
		return err
	}
	if x.expand, err = c.expansions(); err != nil {
		return err
	}
	if !f.admit(c.space.limitName() + x.name) {
		return tooMany()
	}
	if x.fate = f.draw(); x.fate == busy {
		return f.isBusy(c.key)
	}
	return x.claim()
}

// enter finds out who asks, about whose objects, and in which version.
func (x *exchange) enter() error {
	c := x.call
	key, err := x.f.authenticate(x.r)
	if err != nil {
		return err
	}
	account, err := x.f.account(key, x.r)
	if err != nil {
		return err
	}
	if err := key.permit(x.r, account); err != nil {
		return err
	}
	c.space, c.version = x.f.in(account, key.live()), x.f.defaultVersion(account)
	if version := x.r.Header.Get("Stripe-Version"); version != "" {
		if err := checkVersion(version); err != nil {
			return err
		}
		c.version = version
	}
	return nil
}

// claim takes the idempotency key for this request, or finds the reply to be repeated.
func (x *exchange) claim() error {
	c := x.call
	if c.key == "" {
		return nil
	}
	a := attempt{key: c.key, endpoint: c.url, request: c.id}
	first, err := c.space.keys.begin(x.f.time(), a, c.form)
	switch {
	case err != nil:
		return err
	case first.running:
		x.attempt = first
	default:
		x.replay = first
	}
	return nil
}

// carryOut waits, executes and answers, as the fate of the request is.
func (x *exchange) carryOut() {
	f, done := x.f, (*reply)(nil)
	defer func() { // also if the caller is gone, or a route panics
		f.mu.Lock()
		defer f.mu.Unlock()
		x.call.space.keys.end(x.attempt, f.time(), done)
	}()
	if wait(x.r.Context(), f.latency()) != nil || x.fate == lostRequest {
		x.count(0)
		hangUp(x.w)
		return
	}
	var answer reply
	switch {
	case x.replay != nil:
		answer = *x.replay.reply
	case x.fate == failed:
		answer = x.failure(broken())
		done = &answer
	default:
		var saved bool
		answer, saved = x.execute()
		if x.fate == failedLate {
			answer, saved = x.failure(broken()), true
		}
		if saved {
			done = &answer
		}
	}
	if x.fate == lostReply || x.call.breakOff {
		x.count(0)
		hangUp(x.w)
		return
	}
	x.answer(answer)
}

func (f *Fake) latency() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults.Latency
}

// execute carries the request out, and says whether its idempotency key keeps the reply.
func (x *exchange) execute() (r reply, saved bool) {
	f, c := x.f, x.call
	f.mu.Lock()
	defer f.mu.Unlock()
	c.now = f.time().Unix()
	c.tick()
	o, err := c.route.do(c)
	if err != nil {
		e, known := errors.AsType[*apiError](err)
		return x.failed(err), !known || !e.isValidation()
	}
	return reply{status: http.StatusOK, body: encode(c.render(o, x.expand))}, true
}

// failure is the reply of an error.
func (x *exchange) failure(err error) reply {
	x.f.mu.Lock()
	defer x.f.mu.Unlock()
	return x.failed(err)
}

func (x *exchange) failed(err error) reply {
	e, ok := errors.AsType[*apiError](err)
	if !ok {
		x.f.o.Log.Error("stripefake: a request failed by an error of the fake", "endpoint", x.name, "error", err)
		e = &apiError{status: http.StatusInternalServerError, kind: "api_error", message: "An error of the fake: " + err.Error()}
	}
	r := reply{status: e.status, body: encode(x.call.errorObject(e))}
	switch e.status {
	case http.StatusConflict, http.StatusTooManyRequests:
		r.retry = "true"
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound:
		r.retry = "false"
	}
	return r
}

// answer sends the reply.
func (x *exchange) answer(a reply) {
	x.count(a.status)
	h := x.w.Header()
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Date": x.f.Now().UTC().Format(http.TimeFormat), "Cache-Control": "no-cache, no-store", "Request-Id": x.call.id, "Stripe-Version": x.call.version,
		"Idempotency-Key": headerValue(x.call.key), "Stripe-Account": headerValue(x.r.Header.Get("Stripe-Account")), "Stripe-Should-Retry": a.retry,
	} {
		if value != "" {
			h.Set(name, value)
		}
	}
	if x.replay != nil {
		h.Set("Idempotent-Replayed", "true")
		h.Set("Original-Request", x.replay.request)
	}
	x.w.WriteHeader(a.status)
	_, _ = x.w.Write(a.body) // a caller that is gone learns nothing, as it should
}

// headerValue is a text of the caller's as it may stand in a header.
func headerValue(s string) string { return strings.Map(printable, s[:min(len(s), maxKeyLen)]) }

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

// readBody returns the form of a request's body.
func readBody(w http.ResponseWriter, r *http.Request) (string, error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return "", invalid("", "", "The request is larger than 1 MiB.")
	}
	if err != nil {
		return "", invalid("", "", "The request cannot be read.")
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if kind = strings.TrimSpace(kind); len(text) > 0 && kind != "" && !strings.EqualFold(kind, "application/x-www-form-urlencoded") {
		return "", invalid("", "", "The body has to be application/x-www-form-urlencoded, and is "+shown(kind)+".")
	}
	return string(text), nil
}

// hostForm is what a Host has to look like to be shown in a link.
var hostForm = regexp.MustCompile(`^[A-Za-z0-9.:\[\]-]+$`)

// baseOf is how the caller reached the fake.
func baseOf(r *http.Request) string {
	if !hostForm.MatchString(r.Host) {
		return "http://localhost"
	}
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// limitName is what endpoints are counted by for the rate limit, with the endpoint's name.
func (s *space) limitName() string {
	if s.live {
		return s.account + " live "
	}
	return s.account + " test "
}

// readForm returns the parameters of a request, from its URL and its body.
func readForm(w http.ResponseWriter, r *http.Request) (form, error) {
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	return parseForm(r.URL.RawQuery, body)
}
