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

// A Purchase is an order of a buyer, whether paid or not. It is new until it is fulfilled.
type Purchase struct {
	ID            string    `json:"id"`             // UUID
	Merchant      string    `json:"account"`        // UUID of the seller
	StripeAccount string    `json:"stripe_account"` // of the merchant
	Kind          Kind      `json:"kind"`
	Created       time.Time `json:"created"` // when it was initiated; UTC, milliseconds
	Updated       time.Time `json:"last_updated"`
	Fulfilled     bool      `json:"fulfilled"`

	Order    Order  `json:"order"`              // zero if the purchase became known by an event alone
	Customer string `json:"customer,omitempty"` // cus_… of the buyer
	Problem  string `json:"problem,omitempty"`  // why it waits for a person, or why Stripe refused it

	// The two effects.
	Fulfilment  Effect `json:"fulfilment,omitzero"`
	Unsubscribe Effect `json:"unsubscribe,omitzero"`
	Automations []Done `json:"automations,omitempty"` // in their order

	// Subscriptions by their id at Stripe.
	Subscriptions map[string]SubscriptionState `json:"subscriptions,omitempty"`

	History []Change `json:"-"`

	keyHash string // of the order, to tell another one under the same key
	order   string // as it is stored; Order is made of it for people alone
	version int64
}

// A SubscriptionState is the part of a subscription that decides about its purchase's effects.
type SubscriptionState struct {
	Status   SubscriptionStatus `json:"status"`
	Ending   Ending             `json:"ending,omitempty"`
	Schedule string             `json:"schedule,omitempty"`
}

// An Action is work for other systems.
type Action string

// The actions. The first comes before the second, each at most once for a purchase.
const (
	ActionFulfil      Action = "fulfil"
	ActionUnsubscribe Action = "unsubscribe"
)

// A Job is one action for one purchase. It may be handed over more than once, under one ID.
type Job struct {
	ID            string    `json:"id"` // the same for every repetition
	Action        Action    `json:"action"`
	Purchase      string    `json:"purchase"`
	Merchant      string    `json:"account"`
	StripeAccount string    `json:"stripe_account"`
	Kind          Kind      `json:"kind"`
	Key           string    `json:"key,omitempty"` // the order's, from the caller of CreatePurchase
	Reason        string    `json:"reason"`        // the cause: paid pi_…, active sub_…, canceled sub_…
	At            time.Time `json:"at"`            // of the cause
}

// An Automation does jobs. It must be safe for concurrent use, and must limit its own time. A job
// failing with outbox.ErrPermanent is not tried again.
type Automation interface {
	Name() string        // recorded on the purchase
	Takes(a Action) bool // whether it does such jobs at all
	Do(ctx context.Context, j Job) error
}

// An Effect is fulfilment or unsubscribe: a purchase asks for each at most once.
type Effect struct {
	State  EffectState `json:"state"`
	Reason string      `json:"reason,omitempty"` // the cause: paid pi_…, active sub_…, canceled sub_…
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

// Done is an applied automation.
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

// whole decodes the order. Events do without it, and it costs more than the rest.
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

// The beginnings of the problems of creating a purchase. Other problems are for a person, and stay.
const (
	declinedProblem = "declined: "
	refusedProblem  = "not made: "
	buyerProblem    = "waits for the buyer, who has to authenticate the payment"
)

func ofCreating(problem string) bool {
	return problem == "" || problem == buyerProblem || strings.HasPrefix(problem, declinedProblem) ||
		strings.HasPrefix(problem, refusedProblem)
}
