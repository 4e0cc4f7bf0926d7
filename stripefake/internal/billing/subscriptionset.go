package billing

import (
	"cmp"
	"maps"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// subscriptionParams sets the members that the parameters give, except items and times.
func (c call) subscriptionParams(o, customer object) error {
	if c.Form.Has("default_payment_method") {
		method, err := c.payer(c.Form, "default_payment_method", "default_payment_method", customer)
		if err != nil {
			return err
		}
		o["default_payment_method"] = shape.OrNil(method)
	}
	shape.SetText(o, c.Form, "description")
	if settings := c.Form.Sub("payment_settings"); settings != nil {
		next := object{"payment_method_options": nil, "payment_method_types": nil,
			"save_default_payment_method": cmp.Or(settings.Str("save_default_payment_method"), "off")}
		if list := settings.List("payment_method_types"); len(list) > 0 {
			next["payment_method_types"] = shape.Texts(list)
		}
		o["payment_settings"] = next
	}
	if settings := c.Form.Sub("trial_settings"); settings != nil {
		missing := settings.Sub("end_behavior").Str("missing_payment_method")
		if err := c.Require("trial_settings[end_behavior][missing_payment_method]"); err != nil {
			return err
		}
		o["trial_settings"] = object{"end_behavior": object{"missing_payment_method": missing}}
	}
	return c.Metadata(o)
}

// cancelAt sets a subscription's end: cancel_at, or cancel_at_period_end, which cancelAtPeriodEnd
// turns into a time.
func (c call) cancelAt(o object, now int64) error {
	atEnd := c.Flag("cancel_at_period_end")
	if c.Form.Has("cancel_at_period_end") {
		o["cancel_at_period_end"] = atEnd
		if !atEnd {
			o["cancel_at"], o["canceled_at"] = nil, nil
			o["cancellation_details"] = object{"comment": nil, "feedback": nil, "feedback_option": nil, "reason": nil}
		}
	}
	if !c.Form.Has("cancel_at") {
		return nil
	}
	if atEnd {
		return shape.Invalid("", "cancel_at", "You may only specify one of these parameters: cancel_at, "+
			"cancel_at_period_end.")
	}
	switch c.Form.Str("cancel_at") {
	case "":
		o["cancel_at"], o["canceled_at"] = nil, nil
		return nil
	case "min_period_end":
		o["cancel_at"] = firstEnd(o)
	case "max_period_end":
		o["cancel_at"] = lastEnd(o)
	default:
		at, err := shape.Whole(c.Form, "cancel_at", "cancel_at")
		if err != nil {
			return err
		}
		if at <= now {
			return shape.Invalid("", "cancel_at", "Invalid timestamp: cancel_at must be in the future.")
		}
		o["cancel_at"] = at
	}
	o["canceled_at"] = now
	return nil
}

// cancelAtPeriodEnd sets the time of an end with the period.
func (c call) cancelAtPeriodEnd(sub object) {
	if !sub.Yes("cancel_at_period_end") || sub["cancel_at"] != nil {
		return
	}
	sub["cancel_at"], sub["canceled_at"] = lastEnd(sub), c.Now
	sub["cancellation_details"] = object{"comment": nil, "feedback": nil, "feedback_option": nil,
		"reason": "cancellation_requested"}
}

// firstEnd is when the first of the current periods of its items ends.
func firstEnd(sub object) int64 {
	first := int64(0)
	for i, item := range itemsOf(sub) {
		if end := item.Num("current_period_end"); i == 0 || end < first {
			first = end
		}
	}
	return first
}

// lastEnd is when the last of them ends.
func lastEnd(sub object) int64 {
	last := int64(0)
	for _, item := range itemsOf(sub) {
		last = max(last, item.Num("current_period_end"))
	}
	return last
}

func (c call) updateSubscription(sub object) (object, error) {
	if over(sub) {
		return c.annotate(sub)
	}
	if err := c.collection(); err != nil {
		return nil, err
	}
	customer := c.Space.Get("customer", sub.Str("customer"))
	defer c.InTimeOf(customer)()
	if c.Form.Str("payment_behavior") == "pending_if_incomplete" {
		return nil, shape.Invalid("", "payment_behavior", "This fake does not know pending updates.")
	}
	next := sub.Clone()
	if err := c.subscriptionParams(next, customer); err != nil {
		return nil, err
	}
	if err := c.cancelAt(next, c.Now); err != nil {
		return nil, err
	}
	if err := c.pauseCollection(next); err != nil {
		return nil, err
	}
	if err := c.changeItems(next); err != nil {
		return nil, err
	}
	if err := c.changeTrial(next); err != nil {
		return nil, err
	}
	c.cancelAtPeriodEnd(next)
	if details := c.Form.Sub("cancellation_details"); details != nil {
		c.why(next, details)
	}
	before := sub.Clone()
	maps.Copy(sub, next)
	c.Changed("customer.subscription.updated", before, sub)
	if sub.Str("status") == "trialing" && sub["trial_end"] != nil && sub.Num("trial_end") <= c.Now {
		c.subscriptionHappens(sub) // trial_end=now
		c.Plan(sub)
	}
	return sub, nil
}

// annotate changes an ended subscription, as far as Stripe allows.
func (c call) annotate(sub object) (object, error) {
	for name := range c.Form {
		if name != "metadata" && name != "cancellation_details" && name != "expand" {
			return nil, shape.Invalid("", name, "A canceled subscription can only update its cancellation_details and metadata.")
		}
	}
	before := sub.Clone()
	if err := c.Metadata(sub); err != nil {
		return nil, err
	}
	if details := c.Form.Sub("cancellation_details"); details != nil {
		c.why(sub, details)
	}
	c.Changed("customer.subscription.updated", before, sub)
	return sub, nil
}

// why notes the customer's reasons for cancelling.
func (c call) why(sub object, details form) {
	was := sub.Sub("cancellation_details")
	for _, name := range []string{"comment", "feedback"} {
		shape.SetText(was, details, name)
	}
}

func (c call) pauseCollection(sub object) error {
	if !c.Form.Has("pause_collection") {
		return nil
	}
	pause := c.Form.Sub("pause_collection")
	if pause == nil {
		sub["pause_collection"] = nil
		return nil
	}
	if err := c.Require("pause_collection[behavior]"); err != nil {
		return err
	}
	o := object{"behavior": pause.Str("behavior"), "resumes_at": nil}
	if pause.Str("resumes_at") != "" {
		o["resumes_at"] = c.Num("pause_collection[resumes_at]")
	}
	sub["pause_collection"] = o
	return nil
}

// changeItems changes the prices or quantities of items. The fake does not prorate: a request must
// say proration_behavior=none, except during a trial.
func (c call) changeItems(sub object) error {
	if !c.Form.Has("items") {
		return nil
	}
	wanted, err := c.wantedItems(c.Form, "")
	if err != nil {
		return err
	}
	if c.Form.Str("proration_behavior") != "none" && sub.Str("status") != "trialing" {
		return shape.Invalid("", "proration_behavior", "This fake does not prorate: items can be changed with "+
			"proration_behavior=none only.")
	}
	for _, w := range wanted {
		var item object
		for _, candidate := range itemsOf(sub) {
			if candidate.ID() == w.id {
				item = candidate
			}
		}
		switch {
		case item == nil || w.deleted:
			return shape.Invalid("", "items", "This fake can change the price and the quantity of items that are there, "+
				"and neither add nor delete any: "+
				"name one by items[0][id].")
		case w.price != nil:
			was, _ := recurrenceOf(item.Sub("price"))
			if is, _ := recurrenceOf(w.price); is != was || w.price.Str("currency") != sub.Str("currency") {
				return shape.Invalid("", "items", "This fake can change a price to one of the same interval and currency only.")
			}
			item["price"] = w.price.Clone()
		}
		if w.quantity >= 0 {
			item["quantity"] = w.quantity
		}
	}
	return nil
}

// changeTrial ends a trial, now or at another time.
func (c call) changeTrial(sub object) error {
	text := c.Form.Str("trial_end")
	if text == "" {
		return nil
	}
	if sub.Str("status") != "trialing" {
		return shape.Invalid("", "trial_end", "This fake can change the trial_end of subscriptions in their trial only.")
	}
	end := c.Now
	if text != "now" {
		var err error
		if end, err = shape.Whole(c.Form, "trial_end", "trial_end"); err != nil {
			return err
		}
		if end < c.Now {
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
			return nil, shape.Invalid("", name, "This fake does not prorate: leave "+name+" out.")
		}
	}
	defer c.InTimeOf(c.Space.Get("customer", sub.Str("customer")))()
	if details := c.Form.Sub("cancellation_details"); details != nil {
		c.why(sub, details)
	}
	c.end(sub, "cancellation_requested")
	return sub, nil
}
