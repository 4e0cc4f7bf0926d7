package tracking

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Story is a purchase with all that belongs to it, and what happened in order.
type Story struct {
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

// Story returns what happened to a purchase: what was asked for, which events came, what was
// done, and when. Events that changed nothing are in it as long as they are kept, where they are
// about a subscription. It returns store.ErrNotFound for a purchase that is not there.
func (s *Service) Story(ctx context.Context, id string) (*Story, error) {
	p, err := s.Purchase(ctx, id)
	if err != nil {
		return nil, err
	}
	t := &s.o.Tables.Tracking
	story := &Story{Purchase: p, Payments: []*Payment{}, Subscriptions: []*Subscription{}}
	for payment, err := range read(s.items(ctx, &t.Payments, schema.PurchaseIndex, p.ID, false), func(it store.Item) (*Payment, error) { return paymentOf(it), nil }) {
		if err != nil {
			return nil, err
		}
		story.Payments = append(story.Payments, payment)
	}
	for sub, err := range read(s.items(ctx, &t.Subscriptions, schema.PurchaseIndex, p.ID, false), func(it store.Item) (*Subscription, error) { return subscriptionOf(it), nil }) {
		if err != nil {
			return nil, err
		}
		story.Subscriptions = append(story.Subscriptions, sub)
	}
	return story, s.tell(ctx, story)
}

// tell puts the steps together.
func (s *Service) tell(ctx context.Context, story *Story) error {
	told := map[string]bool{} // events that changed something
	add := func(about string, list []Change) {
		for _, c := range list {
			story.Steps = append(story.Steps, Step{At: c.At, About: about, What: c.What, Event: c.Event})
			told[c.Event] = true
		}
	}
	add(story.Purchase.ID, story.Purchase.History)
	for _, p := range story.Payments {
		add(p.ID, p.History)
	}
	types := map[string]string{}
	for _, sub := range story.Subscriptions {
		add(sub.ID, sub.History)
	}
	for _, sub := range story.Subscriptions {
		for e, err := range s.Events(ctx, EventQuery{Subscription: sub.ID}) {
			if err != nil {
				return err
			}
			types[e.ID] = e.Type
			if !told[e.ID] && e.StripeAccount == sub.StripeAccount {
				told[e.ID] = true
				story.Steps = append(story.Steps, Step{At: e.At, About: sub.ID, What: "changed nothing", Event: e.ID})
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(told)) {
		if id == "" || types[id] != "" {
			continue
		}
		if e, err := s.Event(ctx, id); err == nil {
			types[id] = e.Type
		}
	}
	for i := range story.Steps {
		story.Steps[i].Detail = types[story.Steps[i].Event]
	}
	slices.SortStableFunc(story.Steps, func(a, b Step) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Event, b.Event)) })
	return nil
}
