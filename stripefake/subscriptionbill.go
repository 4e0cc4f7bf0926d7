package stripefake

import "strconv"

// A bill is a line of a subscription's invoice.
type bill struct {
	item       object
	start, end int64
	trial      bool
	period     int64 // how long the whole period would be, in seconds; 0: start to end is all of it
	free       bool
}

// billed makes the draft of a subscription for the periods, and of the invoice items that
// wait for it. It says nothing of it yet. since is when the period that has ended began.
func (c *call) billed(sub object, reason string, since int64, bills []bill) object {
	customer := c.space.get("customer", sub.str("customer"))
	invoice := c.newInvoice(customer, reason, object{"currency": sub["currency"], "parent": onSubscription(sub), "period_start": since,
		"auto_advance": true})
	for _, b := range bills {
		price := b.item.sub("price")
		amount := price.num("unit_amount") * b.item.num("quantity")
		name := c.space.get("product", price.str("product")).str("name")
		text := strconv.FormatInt(b.item.num("quantity"), 10) + " × " + name
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
	c.take(invoice, c.pending(customer, sub, sub.str("currency")))
	sub["latest_invoice"] = invoice.id()
	sub["_invoices"] = append(sub.list("_invoices"), invoice.id())
	return invoice
}

// prorated is the part of an amount for a part of a period, to the nearest minor unit.
func prorated(amount, part, period int64) int64 {
	return (2*amount*part + period) / (2 * period)
}

// collectNow finalizes a draft and tries to have it paid at once. With pay false the payment
// is left to the customer.
func (c *call) collectNow(invoice object, pay bool) error {
	if err := c.finalize(invoice); err != nil {
		return err
	}
	if invoice.str("status") != "open" || !pay {
		return nil
	}
	return c.collect(invoice, c.methodFor(invoice), true, false)
}

// invoicePaid gives a subscription the status that a paid invoice of it means.
func (c *call) invoicePaid(sub, invoice object) {
	if over(sub) {
		return
	}
	before := sub.clone()
	pi := c.intentOf(invoice)
	if sub.sub("payment_settings").str("save_default_payment_method") == "on_subscription" && pi.str("status") == "succeeded" {
		sub["default_payment_method"] = orNil(pi.str("payment_method"))
	}
	was := sub.str("status")
	switch was {
	case "incomplete", "paused":
		sub["status"] = "active"
	case "past_due", "unpaid":
		if !c.owes(sub, invoice.id()) {
			sub["status"] = "active"
		}
	}
	c.tell(before, sub)
	if was == "paused" && sub.str("status") == "active" {
		c.emit("customer.subscription.resumed", sub, nil)
	}
}

// invoiceFailed is invoicePaid for one that could not be paid.
func (c *call) invoiceFailed(sub object) {
	before := sub.clone()
	if s := sub.str("status"); s == "active" || s == "trialing" {
		sub["status"] = "past_due"
	}
	c.tell(before, sub)
}

// invoiceClosed is invoicePaid for the latest one being void or uncollectible.
func (c *call) invoiceClosed(sub object, status string) {
	before := sub.clone()
	switch s := sub.str("status"); {
	case s == "incomplete" && status == "void":
		sub["status"], sub["ended_at"] = "incomplete_expired", c.now
	case (s == "past_due" || s == "unpaid") && !c.owes(sub, ""):
		sub["status"] = "active"
	}
	c.tell(before, sub)
}

// tell says that a subscription is another, if it is: as …created as long as that has not
// been said.
func (c *call) tell(before, sub object) {
	switch {
	case sub.yes("_strict"):
	case sub.yes("_quiet"):
		delete(sub, "_quiet")
		c.plan(sub)
		c.emit("customer.subscription.created", sub, nil)
	default:
		c.changed("customer.subscription.updated", before, sub)
	}
}

// owes says whether an invoice of the subscription, other than that one, has been tried in
// vain and is still open.
func (c *call) owes(sub object, but string) bool {
	for _, v := range sub.list("_invoices") {
		id, _ := v.(string)
		if invoice := c.space.get("invoice", id); id != but && invoice.str("status") == "open" && invoice.yes("attempted") {
			return true
		}
	}
	return false
}

// gaveUp is what becomes of a subscription when an invoice has been tried for the last time.
// It is cancelled, unless its metadata say otherwise: at Stripe that is a setting of the
// account, fake_after_retries is the fake's way to have all of them.
func (c *call) gaveUp(sub object) {
	if sub == nil || over(sub) {
		return
	}
	switch sub.sub("metadata").str("fake_after_retries") {
	case "past_due":
	case "unpaid":
		before := sub.clone()
		sub["status"] = "unpaid"
		c.tell(before, sub)
	default:
		c.end(sub, "payment_failed")
	}
}

// end cancels a subscription now. What is open of it is not collected any more.
func (c *call) end(sub object, reason string) {
	sub["status"], sub["ended_at"] = "canceled", c.now
	if sub["canceled_at"] == nil {
		sub["canceled_at"] = c.now
	}
	if details := sub.sub("cancellation_details"); details["reason"] == nil {
		details["reason"] = reason
	}
	for _, v := range sub.list("_invoices") {
		id, _ := v.(string)
		invoice := c.space.get("invoice", id)
		if s := invoice.str("status"); s == "open" || s == "draft" {
			before := invoice.clone()
			invoice["auto_advance"], invoice["next_payment_attempt"], invoice["automatically_finalizes_at"] = false, nil, nil
			c.sayChanged(before, invoice)
		}
	}
	schedule := c.space.get("subscription_schedule", sub.str("schedule"))
	c.emit("customer.subscription.deleted", sub, nil)
	if s := schedule.str("status"); s == "active" || s == "not_started" {
		schedule["status"], schedule["canceled_at"], schedule["current_phase"] = "canceled", c.now, nil
		c.emit("subscription_schedule.canceled", schedule, nil)
	}
}

// customerGone cancels what a deleted customer has.
func (c *call) customerGone(customer object) {
	for _, schedule := range c.space.all("subscription_schedule") {
		if schedule.str("customer") == customer.id() && schedule.str("status") == "not_started" {
			schedule["status"], schedule["canceled_at"] = "canceled", c.now
			c.emit("subscription_schedule.canceled", schedule, nil)
		}
	}
	for _, sub := range c.space.all("subscription") {
		if sub.str("customer") == customer.id() && !over(sub) {
			c.end(sub, "cancellation_requested")
		}
	}
}
