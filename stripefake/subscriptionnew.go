package stripefake

import (
	"net/http"
	"strings"
)

// A term is when a subscription begins to be paid, and when it ends.
type term struct {
	trialEnd any   // Unix seconds, or nil
	anchor   int64 // of its periods
}

func (c *call) createSubscription() (object, error) {
	customer, err := c.buyer()
	if err != nil {
		return nil, err
	}
	behavior, err := c.choice("payment_behavior", "allow_incomplete", "default_incomplete", "error_if_incomplete", "pending_if_incomplete")
	switch {
	case err != nil:
		return nil, err
	case behavior == "pending_if_incomplete":
		return nil, invalid("", "payment_behavior", "`pending_if_incomplete` is for updates. Use default_incomplete, allow_incomplete or error_if_incomplete.")
	}
	if err := c.collection(); err != nil {
		return nil, err
	}
	defer c.inTimeOf(customer)()
	wanted, err := c.wantedItems(c.form, "")
	if err != nil {
		return nil, err
	}
	currency, err := currencyOf(wanted, "items")
	if err != nil {
		return nil, err
	}
	if asked := c.form.str("currency"); asked != "" && strings.ToLower(asked) != currency {
		return nil, invalid("", "currency", "The prices are in "+currency+".")
	}
	members := object{}
	if err := c.subscriptionParams(members, customer); err != nil {
		return nil, err
	}
	if mode := c.form.sub("billing_mode"); mode != nil {
		if mode.str("type") != "flexible" && mode.str("type") != "classic" {
			return nil, invalid("", "billing_mode[type]", "Invalid billing_mode[type]: must be one of classic or flexible")
		}
		members["billing_mode"] = object{"type": mode.str("type"), "flexible": nil}
		if mode.str("type") == "flexible" {
			members["billing_mode"] = object{"type": "flexible", "flexible": object{}}
		}
	}
	term, err := c.termOf(wanted)
	if err != nil {
		return nil, err
	}
	members["billing_cycle_anchor"], members["trial_end"] = term.anchor, term.trialEnd
	if term.trialEnd != nil {
		members["trial_start"], members["status"] = c.now, "trialing"
	}
	if err := c.cancelAt(members, c.now); err != nil {
		return nil, err
	}
	return c.begin(customer, currency, wanted, members, behavior)
}

// termOf reads trial_period_days, trial_end and billing_cycle_anchor.
func (c *call) termOf(wanted []wanted) (term, error) {
	t := term{anchor: c.now}
	days, err := c.amount("trial_period_days")
	if err != nil {
		return t, err
	}
	if days > 730 {
		return t, invalid("", "trial_period_days", "The trial can be 730 days at most.")
	}
	end := c.now + days*day
	if c.form.has("trial_end") && c.form.str("trial_end") != "now" {
		if days > 0 {
			return t, invalid("", "trial_end", "You may only specify one of these parameters: trial_end, trial_period_days.")
		}
		if end, err = c.amountless("trial_end"); err != nil {
			return t, err
		}
		if end <= c.now {
			return t, invalid("", "trial_end", "Invalid timestamp: must be an integer Unix timestamp in the future.")
		}
	}
	if end > c.now {
		t.trialEnd, t.anchor = end, end
	}
	if c.form.has("billing_cycle_anchor") {
		if t.anchor, err = c.amountless("billing_cycle_anchor"); err != nil {
			return t, err
		}
		r, _ := recurrenceOf(wanted[0].price)
		if t.anchor < end || t.anchor > r.after(end, 1) {
			return t, invalid("", "billing_cycle_anchor", "billing_cycle_anchor must be in the future and cannot be later than the next natural billing date.")
		}
	}
	return t, nil
}

// begin makes the subscription and its first invoice, and has that paid as the behaviour
// says.
func (c *call) begin(customer object, currency string, wanted []wanted, members object, behavior string) (object, error) {
	sub := c.newSubscription(customer, currency, members)
	for _, w := range wanted {
		c.addItem(sub, w.price, max(w.quantity, boolInt(w.quantity < 0)), w.metadata)
	}
	bills := c.firstBills(sub)
	owed := int64(0)
	for _, b := range bills {
		if !b.trial && !b.free {
			owed += b.item.sub("price").num("unit_amount") * b.item.num("quantity")
		}
	}
	later := behavior == "default_incomplete"
	if owed > 0 && !later && c.subscriptionMethod(sub, customer) == "" {
		c.space.drop("subscription", sub.id())
		return nil, noMethod()
	}
	if sub["cancel_at"] == int64(0) { // min_period_end and max_period_end need the items
		if err := c.cancelAt(sub, c.now); err != nil {
			return nil, err
		}
	}
	c.cancelAtPeriodEnd(sub)
	sub["_quiet"], sub["_strict"] = true, behavior == "error_if_incomplete"
	invoice := c.billed(sub, "subscription_create", c.now, bills)
	invoice["automatically_finalizes_at"] = c.now
	if invoice.num("amount_due") == 0 && sub.str("status") == "incomplete" {
		sub["status"] = "active"
	}
	if later || sub.str("status") != "incomplete" {
		c.tell(sub, sub)
	}
	if sub["trial_end"] != nil && sub.num("trial_end")-trialNotice <= c.now {
		sub["_told"] = true
		c.emit("customer.subscription.trial_will_end", sub, nil)
	}
	c.say("invoice.created", invoice, nil)
	err := c.collectNow(invoice, !later)
	switch {
	case err == nil:
	case sub.yes("_strict"):
		return nil, c.neverMind(sub, invoice, err)
	case c.intentOf(invoice) == nil: // it could not even be finalized
		return nil, err
	}
	delete(sub, "_strict")
	if sub.yes("_quiet") {
		c.tell(sub, sub)
	}
	for _, v := range sub.list("_held") {
		held := v.(object)
		c.emit(held.str("type"), held.sub("of"), held.sub("previous"))
	}
	delete(sub, "_held")
	c.plan(sub)
	return sub, nil
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (c *call) subscriptionMethod(sub, customer object) string {
	if id := sub.str("default_payment_method"); id != "" {
		return id
	}
	return c.defaultMethod(customer)
}

// firstBills are the lines of the first invoice: for the trial, or up to the anchor, or for
// whole periods.
func (c *call) firstBills(sub object) []bill {
	var bills []bill
	for _, item := range itemsOf(sub) {
		b := bill{item: item, start: c.now, end: item.num("current_period_end"), trial: sub["trial_end"] != nil}
		if anchor := sub.num("billing_cycle_anchor"); anchor > c.now && !b.trial {
			r, _ := recurrenceOf(item.sub("price"))
			b.period = b.end - r.after(anchor, -1)
			b.free = c.form.str("proration_behavior") == "none"
		}
		bills = append(bills, b)
	}
	return bills
}

// neverMind takes back a subscription whose first payment has failed and that is not to be
// there then. The payment intent stays, as what was tried with it cannot be taken back.
func (c *call) neverMind(sub, invoice object, err error) error {
	c.cancelPayment(invoice, "void_invoice")
	c.space.drop("invoice_payment", invoice.str("_payment"))
	c.space.drop("invoice", invoice.id())
	c.space.drop("subscription", sub.id())
	if e, ok := err.(*apiError); ok && e.code == "invoice_payment_intent_requires_action" {
		e.code = "subscription_payment_intent_requires_action"
		e.status = http.StatusPaymentRequired
	}
	return err
}
