package billing

import (
	"strconv"
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

const (
	clockLife = 30 * api.Day      // after which Stripe deletes a test clock, in seconds; the fake only says so
	freeStep  = 2 * 366 * api.Day // of a test clock without subscriptions at most, in seconds
)

func clockRoutes() []api.Route {
	const path = "/v1/test_helpers/test_clocks"
	return []api.Route{
		on("POST", path, "frozen_time:time! name", call.createClock),
		api.Lists(path, api.ClockKind, "", nil),
		on("GET", path+"/{test_clock}", "", call.clock),
		on("DELETE", path+"/{test_clock}", "", api.With(call.clock, call.deleteClock)),
		on("POST", path+"/{test_clock}/advance", "frozen_time:time!", api.With(call.clock, call.advanceClock)),
	}
}

func (c call) createClock() (object, error) {
	if c.Space.Live {
		return nil, shape.Invalid("", "", "Test clocks can only be created in test mode.")
	}
	return c.Make(api.ClockKind, "clock", object{"name": c.Form.OrNil("name"), "frozen_time": c.Num("frozen_time"),
		"deletes_after": c.Now + clockLife, "status": "ready", "status_details": object{}}), nil
}

func (c call) clock() (object, error) {
	clock, err := c.Find(api.ClockKind, c.ID, "test_clock")
	if err == nil && clock.Yes("deleted") {
		return nil, shape.Missing("test_clock", clock.ID(), "test_clock")
	}
	return clock, err
}

// deleteClock takes the clock's customers with it, as Stripe does.
func (c call) deleteClock(clock object) (object, error) {
	for _, customer := range c.Space.All("customer") {
		if customer.Str("test_clock") == clock.ID() && !customer.Yes("deleted") {
			back := c.InTimeOf(customer)
			c.customerGone(customer)
			c.Emit("customer.deleted", customer, nil)
			c.Space.Put("customer", customer.Deleted())
			back()
		}
	}
	clock["deleted"] = true
	c.Emit("test_helpers.test_clock.deleted", clock, nil)
	return clock.Deleted(), nil
}

// advanceClock carries out every change up to the new time at once. The answer still says
// advancing, as Stripe's does; a second request finds the clock ready.
func (c call) advanceClock(clock object) (object, error) {
	target, frozen := c.Num("frozen_time"), clock.Num("frozen_time")
	if target <= frozen {
		return nil, shape.Invalid("", "frozen_time",
			"The new frozen_time must be after the current one, "+strconv.FormatInt(frozen, 10)+".")
	}
	if most := c.furthest(clock); target > most {
		return nil, shape.Invalid("", "frozen_time", "Cannot advance the clock by more than two intervals of its "+
			"shortest subscription at a time: at most to "+strconv.FormatInt(most, 10)+".")
	}
	clock["status"], clock["status_details"] = "advancing", object{"advancing": object{"target_frozen_time": target}}
	c.Emit("test_helpers.test_clock.advancing", clock, nil)
	answer := clock.Clone()
	c.Run(clock, target)
	clock["frozen_time"], clock["status"], clock["status_details"] = target, "ready", object{}
	c.Emit("test_helpers.test_clock.ready", clock, nil)
	return answer, nil
}

// furthest is the latest time to which the clock may go in one step, in Unix seconds.
func (c call) furthest(clock object) int64 {
	frozen := clock.Num("frozen_time")
	most := frozen + freeStep
	for _, sub := range c.Space.All("subscription") {
		if sub.Str("test_clock") != clock.ID() || over(sub) {
			continue
		}
		for _, item := range itemsOf(sub) {
			most = min(most, recurrenceOf(item.Sub("price")).after(frozen, 2))
		}
	}
	return most
}

// A recurrence is the interval of a price; zero for a one-time price.
type recurrence struct {
	interval string // day, week, month, year
	count    int64  // of intervals, at least 1
}

func recurrenceOf(price object) recurrence {
	sub := price.Sub("recurring")
	return recurrence{sub.Str("interval"), sub.Num("interval_count")}
}

// valid reports whether Stripe takes it: at most three years.
func (r recurrence) valid() bool {
	most := map[string]int64{"day": 1095, "week": 156, "month": 36, "year": 3}[r.interval]
	return r.count >= 1 && r.count <= most
}

// after returns the end of the n-th period after the anchor, both in Unix seconds, in UTC. A day
// that the month lacks is its last day; later months have the anchor's day again.
func (r recurrence) after(anchor, n int64) int64 {
	steps := int(r.count * n)
	t := time.Unix(anchor, 0).UTC()
	switch r.interval {
	case "day":
		return t.AddDate(0, 0, steps).Unix()
	case "week":
		return t.AddDate(0, 0, 7*steps).Unix()
	case "year":
		steps *= 12
	}
	day := t.Day()
	first := time.Date(t.Year(), t.Month()+time.Month(steps), 1, t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(day, last)-1).Unix()
}

// last returns the last end of a period before t. The anchor may be later than t.
func (r recurrence) last(anchor, t int64) int64 {
	n := (t - anchor) / r.after(0, 1)
	for r.after(anchor, n) < t {
		n++
	}
	for r.after(anchor, n) >= t {
		n--
	}
	return r.after(anchor, n)
}

// next returns the first end of a period after t. The anchor may be later than t.
func (r recurrence) next(anchor, t int64) int64 {
	length := r.after(0, 1)
	n := (t-anchor)/length - 2
	for r.after(anchor, n) <= t {
		n++
	}
	for r.after(anchor, n-1) > t {
		n--
	}
	return r.after(anchor, n)
}
