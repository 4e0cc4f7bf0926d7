package stripefake

import "time"

const clockKind = "test_helpers.test_clock"

// clockNow is what time it is for a customer, in Unix seconds: that of its test clock, or the
// fake's.
func (c *call) clockNow(customer object) int64 {
	if clock := c.space.get(clockKind, customer.str("test_clock")); clock != nil {
		return clock.num("frozen_time")
	}
	return c.now
}

// inTimeOf sets the call's time to that of the customer, until the returned function is
// called.
func (c *call) inTimeOf(customer object) (back func()) {
	now := c.now
	c.now = c.clockNow(customer)
	return func() { c.now = now }
}

const (
	hour = int64(60 * 60)
	day  = 24 * hour
)

// timeOf is the Unix second at which something of the customer ("": nobody's) happens: that of
// the customer's test clock, if there is one.
func (c *call) timeOf(customer string) int64 {
	if o := c.space.get("customer", customer); o != nil && o.str("test_clock") != "" {
		return c.clockNow(o)
	}
	return c.now
}

// Now is the fake's clock.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.time()
}

// SetNow sets the fake's clock, which goes on from there, and carries out what is due by
// then. Idempotency keys, the horizon of events and everything that happens by itself follow
// it; test clocks do not.
func (f *Fake) SetNow(t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offset = t.Sub(f.o.Now())
	f.tick()
}

// Advance moves the fake's clock forward, or back.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offset += d
	f.tick()
}
