package billing

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

func (c call) createSubscription(customer object) (object, error) {
	behavior := c.Form.Str("payment_behavior")
	if behavior == "pending_if_incomplete" {
		return nil, shape.Invalid("", "payment_behavior", "`pending_if_incomplete` is for updates. Use "+
			"default_incomplete, allow_incomplete or error_if_incomplete.")
	}
	wanted, currency, err := c.order(c.Form)
	if err != nil {
		return nil, err
	}
	if asked := c.Form.Str("currency"); asked != "" && strings.ToLower(asked) != currency {
		return nil, shape.Invalid("", "currency", "The prices are in "+currency+".")
	}
	members := object{"customer": customer.ID()}
	if mode := c.Form.Sub("billing_mode"); mode.Given() {
		members["billing_mode"] = c.mode(mode.Str("type"))
	}
	err = cmp.Or(c.subscriptionParams(members), c.setTerm(members, wanted), c.cancelAt(members))
	if err != nil {
		return nil, err
	}
	return c.begin(customer, currency, wanted, members, behavior)
}

// setTerm sets the begin of the payments, by trial_period_days, trial_end and billing_cycle_anchor.
func (c call) setTerm(members object, wanted []wanted) error {
	days := c.Num("trial_period_days")
	if days > 730 {
		return shape.Invalid("", "trial_period_days", "The trial can be 730 days at most.")
	}
	end := c.Now + days*api.Day
	if c.Form.Has("trial_end") && c.Form.Str("trial_end") != "now" {
		if days > 0 {
			return shape.OnlyOne("trial_end", "trial_end, trial_period_days")
		}
		if end = c.Num("trial_end"); end <= c.Now {
			return shape.Invalid("", "trial_end", "Invalid timestamp: must be an integer Unix timestamp in the future.")
		}
	}
	members["billing_cycle_anchor"], members["trial_end"] = end, nil
	if end > c.Now {
		members["trial_end"], members["trial_start"], members["status"] = end, c.Now, "trialing"
	}
	if c.Form.Has("billing_cycle_anchor") {
		anchor := c.Num("billing_cycle_anchor")
		if members["billing_cycle_anchor"] = anchor; anchor < end || anchor > recurrenceOf(wanted[0].price).after(end, 1) {
			return shape.Invalid("", "billing_cycle_anchor", "billing_cycle_anchor must be in the future and cannot be "+
				"later than the next natural billing date.")
		}
	}
	return nil
}

// begin makes the subscription and its first invoice, and collects it as payment_behavior says.
// _strict holds events back while it may be taken back; _quiet: its first event is yet to come.
func (c call) begin(customer object, currency string, wanted []wanted, members object, behavior string,
) (object, error) {
	sub := c.newSubscription(customer, currency, members)
	for _, w := range wanted {
		c.addItem(sub, w.price, w.count(), w.metadata)
	}
	c.giveDiscounts(sub)
	bills := c.firstBills(sub)
	owed := int64(0)
	for _, b := range bills {
		if !b.trial && !b.free {
			owed += b.item.Sub("price").Num("unit_amount") * b.item.Num("quantity")
		}
	}
	owed = c.net(sub, owed, false)
	later := behavior == "default_incomplete"
	if owed > 0 && !later && c.subscriptionMethod(sub, customer) == "" {
		c.Space.Drop("subscription", sub.ID())
		return nil, noMethod()
	}
	if sub["cancel_at"] == int64(0) { // min_period_end and max_period_end need the items
		if err := c.cancelAt(sub); err != nil {
			return nil, err
		}
	}
	c.cancelAtPeriodEnd(sub)
	sub["_quiet"], sub["_strict"] = true, behavior == "error_if_incomplete"
	invoice := c.billed(sub, "subscription_create", c.Now, bills)
	invoice["automatically_finalizes_at"] = c.Now
	if invoice.Num("amount_due") == 0 && sub.Str("status") == "incomplete" {
		sub["status"] = "active"
	}
	if later || sub.Str("status") != "incomplete" {
		c.tell(sub, sub)
	}
	if sub["trial_end"] != nil && sub.Num("trial_end")-trialNotice <= c.Now {
		sub["_told"] = true
		c.Emit("customer.subscription.trial_will_end", sub, nil)
	}
	c.say("invoice.created", invoice, nil)
	err := c.collectNow(invoice, !later)
	switch {
	case err == nil:
	case sub.Yes("_strict"):
		return nil, c.takeBack(sub, invoice, err)
	case c.intentOf(invoice) == nil: // it could not even be finalized
		return nil, err
	}
	delete(sub, "_strict")
	if sub.Yes("_quiet") {
		c.tell(sub, sub)
	}
	for _, held := range shape.ObjectsOf(sub.List("_held")) {
		c.Emit(held.Str("type"), held.Sub("of"), held.Sub("previous"))
	}
	delete(sub, "_held")
	c.Plan(sub)
	return sub, nil
}

func (c call) subscriptionMethod(sub, customer object) string {
	return cmp.Or(sub.Str("default_payment_method"), c.DefaultMethod(customer))
}

// firstBills are the lines of the first invoice: the trial, up to the anchor, or whole periods.
func (c call) firstBills(sub object) []bill {
	var bills []bill
	for _, item := range itemsOf(sub) {
		b := bill{item: item, start: c.Now, end: item.Num("current_period_end"), trial: sub["trial_end"] != nil}
		if anchor := sub.Num("billing_cycle_anchor"); anchor > c.Now && !b.trial {
			b.period = b.end - recurrenceOf(item.Sub("price")).after(anchor, -1)
			b.free = c.Form.Str("proration_behavior") == "none"
		}
		bills = append(bills, b)
	}
	return bills
}

// takeBack takes back a subscription whose first payment failed. The tried payment intent stays.
func (c call) takeBack(sub, invoice object, err error) error {
	c.cancelPayment(invoice, "void_invoice")
	c.Space.Drop("invoice_payment", invoice.Str("_payment"))
	c.Space.Drop("invoice", invoice.ID())
	c.Space.Drop("subscription", sub.ID())
	if e, ok := err.(*shape.Error); ok && e.Code == "invoice_payment_intent_requires_action" {
		e.Code = "subscription_payment_intent_requires_action"
		e.Status = http.StatusPaymentRequired
	}
	return err
}
