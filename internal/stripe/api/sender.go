package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/stripe/stripe-go/v86"
)

const (
	busyTries    = 8 // sends of one request that Stripe is too busy for
	readTries    = 3 // sends of a look-up whose answer was lost
	advisedTries = 3 // sends of a request that Stripe itself asks to send again
	firstRest    = 500 * time.Millisecond
	longestRest  = 8 * time.Second

	firstLaneRest = 50 * time.Millisecond
	longestAsked  = time.Minute      // of a Retry-After
	refusalLife   = 10 * time.Minute // how long a connected account is left alone that has let go of us
)

// A sender is the way of every request to Stripe: it keeps to the budget, sends again what
// may be sent again, in the one loop there is, and says what the answer means. It is the
// backend of Stripe's library, so that each page of a list goes this way too.
type sender struct {
	next   sdk.Backend
	budget *budget
	now    func() time.Time
	log    *slog.Logger

	mu      sync.Mutex
	cutoffs map[string]time.Time // by connected account: when it let go of us; guarded by mu
}

var _ sdk.Backend = (*sender)(nil)

// Call implements the library's Backend.
func (s *sender) Call(method, path, key string, params sdk.ParamsContainer, v sdk.LastResponseSetter) error {
	return s.send(method, path, params.GetParams(), func() error { return s.next.Call(method, path, key, params, &wholeList{v}) })
}

// CallRaw implements the library's Backend.
func (s *sender) CallRaw(method, path, key string, body []byte, params *sdk.Params, v sdk.LastResponseSetter) error {
	return s.send(method, path, params, func() error { return s.next.CallRaw(method, path, key, body, params, &wholeList{v}) })
}

var errNoSuchCall = errors.New("stripe: calls of this kind are not used")

// CallStreaming implements the library's Backend: it is not used.
func (s *sender) CallStreaming(string, string, string, sdk.ParamsContainer, sdk.StreamingLastResponseSetter) error {
	return errNoSuchCall
}

// CallMultipart implements the library's Backend: it is not used.
func (s *sender) CallMultipart(string, string, string, string, *bytes.Buffer, *sdk.Params, sdk.LastResponseSetter) error {
	return errNoSuchCall
}

// SetMaxNetworkRetries implements the library's Backend: there are none but the loop's.
func (s *sender) SetMaxNetworkRetries(int64) {}

// A call is one request and its sends.
type call struct {
	method string
	what   string // Method and path, without ids: the endpoint
	at     string // connected account, or ""
	tries  int    // sends so far
	doubt  bool   // one of them may have been carried out
}

// send is the loop. Its error is a *failure.
func (s *sender) send(method, path string, p *sdk.Params, do func() error) error {
	ctx := p.Context
	c := &call{method: method, what: Endpoint(method, path), at: sdk.StringValue(p.StripeAccount)}
	for {
		if s.isCut(c.at) {
			return c.end(&Error{Verdict: AccountRefused, Request: c.what, Text: "account " + c.at + " refused us a moment ago; nothing was sent"})
		}
		sent, err := s.budget.take(ctx, c.what)
		if err != nil {
			return c.end(canceled(ctx, &Error{Verdict: Unknown, Request: c.what}))
		}
		x := &exchange{keyless: p.IdempotencyKey == nil}
		p.Context = context.WithValue(ctx, exchangeKey{}, x)
		err = do()
		p.Context = ctx
		c.tries++
		if err == nil && x.status/100 == 2 {
			return nil
		}
		f := c.read(ctx, x, err)
		s.log.Debug("stripe did not do it", "request", c.what, "status", x.status, "verdict", string(f.Verdict), "code", f.Answer.Code, "try", c.tries)
		c.doubt = c.doubt || f.Verdict == Unknown
		rest := rest(c.tries, x.header)
		s.learn(c, x, f, sent, rest)
		if !c.again(x, f) {
			return c.end(f)
		}
		if pause(ctx, rest) != nil {
			return c.end(canceled(ctx, f))
		}
	}
}

// end is the last word on a call: what may have been done by an earlier send is not called
// undone because a later one was not let in.
func (c *call) end(f *Error) error {
	if c.doubt && f.Verdict == Busy {
		f.Verdict = Unknown
	}
	return f
}

// canceled notes that the context has ended.
func canceled(ctx context.Context, f *Error) *Error {
	f.cause = errors.Join(ctx.Err(), context.Cause(ctx))
	if f.Verdict = Unknown; f.Text == "" {
		f.Text = ctx.Err().Error()
	}
	return f
}

// read tells what an answer means.
func (c *call) read(ctx context.Context, x *exchange, err error) *Error {
	f := &Error{Request: c.what, Answer: Answer{Status: x.status, connected: c.at != ""}}
	e, ok := errors.AsType[*sdk.Error](err)
	switch {
	case err == nil:
		f.Text = fmt.Sprintf("status %d is no answer of Stripe's", x.status)
	case !ok:
		f.Text = Clean(err.Error())
		if x.status/100 == 2 { // Request it holds is a customer's, and not for an error
			f.Text = fmt.Sprintf("status %d with an answer that cannot be read", x.status)
		} else if x.status != 0 {
			f.Text = fmt.Sprintf("status %d with an answer that cannot be read: %s", x.status, f.Text)
		}
	default:
		a := &f.Answer
		a.readable, a.Status, a.Kind, a.Code, a.Decline, a.param = e.Type != "", e.HTTPStatusCode, string(e.Type), string(e.Code), string(e.DeclineCode), e.Param
		if e.LastResponse != nil {
			a.Advice = AdviceOf(e.LastResponse.RawJSON)
		}
		f.Intent, f.Charge, f.Replayed = e.PaymentIntent, e.ChargeID, IsReplay(x.header)
		codes := strings.Fields(fmt.Sprintf("status %d %s %s %s", e.HTTPStatusCode, e.Type, e.Code, e.DeclineCode))
		f.Text = Clean(strings.Join(codes, " ") + ": " + e.Msg)
		if e.RequestID != "" {
			f.Text += " (request " + Clean(e.RequestID) + ")"
		}
	}
	f.Verdict = classify(f.Answer)
	if f.Verdict == Unknown && x.unsent {
		f.Verdict = Busy
	}
	if !ok && ctx.Err() != nil {
		return canceled(ctx, f)
	}
	return f
}

// again reports whether the request may be sent once more, with the same key.
func (c *call) again(x *exchange, f *Error) bool {
	if f.cause != nil || f.Verdict != Busy && f.Verdict != Unknown {
		return false
	}
	switch x.header.Get("Stripe-Should-Retry") {
	case "false":
		return false
	case "true":
		if f.Verdict == Unknown {
			return c.tries < advisedTries
		}
	}
	switch {
	case f.Verdict == Busy && x.unsent, f.Verdict == Unknown && c.method == http.MethodGet:
		return c.tries < readTries
	case f.Verdict == Busy:
		return c.tries < busyTries
	}
	return false // whether to ask again, and by which key, is decided after a look-up
}

// rest returns how long to wait before the next send: what Stripe asks for, or longer each
// time, with a spread so that workers do not come back together.
func rest(tries int, h http.Header) time.Duration {
	if asked, err := strconv.Atoi(h.Get("Retry-After")); err == nil && asked >= 0 {
		return min(time.Duration(asked)*time.Second, longestAsked)
	}
	d := longestRest
	if tries < 5 {
		d = firstRest << (tries - 1)
	}
	return d/2 + rand.N(d/2)
}

// laneRest is for how long nobody sends after a 429: as long as Stripe says, where it does;
// else a moment where the first send met it, since the pace is about right, and as long as the
// request itself waits when it comes again.
func laneRest(tries int, rest time.Duration, h http.Header) time.Duration {
	if tries == 1 && h.Get("Retry-After") == "" {
		return min(rest, firstLaneRest)
	}
	return rest
}

// learn slows down the endpoint, or all of them, after a 429 that was for their rate, and
// remembers a connected account that has let go of us.
func (s *sender) learn(c *call, x *exchange, f *Error, sent time.Time, rest time.Duration) {
	reason := x.header.Get("Stripe-Rate-Limited-Reason")
	switch {
	case f.Answer.cuts():
		s.mu.Lock()
		s.cutoffs[c.at] = s.now()
		s.mu.Unlock()
		s.log.Warn("a connected account refuses us", "account", c.at, "request", c.what)
	case f.Verdict != Busy || x.status != http.StatusTooManyRequests || reason == "resource-specific" || listed(busyCodesOfObjects, f.Answer.Code):
	case strings.HasPrefix(reason, "global"):
		s.budget.total.slow(sent, laneRest(c.tries, rest, x.header))
	default:
		s.budget.lane(c.what).slow(sent, laneRest(c.tries, rest, x.header))
	}
}

// busyCodesOfObjects are about one object, and not about a rate.
const busyCodesOfObjects = " idempotency_key_in_use lock_timeout payment_intent_rate_limit_exceeded "

func (s *sender) isCut(at string) bool {
	if at == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	since, ok := s.cutoffs[at]
	if age := s.now().Sub(since); ok && (age < 0 || age >= refusalLife) {
		delete(s.cutoffs, at)
		return false
	}
	return ok
}

// words are the words of Stripe's paths that are used; everything else in one is an id.
const words = " account accounts attach cancel checkout confirm customers disputes events finalize invoice_payments invoiceitems invoices pay " +
	"payment_intents payment_methods prices refunds sessions setup_intents subscription_schedules subscriptions v1 void "

// Endpoint returns what Stripe counts by: the method and the path, without ids.
func Endpoint(method, path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts {
		if !listed(words, part) {
			parts[i] = "{id}"
		}
	}
	return method + " /" + strings.Join(parts, "/")
}
