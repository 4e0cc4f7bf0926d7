package main

import (
	"slices"
	"testing"
	"time"

	"github.com/duesday/duesday/stripefake"
)

// TestPoll_DayBoundaries: all webhooks are lost around several midnights, and the poller finds every
// event, wherever the machine's clock stands beside Stripe's.
func TestPoll_DayBoundaries(t *testing.T) {
	for _, ahead := range []time.Duration{0, -26 * time.Hour, 26 * time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			c := newServeCLI(t) // nothing serves: every webhook is lost
			c.clock.Set(c.fake.Now().Add(ahead))
			c.must("connect", "add", "--account", shopAccount, "acct_shop")
			to := func(at time.Time) {
				c.fake.Advance(at.Sub(c.fake.Now()))
				c.clock.Set(at.Add(ahead))
			}
			event := func() {
				c.askAt("acct_shop", "POST", "/v1/payment_intents", "amount=500&currency=eur")
			}
			midnight := c.fake.Now().UTC().Truncate(24 * time.Hour)
			for range 4 {
				midnight = midnight.Add(24 * time.Hour)
				for _, at := range []time.Duration{-time.Second, 0, time.Second} {
					to(midnight.Add(at))
					event()
				}
				c.must("poll", "--once", "--all")
			}
			var got, want []string
			for _, e := range c.fake.Events("acct_shop", false, stripefake.NewestVersion) {
				want = append(want, e.ID)
			}
			for _, e := range c.list("event", "list", "--from", "2020-01-01") {
				got = append(got, e.(map[string]any)["id"].(string))
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) || len(want) < 12 {
				t.Errorf("stored %q\nof %q", got, want)
			}
		})
	}
}
