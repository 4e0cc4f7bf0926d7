package stripefake

import "time"

// Faults are what goes wrong on request. Rates are probabilities from 0 to 1.
type Faults struct {
	Latency      time.Duration // of every request, before it is carried out
	LostRequests float64       // not carried out, and the connection breaks
	LostReplies  float64       // carried out, and the connection breaks
	Errors       float64       // 500, not carried out; its idempotency key replays it
	LateErrors   float64       // 500, and carried out all the same; its idempotency key replays the 500
	Busy         float64       // 429 or 409 (lock_timeout, idempotency_key_in_use), not carried out, not saved
	Rate         int           // requests a second on one endpoint, above which it answers 429; 0: no limit
	Seed         uint64        // of the dice

	WebhookCopies  float64       // webhooks that are sent twice
	WebhookDrops   float64       // webhooks that are never sent
	WebhookShuffle bool          // webhooks leave in any order
	WebhookDelay   time.Duration // at most so long, by chance
}
