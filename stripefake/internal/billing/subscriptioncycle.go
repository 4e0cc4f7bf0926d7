package billing

import (
	"slices"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

// trialNotice is the time between the announcement and the end of a trial, in seconds.
const trialNotice = 3 * api.Day

// subscriptionDue returns the time of a subscription's next change: its first payment expires, a
// trial is about to end, it ends, or a period ends.
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

// subscriptionHappens carries out one due change.
func (c call) subscriptionHappens(sub object) {
	if sub.Str("status") == "incomplete" {
		if invoice := c.Space.Get("invoice", sub.Str("latest_invoice")); invoice.Str("status") == "open" {
			c.void(invoice) // and with it the subscription expires
			return
		}
		before := sub.Clone()
		sub["status"], sub["ended_at"] = "incomplete_expired", c.Now
		c.tell(before, sub)
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
		r, _ := recurrenceOf(item.Sub("price"))
		item["current_period_start"] = end
		item["current_period_end"] = r.next(sub.Num("billing_cycle_anchor"), end)
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

// withoutMethod ends a trial without a payment method, by the subscription's settings. It reports
// whether the subscription stops there.
func (c call) withoutMethod(sub object) bool {
	switch sub.Sub("trial_settings").Sub("end_behavior").Str("missing_payment_method") {
	case "cancel":
		c.end(sub, "payment_failed")
		return true
	case "pause":
		before := sub.Clone()
		sub["status"] = "paused"
		c.tell(before, sub)
		c.Emit("customer.subscription.paused", sub, nil)
		return true
	}
	return false
}

// resumeSubscription continues a paused subscription with a period from now on. Until its invoice
// is paid, it stays paused.
func (c call) resumeSubscription(sub object) (object, error) {
	if sub.Str("status") != "paused" {
		return nil, shape.Invalid("", "",
			"Only subscriptions with the status paused can be resumed. This one is "+sub.Str("status")+".")
	}
	if c.Form.Str("billing_cycle_anchor") == "unchanged" {
		return nil, shape.Invalid("", "billing_cycle_anchor", "This fake does not prorate: billing_cycle_anchor can be "+
			"now only.")
	}
	before := sub.Clone()
	sub["billing_cycle_anchor"] = c.Now
	var bills []bill
	for _, item := range itemsOf(sub) {
		r, _ := recurrenceOf(item.Sub("price"))
		item["current_period_start"], item["current_period_end"] = c.Now, r.next(c.Now, c.Now)
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
