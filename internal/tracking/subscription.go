package tracking

import (
	"time"

	"github.com/duesday/duesday/internal/schema"
)

// A Subscription is a Stripe subscription that belongs to a purchase. If a schedule has not begun,
// Stripe has no subscription for it yet, so the Subscription has the schedule's ID.
type Subscription struct {
	ID            string             `json:"id"` // sub_… or sub_sched_…
	StripeAccount string             `json:"stripe_account"`
	Merchant      string             `json:"account"` // UUID
	Purchase      string             `json:"purchase"`
	Created       time.Time          `json:"created"`
	Updated       time.Time          `json:"last_updated"`
	Status        SubscriptionStatus `json:"status"`
	Detail        string             `json:"stripe_status,omitempty"` // Stripe's status, such as past_due or unpaid
	Ending        Ending             `json:"ending,omitempty"`        // set if the subscription is terminated
	Schedule      string             `json:"schedule,omitempty"`      // sub_sched_…
	Terms         Terms              `json:"terms,omitzero"`
	TakenOver     bool               `json:"taken_over,omitempty"` // billing continues it after its end
	History       []Change           `json:"history,omitempty"`

	progress
	version int64
}

// A progress holds the internal state of a subscription that Duesday does not display.
type progress struct {
	scheduleStatus string // the furthest schedule status so far
	over           bool   // the Stripe subscription has ended
	expired        bool   // its first payment was never made
	soft           bool   // a fetch found it in a status that Options.EndedBy lists
	activated      bool   // the subscription was activated at some time
	asking         bool   // a fetch of its Detail is pending
}

// A SubscriptionStatus is the status of a subscription. A terminated subscription never becomes
// active again.
type SubscriptionStatus string

// The statuses of a subscription.
const (
	SubscriptionNew        SubscriptionStatus = "new"
	SubscriptionActive     SubscriptionStatus = "active"
	SubscriptionTerminated SubscriptionStatus = "terminated"
)

// An Ending is the reason why a subscription was terminated.
type Ending string

// The endings of a subscription.
const (
	EndCanceled  Ending = "canceled"   // the subscription or its schedule was cancelled
	EndExpired   Ending = "expired"    // its first payment was never made
	EndCompleted Ending = "completed"  // the schedule completed after requesting all split payments
	EndTakenOver Ending = "taken_over" // cancelled because billing continues it
	EndSetting   Ending = "setting"    // Options.EndedBy lists its Stripe status: unpaid, paused or past_due
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
	c.flag(schema.TrackedTakenOver, &s.TakenOver)
	text(c, schema.TrackedPrice, &s.Terms.Price)
	number(c, schema.TrackedQuantity, &s.Terms.Quantity)
	c.time(schema.TrackedCancelAt, &s.Terms.CancelAt)
	c.history(&s.History)
}
