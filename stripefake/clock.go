package stripefake

import "strconv"

// clockLife is after how long Stripe deletes a test clock, in seconds. The fake only says so.
const clockLife = 30 * day

// freeStep is how far a test clock without subscriptions goes in one step, in seconds.
const freeStep = 2 * 366 * day

func clockRoutes() []route {
	const path = "/v1/test_helpers/test_clocks"
	return []route{
		on("POST", path, "frozen_time name expand", (*call).createClock),
		on("GET", path, listParams, (*call).listClocks),
		on("GET", path+"/{test_clock}", "expand", (*call).getClock),
		on("DELETE", path+"/{test_clock}", "", (*call).deleteClock),
		on("POST", path+"/{test_clock}/advance", "frozen_time expand", (*call).advanceClock),
	}
}

func (c *call) createClock() (object, error) {
	if c.space.live {
		return nil, invalid("", "", "Test clocks can only be made in test mode.")
	}
	if err := c.require("frozen_time"); err != nil {
		return nil, err
	}
	frozen, err := c.amountless("frozen_time")
	if err != nil {
		return nil, err
	}
	clock := c.create(clockKind, "clock", object{"name": textOrNil(c.form, "name"), "frozen_time": frozen,
		"deletes_after": c.now + clockLife, "status": "ready", "status_details": object{}})
	c.emit("test_helpers.test_clock.created", clock, nil)
	return clock, nil
}

func (c *call) listClocks() (object, error) {
	return c.list(clockKind, func(o object) bool { return o.str("object") == clockKind })
}

func (c *call) getClock() (object, error) { return c.clock() }

func (c *call) clock() (object, error) {
	clock, err := c.find(clockKind, c.path["test_clock"], "test_clock")
	if err == nil && clock.yes("deleted") {
		return nil, missing("test_clock", clock.id(), "test_clock")
	}
	return clock, err
}

// deleteClock takes the clock's customers with it, as Stripe does.
func (c *call) deleteClock() (object, error) {
	clock, err := c.clock()
	if err != nil {
		return nil, err
	}
	for _, customer := range c.space.all("customer") {
		if customer.str("test_clock") == clock.id() && !customer.yes("deleted") {
			back := c.inTimeOf(customer)
			c.customerGone(customer)
			c.emit("customer.deleted", customer, nil)
			c.space.put("customer", object{"id": customer.id(), "object": "customer", "deleted": true})
			back()
		}
	}
	clock["deleted"] = true
	c.emit("test_helpers.test_clock.deleted", clock, nil)
	return object{"id": clock.id(), "object": clockKind, "deleted": true}, nil
}

// advanceClock carries out everything up to the new time at once. The answer still says
// advancing, as Stripe's does, where it takes a while: whoever asks again finds the clock
// ready.
func (c *call) advanceClock() (object, error) {
	clock, err := c.clock()
	if err != nil {
		return nil, err
	}
	if err := c.require("frozen_time"); err != nil {
		return nil, err
	}
	target, err := c.amountless("frozen_time")
	if err != nil {
		return nil, err
	}
	frozen := clock.num("frozen_time")
	if target <= frozen {
		return nil, invalid("", "frozen_time", "The new frozen_time must be after the current one, "+strconv.FormatInt(frozen, 10)+".")
	}
	if most := c.furthest(clock); target > most {
		return nil, invalid("", "frozen_time", "Cannot advance the clock by more than two intervals of its shortest subscription at a time: at most to "+
			strconv.FormatInt(most, 10)+".")
	}
	clock["status"], clock["status_details"] = "advancing", object{"advancing": object{"target_frozen_time": target}}
	c.emit("test_helpers.test_clock.advancing", clock, nil)
	answer := clock.clone()
	c.run(clock, target)
	clock["frozen_time"], clock["status"], clock["status_details"] = target, "ready", object{}
	c.emit("test_helpers.test_clock.ready", clock, nil)
	return answer, nil
}

// furthest is the latest time to which the clock may go in one step, in Unix seconds.
func (c *call) furthest(clock object) int64 {
	frozen := clock.num("frozen_time")
	most := frozen + freeStep
	for _, sub := range c.space.all("subscription") {
		if sub.str("test_clock") != clock.id() || over(sub) {
			continue
		}
		for _, item := range itemsOf(sub) {
			if r, ok := recurrenceOf(item.sub("price")); ok {
				most = min(most, r.after(frozen, 2))
			}
		}
	}
	return most
}
