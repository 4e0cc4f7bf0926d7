package api

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

const (
	MaxBody    = 1 << 20     // bytes of a request
	MaxLatency = time.Minute // of Faults.Latency
)

// A reply is an answer to be sent now, and again with its idempotency key.
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
	call    *Call
	expand  [][]string
	fate    fate
	attempt *attempt // of the idempotency key; nil without one
	replay  *attempt // whose reply is to be repeated
	name    string   // of the endpoint, in counts
}

func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{f: f, w: w, r: r, name: "unknown"}
	params, err := readForm(w, r)
	if err = x.admit(params, err); err != nil {
		x.answer(x.failure(err))
		return
	}
	x.carryOut()
}

// admit comes before a request is carried out. err is the fault of the parameters. No key saves one.
func (x *exchange) admit(params shape.Form, err error) error {
	f := x.f
	defer f.lock()()
	x.call = f.System(f.In(DefaultAccount, false))
	c := x.call
	c.id, c.url, c.query, c.Base = f.NewID("req"), x.r.URL.Path, x.r.URL.RawQuery, BaseOf(x.r)
	if x.r.Method == http.MethodPost {
		c.key = x.r.Header.Get("Idempotency-Key")
	}
	route, names, id := f.router.find(x.r.Method, x.r.URL.Path)
	if route == nil {
		return unrecognized(x.r)
	}
	c.Path, c.ID, x.name, c.route, c.params = names, id, route.Endpoint(), route, params
	c.Form = shape.Reading(params, func(name string) { c.declared(name, func(param) bool { return true }) })
	// err comes second: a caller without an API key learns nothing about its parameters
	if err := cmp.Or(x.enter(), err); err != nil {
		return err
	}
	if err := route.Know(params, c.Version); err != nil {
		return err
	}
	if x.expand, err = c.expansions(); err != nil {
		return err
	}
	if !f.admit(c.Space, x.name) {
		return tooMany()
	}
	if x.fate = f.draw(); x.fate == busy {
		return f.isBusy(c.key)
	}
	if c.key == "" {
		return nil
	}
	first, err := c.Space.keys.begin(f.time(), attempt{key: c.key, endpoint: c.url, request: c.id}, params)
	if err == nil && first.running {
		x.attempt = first
	} else if err == nil {
		x.replay = first
	}
	return err
}

// enter finds the key, the account and the version of the request.
func (x *exchange) enter() error {
	c := x.call
	key, noKey := x.f.authenticate(x.r)
	account, err := x.f.account(key, x.r)
	if err := cmp.Or(noKey, err, key.permit(x.r, account)); err != nil {
		return err
	}
	c.Space, c.Version = x.f.In(account, key.live()), x.f.defaultVersion(account)
	if version := x.r.Header.Get("Stripe-Version"); version != "" {
		if err := checkVersion(version); err != nil {
			return err
		}
		c.Version = version
	}
	return nil
}

// carryOut waits, executes and answers, by the fate of the request.
func (x *exchange) carryOut() {
	f, done := x.f, (*reply)(nil)
	defer func() { // also if the caller is gone, or a route panics
		defer f.lock()()
		x.call.Space.keys.end(x.attempt, f.time(), done)
	}()
	var answer reply
	lost := wait(x.r.Context(), f.Faults().Latency) != nil || x.fate == lostRequest
	switch {
	case lost:
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
	if lost || x.fate == lostReply || x.call.BreakOff {
		x.count(0)
		hangUp(x.w)
		return
	}
	x.answer(answer)
}

// execute carries the request out. saved reports whether its idempotency key keeps the reply.
func (x *exchange) execute() (r reply, saved bool) {
	f, c := x.f, x.call
	defer f.lock()()
	c.Now = f.time().Unix()
	c.Run(nil, c.Now)
	err := c.check()
	var o object
	if err == nil {
		o, err = c.route.Do(c)
	}
	if c.misread != nil {
		err = c.misread
	}
	if err != nil {
		e, known := errors.AsType[*shape.Error](err)
		return x.failed(err), !known || !e.IsValidation()
	}
	return reply{status: http.StatusOK, body: shape.Encode(c.render(o, x.expand))}, true
}

func (x *exchange) failure(err error) reply {
	defer x.f.lock()()
	return x.failed(err)
}

func (x *exchange) failed(err error) reply {
	e, ok := errors.AsType[*shape.Error](err)
	if !ok {
		x.f.Options.Log.Error("stripefake: a request failed by an error of the fake", "endpoint", x.name, "error", err)
		e = &shape.Error{Status: http.StatusInternalServerError, Kind: "api_error",
			Message: "An error of the fake: " + err.Error()}
	}
	r := reply{status: e.Status, body: shape.Encode(x.call.errorObject(e))}
	switch e.Status {
	case http.StatusConflict, http.StatusTooManyRequests:
		r.retry = "true"
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden,
		http.StatusNotFound:
		r.retry = "false"
	}
	return r
}

func (x *exchange) answer(a reply) {
	x.count(a.status)
	h := x.w.Header()
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Date": x.f.TimeNow().UTC().Format(http.TimeFormat),
		"Cache-Control": "no-cache, no-store", "Request-Id": x.call.id, "Stripe-Version": x.call.Version,
		"Idempotency-Key": headerValue(x.call.key), "Stripe-Account": headerValue(x.r.Header.Get("Stripe-Account")),
		"Stripe-Should-Retry": a.retry,
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
	_, _ = x.w.Write(a.body) // the caller may be gone
}

// headerValue returns a text of the caller's as a header may have it.
func headerValue(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s[:min(len(s), maxKeyLen)])
}

// readForm returns the parameters of a request, from its URL and its body.
func readForm(w http.ResponseWriter, r *http.Request) (shape.Form, error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, shape.Invalid("", "", "The request is larger than 1 MiB.")
	}
	if err != nil {
		return nil, shape.Invalid("", "", "The request cannot be read.")
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if kind = strings.TrimSpace(kind); len(text) > 0 && kind != "" &&
		!strings.EqualFold(kind, "application/x-www-form-urlencoded") {
		return nil, shape.Invalid("", "", "The body has to be application/x-www-form-urlencoded, and is "+
			shape.Shown(kind)+".")
	}
	return shape.ParseForm(r.URL.RawQuery, string(text))
}

// hostForm is the form of a Host that links may show.
var hostForm = regexp.MustCompile(`^[A-Za-z0-9.:\[\]-]+$`)

// BaseOf returns the address by which the caller reached the fake.
func BaseOf(r *http.Request) string {
	if !hostForm.MatchString(r.Host) {
		return "http://localhost"
	}
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// A Count is the number of answers of an endpoint with a status.
type Count struct {
	Endpoint string `json:"endpoint"` // POST /v1/payment_intents/{intent}/confirm; unknown: no endpoint of the fake
	Status   int    `json:"status"`   // 0: the connection broke
	Requests int64  `json:"requests"`
	Replays  int64  `json:"replays"` // repeated answers among them
}

func (c Count) compare(d Count) int {
	return cmp.Or(cmp.Compare(c.Endpoint, d.Endpoint), cmp.Compare(c.Status, d.Status))
}

func (x *exchange) count(status int) {
	defer x.f.lock()()
	n := Count{Endpoint: x.name, Status: status}
	i, known := slices.BinarySearchFunc(x.f.counts, n, Count.compare)
	if !known {
		x.f.counts = slices.Insert(x.f.counts, i, n)
	}
	x.f.counts[i].Requests++
	if x.replay != nil {
		x.f.counts[i].Replays++
	}
}

// Requests returns the counts so far, by endpoint and status.
func (f *Fake) Requests() []Count {
	defer f.lock()()
	return append([]Count{}, f.counts...)
}
