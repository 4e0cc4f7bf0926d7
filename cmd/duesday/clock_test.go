package main

import (
	"testing"
	"time"

	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/stripefake"
)

// TestClock_Stripe: nobody is charged while Stripe's clock stands apart, and a test clock may begin
// at the time of the fake.
func TestClock_Stripe(t *testing.T) {
	c := newStripeCLI(t, stripefake.Options{})
	c.create("1/1", "pm_card_visa", "--next-payment-date", "2026-03-15")
	c.fake.Advance(-10 * 24 * time.Hour) // by it, our clock is ahead
	for _, args := range [][]string{{"run", "payments"}, {"receipt", "create", "1/1"}} {
		r := c.run(args...)
		if r.code != exitFailed {
			t.Errorf("exit %d, %+v", r.code, r)
		}
		contains(t, r.errors, "the clock is wrong", "2026-03-15T10:30", "2026-03-05T10:30", "Stripe shows")
	}
	c.fake.Advance(20 * 24 * time.Hour)
	contains(t, c.run("run", "payments").errors, "2026-03-25T10:30")
	c.env["DUESDAY_CLOCK"] = session.ProcessorClock
	o := c.object(exitDone, "run", "payments")
	equal(t, "by the fake's clock", members(o, "date", "paid"), []any{"2026-03-25", 1})

	c.env["DUESDAY_PROCESSOR"] = "sandbox:./ledger.jsonl"
	r := c.run("verify")
	if r.code != exitUsage {
		t.Errorf("exit %d", r.code)
	}
	contains(t, r.errors, "DUESDAY_CLOCK", "--processor stripe")
}

// TestClock_AheadDeletesNothing: commands and runs by a clock that is months ahead keep the
// receipts, and a run says so.
func TestClock_AheadDeletesNothing(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa", "--next-payment-date", today)
	c.must("run", "payments")
	begin := c.clock.Now()
	for _, months := range []int{8, 9} {
		c.clock.Set(begin.AddDate(0, months, 0))
		c.must("account", "update", "1", "--locale", "ko")
		r := c.run("run", "payments")
		contains(t, r.errors, "more than 36 hours after", "2026-03-15T10:30", "duesday charging on")
	}
	c.clock.Set(begin)
	receipts := c.list("receipt", "list", "1")
	equal(t, "the first receipt", members(receipts[0].(map[string]any), "period", "due_date"), []any{0, today})
	contains(t, c.run("account", "create", "2", "--email", "b@example.com").errors, "the clock is wrong",
		"duesday charging on")
	c.must("charging", "on")
	c.must("account", "create", "2", "--email", "b@example.com")
}
