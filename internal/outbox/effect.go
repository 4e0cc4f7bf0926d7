// Package outbox holds the effects that leave the house: an effect is written in the
// commit that causes it, delivered at least once under a stable id, and deleted when
// it has been delivered.
//
// It does not know what an effect says; who delivers it does (package mail).
package outbox

import "time"

// A Lane is a part of the outbox: one kind of deliverer takes what is in it, and does not see
// the rest. The zero Lane is Mail.
type Lane string

// The lanes.
const (
	Mail    Lane = "OUT" // mail to customers
	Actions Lane = "ACT" // what purchases ask of other systems: fulfil, unsubscribe
	Inbox   Lane = "INB" // what came in and cannot be dealt with at once: it leaves for our own worker
)

// An Effect is something to be done outside: a mail to send.
type Effect struct {
	Lane    Lane
	ID      string            // stable and unique: the receiver can tell a repetition by it
	Kind    string            // what it is, for the one who delivers it
	Due     time.Time         // not before; UTC, milliseconds
	Created time.Time         // when its cause was committed; UTC, milliseconds
	Data    map[string]string // what the delivery needs; no secret, no card data
	Tries   int               // deliveries that failed so far
	Error   string            // why the last one failed
	Dead    bool              // it was given up
}
