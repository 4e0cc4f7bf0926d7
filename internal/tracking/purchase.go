package tracking

import "time"

// A Purchase is what a buyer has bought, or tried to. It is new until it was fulfilled.
type Purchase struct {
	ID            string    `json:"id"`             // UUID
	Account       string    `json:"account"`        // UUID of the customer account purchased from
	StripeAccount string    `json:"stripe_account"` // of that customer
	Kind          Kind      `json:"kind"`
	Created       time.Time `json:"created"` // when it was initiated; UTC, milliseconds
	Updated       time.Time `json:"last_updated"`
	Fulfilled     bool      `json:"fulfilled"`

	Order    Order  `json:"order"`              // zero of a purchase that was made from an event alone
	Customer string `json:"customer,omitempty"` // cus_… of the buyer
	Problem  string `json:"problem,omitempty"`  // why it waits for a person, or why Stripe refused it

	// What was asked for, and whether it was delivered: the state of the two effects.
	Fulfilment  Effect `json:"fulfilment,omitzero"`
	Unsubscribe Effect `json:"unsubscribe,omitzero"`
	Automations []Done `json:"automations,omitempty"` // which were applied, and when

	// Courses are the subscriptions under this purchase, by their id at Stripe.
	Courses map[string]Course `json:"subscriptions,omitempty"`

	History []Change `json:"-"`

	keyHash string // of the order, to tell another one under the same key
	version int64
}

// A Course is how far a subscription under a purchase has come: what decides about its effects.
type Course struct {
	Status   SubscriptionStatus `json:"status"`
	Ending   Ending             `json:"ending,omitempty"`
	Schedule string             `json:"schedule,omitempty"`
}

// An Effect is one of the two things that a purchase asks for, at most once each.
type Effect struct {
	State  EffectState `json:"state"`
	Reason string      `json:"reason,omitempty"` // what crossed the edge
	Asked  time.Time   `json:"asked,omitzero"`
	Done   time.Time   `json:"done,omitzero"`
}

// An EffectState says how far an effect is.
type EffectState string

// The states of an effect. A purchase's unsubscribe waits until its fulfilment is done.
const (
	NotAsked EffectState = ""
	Waits    EffectState = "waits" // of unsubscribe: for the fulfilment, which comes first
	Asked    EffectState = "asked" // in the outbox
	DoneWith EffectState = "done"  // delivered
)

// Done is an automation that was applied to a purchase.
type Done struct {
	Automation string    `json:"automation"`
	Action     Action    `json:"action"`
	At         time.Time `json:"at"`
}

// A Change is something that happened to a purchase, payment or subscription.
type Change struct {
	At    time.Time `json:"at"` // when we noted it
	What  string    `json:"what"`
	Event string    `json:"event,omitempty"` // evt_… that told it
}
