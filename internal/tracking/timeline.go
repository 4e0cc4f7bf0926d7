package tracking

import (
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

// Timeline returns the history of a purchase by our own clock: its order, the events that changed
// it and the done actions. An event that changed nothing is no step. It returns store.ErrNotFound
// if there is no such purchase.
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
	told := teller{s: s, timeline: timeline, events: map[string]*Event{}}
	return timeline, told.tell(ctx)
}

// A teller puts the steps of a timeline together.
type teller struct {
	s        *Service
	timeline *Timeline
	events   map[string]*Event // by id; nil if it has expired
}

// tell adds a step for every change, by time.
func (t *teller) tell(ctx context.Context) error {
	type object struct {
		id      string
		history []Change
	}
	objects := []object{{t.timeline.Purchase.ID, t.timeline.Purchase.History}}
	for _, p := range t.timeline.Payments {
		objects = append(objects, object{p.ID, p.History})
	}
	for _, sub := range t.timeline.Subscriptions {
		objects = append(objects, object{sub.ID, sub.History})
	}
	for _, o := range objects {
		for _, c := range o.history {
			step := Step{At: c.At, About: o.id, What: c.What, Event: c.Event}
			if c.Event != "" {
				e, err := t.event(ctx, c.Event)
				if err != nil {
					return err
				}
				if e != nil {
					step.Detail = e.Type
				}
			}
			t.timeline.Steps = append(t.timeline.Steps, step)
		}
	}
	slices.SortStableFunc(t.timeline.Steps, func(a, b Step) int { return a.At.Compare(b.At) })
	return nil
}

// event reads an event once. It returns nil if the event has expired.
func (t *teller) event(ctx context.Context, id string) (*Event, error) {
	if e, known := t.events[id]; known {
		return e, nil
	}
	e, err := t.s.Event(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		e, err = nil, nil
	}
	t.events[id] = e
	return e, err
}
