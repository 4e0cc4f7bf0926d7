package stripefake

import (
	"maps"
	"strings"
)

// expiring is how long before its end a schedule is announced to be over, in seconds.
const expiring = 7 * day

func scheduleRoutes() []route {
	const path = "/v1/subscription_schedules/{schedule}"
	const params = "default_settings end_behavior metadata phases "
	return []route{
		on("POST", "/v1/subscription_schedules", params+"billing_mode customer from_subscription start_date", (*call).createSchedule),
		on("GET", "/v1/subscription_schedules", listParams+"created customer scheduled", (*call).listSchedules),
		on("GET", path, "", (*call).schedule),
		on("POST", path, params+"proration_behavior", (*call).updateSchedule),
		on("POST", path+"/cancel", "invoice_now prorate", (*call).cancelSchedule),
		on("POST", path+"/release", "preserve_cancel_date", (*call).releaseSchedule),
	}
}

func (c *call) schedule() (object, error) {
	return c.find("subscription_schedule", c.path["schedule"], "schedule")
}

func (c *call) listSchedules() (object, error) {
	return c.list("subscription_schedule", func(o object) bool {
		return (!c.form.has("customer") || c.form.str("customer") == o.str("customer")) &&
			(!c.form.yes("scheduled") || o.str("status") == "not_started")
	})
}

// newSchedule is a schedule without phases, not stored yet.
func (c *call) newSchedule(customer object) object {
	mode := object{"type": "flexible", "flexible": object{}}
	if c.version < clover {
		mode = object{"type": "classic", "flexible": nil}
	}
	return object{
		"application": nil, "billing_mode": mode, "canceled_at": nil, "completed_at": nil, "current_phase": nil, "customer": customer.id(),
		"customer_account": nil, "end_behavior": "release", "metadata": object{}, "phases": []any{}, "released_at": nil,
		"released_subscription": nil, "status": "not_started", "subscription": nil, "test_clock": customer["test_clock"],
		"default_settings": object{"application_fee_percent": nil, "automatic_tax": object{"disabled_reason": nil, "enabled": false, "liability": nil},
			"billing_cycle_anchor": "automatic", "billing_thresholds": nil, "collection_method": "charge_automatically",
			"default_payment_method": nil, "description": nil, "on_behalf_of": nil, "transfer_data": nil,
			"invoice_settings": object{"account_tax_ids": nil, "custom_fields": nil, "days_until_due": nil, "description": nil, "footer": nil, "issuer": issuer()}},
	}
}

func (c *call) createSchedule() (object, error) {
	if c.form.has("from_subscription") {
		return c.scheduleFrom()
	}
	customer, err := c.buyer()
	if err != nil {
		return nil, err
	}
	defer c.inTimeOf(customer)()
	start := c.now
	if s := c.form.str("start_date"); s != "" && s != "now" {
		if start, err = c.amountless("start_date"); err != nil {
			return nil, err
		}
		if start < c.now {
			return nil, invalid("", "start_date", "This fake cannot start a schedule in the past.")
		}
	}
	o := c.newSchedule(customer)
	if err := c.scheduleParams(o, customer); err != nil {
		return nil, err
	}
	if len(c.form.list("phases")) == 0 {
		return nil, invalid("parameter_missing", "phases", "Missing required param: phases.")
	}
	if o["phases"], err = c.phases(start, customer); err != nil {
		return nil, err
	}
	o = c.create("subscription_schedule", "sub_sched", o)
	if start <= c.now {
		c.startSchedule(o)
	}
	c.plan(o)
	c.emit("subscription_schedule.created", o, nil)
	return o, nil
}

// scheduleFrom puts a schedule over a subscription that is there: one phase, for its current
// period.
func (c *call) scheduleFrom() (object, error) {
	sub, err := c.find("subscription", c.form.str("from_subscription"), "from_subscription")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"phases", "customer", "end_behavior", "start_date", "default_settings"} {
		if c.form.has(name) {
			return nil, invalid("", name, "You cannot set `"+name+"` if `from_subscription` is set.")
		}
	}
	if over(sub) || sub["schedule"] != nil {
		return nil, invalid("", "from_subscription", "You cannot migrate a subscription that is "+sub.str("status")+" or is already attached to a schedule.")
	}
	customer := c.space.get("customer", sub.str("customer"))
	defer c.inTimeOf(customer)()
	o := c.newSchedule(customer)
	if err := c.metadata(o); err != nil {
		return nil, err
	}
	phase := newPhase(sub.str("currency"))
	for _, item := range itemsOf(sub) {
		phase["items"] = append(phase.list("items"), phaseItem(item.sub("price"), item.num("quantity")))
		phase["start_date"], phase["end_date"] = item.num("current_period_start"), lastEnd(sub)
	}
	phase["default_payment_method"] = sub["default_payment_method"]
	o["phases"] = []any{phase}
	o["status"], o["subscription"] = "active", sub.id()
	o["current_phase"] = object{"start_date": phase["start_date"], "end_date": phase["end_date"]}
	o = c.create("subscription_schedule", "sub_sched", o)
	before := sub.clone()
	sub["schedule"] = o.id()
	c.changed("customer.subscription.updated", before, sub)
	c.plan(o)
	c.emit("subscription_schedule.created", o, nil)
	return o, nil
}

// scheduleParams sets what the parameters say about a schedule, new or old, but for its
// phases.
func (c *call) scheduleParams(o, customer object) error {
	behavior, err := c.choice("end_behavior", "cancel", "none", "release", "renew")
	switch {
	case err != nil:
		return err
	case behavior == "none" || behavior == "renew":
		return invalid("", "end_behavior", "This fake knows the end_behavior cancel and release only.")
	case behavior != "":
		o["end_behavior"] = behavior
	}
	if settings := c.form.sub("default_settings"); settings != nil {
		method, err := c.payer(settings, "default_payment_method", "default_settings[default_payment_method]", customer)
		if err != nil {
			return err
		}
		defaults := o.sub("default_settings").clone()
		if settings.has("default_payment_method") {
			defaults["default_payment_method"] = orNil(method)
		}
		if settings.has("description") {
			defaults["description"] = textOrNil(settings, "description")
		}
		for name := range settings {
			if !strings.Contains(" default_payment_method description collection_method billing_cycle_anchor ", " "+name+" ") {
				return invalid("", "default_settings["+name+"]", "This fake does not know default_settings["+name+"].")
			}
		}
		o["default_settings"] = defaults
	}
	return c.metadata(o)
}

func (c *call) updateSchedule() (object, error) {
	o, err := c.openSchedule()
	if err != nil {
		return nil, err
	}
	customer := c.space.get("customer", o.str("customer"))
	defer c.inTimeOf(customer)()
	next := o.clone()
	if err := c.scheduleParams(next, customer); err != nil {
		return nil, err
	}
	if c.form.has("phases") {
		start := phasesOf(o)[0].num("start_date")
		if next["phases"], err = c.phases(start, customer); err != nil {
			return nil, err
		}
		if current := o.sub("current_phase"); current != nil {
			phase := phaseAt(next, c.now)
			if phase == nil {
				return nil, invalid("", "phases", "The phases must have the current one, which began at "+shownTime(current.num("start_date"))+".")
			}
			next["current_phase"] = object{"start_date": phase["start_date"], "end_date": phase["end_date"]}
		}
	}
	before := o.clone()
	maps.Copy(o, next)
	if sub := c.space.get("subscription", o.str("subscription")); sub != nil {
		was := sub.clone()
		c.foresee(o, sub)
		c.changed("customer.subscription.updated", was, sub)
	}
	c.changed("subscription_schedule.updated", before, o)
	return o, nil
}

// openSchedule returns the schedule of the path, which has not ended.
func (c *call) openSchedule() (object, error) {
	o, err := c.schedule()
	if err == nil && o.str("status") != "active" && o.str("status") != "not_started" {
		return nil, invalid("", "", "You cannot change a subscription schedule that is currently in the `"+o.str("status")+
			"` status. Only `not_started` and `active` ones can be.")
	}
	return o, err
}

// cancelSchedule cancels its subscription too.
func (c *call) cancelSchedule() (object, error) {
	o, err := c.openSchedule()
	if err != nil {
		return nil, err
	}
	defer c.inTimeOf(c.space.get("customer", o.str("customer")))()
	if sub := c.space.get("subscription", o.str("subscription")); sub != nil {
		c.end(sub, "cancellation_requested") // and with it the schedule
		return o, nil
	}
	o["status"], o["canceled_at"] = "canceled", c.now
	c.emit("subscription_schedule.canceled", o, nil)
	return o, nil
}

func (c *call) releaseSchedule() (object, error) {
	o, err := c.openSchedule()
	if err != nil {
		return nil, err
	}
	keep, err := c.flag("preserve_cancel_date")
	if err != nil {
		return nil, err
	}
	defer c.inTimeOf(c.space.get("customer", o.str("customer")))()
	c.release(o, keep)
	return o, nil
}

// release lets the subscription go on by itself. keep leaves the end that it has got.
func (c *call) release(o object, keep bool) {
	sub := c.space.get("subscription", o.str("subscription"))
	o["status"], o["released_at"], o["current_phase"] = "released", c.now, nil
	o["released_subscription"], o["subscription"] = o["subscription"], nil
	if sub != nil {
		before := sub.clone()
		sub["schedule"] = nil
		if !keep && sub.yes("_foreseen") {
			sub["cancel_at"], sub["canceled_at"] = nil, nil
		}
		delete(sub, "_foreseen")
		c.changed("customer.subscription.updated", before, sub)
	}
	c.emit("subscription_schedule.released", o, nil)
}
