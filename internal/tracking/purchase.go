package tracking

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Purchase is a buyer's order, paid or not. It is new until it is fulfilled.
type Purchase struct {
	ID            string    `json:"id"`             // UUID
	Merchant      string    `json:"account"`        // UUID of the seller
	StripeAccount string    `json:"stripe_account"` // the merchant's Stripe account
	Kind          Kind      `json:"kind"`
	Created       time.Time `json:"created"` // time of the order in UTC, with millisecond resolution
	Updated       time.Time `json:"last_updated"`
	Fulfilled     bool      `json:"fulfilled"`

	Order    Order  `json:"order"`              // zero if Duesday only knows the purchase from an event
	Customer string `json:"customer,omitempty"` // cus_… of the buyer
	Problem  string `json:"problem,omitempty"`  // why the purchase needs attention, or why Stripe refused it
	// Imported is the time when an import found the purchase; zero if Duesday created it or an event named it.
	Imported time.Time `json:"imported,omitzero"`

	// The two effects.
	Fulfilment  Effect `json:"fulfilment,omitzero"`
	Unsubscribe Effect `json:"unsubscribe,omitzero"`
	Automations []Done `json:"automations,omitempty"` // in order of completion

	// Subscriptions holds the subscription states by Stripe ID.
	Subscriptions map[string]SubscriptionState `json:"subscriptions,omitempty"`

	History []Change `json:"-"`

	keyHash string // hash of the order, which detects a different order with the same key
	order   string // stored form; Order is decoded from it
	version int64
}

// A SubscriptionState is the part of a subscription that decides its purchase's effects.
type SubscriptionState struct {
	Status   SubscriptionStatus `json:"status"`
	Ending   Ending             `json:"ending,omitempty"`
	Schedule string             `json:"schedule,omitempty"`
}

// An Action is a type of work that an automation does in another system.
type Action string

// These are the actions. A purchase is fulfilled before it is unsubscribed, and gets each action at
// most once.
const (
	ActionFulfil      Action = "fulfil"
	ActionUnsubscribe Action = "unsubscribe"
)

// A Job is one action for one purchase. Duesday may deliver a job more than once, always with the
// same ID.
type Job struct {
	ID            string    `json:"id"` // the same in every delivery
	Action        Action    `json:"action"`
	Purchase      string    `json:"purchase"`
	Merchant      string    `json:"merchant"`
	StripeAccount string    `json:"stripe_account"`
	Kind          Kind      `json:"kind"`
	Key           string    `json:"key,omitempty"` // the order's key, from the caller of CreatePurchase
	Reason        string    `json:"reason"`        // the cause: paid pi_…, active sub_…, canceled sub_…
	At            time.Time `json:"at"`            // time when the action was requested
}

// An Automation executes jobs. It must be safe for concurrent use, and must limit its own running
// time. If a job fails with outbox.ErrPermanent, Duesday does not retry it.
type Automation interface {
	Name() string        // name to record on the purchase
	Takes(a Action) bool // whether the automation accepts this action
	Do(ctx context.Context, j Job) error
}

// An Effect records the progress of a purchase's fulfilment or unsubscribe. A purchase requests
// each at most once.
type Effect struct {
	State  EffectState `json:"state"`
	Reason string      `json:"reason,omitempty"` // the cause: paid pi_…, active sub_…, canceled sub_…
	Asked  time.Time   `json:"asked,omitzero"`
	Done   time.Time   `json:"done,omitzero"`
}

// An EffectState is the processing state of an effect.
type EffectState string

// These are the states of an effect. An unsubscribe waits until the fulfilment is done.
const (
	NotAsked EffectState = ""
	Waits    EffectState = "waits" // the unsubscribe waits for the fulfilment to complete
	Asked    EffectState = "asked" // requested, in the outbox
	Begun    EffectState = "begun" // the unsubscribe may have been executed and cannot be withdrawn
	DoneWith EffectState = "done"  // delivered
)

// Done records that an automation has completed an action.
type Done struct {
	Automation string    `json:"automation"`
	Action     Action    `json:"action"`
	At         time.Time `json:"at"`
}

func (p *Purchase) fields(c *codec) {
	head(c, &p.ID, &p.StripeAccount, &p.Merchant, &p.Created, &p.Updated, &p.version)
	if c.flag(schema.TrackedFulfilled, &p.Fulfilled); !c.reads && !p.Fulfilled {
		c.it.Set(schema.TrackedFulfilled, store.Bool(false))
	}
	text(c, schema.TrackedKind, &p.Kind)
	text(c, schema.TrackedCustomer, &p.Customer)
	text(c, schema.TrackedProblem, &p.Problem)
	c.time(schema.TrackedImported, &p.Imported)
	text(c, schema.TrackedKeyHash, &p.keyHash)
	text(c, schema.TrackedOrder, &p.order)
	p.Fulfilment.fields(c, schema.TrackedFulfilment)
	p.Unsubscribe.fields(c, schema.TrackedUnsubscribe)
	list(c, schema.TrackedAutomations, &p.Automations, func(c *codec, d *Done) {
		text(c, schema.EffectAction, &d.Action)
		c.time(schema.EffectAt, &d.At)
		text(c, schema.EffectAutomation, &d.Automation)
	})
	parts(c, schema.TrackedCourses, &p.Subscriptions, func(c *codec, _ string, v *SubscriptionState) {
		text(c, schema.TrackedEnding, &v.Ending)
		text(c, schema.TrackedSchedule, &v.Schedule)
		text(c, schema.TrackedStatus, &v.Status)
	})
	c.history(&p.History)
}

func (e *Effect) fields(c *codec, name string) {
	c.part(name, func(c *codec) {
		c.time(schema.EffectAsked, &e.Asked)
		c.time(schema.EffectDone, &e.Done)
		text(c, schema.TrackedReason, &e.Reason)
		text(c, schema.EffectState, &e.State)
	})
}

// whole decodes the stored order into Order. Event processing does not call it, because decoding
// the order costs more than reading the rest.
func (p *Purchase) whole() (*Purchase, error) {
	if p.order == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(p.order), &p.Order); err != nil {
		return nil, fmt.Errorf("purchase %s: cannot decode its stored order: %w: %w", p.ID, errPoison, err)
	}
	return p, nil
}

func (p *Purchase) effect(a Action) *Effect {
	if a == ActionUnsubscribe {
		return &p.Unsubscribe
	}
	return &p.Fulfilment
}

func (p *Purchase) job(a Action) Job {
	e := p.effect(a)
	return Job{ID: string(a) + "/" + p.ID, Action: a, Purchase: p.ID, Merchant: p.Merchant,
		StripeAccount: p.StripeAccount, Kind: p.Kind, Key: p.Order.Key, Reason: e.Reason, At: e.Asked}
}

func (p *Purchase) applied(automation string, a Action) bool {
	return slices.ContainsFunc(p.Automations, func(d Done) bool { return d.Automation == automation && d.Action == a })
}

// These texts begin the problems of creating a purchase. Duesday clears such a problem itself, but
// keeps any other problem for people to resolve.
const (
	declinedProblem = "declined: "
	refusedProblem  = "not made: "
	buyerProblem    = "waits for the buyer, who has to authenticate the payment"
)

func ofCreating(problem string) bool {
	return problem == "" || problem == buyerProblem || strings.HasPrefix(problem, declinedProblem) ||
		strings.HasPrefix(problem, refusedProblem)
}

// DecodePurchase reads a stored purchase.
func DecodePurchase(it store.Item) (*Purchase, error) { return from(it, (*Purchase).fields).whole() }
