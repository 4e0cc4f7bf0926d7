package tracking

import "time"

// A Subscription is a subscription of Stripe's under a purchase. One whose schedule has not
// begun yet has none at Stripe: it goes by the schedule's id until then.
type Subscription struct {
	ID            string             `json:"id"` // sub_… or sub_sched_…
	StripeAccount string             `json:"stripe_account"`
	Account       string             `json:"account"` // UUID of the customer account it belongs to
	Purchase      string             `json:"purchase"`
	Created       time.Time          `json:"created"`
	Updated       time.Time          `json:"last_updated"`
	Status        SubscriptionStatus `json:"status"`
	Detail        string             `json:"stripe_status,omitempty"` // Stripe's word for it: past_due, unpaid, …
	Ending        Ending             `json:"ending,omitempty"`        // of a terminated one
	Schedule      string             `json:"schedule,omitempty"`      // sub_sched_… that runs it
	History       []Change           `json:"history,omitempty"`

	scheduleStatus string // Stripe's word, the furthest that was told
	over           bool   // the subscription itself has ended
	expired        bool   // of one that is over: its first payment was never made
	soft           bool   // it was seen in a state that the setting says ends it
	activated      bool   // it has been active, or past it
	asking         bool   // its Detail is being asked for
	version        int64
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
	EndCompleted Ending = "completed" // its schedule has run its course: all split payments were asked for
	EndSetting   Ending = "setting"   // unpaid, paused or past due, and the setting says that this ends it
)
