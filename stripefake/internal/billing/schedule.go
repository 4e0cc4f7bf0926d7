package billing

import (
	"maps"
	"slices"
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

// expiring is how long before its end a schedule is announced to be over, in seconds.
const expiring = 7 * api.Day

func scheduleRoutes() []api.Route {
	const path = "/v1/subscription_schedules/{schedule}"
	const params = "default_settings end_behavior:cancel|none|release|renew metadata phases "
	load := find("subscription_schedule", "schedule")
	open := timed(api.With(load, call.openSchedule))
	return []api.Route{
		on("POST", "/v1/subscription_schedules", params+"billing_mode customer from_subscription start_date:now|int",
			call.createSchedule),
		api.Lists("/v1/subscription_schedules", "subscription_schedule", "created customer scheduled:bool",
			func(c *api.Call, o object) bool {
				return !c.Flag("scheduled") || o.Str("status") == "not_started"
			}),
		on("GET", path, "", load),
		on("POST", path, params+"proration_behavior", api.With(open, call.updateSchedule)),
		on("POST", path+"/cancel", "invoice_now prorate", api.With(open, call.cancelSchedule)),
		on("POST", path+"/release", "preserve_cancel_date:bool", api.With(open, func(c call, o object) (object, error) {
			c.release(o, c.Flag("preserve_cancel_date"))
			return o, nil
		})),
	}
}

// newSchedule is a schedule without phases, not stored yet.
func (c call) newSchedule(customer object) object {
	return object{
		"billing_mode": c.mode(""), "customer": customer.ID(), "end_behavior": "release", "metadata": object{},
		"phases": []any{}, "status": "not_started", "test_clock": customer["test_clock"],
		"default_settings": object{"automatic_tax": automaticTax(), "billing_cycle_anchor": "automatic",
			"collection_method": "charge_automatically", "invoice_settings": object{"issuer": issuer()}.Null(
				"account_tax_ids custom_fields days_until_due description footer"),
		}.Null("application_fee_percent billing_thresholds default_payment_method description on_behalf_of transfer_data"),
	}.Null("application canceled_at completed_at current_phase customer_account released_at released_subscription " +
		"subscription")
}

func (c call) createSchedule() (object, error) {
	if c.Form.Has("from_subscription") {
		return c.scheduleFrom()
	}
	customer, err := c.buyer()
	if err != nil {
		return nil, err
	}
	start := c.Now
	if s := c.Form.Str("start_date"); s != "" && s != "now" {
		if start = c.Num("start_date"); start < c.Now {
			return nil, shape.Invalid("", "start_date", "stripefake cannot start a schedule in the past.")
		}
	}
	o := c.newSchedule(customer)
	if err := c.scheduleParams(o, customer); err != nil {
		return nil, err
	}
	if len(c.Form.List("phases")) == 0 {
		return nil, shape.Missed("phases")
	}
	if o["phases"], err = c.phases(start, customer); err != nil {
		return nil, err
	}
	o = c.Create("subscription_schedule", "sub_sched", o)
	if start <= c.Now {
		c.startSchedule(o)
	}
	c.Plan(o)
	c.Emit("subscription_schedule.created", o, nil)
	return o, nil
}

// scheduleFrom puts a schedule over a subscription, with one phase for its current period.
func (c call) scheduleFrom() (object, error) {
	sub, err := c.Find("subscription", c.Form.Str("from_subscription"), "from_subscription")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"phases", "customer", "end_behavior", "start_date", "default_settings"} {
		if c.Form.Has(name) {
			return nil, shape.Invalid("", name, "You cannot set `"+name+"` if `from_subscription` is set.")
		}
	}
	if over(sub) || sub["schedule"] != nil {
		return nil, shape.Invalid("", "from_subscription",
			"You cannot migrate a subscription that is "+sub.Str("status")+" or is already attached to a schedule.")
	}
	customer := c.customerOf(sub)
	c.Now = c.ClockNow(customer)
	o := c.newSchedule(customer)
	if err := c.Form.Metadata(o); err != nil {
		return nil, err
	}
	phase := newPhase(sub.Str("currency"))
	for _, item := range itemsOf(sub) {
		phase["items"] = append(phase.List("items"), phaseItem(item.Sub("price"), item.Num("quantity")))
		phase["start_date"], phase["end_date"] = item.Num("current_period_start"), slices.Max(endsOf(sub))
	}
	phase["default_payment_method"] = sub["default_payment_method"]
	o["phases"] = []any{phase}
	o["status"], o["subscription"] = "active", sub.ID()
	o["current_phase"] = phase.Pick("start_date end_date")
	o = c.Create("subscription_schedule", "sub_sched", o)
	c.Change("customer.subscription.updated", sub, object{"schedule": o.ID()})
	c.Plan(o)
	c.Emit("subscription_schedule.created", o, nil)
	return o, nil
}

// scheduleParams sets the members that the parameters give, except the phases.
func (c call) scheduleParams(o, customer object) error {
	switch behavior := c.Form.Str("end_behavior"); {
	case behavior == "none" || behavior == "renew":
		return shape.Invalid("", "end_behavior", "stripefake only supports end_behavior cancel and release.")
	case behavior != "":
		o["end_behavior"] = behavior
	}
	settings := c.Form.Sub("default_settings")
	if _, err := c.payer(settings, "default_payment_method", customer); err != nil {
		return err
	}
	if name := settings.Other("default_payment_method description collection_method billing_cycle_anchor"); name != "" {
		return shape.Invalid("", name, "stripefake does not support "+name+", although Stripe does.")
	}
	settings.SetTexts(o.Sub("default_settings"), "default_payment_method description")
	return c.Form.Metadata(o)
}

func (c call) updateSchedule(o object) (object, error) {
	customer, next := c.customerOf(o), o.Clone()
	if err := c.scheduleParams(next, customer); err != nil {
		return nil, err
	}
	if c.Form.Has("phases") {
		start := phasesOf(o)[0].Num("start_date")
		phases, err := c.phases(start, customer)
		if err != nil {
			return nil, err
		}
		next["phases"] = phases
		if current := o.Sub("current_phase"); current != nil {
			phase := phaseAt(next, c.Now)
			if phase == nil {
				return nil, shape.Invalid("", "phases", "The phases must include the current phase, which began at "+
					time.Unix(current.Num("start_date"), 0).UTC().Format(time.RFC3339)+".")
			}
			next["current_phase"] = phase.Pick("start_date end_date")
		}
	}
	before := o.Clone()
	maps.Copy(o, next)
	if sub := c.Space.Get("subscription", o.Str("subscription")); sub != nil {
		was := sub.Clone()
		c.foresee(o, sub)
		c.Changed("customer.subscription.updated", was, sub)
	}
	c.Changed("subscription_schedule.updated", before, o)
	return o, nil
}

// openSchedule returns the schedule, unless it has ended.
func (c call) openSchedule(o object) (object, error) {
	if o.Str("status") != "active" && o.Str("status") != "not_started" {
		return nil, shape.Invalid("", "", "You cannot change a subscription schedule that is currently in the `"+
			o.Str("status")+"` status. Only `not_started` and `active` ones can be.")
	}
	return o, nil
}

// cancelSchedule cancels its subscription too.
func (c call) cancelSchedule(o object) (object, error) {
	if sub := c.Space.Get("subscription", o.Str("subscription")); sub != nil {
		c.end(sub, "cancellation_requested") // and with it the schedule
		return o, nil
	}
	o["status"], o["canceled_at"] = "canceled", c.Now
	c.Emit("subscription_schedule.canceled", o, nil)
	return o, nil
}

// release ends a schedule; its subscription goes on. keep leaves the subscription's end.
func (c call) release(o object, keep bool) {
	sub := c.Space.Get("subscription", o.Str("subscription"))
	o["status"], o["released_at"], o["current_phase"] = "released", c.Now, nil
	o["released_subscription"], o["subscription"] = o["subscription"], nil
	if sub != nil {
		before := sub.Clone()
		sub["schedule"] = nil
		if !keep && sub.Yes("_foreseen") {
			sub["cancel_at"], sub["canceled_at"] = nil, nil
		}
		delete(sub, "_foreseen")
		c.Changed("customer.subscription.updated", before, sub)
	}
	c.Emit("subscription_schedule.released", o, nil)
}
