package stripefake

import (
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
)

// Faults set how often requests and webhooks fail at random. Each rate is a probability from 0 to 1.
// LostRequests, LostReplies, Errors, LateErrors and Busy are mutually exclusive, so their sum must be at
// most 1.
type Faults struct {
	Latency      time.Duration `json:"-"`             // delays each request before the fake executes it; at most a minute
	LostRequests float64       `json:"lost_requests"` // the connection breaks before the fake executes the request
	LostReplies  float64       `json:"lost_replies"`  // the connection breaks after the fake has executed the request
	Errors       float64       `json:"errors"`        // 500, not executed; the idempotency key replays the 500
	LateErrors   float64       `json:"late_errors"`   // 500, executed; the idempotency key replays the 500
	Busy         float64       `json:"busy"`          // 429 or 409, not executed; the idempotency key stays unused
	Rate         int           `json:"rate"`          // requests per second for each endpoint, account and mode; 0 means no limit
	Seed         uint64        `json:"seed"`          // the seed of the random numbers

	EventLosses    float64       `json:"event_losses"`    // changes that emit no event
	WebhookCopies  float64       `json:"webhook_copies"`  // webhooks that are sent twice
	WebhookDrops   float64       `json:"webhook_drops"`   // webhooks that are never sent
	WebhookShuffle bool          `json:"webhook_shuffle"` // sends webhooks in random order
	WebhookDelay   time.Duration `json:"-"`               // the maximum delay of a webhook; each delay is random
}

// Check returns an error if a fault is invalid. The error names the first such fault as the control API
// does, for example lost_replies.
func (f Faults) Check() error { return api.Faults(f).Check() }

// Faults returns the faults in effect.
func (f *Fake) Faults() Faults { return Faults(f.api.Faults()) }

// SetFaults replaces all faults. If the seed changes, it restarts the random numbers. It returns an error,
// and changes nothing, if the faults do not pass Check.
func (f *Fake) SetFaults(to Faults) error { return f.api.SetFaults(api.Faults(to)) }

// FailNext makes the next requests to an endpoint fail. The parameter times is the number of requests. The
// endpoint is a method and a path, such as "POST /v1/payment_intents/{intent}/confirm" for all payment
// intents, or "POST /v1/payment_intents/pi_1/confirm" for one. Several calls for the same endpoint apply in
// the order of the calls.
//
// The status must be from 400 to 599, or 0 to break the connection. The code is a Stripe error code and may
// be empty. For a 402 it may also be a decline code, such as insufficient_funds. The fake does not execute
// the requests, so a 402 creates no charge. Use a test card if you need that charge.
//
// As at Stripe, later requests with the same idempotency key get the same error, unless it is a 401, 403,
// 409 or 429, or a 400 about a parameter. A request whose key already has a response gets that response and
// does not count, unless status is 401, 403, 409 or 429.
func (f *Fake) FailNext(endpoint string, status int, code string, times int) error {
	return f.api.FailNext(endpoint, status, code, times)
}
