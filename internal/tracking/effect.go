package tracking

import (
	"context"
	"time"

	"github.com/duesday/duesday/internal/schema"
)

// An Action is work for other systems.
type Action string

// The actions. The first comes before the second, each at most once for a purchase.
const (
	ActionFulfil      Action = "fulfil"
	ActionUnsubscribe Action = "unsubscribe"
)

// A Job is one action for one purchase. It may be handed over more than once, under one ID.
type Job struct {
	ID            string    `json:"id"` // the same for every repetition
	Action        Action    `json:"action"`
	Purchase      string    `json:"purchase"`
	Merchant      string    `json:"account"`
	StripeAccount string    `json:"stripe_account"`
	Kind          Kind      `json:"kind"`
	Key           string    `json:"key,omitempty"` // the order's, from the caller of CreatePurchase
	Reason        string    `json:"reason"`        // the cause: paid pi_…, active sub_…, canceled sub_…
	At            time.Time `json:"at"`            // of the cause
}

// An Automation does jobs. It must be safe for concurrent use, and must limit its own time. A job
// failing with outbox.ErrPermanent is not tried again.
type Automation interface {
	Name() string        // recorded on the purchase
	Takes(a Action) bool // whether it does such jobs at all
	Do(ctx context.Context, j Job) error
}

// An Effect is fulfilment or unsubscribe: a purchase asks for each at most once.
type Effect struct {
	State  EffectState `json:"state"`
	Reason string      `json:"reason,omitempty"` // the cause: paid pi_…, active sub_…, canceled sub_…
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
	Begun    EffectState = "begun" // of unsubscribe: it may have been done, and is not withdrawn any more
	DoneWith EffectState = "done"  // delivered
)

// Done is an applied automation.
type Done struct {
	Automation string    `json:"automation"`
	Action     Action    `json:"action"`
	At         time.Time `json:"at"`
}

func (e *Effect) fields(c *codec, name string) {
	c.part(name, func(c *codec) {
		c.time(schema.EffectAsked, &e.Asked)
		c.time(schema.EffectDone, &e.Done)
		text(c, schema.TrackedReason, &e.Reason)
		text(c, schema.EffectState, &e.State)
	})
}
