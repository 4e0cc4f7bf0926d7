package tracking

import (
	"time"

	"github.com/duesday/duesday/internal/schema"
)

// A Subscription is a subscription of Stripe's under a purchase. One whose schedule has not
// begun yet has none at Stripe: it goes by the schedule's id until then.
type Subscription struct {
	ID            string             `json:"id"` // sub_… or sub_sched_…
	StripeAccount string             `json:"stripe_account"`
	Merchant      string             `json:"account"` // UUID
	Purchase      string             `json:"purchase"`
	Created       time.Time          `json:"created"`
	Updated       time.Time          `json:"last_updated"`
	Status        SubscriptionStatus `json:"status"`
	Detail        string             `json:"stripe_status,omitempty"` // Stripe's word for it: past_due, unpaid, …
	Ending        Ending             `json:"ending,omitempty"`        // of a terminated one
	Schedule      string             `json:"schedule,omitempty"`      // sub_sched_…
	Terms         Terms              `json:"terms,omitzero"`
	History       []Change           `json:"history,omitempty"`

	progress
	version int64
}

// A progress is the hidden part of a subscription.
type progress struct {
	scheduleStatus string // Stripe's furthest word
	over           bool   // the subscription itself has ended
	expired        bool   // its first payment was never made
	soft           bool   // it was fetched in a state of Options.EndedBy
	activated      bool   // it has been active, or past it
	asking         bool   // its Detail is being asked for
}

// A SubscriptionStatus is where a subscription stands. Terminated absorbs.
type SubscriptionStatus string

// The statuses of a subscription.
const (
	SubscriptionNew        SubscriptionStatus = "new"
	SubscriptionActive     SubscriptionStatus = "active"
	SubscriptionTerminated SubscriptionStatus = "terminated"
)

// An Ending says how a subscription was terminated.
type Ending string

// The endings of a subscription.
const (
	EndCanceled  Ending = "canceled"  // it, or its schedule, was cancelled
	EndExpired   Ending = "expired"   // its first payment was never made
	EndCompleted Ending = "completed" // its schedule is completed: all split payments were asked for
	EndSetting   Ending = "setting"   // unpaid, paused or past due, and Options.EndedBy names it
)

func (s *Subscription) fields(c *codec) {
	head(c, &s.ID, &s.StripeAccount, &s.Merchant, &s.Created, &s.Updated, &s.version)
	text(c, schema.TrackedPurchase, &s.Purchase)
	text(c, schema.TrackedStatus, &s.Status)
	text(c, schema.TrackedDetail, &s.Detail)
	text(c, schema.TrackedEnding, &s.Ending)
	text(c, schema.TrackedSchedule, &s.Schedule)
	text(c, schema.TrackedScheduleSays, &s.scheduleStatus)
	c.flag(schema.TrackedOver, &s.over)
	c.flag(schema.TrackedExpired, &s.expired)
	c.flag(schema.TrackedSoft, &s.soft)
	c.flag(schema.TrackedActivated, &s.activated)
	c.flag(schema.TrackedAsking, &s.asking)
	text(c, schema.TrackedPrice, &s.Terms.Price)
	number(c, schema.TrackedQuantity, &s.Terms.Quantity)
	c.time(schema.TrackedCancelAt, &s.Terms.CancelAt)
	c.history(&s.History)
}
