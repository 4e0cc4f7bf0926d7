package stripefake

import (
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
)

// Faults are failures on request. Rates are probabilities from 0 to 1; the first five add up to at
// most 1.
type Faults struct {
	Latency      time.Duration `json:"-"`             // of every request, before it is carried out; at most a minute
	LostRequests float64       `json:"lost_requests"` // not carried out, and the connection breaks
	LostReplies  float64       `json:"lost_replies"`  // carried out, and the connection breaks
	Errors       float64       `json:"errors"`        // 500, not carried out; its key replays the 500
	LateErrors   float64       `json:"late_errors"`   // 500, and carried out; its key replays the 500
	Busy         float64       `json:"busy"`          // 429 or 409, not carried out, not saved
	Rate         int           `json:"rate"`          // a second, per endpoint, account and mode; 0: no limit
	Seed         uint64        `json:"seed"`          // of the dice

	EventLosses    float64       `json:"event_losses"`    // changes without any event, neither sent nor listed
	WebhookCopies  float64       `json:"webhook_copies"`  // webhooks sent twice
	WebhookDrops   float64       `json:"webhook_drops"`   // webhooks never sent
	WebhookShuffle bool          `json:"webhook_shuffle"` // webhooks leave in any order
	WebhookDelay   time.Duration `json:"-"`               // the longest delay of a webhook; the dice choose
}

// Check returns the first mistake in the faults, by the names of the control API.
func (f Faults) Check() error { return api.Faults(f).Check() }

// Faults returns the faults in effect.
func (f *Fake) Faults() Faults { return Faults(f.api.Faults()) }

// SetFaults replaces all faults. The dice begin anew if the seed is another one.
func (f *Fake) SetFaults(to Faults) error { return f.api.SetFaults(api.Faults(to)) }
