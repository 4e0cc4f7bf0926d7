package tracking

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Purchase is what a buyer has bought, or tried to. It is new until it was fulfilled.
type Purchase struct {
	ID            string    `json:"id"`             // UUID
	Account       string    `json:"account"`        // UUID of the customer account purchased from
	StripeAccount string    `json:"stripe_account"` // of that customer
	Kind          Kind      `json:"kind"`
	Created       time.Time `json:"created"` // when it was initiated; UTC, milliseconds
	Updated       time.Time `json:"last_updated"`
	Fulfilled     bool      `json:"fulfilled"`

	Order    Order  `json:"order"`              // zero of a purchase that was made from an event alone
	Customer string `json:"customer,omitempty"` // cus_… of the buyer
	Problem  string `json:"problem,omitempty"`  // why it waits for a person, or why Stripe refused it

	// What was asked for, and whether it was delivered: the state of the two effects.
	Fulfilment  Effect `json:"fulfilment,omitzero"`
	Unsubscribe Effect `json:"unsubscribe,omitzero"`
	Automations []Done `json:"automations,omitempty"` // which were applied, and when

	// Courses are the subscriptions under this purchase, by their id at Stripe.
	Courses map[string]Course `json:"subscriptions,omitempty"`

	History []Change `json:"-"`

	keyHash string // of the order, to tell another one under the same key
	order   string // as it is stored; Order is made of it for people alone
	version int64
}

// A Course is how far a subscription under a purchase has come: what decides about its effects.
type Course struct {
	Status   SubscriptionStatus `json:"status"`
	Ending   Ending             `json:"ending,omitempty"`
	Schedule string             `json:"schedule,omitempty"`
}

// An Effect is one of the two things that a purchase asks for, at most once each.
type Effect struct {
	State  EffectState `json:"state"`
	Reason string      `json:"reason,omitempty"` // what crossed the edge
	Asked  time.Time   `json:"asked,omitzero"`
	Done   time.Time   `json:"done,omitzero"`
}

// An EffectState says how far an effect is.
type EffectState string

// The states of an effect. A purchase's unsubscribe waits until its fulfilment is done.
const (
	NotAsked EffectState = ""
	Waits    EffectState = "waits" // of unsubscribe: for the fulfilment, which comes first
	Asked    EffectState = "asked" // in the outbox
	Begun    EffectState = "begun" // of unsubscribe: it may have been done, and is not withdrawn any more
	DoneWith EffectState = "done"  // delivered
)

// Done is an automation that was applied to a purchase.
type Done struct {
	Automation string    `json:"automation"`
	Action     Action    `json:"action"`
	At         time.Time `json:"at"`
}

// A Change is something that happened to a purchase, payment or subscription.
type Change struct {
	At    time.Time `json:"at"` // when we noted it
	What  string    `json:"what"`
	Event string    `json:"event,omitempty"` // evt_… that told it
}

func (p *Purchase) item() (store.Item, error) {
	var w writer
	w.head(p.ID, p.StripeAccount, p.Account, p.Created, p.Updated, p.version)
	w.it.Set(schema.TrackedFulfilled, store.Bool(p.Fulfilled))
	w.text(schema.TrackedKind, string(p.Kind))
	w.text(schema.TrackedCustomer, p.Customer)
	w.text(schema.TrackedProblem, p.Problem)
	w.text(schema.TrackedKeyHash, p.keyHash)
	if p.keyHash != "" && p.order == "" {
		order, err := json.Marshal(p.Order)
		if err != nil {
			return nil, fmt.Errorf("purchase %s: %w", p.ID, err)
		}
		p.order = string(order)
	}
	w.text(schema.TrackedOrder, p.order)
	w.effect(schema.TrackedFulfilment, p.Fulfilment)
	w.effect(schema.TrackedUnsubscribe, p.Unsubscribe)
	if len(p.Automations) > 0 {
		values := make([]store.Value, len(p.Automations))
		for i, d := range p.Automations {
			var of writer
			of.text(schema.EffectAction, string(d.Action))
			of.time(schema.EffectAt, d.At)
			of.text(schema.EffectAutomation, d.Automation)
			values[i] = store.M(of.it)
		}
		w.it.Set(schema.TrackedAutomations, store.L(values...))
	}
	if len(p.Courses) > 0 {
		var courses store.Item
		for _, id := range slices.Sorted(maps.Keys(p.Courses)) {
			var of writer
			of.text(schema.TrackedEnding, string(p.Courses[id].Ending))
			of.text(schema.TrackedSchedule, p.Courses[id].Schedule)
			of.text(schema.TrackedStatus, string(p.Courses[id].Status))
			courses.Set(id, store.M(of.it))
		}
		w.it.Set(schema.TrackedCourses, store.M(courses))
	}
	w.history(p.History)
	return w.it, nil
}

func (w *writer) effect(name string, e Effect) {
	if e.State == NotAsked {
		return
	}
	var of writer
	of.time(schema.EffectAsked, e.Asked)
	of.time(schema.EffectDone, e.Done)
	of.text(schema.TrackedReason, e.Reason)
	of.text(schema.EffectState, string(e.State))
	w.it.Set(name, store.M(of.it))
}

func effectOf(it store.Item, name string) Effect {
	of := it.Get(name).Map()
	return Effect{State: EffectState(of.Str(schema.EffectState)), Reason: of.Str(schema.TrackedReason),
		Asked: parseStamp(of.Str(schema.EffectAsked)), Done: parseStamp(of.Str(schema.EffectDone))}
}

func purchaseOf(it store.Item) *Purchase {
	p := &Purchase{ID: it.Str(schema.TrackedID), Account: it.Str(schema.TrackedAccount), StripeAccount: it.Str(schema.TrackedStripeAccount),
		Kind: Kind(it.Str(schema.TrackedKind)), Created: parseStamp(it.Str(schema.TrackedCreated)), Updated: parseStamp(it.Str(schema.TrackedUpdated)),
		Fulfilled: it.Get(schema.TrackedFulfilled).Bool(), Customer: it.Str(schema.TrackedCustomer), Problem: it.Str(schema.TrackedProblem),
		Fulfilment: effectOf(it, schema.TrackedFulfilment), Unsubscribe: effectOf(it, schema.TrackedUnsubscribe),
		History: historyOf(it), keyHash: it.Str(schema.TrackedKeyHash), order: it.Str(schema.TrackedOrder), version: it.Int(schema.TrackedVersion)}
	for _, v := range it.Get(schema.TrackedAutomations).List() {
		of := v.Map()
		p.Automations = append(p.Automations, Done{Automation: of.Str(schema.EffectAutomation), Action: Action(of.Str(schema.EffectAction)), At: parseStamp(of.Str(schema.EffectAt))})
	}
	for _, a := range it.Get(schema.TrackedCourses).Map() {
		of := a.Value.Map()
		if p.Courses == nil {
			p.Courses = map[string]Course{}
		}
		p.Courses[a.Name] = Course{Status: SubscriptionStatus(of.Str(schema.TrackedStatus)), Ending: Ending(of.Str(schema.TrackedEnding)), Schedule: of.Str(schema.TrackedSchedule)}
	}
	return p
}

// Purchase returns the purchase, or store.ErrNotFound.
func (s *Service) Purchase(ctx context.Context, id string) (*Purchase, error) {
	p, err := s.loadPurchase(ctx, id)
	if err != nil {
		return nil, err
	}
	return p.whole()
}

// whole reads the order, too: events do without it, and it is the larger part of the reading.
func (p *Purchase) whole() (*Purchase, error) {
	if p.order == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(p.order), &p.Order); err != nil {
		return nil, fmt.Errorf("purchase %s: its order cannot be read: %w: %w", p.ID, errPoison, err)
	}
	return p, nil
}

// loadPurchase is Purchase, without the order.
func (s *Service) loadPurchase(ctx context.Context, id string) (*Purchase, error) {
	id, err := checkUUID("purchase", id)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, store.ErrNotFound)
	}
	it, err := s.o.Store.Get(ctx, s.o.Tables.Tracking.Purchases.Name, store.Key{PK: id})
	if err != nil {
		return nil, err
	}
	return purchaseOf(it), nil
}

// Purchases yields the purchases from a customer account, the newest first. It reads an index: a
// purchase of a moment ago may be missing.
func (s *Service) Purchases(ctx context.Context, account string) iter.Seq2[*Purchase, error] {
	return read(s.items(ctx, &s.o.Tables.Tracking.Purchases, schema.AccountIndex, account, true), func(it store.Item) (*Purchase, error) { return purchaseOf(it).whole() })
}
