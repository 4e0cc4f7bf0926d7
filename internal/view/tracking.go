package view

import (
	"maps"
	"slices"

	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/tracking/poller"
)

// Merchant returns a merchant's Stripe account, and how far its events are known.
func Merchant(a *tracking.ConnectedAccount) Object {
	p := &a.Polled
	return Object{"id", a.Merchant, "stripe_account", a.StripeAccount, "own?", a.Own, "status", a.Status, "created_at", a.Created,
		"updated_at?", a.Updated, "verified_through?", p.Through, "checked?", p.Checked, "next?", p.Next, "quiet?", p.Quiet,
		"swept?", p.Swept, "error?", p.Error, "thin?", p.Thin}
}

// Import returns the report of an import, without its rows.
func Import(r *poller.ImportReport, plan bool) Object {
	return Object{"stripe_account", r.StripeAccount, "since", r.Since, "imported", r.Imported, "known", r.Known, "skipped", r.Skipped,
		"fulfil", r.Fulfils, "payments", r.Payments, "other_payments", r.OtherPayments, "changed", r.Changed, "events", r.Events,
		"dry_run?", plan}
}

// ImportRow returns one subscription of an import.
func ImportRow(r poller.ImportRow) Object {
	return Object{"subscription", r.ID, "customer?", r.Customer, "stripe_status", r.Status, "price?", r.Price, "action", r.Action,
		"fulfil?", r.Fulfils, "reason?", r.Reason}
}

// Purchase returns the purchase without its history.
func Purchase(p *tracking.Purchase) Object {
	o := &p.Order // zero if Duesday only knows the purchase from an event
	order := Object{"merchant?", o.Merchant, "kind?", o.Kind, "key?", o.Key, "amount?", o.Amount, "currency?", o.Currency,
		"price?", o.Price, "payments?", o.Payments, "description?", o.Description, "customer?", o.Customer, "email?", o.Email,
		"name?", o.Name, "payment_method?", o.PaymentMethod}
	effect := func(e tracking.Effect) Object {
		return Object{"state?", e.State, "reason?", e.Reason, "asked?", e.Asked, "done?", e.Done}
	}
	return Object{"id", p.ID, "merchant", p.Merchant, "stripe_account", p.StripeAccount, "kind", p.Kind, "created_at", p.Created,
		"updated_at", p.Updated, "fulfilled", p.Fulfilled, "order?", order, "customer?", p.Customer, "problem?", p.Problem,
		"imported_at?", p.Imported,
		"fulfilment?", effect(p.Fulfilment), "unsubscribe?", effect(p.Unsubscribe),
		"automations", List(p.Automations, func(d tracking.Done) Object {
			return Object{"automation", d.Automation, "action", d.Action, "at", d.At}
		}), "subscriptions?", byID(p.Subscriptions, func(s tracking.SubscriptionState) Object {
			return Object{"status", s.Status, "ending?", s.Ending, "schedule?", s.Schedule}
		})}
}

// Ordered returns a purchase that was just created, with its objects at Stripe. Only this view has the
// client secret, with which the buyer's browser or app completes the payment.
func Ordered(c *tracking.Created) Object {
	s := &c.Sale
	return Object{"purchase", Purchase(c.Purchase), "objects", List(s.Objects, StripeObject), "customer?", s.Customer,
		"client_secret?", s.ClientSecret.Reveal(), "declined?", s.Declined, "action_required?", s.Action, "repeated?", c.Repeated}
}

// byID returns an object with the view of each value, sorted by its key.
func byID[V any](all map[string]V, view func(V) Object) (o Object) {
	for _, id := range slices.Sorted(maps.Keys(all)) {
		o = append(o, id, view(all[id]))
	}
	return o
}

// Payment returns the payment with its refunds and disputes, whose amounts are in its currency.
func Payment(p *tracking.Payment) Object {
	return Object{"id", p.ID, "stripe_account", p.StripeAccount, "merchant", p.Merchant, "purchase?", p.Purchase, "created_at", p.Created,
		"updated_at", p.Updated, "status", p.Status, "codes?", p.Codes, "amount?", p.Amount, "currency?", p.Currency,
		"invoice?", p.Invoice, "subscription?", p.Subscription, "refunded?", p.Refunded,
		"refunds?", byID(p.Refunds, func(r tracking.Refund) Object {
			return Object{"id", r.ID, "amount", r.Amount, "currency?", p.Currency, "status", r.Status}
		}), "disputes?", byID(p.Disputes, func(d tracking.Dispute) Object {
			return Object{"id", d.ID, "amount", d.Amount, "currency?", p.Currency, "status", d.Status, "evidence_due?", d.Due}
		}), "history", List(p.History, change)}
}

func change(c tracking.Change) Object { return Object{"at", c.At, "what", c.What, "event?", c.Event} }

// StripeSubscription returns a subscription that Stripe runs.
func StripeSubscription(s *tracking.Subscription) Object {
	return Object{"id", s.ID, "stripe_account", s.StripeAccount, "merchant", s.Merchant, "purchase?", s.Purchase, "created_at", s.Created,
		"updated_at", s.Updated, "status", s.Status, "stripe_status?", s.Detail, "ending?", s.Ending, "taken_over?", s.TakenOver, "schedule?", s.Schedule,
		"terms?", Object{"price?", s.Terms.Price, "quantity?", s.Terms.Quantity, "cancel_at?", s.Terms.CancelAt},
		"history", List(s.History, change)}
}

// Timeline returns the purchase with its payments and subscriptions, and the history of all of them.
func Timeline(t *tracking.Timeline) Object {
	return Object{"purchase", Purchase(t.Purchase), "payments", List(t.Payments, Payment),
		"subscriptions", List(t.Subscriptions, StripeSubscription), "steps", List(t.Steps, func(s tracking.Step) Object {
			return Object{"at", s.At, "about", s.About, "what", s.What, "event?", s.Event, "detail?", s.Detail}
		})}
}

// Event returns the event without its body.
func Event(e *tracking.Event) Object {
	return Object{"id", e.ID, "type?", e.Type, "told_type?", e.ToldType, "twin?", e.Twin, "stripe_account?", e.StripeAccount,
		"merchant?", e.Merchant, "subscription?", e.Subscription, "at", e.Created, "status", e.Status, "reason?", e.Reason,
		"source?", e.Source, "received_at?", e.Received, "applied_at?", e.Applied}
}

// EventRow returns the event as a list has it.
func EventRow(e tracking.EventRow) Object {
	return Object{"id", e.ID, "type?", e.Type, "stripe_account?", e.StripeAccount, "subscription?", e.Subscription, "at", e.At,
		"status?", e.Status, "reason?", e.Reason, "source?", e.Source}
}

// Job returns a fulfillment or an unsubscribe that is not done.
func Job(j tracking.WaitingJob) Object {
	return Object{"id", j.ID, "action", j.Action, "purchase", j.Purchase, "due_at?", j.Due, "tries?", j.Tries, "error?", j.Error,
		"dead?", j.Dead}
}

// StripeObject returns an object at Stripe.
func StripeObject(o tracking.Object) Object {
	return Object{"kind", o.Kind, "id", o.ID, "status?", o.Status, "created_at?", o.Created, "amount?", o.Amount, "currency?", o.Currency,
		"payment?", o.Payment, "invoice?", o.Invoice, "subscription?", o.Subscription, "schedule?", o.Schedule, "customer?", o.Customer}
}
