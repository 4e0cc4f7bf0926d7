package billing

import (
	"strconv"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// A bill is a line of a subscription's invoice.
type bill struct {
	item       object
	start, end int64
	trial      bool
	period     int64 // how long the whole period would be, in seconds; 0: start to end is all of it
	free       bool
}

// billed makes the draft of a subscription for the periods and for its pending invoice items, and
// emits nothing yet. since is the begin of the past period.
func (c call) billed(sub object, reason string, since int64, bills []bill) object {
	customer := c.customerOf(sub)
	invoice := c.newInvoice(customer, reason, object{"currency": sub["currency"], "parent": onSubscription(sub),
		"period_start": since,
		"auto_advance": true})
	for _, b := range bills {
		price := b.item.Sub("price")
		amount := price.Num("unit_amount") * b.item.Num("quantity")
		name := c.Space.Get("product", price.Str("product")).Str("name")
		text := strconv.FormatInt(b.item.Num("quantity"), 10) + " × " + name
		switch {
		case b.trial:
			amount, text = 0, "Trial period for "+name
		case b.free:
			amount = 0
		case b.period > 0:
			amount = prorated(amount, b.end-b.start, b.period)
		}
		add(invoice, c.subscriptionLine(invoice, b.item, amount, b.start, b.end, text))
	}
	c.take(invoice, c.pending(customer, sub, sub.Str("currency")))
	sub["latest_invoice"] = invoice.ID()
	sub["_invoices"] = append(sub.List("_invoices"), invoice.ID())
	return invoice
}

// prorated is the part of an amount for a part of a period, to the nearest minor unit.
func prorated(amount, part, period int64) int64 {
	return (2*amount*part + period) / (2 * period)
}

// collectNow finalizes a draft and tries to collect it at once. With pay false the customer pays.
func (c call) collectNow(invoice object, pay bool) error {
	if err := c.finalize(invoice); err != nil {
		return err
	}
	if invoice.Str("status") != "open" || !pay {
		return nil
	}
	return c.collect(invoice, c.methodFor(invoice), true, false)
}

// invoicePaid sets the subscription's status after a paid invoice.
func (c call) invoicePaid(sub, invoice object) {
	if over(sub) {
		return
	}
	before := sub.Clone()
	pi := c.intentOf(invoice)
	if sub.Sub("payment_settings").Str("save_default_payment_method") == "on_subscription" &&
		pi.Str("status") == "succeeded" {
		sub["default_payment_method"] = shape.OrNil(pi.Str("payment_method"))
	}
	was := sub.Str("status")
	switch was {
	case "incomplete", "paused":
		sub["status"] = "active"
	case "past_due", "unpaid":
		if !c.owes(sub, invoice.ID()) {
			sub["status"] = "active"
		}
	}
	c.tell(before, sub)
	if was == "paused" && sub.Str("status") == "active" {
		c.Emit("customer.subscription.resumed", sub, nil)
	}
}

// invoiceFailed sets the subscription's status after a failed payment.
func (c call) invoiceFailed(sub object) {
	before := sub.Clone()
	if s := sub.Str("status"); s == "active" || s == "trialing" {
		sub["status"] = "past_due"
	}
	c.tell(before, sub)
}

// invoiceClosed sets the subscription's status after its latest invoice was voided or marked
// uncollectible.
func (c call) invoiceClosed(sub object, status string) {
	before := sub.Clone()
	switch s := sub.Str("status"); {
	case s == "incomplete" && status == "void":
		sub["status"], sub["ended_at"] = "incomplete_expired", c.Now
	case (s == "past_due" || s == "unpaid") && !c.owes(sub, ""):
		sub["status"] = "active"
	}
	c.tell(before, sub)
}

// tell emits the change of a subscription, if there is one. The first event of a subscription is
// …created.
func (c call) tell(before, sub object) {
	switch {
	case sub.Yes("_strict"):
	case sub.Yes("_quiet"):
		delete(sub, "_quiet")
		c.Plan(sub)
		c.Emit("customer.subscription.created", sub, nil)
	default:
		c.Changed("customer.subscription.updated", before, sub)
	}
}

// owes reports whether the subscription has another open invoice that was attempted.
func (c call) owes(sub object, but string) bool {
	for _, v := range sub.List("_invoices") {
		id, _ := v.(string)
		if invoice := c.Space.Get("invoice", id); id != but && invoice.Str("status") == "open" && invoice.Yes("attempted") {
			return true
		}
	}
	return false
}

// gaveUp is the subscription's end after the last retry of an invoice. Its metadata
// fake_after_retries may say past_due or unpaid instead; at Stripe that is a setting of the
// account.
func (c call) gaveUp(sub object) {
	if sub == nil || over(sub) {
		return
	}
	switch sub.Sub("metadata").Str("fake_after_retries") {
	case "past_due":
	case "unpaid":
		before := sub.Clone()
		sub["status"] = "unpaid"
		c.tell(before, sub)
	default:
		c.end(sub, "payment_failed")
	}
}

// end cancels a subscription now. Its open invoices are not collected any more.
func (c call) end(sub object, reason string) {
	sub["status"], sub["ended_at"] = "canceled", c.Now
	if sub["canceled_at"] == nil {
		sub["canceled_at"] = c.Now
	}
	if details := sub.Sub("cancellation_details"); details["reason"] == nil {
		details["reason"] = reason
	}
	for _, v := range sub.List("_invoices") {
		id, _ := v.(string)
		invoice := c.Space.Get("invoice", id)
		if s := invoice.Str("status"); s == "open" || s == "draft" {
			before := invoice.Clone()
			invoice["auto_advance"], invoice["next_payment_attempt"], invoice["automatically_finalizes_at"] = false, nil, nil
			c.sayChanged(before, invoice)
		}
	}
	schedule := c.Space.Get("subscription_schedule", sub.Str("schedule"))
	c.Emit("customer.subscription.deleted", sub, nil)
	if s := schedule.Str("status"); s == "active" || s == "not_started" {
		schedule["status"], schedule["canceled_at"], schedule["current_phase"] = "canceled", c.Now, nil
		c.Emit("subscription_schedule.canceled", schedule, nil)
	}
}

// customerGone cancels the subscriptions and schedules of a deleted customer.
func (c call) customerGone(customer object) {
	for _, schedule := range c.Space.All("subscription_schedule") {
		if schedule.Str("customer") == customer.ID() && schedule.Str("status") == "not_started" {
			schedule["status"], schedule["canceled_at"] = "canceled", c.Now
			c.Emit("subscription_schedule.canceled", schedule, nil)
		}
	}
	for _, sub := range c.Space.All("subscription") {
		if sub.Str("customer") == customer.ID() && !over(sub) {
			c.end(sub, "cancellation_requested")
		}
	}
}
