package tracking

import (
	"context"
	"fmt"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Subscription is a subscription of Stripe's under a purchase. One whose schedule has not
// begun yet has none at Stripe: it goes by the schedule's id until then.
type Subscription struct {
	ID               string // sub_… or sub_sched_…
	StripeAccount    string
	Merchant         string // UUID
	Purchase         string
	Created, Updated time.Time
	Status           SubscriptionStatus
	Detail           string // Stripe's word for it: past_due, unpaid, …
	Ending           Ending // of a terminated one
	Schedule         string // sub_sched_…
	History          []Change

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

// differs reports whether the two differ in a hidden part.
func (s *Subscription) differs(t *Subscription) bool {
	return s.Schedule != t.Schedule || s.progress != t.progress
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
	c.history(&s.History)
}

// Subscription returns the subscription, or store.ErrNotFound.
func (s *Service) Subscription(ctx context.Context, stripeAccount, id string) (*Subscription, error) {
	if !isID(stripeAccount, "acct_") || !isID(id, "sub_") {
		return nil, fmt.Errorf("subscription %s/%s: %w", stripeAccount, id, store.ErrNotFound)
	}
	it, err := s.o.Store.Get(ctx, s.o.Tables.Tracking.Subscriptions.Name, store.Key{PK: stripeAccount, SK: id})
	if err != nil {
		return nil, err
	}
	return from(it, (*Subscription).fields), nil
}
