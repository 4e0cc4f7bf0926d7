package tracking

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
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

// A Change is an entry in the history of a purchase, payment or subscription.
type Change struct {
	At    time.Time `json:"at"` // when we noted it
	What  string    `json:"what"`
	Event string    `json:"event,omitempty"` // evt_…, its cause
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

// Purchase returns the purchase, or store.ErrNotFound.
func (s *Service) Purchase(ctx context.Context, id string) (*Purchase, error) {
	p, err := s.loadPurchase(ctx, id)
	if err != nil {
		return nil, err
	}
	return p.whole()
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
	return from(it, (*Purchase).fields), nil
}

// Mark returns the purchase's place in a list.
func (p *Purchase) Mark() Mark { return Mark{At: p.Created, ID: p.ID} }

// Purchases yields a merchant's purchases after the mark, newest first. One just made may be missing.
func (s *Service) Purchases(ctx context.Context, merchant string, after Mark) iter.Seq2[*Purchase, error] {
	return read(s.items(ctx, &s.o.Tables.Tracking.Purchases, schema.AccountIndex, merchant,
		after.cursor(merchant, stamp(after.At), store.Key{PK: after.ID}), true),
		func(it store.Item) (*Purchase, error) { return from(it, (*Purchase).fields).whole() })
}

// changePurchase changes a purchase, and stores it with other writes, again while others are faster.
func (s *Service) changePurchase(ctx context.Context, p *Purchase,
	change func(*Purchase) (changed bool, with []store.Write)) (*Purchase, error) {
	id, stale := p.ID, false
	err := store.Retry(ctx, "purchase "+id, func() (err error) {
		if stale {
			if p, err = s.Purchase(ctx, id); err != nil {
				return err
			}
		}
		stale = true
		changed, with := change(p)
		if !changed {
			return nil
		}
		err = s.commit(ctx, append([]store.Write{put(s.o.Tables.Tracking.Purchases.Name, p.fields, s.now())}, with...)...)
		if err == nil && len(with) > 0 {
			s.nudge()
		}
		return err
	})
	return p, err
}
