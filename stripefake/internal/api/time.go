package api

import "time"

const ClockKind = "test_helpers.test_clock"

// ClockNow is what time it is for a customer, in Unix seconds: that of its test clock, or the
// fake's.
func (c *Call) ClockNow(customer object) int64 {
	if clock := c.Space.Get(ClockKind, customer.Str("test_clock")); clock != nil {
		return clock.Num("frozen_time")
	}
	return c.Now
}

// InTimeOf sets the call's time to that of the customer, until the returned function is
// called.
func (c *Call) InTimeOf(customer object) (back func()) {
	now := c.Now
	c.Now = c.ClockNow(customer)
	return func() { c.Now = now }
}

const (
	Hour = int64(60 * 60)
	Day  = 24 * Hour
)

// TimeOf is the Unix second at which something of the customer ("": nobody's) happens: that of
// the customer's test clock, if there is one.
func (c *Call) TimeOf(customer string) int64 {
	if o := c.Space.Get("customer", customer); o != nil && o.Str("test_clock") != "" {
		return c.ClockNow(o)
	}
	return c.Now
}

// TimeNow is the fake's clock.
func (f *Fake) TimeNow() time.Time {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.time()
}

// SetNow sets the fake's clock, which goes on from there, and carries out what is due by
// then. Idempotency keys, the horizon of events and everything that happens by itself follow
// it; test clocks do not.
func (f *Fake) SetNow(t time.Time) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.offset = t.Sub(f.Options.Now())
	f.Tick()
}

// Advance moves the fake's clock forward, or back.
func (f *Fake) Advance(d time.Duration) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.offset += d
	f.Tick()
}
