// Package outbox holds the effects on other systems. An effect is written in the commit that
// causes it, delivered at least once under a stable id, and deleted after its delivery.
//
// It does not know the meaning of an effect: its deliverer does (package mail).
package outbox

import "time"

// A Queue is a part of the outbox with its own deliverer, which does not see the other
// queues. The zero Queue is Mail.
type Queue string

// The queues.
const (
	Mail    Queue = "OUT" // mail to customers
	Actions Queue = "ACT" // actions of purchases in other systems: fulfil, unsubscribe
	Inbox   Queue = "INB" // events that cannot be applied at once, for Duesday's own worker
)

// An Effect is one thing to do in another system: a mail to send.
type Effect struct {
	Queue   Queue
	ID      string            // stable and unique: a receiver recognises a repetition by it
	Kind    string            // tells the deliverer how to read Data
	Due     time.Time         // not delivered before; UTC, milliseconds
	Created time.Time         // when its cause was committed; UTC, milliseconds
	Data    map[string]string // input of the delivery; no secret, no card data
	Tries   int               // failed deliveries so far
	Error   string            // of the last failed delivery
	Dead    bool              // in the dead letters
}
