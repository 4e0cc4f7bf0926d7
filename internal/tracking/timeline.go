package tracking

import (
	"context"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Timeline is a purchase with its payments, subscriptions and events, in order.
type Timeline struct {
	Purchase      *Purchase       `json:"purchase"`
	Payments      []*Payment      `json:"payments"`      // oldest first
	Subscriptions []*Subscription `json:"subscriptions"` // oldest first
	Steps         []Step          `json:"steps"`         // oldest first
}

// A Step is one event or change in a Timeline.
type Step struct {
	At     time.Time `json:"at"`
	About  string    `json:"about"` // id of the purchase, payment or subscription
	What   string    `json:"what"`
	Event  string    `json:"event,omitempty"`  // evt_…, its cause
	Detail string    `json:"detail,omitempty"` // type of the event
}

// Timeline returns the history of a purchase by our own clock: its order, the events that changed it
// and the done actions. An event that changed nothing is no step. It returns store.ErrNotFound.
func (s *Service) Timeline(ctx context.Context, id string) (*Timeline, error) {
	p, err := s.Purchase(ctx, id)
	if err != nil {
		return nil, err
	}
	t := &s.o.Tables.Tracking
	timeline := &Timeline{Purchase: p, Payments: []*Payment{}, Subscriptions: []*Subscription{}}
	for it, err := range s.items(ctx, &t.Payments, schema.PurchaseIndex, p.ID, store.Cursor{}, false) {
		if err != nil {
			return nil, err
		}
		timeline.Payments = append(timeline.Payments, paymentOf(it))
	}
	for it, err := range s.items(ctx, &t.Subscriptions, schema.PurchaseIndex, p.ID, store.Cursor{}, false) {
		if err != nil {
			return nil, err
		}
		timeline.Subscriptions = append(timeline.Subscriptions, from(it, (*Subscription).fields))
	}
	return timeline, s.tell(ctx, timeline)
}
