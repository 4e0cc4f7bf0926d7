package tracking

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/store"
)

// A Rebuilt compares the stored state with the folded events.
type Rebuilt struct {
	StripeAccount string       `json:"stripe_account"`
	Events        int          `json:"events"`      // folded
	Unread        int          `json:"unread"`      // not folded: their bodies are not stored
	Compared      int          `json:"compared"`    // payments and subscriptions whose first event is stored
	Partial       int          `json:"partial"`     // the others, of which events have expired
	Ahead         int          `json:"ahead"`       // of those compared: more was fetched than the events tell
	Differences   []Difference `json:"differences"` // by object
}

// A Difference is an object whose stored state contradicts its events.
type Difference struct {
	ID     string `json:"id"`
	Stored string `json:"stored"`
	Folded string `json:"folded"`
}

// folded is the state of one object by its events.
type folded struct {
	payment      *Payment
	subscription *Subscription
	whole        bool // the event of its creation is among them
}

// Rebuild folds the stored events of a Stripe account into fresh state and compares it with the
// stored state, for the objects whose first event is still stored. It changes nothing, and asks
// Stripe nothing. The stored state may be ahead of the events by fetched objects, whose event
// Stripe never made or has not sent yet. It is counted, and no difference.
func (s *Service) Rebuild(ctx context.Context, stripeAccount string) (*Rebuilt, error) {
	if _, err := s.ConnectedAccount(ctx, stripeAccount); err != nil {
		return nil, err
	}
	r := &Rebuilt{StripeAccount: stripeAccount, Differences: []Difference{}}
	objects := map[string]*folded{}
	for row, err := range s.Events(ctx, EventQuery{StripeAccount: stripeAccount}) {
		if err != nil {
			return nil, err
		}
		e, err := s.Event(ctx, row.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		if !e.Status.Final() || e.Status == Refused {
			continue
		}
		told, err := s.decode(e.Body)
		if err != nil { // its body was too large to be kept
			r.Unread++
			continue
		}
		r.Events++
		fold(objects, told)
	}
	for _, id := range slices.Sorted(maps.Keys(objects)) {
		if err := s.compare(ctx, r, id, objects[id]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// fold merges the event into the object it is about. It ignores events of charges by billing.
func fold(objects map[string]*folded, e Event) {
	o := e.Object
	id := o.ID
	switch {
	case o.Kind == KindCharge || o.Kind == KindRefund || o.Kind == KindDispute:
		id = o.Payment
	case o.Kind == KindSchedule && o.Subscription != "":
		id = o.Subscription
	case o.Kind != KindPayment && o.Kind != KindSubscription && o.Kind != KindSchedule:
		return
	}
	if id == "" || o.Tag.Charge {
		return
	}
	f := objects[id]
	if f == nil {
		f = &folded{}
		objects[id] = f
	}
	if o.Kind == KindSubscription || o.Kind == KindSchedule {
		if f.subscription == nil {
			f.subscription = &Subscription{ID: id, Status: SubscriptionNew}
		}
		f.whole = f.whole || e.Type == "customer.subscription.created" || id == o.ID &&
			e.Type == "subscription_schedule.created"
		if o.Schedule == "" && o.Kind == KindSubscription {
			o.Schedule = f.subscription.Schedule
		}
		// Without waiting for a schedule: all events are there, in any order, and the last decides.
		mergeSubscription(f.subscription, o, rule{force: true})
		return
	}
	if f.payment == nil {
		f.payment = &Payment{ID: id, Status: PaymentNew}
	}
	f.whole = f.whole || e.Type == "payment_intent.created"
	mergePayment(f.payment, o)
}

func (s *Service) compare(ctx context.Context, r *Rebuilt, id string, f *folded) (err error) {
	var stored, now string
	var ahead bool
	if f.payment != nil {
		var p *Payment
		if p, err = s.Payment(ctx, r.StripeAccount, id); err == nil {
			stored, now, ahead = p.summary(), f.payment.summary(), p.includes(f.payment)
		}
	} else {
		var sub *Subscription
		if sub, err = s.Subscription(ctx, r.StripeAccount, id); err == nil {
			stored, now, ahead = sub.summary(), f.subscription.summary(), sub.sound() && sub.includes(f.subscription)
		}
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil // not ours
	case err != nil:
		return err
	case !f.whole:
		r.Partial++
		return nil
	case stored == now:
	case ahead:
		r.Ahead++
	default:
		r.Differences = append(r.Differences, Difference{ID: id, Stored: stored, Folded: now})
	}
	r.Compared++
	return nil
}

// includes reports whether this payment is at least as far as the other.
func (p *Payment) includes(q *Payment) bool {
	if paymentRank[q.Status] > paymentRank[p.Status] || q.told > p.told {
		return false
	}
	for id, r := range q.Refunds {
		if refundRank[r.Status] > refundRank[p.Refunds[id].Status] {
			return false
		}
	}
	for id, d := range q.Disputes {
		if disputeRank[d.Status] > disputeRank[p.Disputes[id].Status] {
			return false
		}
	}
	return true
}

// sound reports whether the status follows from the rest of the row.
func (s *Subscription) sound() bool {
	status, ending := s.decide()
	return s.Status == status && s.Ending == ending
}

func (s *Subscription) includes(t *Subscription) bool {
	return (!t.activated || s.activated) && (!t.over || s.over) && (!t.expired || s.expired) &&
		scheduleRank[t.scheduleStatus] <= scheduleRank[s.scheduleStatus]
}

// summary is the state by events alone, in one line.
func (p *Payment) summary() string {
	parts := []string{string(p.Status)}
	if p.Refunded > 0 {
		parts = append(parts, fmt.Sprintf("%d refunded", p.Refunded))
	}
	for _, id := range slices.Sorted(maps.Keys(p.Disputes)) {
		parts = append(parts, "dispute "+p.Disputes[id].Status)
	}
	return strings.Join(parts, ", ")
}

func (s *Subscription) summary() string {
	switch s.Ending {
	case "":
		return string(s.Status)
	case EndSetting: // which only a fetched object decides
		return string(SubscriptionActive)
	}
	return string(s.Status) + ": " + string(s.Ending)
}
