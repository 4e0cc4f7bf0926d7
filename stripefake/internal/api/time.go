package api

import "time"

const ClockKind = "test_helpers.test_clock"

// ClockNow returns the customer's time in Unix seconds: of its test clock, or of the fake's clock.
func (c *Call) ClockNow(customer object) int64 {
	if clock := c.Space.Get(ClockKind, customer.Str("test_clock")); clock != nil {
		return clock.Num("frozen_time")
	}
	return c.Now
}

// InTimeOf sets the call's time to the customer's, until the caller calls back.
func (c *Call) InTimeOf(customer object) (back func()) {
	now := c.Now
	c.Now = c.ClockNow(customer)
	return func() { c.Now = now }
}

const (
	Hour = int64(60 * 60)
	Day  = 24 * Hour
)

// TimeOf is ClockNow for the id of a customer; "": none.
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

// SetNow sets the fake's clock and carries out every change that is due by then. Idempotency keys
// and the 30 days of events follow this clock; test clocks do not.
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
