package stripefake

import (
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
)

// Faults set how often requests and webhooks fail at random. Each rate is a probability from 0 to 1.
// LostRequests, LostReplies, Errors, LateErrors and Busy are mutually exclusive, so their sum must be at
// most 1.
type Faults struct {
	Latency      time.Duration `json:"-"`             // the delay before the fake executes a request; at most a minute
	LostRequests float64       `json:"lost_requests"` // requests whose connection breaks before the fake executes them
	LostReplies  float64       `json:"lost_replies"`  // requests whose connection breaks after the fake has executed them
	Errors       float64       `json:"errors"`        // requests that fail with a 500 and are not executed; the idempotency key replays the 500
	LateErrors   float64       `json:"late_errors"`   // requests that fail with a 500 but are executed; the idempotency key replays the 500
	Busy         float64       `json:"busy"`          // requests that fail with a 429 or 409 and are not executed; a retry with the same key is executed
	Rate         int           `json:"rate"`          // the limit of requests per second for each endpoint, account and mode; 0 means no limit
	Seed         uint64        `json:"seed"`          // the seed of the random number generator

	EventLosses    float64       `json:"event_losses"`    // changes that emit no event
	WebhookCopies  float64       `json:"webhook_copies"`  // webhooks that are sent twice
	WebhookDrops   float64       `json:"webhook_drops"`   // webhooks that are never sent
	WebhookShuffle bool          `json:"webhook_shuffle"` // whether the fake sends webhooks in random order
	WebhookDelay   time.Duration `json:"-"`               // the maximum delay of a webhook; each delay is random
}

// Check returns an error if a fault is invalid. The error names the first invalid fault by its name in
// the control API, such as lost_replies.
func (f Faults) Check() error { return api.Faults(f).Check() }

// Faults returns the current faults.
func (f *Fake) Faults() Faults { return Faults(f.api.Faults()) }

// SetFaults replaces all faults. A different seed restarts the sequence of random numbers. If the faults
// do not pass Check, SetFaults changes nothing and returns an error.
func (f *Fake) SetFaults(to Faults) error { return f.api.SetFaults(api.Faults(to)) }

// FailNext makes the next requests to an endpoint fail, where times is the number of requests. The
// endpoint is a method and a path, such as "POST /v1/payment_intents/{intent}/confirm" for all payment
// intents, or "POST /v1/payment_intents/pi_1/confirm" for one. If you call FailNext several times for
// the same endpoint, the calls apply one after the other.
//
// The status must be from 400 to 599, or 0 to break the connection. The code is a Stripe error code and
// may be empty. For a 402 it may also be a decline code, such as insufficient_funds. The fake does not
// execute the requests, so a 402 creates no failed charge. Use a declined test card if you need the
// charge.
//
// As at Stripe, the idempotency key of a failed request replays the error, unless the error is a 401,
// 403, 409 or 429, or a 400 about a parameter. If a request's key already has a response, the fake
// replays that response and does not count the request, unless status is 401, 403, 409 or 429.
func (f *Fake) FailNext(endpoint string, status int, code string, times int) error {
	return f.api.FailNext(endpoint, status, code, times)
}
