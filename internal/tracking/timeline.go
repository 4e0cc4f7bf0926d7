package tracking

import (
	"cmp"
	"context"
	"errors"
	"slices"
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
func (r *rows) Timeline(ctx context.Context, id string) (*Timeline, error) {
	p, err := r.Purchase(ctx, id)
	if err != nil {
		return nil, err
	}
	t := &r.o.Tables.Tracking
	timeline := &Timeline{Purchase: p, Payments: []*Payment{}, Subscriptions: []*Subscription{}}
	for it, err := range r.items(ctx, &t.Payments, schema.PurchaseIndex, p.ID, store.Cursor{}, false) {
		if err != nil {
			return nil, err
		}
		timeline.Payments = append(timeline.Payments, paymentOf(it))
	}
	for it, err := range r.items(ctx, &t.Subscriptions, schema.PurchaseIndex, p.ID, store.Cursor{}, false) {
		if err != nil {
			return nil, err
		}
		timeline.Subscriptions = append(timeline.Subscriptions, from(it, (*Subscription).fields))
	}
	return timeline, r.tell(ctx, timeline)
}

// tell adds a step for every change, by time.
func (r *rows) tell(ctx context.Context, t *Timeline) error {
	types := map[string]string{} // by event; "" if it has expired
	tell := func(id string, history []Change) error {
		for _, c := range history {
			if _, known := types[c.Event]; !known && c.Event != "" {
				e, err := r.Event(ctx, c.Event)
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					return err
				}
				if types[c.Event] = ""; err == nil {
					types[c.Event] = e.Type
				}
			}
			t.Steps = append(t.Steps, Step{At: c.At, About: id, What: c.What, Event: c.Event, Detail: types[c.Event]})
		}
		return nil
	}
	err := tell(t.Purchase.ID, t.Purchase.History)
	for _, p := range t.Payments {
		err = cmp.Or(err, tell(p.ID, p.History))
	}
	for _, sub := range t.Subscriptions {
		err = cmp.Or(err, tell(sub.ID, sub.History))
	}
	slices.SortStableFunc(t.Steps, func(a, b Step) int { return a.At.Compare(b.At) })
	return err
}
