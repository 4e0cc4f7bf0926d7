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

func (s *Subscription) item() store.Item {
	var w writer
	w.head(s.ID, s.StripeAccount, s.Account, s.Created, s.Updated, s.version)
	w.text(schema.TrackedPurchase, s.Purchase)
	w.text(schema.TrackedStatus, string(s.Status))
	w.text(schema.TrackedDetail, s.Detail)
	w.text(schema.TrackedEnding, string(s.Ending))
	w.text(schema.TrackedSchedule, s.Schedule)
	w.text(schema.TrackedScheduleSays, s.scheduleStatus)
	w.yes(schema.TrackedOver, s.over)
	w.yes(schema.TrackedExpired, s.expired)
	w.yes(schema.TrackedSoft, s.soft)
	w.yes(schema.TrackedActivated, s.activated)
	w.yes(schema.TrackedAsking, s.asking)
	w.history(s.History)
	return w.it
}

func subscriptionOf(it store.Item) *Subscription {
	return &Subscription{ID: it.Str(schema.TrackedID), StripeAccount: it.Str(schema.TrackedStripeAccount), Account: it.Str(schema.TrackedAccount),
		Purchase: it.Str(schema.TrackedPurchase), Created: parseStamp(it.Str(schema.TrackedCreated)), Updated: parseStamp(it.Str(schema.TrackedUpdated)),
		Status: SubscriptionStatus(it.Str(schema.TrackedStatus)), Detail: it.Str(schema.TrackedDetail), Ending: Ending(it.Str(schema.TrackedEnding)),
		Schedule: it.Str(schema.TrackedSchedule), History: historyOf(it), scheduleStatus: it.Str(schema.TrackedScheduleSays),
		over: it.Get(schema.TrackedOver).Bool(), expired: it.Get(schema.TrackedExpired).Bool(), soft: it.Get(schema.TrackedSoft).Bool(),
		activated: it.Get(schema.TrackedActivated).Bool(), asking: it.Get(schema.TrackedAsking).Bool(), version: it.Int(schema.TrackedVersion)}
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
	return subscriptionOf(it), nil
}
