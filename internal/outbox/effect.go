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

// The kinds of effects. The writer and the deliverer of an effect do not know each other;
// they share these words.
const (
	KindReceipt        = "receipt"         // a payment was taken
	KindReminder       = "reminder"        // a payment will be taken
	KindDeclined       = "declined"        // a payment was declined and will be tried again
	KindFailed         = "failed"          // a payment was declined for good
	KindActionRequired = "action_required" // the customer has to confirm a payment
)

// The keys of Effect.Data. Every kind has the first group, receipts the second;
// DataRetryDate belongs to KindDeclined, DataCode to that and to KindFailed, DataRef to
// KindActionRequired, the card to KindReminder. An unknown value is "".
//
// The last group is never in a stored effect, because links are short-lived secrets. The
// deliverer adds them.
const (
	DataAccount      = "account"
	DataEmail        = "email" // one bare address
	DataSubscription = "subscription"
	DataSKU          = "sku"
	DataPeriod       = "period"
	DataDueDate      = "due_date"    // 2023-06-28
	DataAmount       = "amount"      // 12.99
	DataCurrency     = "currency"    // USD
	DataAmountText   = "amount_text" // $12.99: for people

	DataProcessed = "processed" // 2023-06-28, or a timestamp that starts with the day
	DataCharge    = "charge"    // the processor's reference

	DataRetryDate = "retry_date" // 2023-07-01
	DataCode      = "code"       // the processor's decline code
	DataRef       = "ref"        // of the payment intent waiting for the customer

	DataCard        = "card"         // Visa ending in 4242
	DataCardExpires = "card_expires" // 2026-12: the last month in which it is valid
	DataNoMethod    = "no_method"    // "true": no payment method is stored
	DataCardExpired = "card_expired" // "true": it expires before the payment is due

	DataLink        = "link"         // where the customer can confirm or replace the card
	DataLinkExpires = "link_expires" // a timestamp; "" if unknown
)
