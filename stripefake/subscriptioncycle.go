package stripefake

// trialNotice is how long before its end a trial is announced to be over, in seconds.
const trialNotice = 3 * day

// subscriptionDue is when something happens to a subscription by itself: its first payment
// has waited too long, a trial is about to end, it ends, or a period does.
func subscriptionDue(sub object) (int64, bool) {
	switch sub.str("status") {
	case "canceled", "incomplete_expired":
		return 0, false
	case "incomplete":
		return sub.num("created") + firstPayment, true
	}
	when, ok := int64(0), false
	sooner := func(v any) {
		if at, is := v.(int64); is && (!ok || at < when) {
			when, ok = at, true
		}
	}
	sooner(sub["cancel_at"])
	if sub.str("status") == "paused" {
		return when, ok
	}
	sooner(firstEnd(sub))
	sooner(sub.sub("pause_collection")["resumes_at"])
	if end, trial := sub["trial_end"].(int64); trial && sub.str("status") == "trialing" && !sub.yes("_told") {
		sooner(end - trialNotice)
	}
	return when, ok
}

// subscriptionHappens carries out the one thing of a subscription that is due now.
func (c *call) subscriptionHappens(sub object) {
	if sub.str("status") == "incomplete" {
		if invoice := c.space.get("invoice", sub.str("latest_invoice")); invoice.str("status") == "open" {
			c.void(invoice) // and with it the subscription expires
			return
		}
		before := sub.clone()
		sub["status"], sub["ended_at"] = "incomplete_expired", c.now
		c.tell(before, sub)
		return
	}
	if at, ok := sub["cancel_at"].(int64); ok && at <= c.now {
		c.end(sub, "cancellation_requested")
		return
	}
	if at, ok := sub.sub("pause_collection")["resumes_at"].(int64); ok && at <= c.now {
		before := sub.clone()
		sub["pause_collection"] = nil
		c.tell(before, sub)
		return
	}
	if end, trial := sub["trial_end"].(int64); trial && sub.str("status") == "trialing" && !sub.yes("_told") {
		sub["_told"] = true
		if end > c.now {
			c.emit("customer.subscription.trial_will_end", sub, nil)
			return
		}
	}
	c.renewSubscription(sub)
}

// renewSubscription begins the next period of the items whose period is over, with a draft for it.
func (c *call) renewSubscription(sub object) {
	before := sub.clone()
	trial := sub.str("status") == "trialing"
	if trial && c.subscriptionMethod(sub, c.space.get("customer", sub.str("customer"))) == "" && c.withoutMethod(sub) {
		return
	}
	since := c.now
	var bills []bill
	for _, item := range itemsOf(sub) {
		end := item.num("current_period_end")
		if end > c.now {
			continue
		}
		since = min(since, item.num("current_period_start"))
		r, _ := recurrenceOf(item.sub("price"))
		item["current_period_start"] = end
		item["current_period_end"] = r.next(sub.num("billing_cycle_anchor"), end)
		bills = append(bills, bill{item: item, start: end, end: item.num("current_period_end")})
	}
	if trial {
		sub["status"] = "active"
	}
	invoice := c.billed(sub, "subscription_cycle", since, bills)
	switch pause := sub.sub("pause_collection").str("behavior"); {
	case sub.str("status") == "unpaid", pause == "keep_as_draft":
		invoice["auto_advance"] = false
	case pause != "":
		invoice["_pause"] = pause
	}
	c.opened(invoice)
	c.tell(before, sub)
}

// withoutMethod does what a subscription's settings say about a trial that ends without a
// payment method, and says whether it has to be left at that.
func (c *call) withoutMethod(sub object) bool {
	switch sub.sub("trial_settings").sub("end_behavior").str("missing_payment_method") {
	case "cancel":
		c.end(sub, "payment_failed")
		return true
	case "pause":
		before := sub.clone()
		sub["status"] = "paused"
		c.tell(before, sub)
		c.emit("customer.subscription.paused", sub, nil)
		return true
	}
	return false
}

// resumeSubscription goes on with a subscription that is paused, with a new period that begins
// now. If its invoice is not paid at once, it stays paused until it is.
func (c *call) resumeSubscription() (object, error) {
	sub, err := c.subscription()
	if err != nil {
		return nil, err
	}
	anchor, err := c.choice("billing_cycle_anchor", "now", "unchanged")
	if err != nil {
		return nil, err
	}
	if sub.str("status") != "paused" {
		return nil, invalid("", "", "Only subscriptions with the status paused can be resumed. This one is "+sub.str("status")+".")
	}
	if anchor == "unchanged" {
		return nil, invalid("", "billing_cycle_anchor", "This fake does not prorate: billing_cycle_anchor can be now only.")
	}
	defer c.inTimeOf(c.space.get("customer", sub.str("customer")))()
	before := sub.clone()
	sub["billing_cycle_anchor"] = c.now
	var bills []bill
	for _, item := range itemsOf(sub) {
		r, _ := recurrenceOf(item.sub("price"))
		item["current_period_start"], item["current_period_end"] = c.now, r.next(c.now, c.now)
		bills = append(bills, bill{item: item, start: c.now, end: item.num("current_period_end")})
	}
	invoice := c.billed(sub, "subscription_update", c.now, bills)
	c.say("invoice.created", invoice, nil)
	c.tell(before, sub)
	if err := c.collectNow(invoice, c.methodFor(invoice) != ""); err != nil && c.intentOf(invoice) == nil {
		return nil, err
	}
	return sub, nil
}
