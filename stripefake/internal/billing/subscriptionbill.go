package billing

import (
	"slices"
	"strconv"

	"github.com/duesday/duesday/stripefake/internal/api"
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

// billed makes the draft for the periods and pending items, and emits nothing. since: the past period.
func (c call) billed(sub object, reason string, since int64, bills []bill) object {
	customer := c.customerOf(sub)
	invoice := c.newInvoice(customer, reason, object{"currency": sub["currency"], "parent": onSubscription(sub),
		"period_start": since, "auto_advance": true, "discounts": c.discountsOf(sub), "_discount": sub["_discount"]})
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
			amount = share(amount, b.end-b.start, b.period)
		}
		c.add(invoice, c.subscriptionLine(invoice, b.item, amount, b.start, b.end, text))
	}
	c.take(invoice, c.pending(customer, sub, sub.Str("currency"))...)
	for i, b := range bills {
		line := linesOf(invoice)[i]
		amount := line.Num("amount")
		for _, d := range shape.ObjectsOf(line.List("discount_amounts")) {
			amount -= d.Num("amount")
		}
		b.item["_billed"] = object{"amount": amount, "start": b.start, "end": b.end}
	}
	c.used(sub, invoice)
	sub["latest_invoice"] = invoice.ID()
	sub["_invoices"] = append(sub.List("_invoices"), invoice.ID())
	return invoice
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

func (c call) become(sub object, status string) {
	before := sub.Clone()
	if sub["status"] = status; status == "incomplete_expired" {
		sub["ended_at"] = c.Now
	}
	c.tell(before, sub)
}

// invoiceClosed sets the status after the latest invoice was voided or marked uncollectible.
func (c call) invoiceClosed(sub object, status string) {
	is := sub.Str("status")
	switch {
	case is == "incomplete" && status == "void":
		is = "incomplete_expired"
	case (is == "past_due" || is == "unpaid") && !c.owes(sub, ""):
		is = "active"
	}
	c.become(sub, is)
}

// tell emits the change of a subscription, if there is one. Its first event is …created.
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
	return slices.ContainsFunc(c.invoicesOf(sub), func(invoice object) bool {
		return invoice.ID() != but && invoice.Str("status") == "open" && invoice.Yes("attempted")
	})
}

// invoicesOf returns the invoices of a subscription; nil for a deleted one.
func (c call) invoicesOf(sub object) (list []object) {
	for _, id := range sub.List("_invoices") {
		list = append(list, c.Space.Get("invoice", id.(string)))
	}
	return list
}

// gaveUp is the subscription's end after the last retry of an invoice. Its metadata fake_after_retries
// may say past_due or unpaid instead.
func (c call) gaveUp(sub object) {
	if sub == nil || over(sub) {
		return
	}
	switch sub.Sub("metadata").Str("fake_after_retries") {
	case "past_due":
	case "unpaid":
		c.become(sub, "unpaid")
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
	for _, invoice := range c.invoicesOf(sub) {
		if s := invoice.Str("status"); s == "open" || s == "draft" {
			c.alter(invoice, object{"auto_advance": false, "next_payment_attempt": nil, "automatically_finalizes_at": nil})
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

// trialNotice is the time between the announcement and the end of a trial, in seconds.
const trialNotice = 3 * api.Day

// subscriptionDue returns the time of a subscription's next change by itself.
func subscriptionDue(sub object) (int64, bool) {
	switch sub.Str("status") {
	case "canceled", "incomplete_expired":
		return 0, false
	case "incomplete":
		return sub.Num("created") + firstPayment, true
	}
	when, ok := int64(0), false
	sooner := func(v any) {
		if at, is := v.(int64); is && (!ok || at < when) {
			when, ok = at, true
		}
	}
	sooner(sub["cancel_at"])
	if sub.Str("status") == "paused" {
		return when, ok
	}
	sooner(slices.Min(endsOf(sub)))
	sooner(sub.Sub("pause_collection")["resumes_at"])
	if end, trial := sub["trial_end"].(int64); trial && sub.Str("status") == "trialing" && !sub.Yes("_told") {
		sooner(end - trialNotice)
	}
	return when, ok
}

func (c call) subscriptionHappens(sub object) {
	if sub.Str("status") == "incomplete" {
		if invoice := c.Space.Get("invoice", sub.Str("latest_invoice")); invoice.Str("status") == "open" {
			c.close(invoice, "void") // and with it the subscription expires
			return
		}
		c.become(sub, "incomplete_expired")
		return
	}
	if at, ok := sub["cancel_at"].(int64); ok && at <= c.Now {
		c.end(sub, "cancellation_requested")
		return
	}
	if at, ok := sub.Sub("pause_collection")["resumes_at"].(int64); ok && at <= c.Now {
		before := sub.Clone()
		sub["pause_collection"] = nil
		c.tell(before, sub)
		return
	}
	if end, trial := sub["trial_end"].(int64); trial && sub.Str("status") == "trialing" && !sub.Yes("_told") {
		sub["_told"] = true
		if end > c.Now {
			c.Emit("customer.subscription.trial_will_end", sub, nil)
			return
		}
	}
	c.renewSubscription(sub)
}

// renewSubscription begins the next period of the items whose period is over, with a draft for it.
func (c call) renewSubscription(sub object) {
	before := sub.Clone()
	trial := sub.Str("status") == "trialing"
	if trial && c.subscriptionMethod(sub, c.customerOf(sub)) == "" && c.withoutMethod(sub) {
		return
	}
	since := c.Now
	var bills []bill
	for _, item := range itemsOf(sub) {
		end := item.Num("current_period_end")
		if end > c.Now {
			continue
		}
		since = min(since, item.Num("current_period_start"))
		item["current_period_start"] = end
		item["current_period_end"] = recurrenceOf(item.Sub("price")).next(sub.Num("billing_cycle_anchor"), end)
		bills = append(bills, bill{item: item, start: end, end: item.Num("current_period_end")})
	}
	if trial {
		sub["status"] = "active"
	}
	invoice := c.billed(sub, "subscription_cycle", since, bills)
	switch pause := sub.Sub("pause_collection").Str("behavior"); {
	case sub.Str("status") == "unpaid", pause == "keep_as_draft":
		invoice["auto_advance"] = false
	case pause != "":
		invoice["_pause"] = pause
	}
	c.opened(invoice)
	c.tell(before, sub)
}

// withoutMethod ends a trial without a payment method, and reports whether all stops there.
func (c call) withoutMethod(sub object) bool {
	switch sub.Sub("trial_settings").Sub("end_behavior").Str("missing_payment_method") {
	case "cancel":
		c.end(sub, "payment_failed")
		return true
	case "pause":
		c.become(sub, "paused")
		c.Emit("customer.subscription.paused", sub, nil)
		return true
	}
	return false
}

// resumeSubscription begins a period now; until its invoice is paid, the subscription stays paused.
func (c call) resumeSubscription(sub object) (object, error) {
	if sub.Str("status") != "paused" {
		return nil, shape.Invalid("", "",
			"Only subscriptions with the status paused can be resumed. This one is "+sub.Str("status")+".")
	}
	if c.Form.Str("billing_cycle_anchor") == "unchanged" {
		return nil, shape.Invalid("", "billing_cycle_anchor", "stripefake does not prorate a paused period: "+
			"billing_cycle_anchor must be now.")
	}
	before := sub.Clone()
	sub["billing_cycle_anchor"] = c.Now
	var bills []bill
	for _, item := range itemsOf(sub) {
		item["current_period_start"] = c.Now
		item["current_period_end"] = recurrenceOf(item.Sub("price")).next(c.Now, c.Now)
		bills = append(bills, bill{item: item, start: c.Now, end: item.Num("current_period_end")})
	}
	invoice := c.billed(sub, "subscription_update", c.Now, bills)
	c.say("invoice.created", invoice, nil)
	c.tell(before, sub)
	if err := c.collectNow(invoice, c.methodFor(invoice) != ""); err != nil && c.intentOf(invoice) == nil {
		return nil, err
	}
	return sub, nil
}
