package billing

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

func newPhase(currency string) object {
	return object{
		"add_invoice_items": []any{}, "automatic_tax": automaticTax(), "currency": currency,
		"default_tax_rates": []any{}, "discounts": []any{}, "items": []any{}, "metadata": object{},
		"proration_behavior": "create_prorations",
	}.Zero("start_date end_date").Null("application_fee_percent billing_cycle_anchor billing_thresholds " +
		"collection_method default_payment_method description invoice_settings on_behalf_of transfer_data trial_end")
}

func phaseItem(price object, quantity int64) object {
	return object{"billing_thresholds": nil, "discounts": []any{}, "metadata": object{}, "price": price.ID(),
		"quantity": quantity, "tax_rates": []any{}}
}

// phaseAt is the phase in which the Unix second is, or nil.
func phaseAt(schedule object, t int64) object {
	for _, phase := range phasesOf(schedule) {
		if phase.Num("start_date") <= t && t < phase.Num("end_date") {
			return phase
		}
	}
	return nil
}

// phases reads the phases, the first of which begins at start.
func (c call) phases(start int64, customer object) ([]any, error) {
	var list []any
	for _, p := range c.Form.Each("phases") {
		phase, err := c.phase(p, start, customer)
		if err != nil {
			return nil, err
		}
		list = append(list, phase)
		start = phase.Num("end_date")
	}
	return list, nil
}

func (c call) phase(p shape.Params, start int64, customer object) (object, error) {
	known := "currency collection_method default_payment_method description duration end_date items metadata " +
		"proration_behavior start_date trial trial_end"
	if c.Version < shape.Clover { // where duration took the place of iterations
		known += " iterations"
	}
	if name := p.Other(known); name != "" {
		return nil, shape.UnknownParam(name)
	}
	wanted, currency, err := c.order(p)
	if err != nil {
		return nil, err
	}
	phase := newPhase(currency)
	for _, w := range wanted {
		phase["items"] = append(phase.List("items"), phaseItem(w.price, w.count()))
	}
	begin := strconv.FormatInt(start, 10)
	if s := p.Str("start_date"); s != "" && s != "now" && s != begin {
		return nil, p.Invalid("", "start_date", "The phase must start when the phase before it ends, at "+begin+".")
	}
	p.SetTexts(phase, "default_payment_method description")
	_, err = c.payer(p, "default_payment_method", customer)
	if err := cmp.Or(err, p.Metadata(phase)); err != nil {
		return nil, err
	}
	if behavior := p.Str("proration_behavior"); p.Has("proration_behavior") {
		if !slices.Contains([]string{"always_invoice", "create_prorations", "none"}, behavior) {
			return nil, p.Invalid("", "proration_behavior", "Invalid proration_behavior: must be one of always_invoice, "+
				"create_prorations, or none")
		}
		phase["proration_behavior"] = behavior
	}
	end, err := phaseEnd(p, start, wanted[0].price)
	if err != nil {
		return nil, err
	}
	phase["start_date"], phase["end_date"] = start, end
	return phase, phaseTrial(phase, p)
}

// phaseEnd returns end_date, or the end of a duration, of iterations or of one period.
func phaseEnd(p shape.Params, start int64, price object) (int64, error) {
	r := recurrenceOf(price)
	lacks := func(name string) bool { return !p.Has(name) }
	given := slices.DeleteFunc([]string{"end_date", "duration", "iterations"}, lacks)
	switch {
	case len(given) > 1:
		return 0, shape.OnlyOne(p.In("end_date"), "end_date, duration, iterations")
	case p.Has("end_date"):
		end, err := p.Whole("end_date")
		if err == nil && end <= start {
			err = p.Invalid("", "end_date", "The end_date must be after the start of the phase, "+
				strconv.FormatInt(start, 10)+".")
		}
		return end, err
	case p.Has("duration"):
		d := p.Sub("duration")
		r = recurrence{d.Str("interval"), 1}
		if d.Has("interval_count") {
			var err error
			if r.count, err = d.Whole("interval_count"); err != nil {
				return 0, err
			}
		}
		if !slices.Contains([]string{"day", "week", "month", "year"}, r.interval) || r.count < 1 || r.count > 3650 {
			return 0, p.Invalid("", "duration", "Invalid duration: interval must be one of day, week, month, or year, and "+
				"interval_count at least 1")
		}
	case p.Has("iterations"):
		times, err := p.Whole("iterations")
		if err != nil || times < 1 || times > 3650 {
			return 0, p.Invalid("parameter_invalid_integer", "iterations", "Invalid integer: "+
				shape.Shown(p.Str("iterations")))
		}
		return r.after(start, times), nil
	}
	return r.after(start, 1), nil
}

func phaseTrial(phase object, p shape.Params) error {
	switch {
	case p.Yes("trial") && p.Has("trial_end"):
		return shape.OnlyOne(p.In("trial"), "trial, trial_end")
	case p.Yes("trial"):
		phase["trial_end"] = phase["end_date"]
	case p.Has("trial_end"):
		end, err := p.Whole("trial_end")
		if err != nil {
			return err
		}
		if end <= phase.Num("start_date") || end > phase.Num("end_date") {
			return p.Invalid("", "trial_end", "The trial_end must be within the phase.")
		}
		phase["trial_end"] = end
	}
	return nil
}

// startSchedule makes a schedule's subscription, active at once. Its first invoice is a draft.
func (c call) startSchedule(o object) {
	phase := phasesOf(o)[0]
	customer := c.customerOf(o)
	members := object{"status": "active", "schedule": o.ID(), "billing_mode": o.Sub("billing_mode").Clone(),
		"metadata": phase.Sub("metadata").Clone()}
	members["default_payment_method"] = shape.OrNil(cmp.Or(phase.Str("default_payment_method"),
		o.Sub("default_settings").Str("default_payment_method")))
	if end, ok := phase["trial_end"].(int64); ok {
		members["status"], members["trial_start"], members["trial_end"], members["billing_cycle_anchor"] = "trialing",
			c.Now, end, end
	}
	sub := c.newSubscription(customer, phase.Str("currency"), members)
	for _, item := range shape.ObjectsOf(phase.List("items")) {
		c.addItem(sub, c.Space.Get("price", item.Str("price")), item.Num("quantity"), object{})
	}
	o["status"], o["subscription"] = "active", sub.ID()
	o["current_phase"] = phase.Pick("start_date end_date")
	c.foresee(o, sub)
	invoice := c.billed(sub, "subscription_create", c.Now, c.firstBills(sub))
	c.Plan(sub)
	c.Emit("customer.subscription.created", sub, nil)
	c.opened(invoice)
}

// foresee sets the subscription's end in the last phase of its schedule.
func (c call) foresee(o, sub object) {
	phases := phasesOf(o)
	last := phases[len(phases)-1]
	switch {
	case o.Str("end_behavior") == "cancel" && last.Num("start_date") <= c.Now:
		sub["cancel_at"], sub["_foreseen"] = last["end_date"], true
		if sub["canceled_at"] == nil {
			sub["canceled_at"] = c.Now
		}
	case sub.Yes("_foreseen"):
		sub["cancel_at"], sub["canceled_at"] = nil, nil
		delete(sub, "_foreseen")
	}
}

// scheduleDue is when a schedule starts, is about to expire, or a phase of it ends.
func scheduleDue(o object) (int64, bool) {
	phases := phasesOf(o)
	if len(phases) == 0 {
		return 0, false
	}
	switch o.Str("status") {
	case "not_started":
		return phases[0].Num("start_date"), true
	case "active":
		end := o.Sub("current_phase").Num("end_date")
		if last := phases[len(phases)-1].Num("end_date"); !o.Yes("_told") && last-expiring < end {
			return last - expiring, true
		}
		return end, true
	}
	return 0, false
}

func (c call) scheduleHappens(o object) {
	before := o.Clone()
	if o.Str("status") == "not_started" {
		c.startSchedule(o)
		c.Changed("subscription_schedule.updated", before, o)
		return
	}
	end := o.Sub("current_phase").Num("end_date")
	if c.Now < end {
		o["_told"] = true
		c.Emit("subscription_schedule.expiring", o, nil)
		return
	}
	if phase := phaseAt(o, c.Now); phase != nil {
		o["current_phase"] = phase.Pick("start_date end_date")
		c.enter(o, phase)
		c.Changed("subscription_schedule.updated", before, o)
		return
	}
	if o.Str("end_behavior") == "release" {
		c.release(o, false)
		return
	}
	o["status"], o["completed_at"], o["current_phase"] = "completed", c.Now, nil
	if sub := c.Space.Get("subscription", o.Str("subscription")); sub != nil && !over(sub) {
		c.end(sub, "cancellation_requested")
	}
	c.Emit("subscription_schedule.completed", o, nil)
}

// enter sets the subscription's prices for a new phase, without prorating.
func (c call) enter(o, phase object) {
	sub := c.Space.Get("subscription", o.Str("subscription"))
	if sub == nil || over(sub) {
		return
	}
	before := sub.Clone()
	items := itemsOf(sub)
	sub.Sub("items")["data"] = []any{}
	for i, item := range shape.ObjectsOf(phase.List("items")) {
		price := c.Space.Get("price", item.Str("price"))
		if i < len(items) && recurrenceOf(price) == recurrenceOf(items[i].Sub("price")) {
			items[i]["price"], items[i]["quantity"] = price.Clone(), item.Num("quantity")
			sub.Sub("items")["data"] = append(sub.Sub("items").List("data"), items[i])
			continue
		}
		c.addItem(sub, price, item.Num("quantity"), object{})
		added := itemsOf(sub)[i]
		added["current_period_end"] = added["current_period_start"] // its first period is still to be billed
	}
	if method := phase["default_payment_method"]; method != nil {
		sub["default_payment_method"] = method
	}
	c.foresee(o, sub)
	c.Changed("customer.subscription.updated", before, sub)
}

func phasesOf(schedule object) []object { return shape.ObjectsOf(schedule.List("phases")) }
