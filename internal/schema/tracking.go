package schema

import "github.com/duesday/duesday/internal/store"

// The attributes of the tracking tables, as the design of the Stripe payments tracking database
// names them. Timestamps are "2020-01-01 01:02:34.567" in UTC, which sort as text.
const (
	TrackedID            = "id"             // of the event, purchase, subscription or payment
	TrackedType          = "type"           // of an event, such as payment_intent.succeeded
	TrackedAccount       = "account"        // of the merchant
	TrackedStripeAccount = "stripe_account" // of the merchant, at Stripe
	TrackedTimestamp     = "timestamp"      // when the event was published
	TrackedDate          = "date"           // of the timestamp: "2020-01-01"
	TrackedTime          = "time"           // of the timestamp: "01:02:34.567"
	TrackedExpiration    = "expiration"     // Unix seconds; 30 days after an event was published or, if later, received
	TrackedSubscription  = "subscription"   // the subject of an event, at Stripe
	TrackedCreated       = "created"
	TrackedUpdated       = "last_updated"
	TrackedFulfilled     = "fulfilled"
	TrackedStatus        = "status" // of a subscription: new, active, terminated; of a payment: new, paid, failed
	TrackedPurchase      = "purchase"
)

// Duesday's own attributes of the tracking tables.
const (
	TrackedVersion      = "version" // of an item: each write is conditional on the one before
	TrackedBody         = "body"    // of an event: as it was signed, compressed
	TrackedReason       = "reason"
	TrackedSource       = "source"
	TrackedReceived     = "received"
	TrackedApplied      = "applied"
	TrackedKind         = "kind"
	TrackedOrder        = "order"
	TrackedKeyHash      = "key_hash"
	TrackedCustomer     = "customer"
	TrackedProblem      = "problem"
	TrackedFulfilment   = "fulfilment"
	TrackedUnsubscribe  = "unsubscribe"
	TrackedAutomations  = "automations"
	TrackedCourses      = "subscriptions"
	TrackedHistory      = "history"
	TrackedCode         = "code"
	TrackedAmount       = "amount" // minor units
	TrackedCurrency     = "currency"
	TrackedInvoice      = "invoice"
	TrackedRefunds      = "refunds"
	TrackedToldRefunded = "told_refunded"
	TrackedDisputes     = "disputes"
	TrackedDetail       = "stripe_status"
	TrackedEnding       = "ending"
	TrackedSchedule     = "schedule"
	TrackedScheduleSays = "schedule_status"
	TrackedOver         = "over"
	TrackedActivated    = "activated"
	TrackedLive         = "live"
	TrackedExpired      = "expired"
	TrackedSoft         = "soft"
	TrackedAsking       = "asking"
	TrackedTakenOver    = "taken_over"
	TrackedSalt         = "salt"
	TrackedToldType     = "told_type" // of a thin event: its type in Stripe's words, such as v1.invoice.paid
	TrackedTwin         = "twin"      // of an event: the same change in the other form, thin or snapshot
	TrackedPolled       = "polled"
	TrackedDue          = "evidence_due" // of a dispute
	TrackedCancelAt     = "cancel_at"    // of a subscription
	TrackedPrice        = "price"
	TrackedQuantity     = "quantity"
	TrackedAttached     = "attached" // of a payment
	TrackedFetched      = "fetched"  // of a thin event: the object that was fetched for it, as JSON
	TrackedImported     = "imported" // of a purchase: when connect import found it

	// Of the maps within.
	EffectState      = "state"
	EffectAsked      = "asked"
	EffectDone       = "done"
	EffectAt         = "at"
	EffectWhat       = "what"
	EffectEvent      = "event"
	EffectAction     = "action"
	EffectAutomation = "automation"

	PollThrough = "through"
	PollChecked = "checked"
	PollNext    = "next"
	PollQuiet   = "quiet"
	PollSwept   = "swept"
	PollError   = "error"
	PollThin    = "thin" // the account has sent a thin event
)

// The secondary indexes of the tracking tables.
const (
	TimeIndex         = "time"         // of events: date, time
	AccountIndex      = "account"      // of events: stripe_account, timestamp; of the others: account, created
	SubscriptionIndex = "subscription" // of events: subscription, timestamp
	PurchaseIndex     = "purchase"     // purchase, created
)

// Tracking are the tables for the payments of Stripe's own subscriptions. Their names contain
// "-stripe-payments-", as the design's IAM policy wants, if the prefix ends in a hyphen.
type Tracking struct {
	Events        store.Table // events of Stripe, for 30 days
	Purchases     store.Table
	Subscriptions store.Table
	Payments      store.Table
	Registry      store.Table // followed accounts with their progress, and events of accounts not registered yet
}

// newTracking has the events exactly as the design models them. What has an id of Stripe's is
// keyed by its Stripe account first: an id is unique in its account alone.
func newTracking(prefix string) Tracking {
	prefix += "stripe-payments-"
	byAccount := store.Index{Name: AccountIndex, PartitionKey: TrackedAccount, SortKey: TrackedCreated}
	byPurchase := store.Index{Name: PurchaseIndex, PartitionKey: TrackedPurchase, SortKey: TrackedCreated}
	return Tracking{
		Events: store.Table{Name: prefix + "events", PartitionKey: TrackedID, TTL: TrackedExpiration,
			Indexes: []store.Index{
				{Name: TimeIndex, PartitionKey: TrackedDate, SortKey: TrackedTime},
				{Name: AccountIndex, PartitionKey: TrackedStripeAccount, SortKey: TrackedTimestamp,
					Include: []string{TrackedType, TrackedSubscription}},
				{Name: SubscriptionIndex, PartitionKey: TrackedSubscription, SortKey: TrackedTimestamp,
					Include: []string{TrackedType, TrackedStripeAccount}},
			},
		},
		Purchases: store.Table{Name: prefix + "purchases", PartitionKey: TrackedID, Indexes: []store.Index{byAccount}},
		Subscriptions: store.Table{Name: prefix + "subscriptions", PartitionKey: TrackedStripeAccount, SortKey: TrackedID,
			Indexes: []store.Index{byAccount, byPurchase}},
		Payments: store.Table{Name: prefix + "payments", PartitionKey: TrackedStripeAccount, SortKey: TrackedID,
			Indexes: []store.Index{byAccount, byPurchase}},
		Registry: store.Table{Name: prefix + "registry", PartitionKey: PK, SortKey: SK},
	}
}

// All returns the tables in a fixed order.
func (t Tracking) All() []store.Table {
	return []store.Table{t.Events, t.Purchases, t.Subscriptions, t.Payments, t.Registry}
}
