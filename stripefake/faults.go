package stripefake

import (
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
)

// Faults set how often requests and webhooks fail at random. Rates are from 0 to 1. LostRequests,
// LostReplies, Errors, LateErrors and Busy are mutually exclusive, so their sum is at most 1.
type Faults struct {
	Latency      time.Duration `json:"-"`             // delays each request before the fake carries it out; at most a minute
	LostRequests float64       `json:"lost_requests"` // the connection breaks before the fake carries the request out
	LostReplies  float64       `json:"lost_replies"`  // the connection breaks after the fake has carried the request out
	Errors       float64       `json:"errors"`        // 500, not carried out; the idempotency key replays the 500
	LateErrors   float64       `json:"late_errors"`   // 500, carried out; the idempotency key replays the 500
	Busy         float64       `json:"busy"`          // 429 or 409, not carried out; the idempotency key stays free
	Rate         int           `json:"rate"`          // requests per second for each endpoint, account and mode; 0: no limit
	Seed         uint64        `json:"seed"`          // seeds the dice that decide

	EventLosses    float64       `json:"event_losses"`    // changes without an event
	WebhookCopies  float64       `json:"webhook_copies"`  // webhooks that are sent twice
	WebhookDrops   float64       `json:"webhook_drops"`   // webhooks that are never sent
	WebhookShuffle bool          `json:"webhook_shuffle"` // sends webhooks in random order
	WebhookDelay   time.Duration `json:"-"`               // the longest delay of a webhook; the dice choose
}

// Check returns an error that names the first invalid fault, under its name in the control API.
func (f Faults) Check() error { return api.Faults(f).Check() }

// Faults returns the faults in effect.
func (f *Fake) Faults() Faults { return Faults(f.api.Faults()) }

// SetFaults replaces all faults. Another seed restarts the dice.
func (f *Fake) SetFaults(to Faults) error { return f.api.SetFaults(api.Faults(to)) }

// FailNext makes the next requests to an endpoint fail: as many requests as the parameter times. The
// endpoint is a method and a path, such as "POST /v1/payment_intents/{intent}/confirm" for all payment
// intents, or "POST /v1/payment_intents/pi_1/confirm" for one. Several calls for the same endpoint take
// effect one after the other.
//
// The status must be from 400 to 599, or 0 to break the connection. The code is a Stripe error code and may
// be empty. For a 402 it may also be a decline code, such as insufficient_funds. The fake does not carry
// the requests out, so a 402 leaves no charge behind. Use a test card if you need that charge.
//
// As at Stripe, an idempotency key replays the error afterwards, except a 401, 403, 409 or 429, or a 400
// about a parameter. A request whose key already has an answer gets that answer and does not count, unless
// the status is 401, 403, 409 or 429.
func (f *Fake) FailNext(endpoint string, status int, code string, times int) error {
	return f.api.FailNext(endpoint, status, code, times)
}
