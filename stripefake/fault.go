package stripefake

import (
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
)

// Faults are failures on request. Rates are probabilities from 0 to 1; the first five add up to at
// most 1.
type Faults struct {
	Latency      time.Duration // of every request, before it is carried out; at most a minute
	LostRequests float64       // not carried out, and the connection breaks
	LostReplies  float64       // carried out, and the connection breaks
	Errors       float64       // 500, not carried out; the idempotency key replays the 500
	LateErrors   float64       // 500, and carried out all the same; the idempotency key replays the 500
	Busy         float64       // 429 or 409 (rate_limit, lock_timeout, idempotency_key_in_use), not carried out, not saved
	Rate         int           // requests a second per endpoint, account and mode, until it answers 429; 0: no limit
	Seed         uint64        // of the dice

	EventLosses    float64       // changes without any event, neither sent nor listed
	WebhookCopies  float64       // webhooks sent twice
	WebhookDrops   float64       // webhooks never sent
	WebhookShuffle bool          // webhooks leave in any order
	WebhookDelay   time.Duration // the longest delay of a webhook; the dice choose
}

// Check returns the first mistake in the faults, by the names of the control API.
func (f Faults) Check() error { return api.Faults(f).Check() }

// Faults returns the faults in effect.
func (f *Fake) Faults() Faults { return Faults(f.api.Faults()) }

// SetFaults replaces all faults. The dice begin anew if the seed is another one.
func (f *Fake) SetFaults(to Faults) error { return f.api.SetFaults(api.Faults(to)) }
