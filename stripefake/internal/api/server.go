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
	plan    *failure // of FailNext; nil: none
	text    string   // the parameters as they came, from the URL and the body
	name    string   // of the endpoint, in counts
	entered bool     // its key opens its account
}

func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{f: f, w: w, r: r, name: "unknown"}
	params, err := x.readForm()
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
	if plan := x.planned(true); plan != nil {
		return x.failureError(plan)
	}
	return x.begin(params)
}

// begin looks at the idempotency key. A request that has no answer yet meets its planned failure.
func (x *exchange) begin(params shape.Form) error {
	f, c := x.f, x.call
	if c.key != "" {
		first, err := c.Space.keys.begin(f.time(), attempt{key: c.key, endpoint: c.url, request: c.id}, params)
		if err != nil {
			return err
		}
		if !first.running {
			x.replay = first
			return nil
		}
		x.attempt = first
	}
	if x.plan = x.planned(false); x.plan != nil && x.plan.status == 0 {
		x.fate = lostRequest
	}
	return nil
}

// enter finds the key, the account and the version of the request.
func (x *exchange) enter() error {
	c := x.call
	key, noKey := x.f.authenticate(x.r)
	account, err := x.f.account(key, x.r)
	if err := cmp.Or(noKey, err, key.permit(x.r, account)); err != nil {
		return err
	}
	c.Space, c.Version, x.entered = x.f.In(account, key.live()), x.f.defaultVersion(account), true
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
	case x.plan != nil:
		err := x.failureError(x.plan)
		if answer = x.failure(err); isSaved(err) {
			done = &answer
		}
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
		return x.failed(err), isSaved(err)
	}
	return reply{status: http.StatusOK, body: shape.Encode(c.render(o, x.expand))}, true
}

// isSaved reports whether an idempotency key keeps the error.
func isSaved(err error) bool {
	e, known := errors.AsType[*shape.Error](err)
	return !known || !e.IsValidation()
}

func (x *exchange) failure(err error) reply {
	defer x.f.lock()()
	return x.failed(err)
}

func (x *exchange) failed(err error) reply {
	e, ok := errors.AsType[*shape.Error](err)
	if !ok {
		x.f.Options.Log.Error("stripefake: a request failed because of a bug in stripefake", "endpoint", x.name, "error", err)
		e = &shape.Error{Status: http.StatusInternalServerError, Kind: "api_error",
			Message: "A bug in stripefake: " + err.Error()}
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
func (x *exchange) readForm() (shape.Form, error) {
	r := x.r
	text, err := io.ReadAll(http.MaxBytesReader(x.w, r.Body, MaxBody))
	x.text = r.URL.RawQuery
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, shape.Invalid("", "", "The request is larger than 1 MiB.")
	}
	if err != nil {
		return nil, shape.Invalid("", "", "The request cannot be read.")
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if kind = strings.TrimSpace(kind); len(text) > 0 && kind != "" &&
		!strings.EqualFold(kind, "application/x-www-form-urlencoded") {
		return nil, shape.Invalid("", "", "The body must be application/x-www-form-urlencoded (got "+
			shape.Shown(kind)+").")
	}
	x.text = strings.Trim(x.text+"&"+string(text), "&")
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

// A Count is stripefake.Count.
type Count struct {
	Endpoint string
	Status   int
	Requests int64
	Replays  int64
}

func (c Count) compare(d Count) int {
	return cmp.Or(cmp.Compare(c.Endpoint, d.Endpoint), cmp.Compare(c.Status, d.Status))
}

func (x *exchange) count(status int) {
	defer x.f.lock()()
	x.log(status)
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

func (f *Fake) Counts() []Count {
	defer f.lock()()
	return append([]Count{}, f.counts...)
}
