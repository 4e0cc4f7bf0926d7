package billing

import (
	"cmp"
	"slices"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// subscriptionParams sets the members that the parameters give, except items and times.
func (c call) subscriptionParams(o object) error {
	if c.Form.Has("default_payment_method") {
		method, err := c.payer(c.Form, "default_payment_method", c.customerOf(o))
		if err != nil {
			return err
		}
		o["default_payment_method"] = shape.OrNil(method)
	}
	if settings := c.Form.Sub("payment_settings"); settings.Given() {
		next := paymentSettings(cmp.Or(settings.Str("save_default_payment_method"), "off"))
		if list := settings.List("payment_method_types"); len(list) > 0 {
			next["payment_method_types"] = shape.Texts(list)
		}
		o["payment_settings"] = next
	}
	if settings := c.Form.Sub("trial_settings"); settings.Given() {
		missing := settings.Sub("end_behavior").Str("missing_payment_method")
		o["trial_settings"] = object{"end_behavior": object{"missing_payment_method": missing}}
	}
	return cmp.Or(c.wantDiscounts(o, true), c.Describe(o))
}

// cancelAt sets the end: cancel_at, or cancel_at_period_end, whose time cancelAtPeriodEnd sets.
func (c call) cancelAt(o object) error {
	atEnd := c.Flag("cancel_at_period_end")
	if c.Form.Has("cancel_at_period_end") {
		o["cancel_at_period_end"] = atEnd
		if !atEnd {
			o["cancel_at"], o["canceled_at"] = nil, nil
			o["cancellation_details"] = noCancellation()
		}
	}
	if !c.Form.Has("cancel_at") {
		return nil
	}
	if atEnd {
		return shape.OnlyOne("cancel_at", "cancel_at, cancel_at_period_end")
	}
	switch c.Form.Str("cancel_at") {
	case "":
		o["cancel_at"], o["canceled_at"] = nil, nil
		return nil
	case "min_period_end":
		o["cancel_at"] = slices.Min(endsOf(o))
	case "max_period_end":
		o["cancel_at"] = slices.Max(endsOf(o))
	default:
		at := c.Num("cancel_at")
		if at <= c.Now {
			return shape.Invalid("", "cancel_at", "Invalid timestamp: cancel_at must be in the future.")
		}
		o["cancel_at"] = at
	}
	o["canceled_at"] = c.Now
	return nil
}

// cancelAtPeriodEnd sets the time of an end with the period.
func (c call) cancelAtPeriodEnd(sub object) {
	if !sub.Yes("cancel_at_period_end") || sub["cancel_at"] != nil {
		return
	}
	sub["cancel_at"], sub["canceled_at"] = slices.Max(endsOf(sub)), c.Now
	sub["cancellation_details"] = noCancellation().With("reason", "cancellation_requested")
}

// endsOf returns the ends of the current periods of a subscription's items; 0 alone without items.
func endsOf(sub object) (ends []int64) {
	for _, item := range itemsOf(sub) {
		ends = append(ends, item.Num("current_period_end"))
	}
	if ends == nil {
		return []int64{0}
	}
	return ends
}

func (c call) updateSubscription(sub object) (object, error) {
	if over(sub) {
		return c.annotate(sub)
	}
	if c.Form.Str("payment_behavior") == "pending_if_incomplete" {
		return nil, shape.Invalid("", "payment_behavior", "stripefake does not support pending updates, although Stripe does.")
	}
	next := sub.Clone()
	for _, change := range []func(object) error{c.subscriptionParams, c.cancelAt, c.pauseCollection, c.changeItems,
		c.changeTrial} {
		if err := change(next); err != nil {
			return nil, err
		}
	}
	c.cancelAtPeriodEnd(next)
	c.why(next)
	c.giveDiscounts(next)
	invoice, err := c.billChange(sub, next)
	if err != nil {
		return nil, err
	}
	c.Change("customer.subscription.updated", sub, next)
	if invoice != nil {
		pay := c.Form.Str("payment_behavior") != "default_incomplete" && c.methodFor(invoice) != ""
		if err := c.collectNow(invoice, pay); err != nil && c.intentOf(invoice) == nil {
			return nil, err
		}
		return sub, nil
	}
	if sub.Str("status") == "trialing" && sub["trial_end"] != nil && sub.Num("trial_end") <= c.Now {
		c.subscriptionHappens(sub) // trial_end=now
		c.Plan(sub)
	}
	return sub, nil
}

// annotate changes an ended subscription, as far as Stripe allows.
func (c call) annotate(sub object) (object, error) {
	if name := c.Form.Other("metadata cancellation_details expand"); name != "" {
		return nil, shape.Invalid("", name, "A canceled subscription can only update its cancellation_details and metadata.")
	}
	next := sub.Clone()
	if err := c.Form.Metadata(next); err != nil {
		return nil, err
	}
	c.why(next)
	c.Change("customer.subscription.updated", sub, next)
	return sub, nil
}

// why notes the customer's reasons for cancelling.
func (c call) why(sub object) {
	c.Form.Sub("cancellation_details").SetTexts(sub.Sub("cancellation_details"), "comment feedback")
}

func (c call) pauseCollection(sub object) error {
	if !c.Form.Has("pause_collection") {
		return nil
	}
	pause := c.Form.Sub("pause_collection")
	if !pause.Given() {
		sub["pause_collection"] = nil
		return nil
	}
	o := object{"behavior": pause.Str("behavior"), "resumes_at": nil}
	if pause.Str("resumes_at") != "" {
		o["resumes_at"] = c.Num("pause_collection[resumes_at]")
	}
	sub["pause_collection"] = o
	return nil
}

// changeTrial ends a trial, now or at another time.
func (c call) changeTrial(sub object) error {
	text := c.Form.Str("trial_end")
	if text == "" {
		return nil
	}
	if sub.Str("status") != "trialing" {
		return shape.Invalid("", "trial_end", "stripefake can only change trial_end during a trial.")
	}
	end := c.Now
	if text != "now" {
		if end = c.Num("trial_end"); end < c.Now {
			return shape.Invalid("", "trial_end", "Invalid timestamp: must be an integer Unix timestamp in the future.")
		}
	}
	sub["trial_end"], sub["billing_cycle_anchor"] = end, end
	sub["_told"] = false
	for _, item := range itemsOf(sub) {
		item["current_period_end"] = end
	}
	return nil
}

func (c call) cancelSubscription(sub object) (object, error) {
	if over(sub) {
		return nil, shape.Missing("subscription", sub.ID(), "id")
	}
	for _, name := range []string{"invoice_now", "prorate"} {
		if c.Flag(name) {
			return nil, shape.Invalid("", name, "stripefake does not prorate a cancellation: omit "+name+".")
		}
	}
	c.why(sub)
	c.end(sub, "cancellation_requested")
	return sub, nil
}
