package tracking

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Timeline is a purchase with all that belongs to it, and what happened in order.
type Timeline struct {
	Purchase      *Purchase       `json:"purchase"`
	Payments      []*Payment      `json:"payments"`      // oldest first
	Subscriptions []*Subscription `json:"subscriptions"` // oldest first
	Steps         []Step          `json:"steps"`         // oldest first
}

// A Step is one thing that happened to a purchase.
type Step struct {
	At     time.Time `json:"at"`
	About  string    `json:"about"` // id of the purchase, payment or subscription
	What   string    `json:"what"`
	Event  string    `json:"event,omitempty"`  // evt_… that told it
	Detail string    `json:"detail,omitempty"` // type of the event
}

// Timeline returns what happened to a purchase: what was asked for, which events came, what was
// done, and when, by our own clock. Events that changed nothing are in it as well: those about
// payments for good, those about subscriptions as long as they are kept. It returns
// store.ErrNotFound for a purchase that is not there.
func (s *Service) Timeline(ctx context.Context, id string) (*Timeline, error) {
	p, err := s.Purchase(ctx, id)
	if err != nil {
		return nil, err
	}
	t := &s.o.Tables.Tracking
	timeline := &Timeline{Purchase: p, Payments: []*Payment{}, Subscriptions: []*Subscription{}}
	for it, err := range s.items(ctx, &t.Payments, schema.PurchaseIndex, p.ID, false) {
		if err != nil {
			return nil, err
		}
		timeline.Payments = append(timeline.Payments, paymentOf(it))
	}
	for it, err := range s.items(ctx, &t.Subscriptions, schema.PurchaseIndex, p.ID, false) {
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
	events   map[string]*Event // by id; nil of one that has expired
}

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
	for _, sub := range t.timeline.Subscriptions {
		if err := t.silent(ctx, sub); err != nil {
			return err
		}
	}
	slices.SortStableFunc(t.timeline.Steps, func(a, b Step) int { return a.At.Compare(b.At) })
	return nil
}

// silent adds the events of a subscription that changed nothing.
func (t *teller) silent(ctx context.Context, sub *Subscription) error {
	for row, err := range t.s.Events(ctx, EventQuery{Subscription: sub.ID}) {
		if err != nil {
			return err
		}
		if _, told := t.events[row.ID]; told || row.StripeAccount != sub.StripeAccount {
			continue
		}
		e, err := t.event(ctx, row.ID)
		if err != nil {
			return err
		}
		if e != nil {
			t.timeline.Steps = append(t.timeline.Steps, Step{At: e.Received, About: sub.ID, What: changedNothing, Event: e.ID, Detail: e.Type})
		}
	}
	return nil
}

// event reads an event once; nil has expired.
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
