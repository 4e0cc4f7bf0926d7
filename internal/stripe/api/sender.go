package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/processor"
)

// disconnectedFor is how long a disconnected account gets no request.
const disconnectedFor = 10 * time.Minute

// A sender is the backend of Stripe's library, and so carries every request. It keeps to the
// budget, has the one loop that sends again, and returns the meaning of an answer.
type sender struct {
	sdk.Backend // nil: of the library's kinds of calls two are used, and others panic

	next   sdk.Backend
	budget *budget
	now    func() time.Time
	log    *slog.Logger

	clock        clock.Peer   // Stripe's
	disconnected sync.Map     // the time.Time of the refusal, by connected account
	refused      atomic.Bool  // by the last answer: the key itself
	silent       atomic.Int64 // since when no request has been answered, in Unix milliseconds; 0: the last one was
}

func (s *sender) Call(method, path, key string, params sdk.ParamsContainer, v sdk.LastResponseSetter) error {
	return s.send(method, path, params.GetParams(), func() error { return s.next.Call(method, path, key, params, v) })
}

func (s *sender) CallRaw(method, path, key string, body []byte, params *sdk.Params, v sdk.LastResponseSetter) error {
	return s.send(method, path, params, func() error { return s.next.CallRaw(method, path, key, body, params, v) })
}

// A call is one request and its sends.
type call struct {
	method   string
	endpoint string
	at       string // connected account, or ""
	tries    int    // sends so far
	maybe    bool   // an earlier send may have been carried out
}

// send sends until Stripe carries it out, or it may not be sent again. Its error is an *Error.
func (s *sender) send(method, path string, p *sdk.Params, do func() error) error {
	ctx := p.Context
	c := &call{method: method, endpoint: Endpoint(method, path), at: sdk.StringValue(cmp.Or(p.StripeAccount, p.StripeContext))}
	for {
		if s.isDisconnected(c.at) {
			return c.end(&Error{Verdict: AccountRefused, Request: c.endpoint, Text: "account " + c.at +
				" refused access a moment ago, so nothing was sent"})
		}
		sent, err := s.budget.take(ctx, c.endpoint)
		if err != nil {
			return c.end(canceled(ctx, &Error{Verdict: Unknown, Request: c.endpoint}))
		}
		if err := c.pass(ctx); err != nil {
			return err
		}
		x := &exchange{keyless: p.IdempotencyKey == nil}
		p.Context = context.WithValue(ctx, exchangeKey{}, x)
		begun := s.now()
		err = do()
		p.Context = ctx
		s.clock.Note(x.header, begun, s.now())
		c.tries++
		if err == nil && x.status/100 == 2 {
			s.silent.Store(0)
			s.refused.Store(false)
			return nil
		}
		e := c.read(ctx, x, err)
		if e.Answer.readable && x.status < http.StatusInternalServerError { // else it may be a proxy's
			s.silent.Store(0)
		} else {
			s.silent.CompareAndSwap(0, begun.UnixMilli())
		}
		s.log.Debug("Stripe did not carry out a request", "request", c.endpoint, "status", x.status, "verdict", string(e.Verdict), "code",
			e.Answer.Code, "try", c.tries)
		c.maybe = c.maybe || e.Verdict == Unknown
		rest := restAfter(c.tries, x.header)
		s.learn(c, x, e, sent, rest)
		if !c.retryable(x, e) {
			return c.end(e)
		}
		if clock.Wait(ctx, rest) != nil {
			return c.end(canceled(ctx, e))
		}
	}
}

// pass returns the error of a send that the context's gate refuses.
func (c *call) pass(ctx context.Context) error {
	if c.method == http.MethodGet {
		return nil
	}
	err := processor.PassGate(ctx)
	if err == nil {
		return nil
	}
	text := "the request was not sent: "
	if c.tries > 0 {
		text = "the request was not sent again: "
	}
	return c.end(&Error{Verdict: Busy, Request: c.endpoint, Text: text + err.Error(), cause: err})
}

// end returns the error of the call. A Busy does not undo an earlier send.
func (c *call) end(e *Error) error {
	if e.Maybe = c.maybe; c.maybe && e.Verdict == Busy {
		e.Verdict = Unknown
	}
	return e
}

func canceled(ctx context.Context, e *Error) *Error {
	e.cause = errors.Join(ctx.Err(), context.Cause(ctx))
	if e.Verdict = Unknown; e.Text == "" {
		e.Text = ctx.Err().Error()
	}
	return e
}

// read returns the meaning of an answer.
func (c *call) read(ctx context.Context, x *exchange, err error) *Error {
	e := &Error{Request: c.endpoint, Answer: Answer{Status: x.status, connected: c.at != ""}}
	told, ok := toldBy(err)
	switch {
	case err == nil:
		e.Text = fmt.Sprintf("status %d, which did not come from Stripe", x.status)
	case !ok && x.status/100 == 2: // the answer may hold a customer's data
		e.Text = fmt.Sprintf("status %d with a malformed body", x.status)
	case !ok && x.status != 0:
		e.Text = fmt.Sprintf("status %d with a malformed body: %s", x.status, Clean(err.Error()))
	case !ok:
		e.Text = Clean(err.Error())
	default:
		e.fill(told, IsReplay(x.header))
	}
	e.Verdict = classify(e.Answer)
	if e.Verdict == Unknown && x.unsent {
		e.Verdict = Busy
	}
	if !ok && ctx.Err() != nil {
		return canceled(ctx, e)
	}
	return e
}

// toldBy returns an error in Stripe's form. Version 2 of the API has a form of its own.
func toldBy(err error) (*sdk.Error, bool) {
	if told, ok := errors.AsType[*sdk.Error](err); ok {
		return told, true
	}
	told, ok := errors.AsType[*sdk.V2RawError](err)
	if !ok {
		return nil, false
	}
	kind := sdk.ErrorTypeInvalidRequest
	return &sdk.Error{Type: *cmp.Or(told.Type, &kind), Code: sdk.ErrorCode(told.Code), Msg: told.Message,
		HTTPStatusCode: told.HTTPStatusCode, RequestID: told.RequestID}, true
}

// fill takes an error in Stripe's form.
func (e *Error) fill(told *sdk.Error, replayed bool) {
	a := &e.Answer
	a.readable, a.Status, a.param = told.Type != "", told.HTTPStatusCode, told.Param
	a.Kind, a.Code, a.Decline = string(told.Type), string(told.Code), string(told.DeclineCode)
	if told.LastResponse != nil {
		a.Advice = AdviceOf(told.LastResponse.RawJSON)
	}
	e.Intent, e.Charge, e.Replayed = told.PaymentIntent, told.ChargeID, replayed
	codes := strings.Fields(fmt.Sprintf("status %d %s %s %s", told.HTTPStatusCode, told.Type, told.Code, told.DeclineCode))
	e.Text = Clean(strings.Join(codes, " ") + ": " + told.Msg)
	if told.RequestID != "" {
		e.Text += " (request " + Clean(told.RequestID) + ")"
	}
}

// learn slows down after a 429. It remembers a disconnected account, and whether the key is refused.
func (s *sender) learn(c *call, x *exchange, e *Error, sent time.Time, rest time.Duration) {
	reason := x.header.Get("Stripe-Rate-Limited-Reason")
	if e.Answer.readable { // a key that lacks a permission is a valid one
		s.refused.Store(e.Verdict == Refused && x.status != http.StatusForbidden)
	}
	switch {
	case e.Answer.disconnects():
		s.disconnected.Store(c.at, s.now())
		s.log.Warn("a connected account refuses access", "account", c.at, "request", c.endpoint)
	case e.Verdict != Busy || x.status != http.StatusTooManyRequests || reason == "resource-specific" ||
		listed(busyCodesOfObjects, e.Answer.Code):
	case strings.HasPrefix(reason, "global"):
		s.budget.total.slow(sent, paceRest(c.tries, rest, x.header))
	default:
		s.budget.pace(c.endpoint).slow(sent, paceRest(c.tries, rest, x.header))
	}
}

// busyCodesOfObjects are about one object, and not about a rate.
const busyCodesOfObjects = " idempotency_key_in_use lock_timeout payment_intent_rate_limit_exceeded "

func (s *sender) isDisconnected(at string) bool {
	since, ok := s.disconnected.Load(at)
	if !ok {
		return false
	}
	age := s.now().Sub(since.(time.Time))
	return age >= 0 && age < disconnectedFor
}

// words are the fixed words of the paths in use; any other word of a path is an id.
const words = " account accounts attach balance_transactions cancel charges checkout confirm core customers disputes " +
	"events finalize invoice_payments invoiceitems invoices pay payment_intents payment_methods payouts prices refunds " +
	"sessions setup_intents subscription_schedules subscriptions v1 v2 void "

// Endpoint returns the method and the path without IDs, which is the unit of Stripe's rate limits.
func Endpoint(method, path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts {
		if !listed(words, part) {
			parts[i] = "{id}"
		}
	}
	return method + " /" + strings.Join(parts, "/")
}
