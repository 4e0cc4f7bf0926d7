package tracking

import (
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
