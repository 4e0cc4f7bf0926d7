package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/stripefake"
)

// TestStripeDemo lives through the demo with Stripe's fake as the processor, over HTTP, while
// requests and replies are lost, answers are errors, and what is an error has happened: the
// fake's ledger has one success for each receipt, and none besides.
func TestStripeDemo(t *testing.T) {
	soaktest.Long(t)
	c := newStripeCLI(t, stripefake.Options{})
	delete(c.env, "DUESDAY_STRIPE_KEY")
	c.env["DUESDAY_STRIPE_KEY_FILE"] = c.file("key", c.key)
	seed := rand.Uint64N(1 << 32)
	t.Logf("seed %d", seed)
	faults := stripefake.Faults{LostRequests: 0.01, LostReplies: 0.02, Errors: 0.01, LateErrors: 0.01, Busy: 0.003,
		Seed: seed}
	if err := c.fake.SetFaults(faults); err != nil {
		t.Fatal(err)
	}
	o := c.object(exitDone, "demo", "--accounts", "30", "--months", "1", "--seed", strconv.FormatUint(seed%1000, 10))
	equal(t, "demo", o["ok"], true)
	if err := c.fake.SetFaults(stripefake.Faults{}); err != nil {
		t.Fatal(err)
	}
	went := map[string]int64{}
	for _, n := range c.fake.Counts() {
		switch {
		case n.Status == 0:
			went["broken"] += n.Requests
		case n.Status >= 500:
			went["errors"] += n.Requests
		case n.Status == 429 || n.Status == 409:
			went["busy"] += n.Requests
		}
		went["all"] += n.Requests
		went["replayed"] += n.Replays
	}
	t.Logf("requests: %v", went)
	if went["broken"] == 0 || went["errors"] == 0 {
		t.Error("the faults were not met")
	}
	c.env["DUESDAY_STORE"] = "pebble:./duesday-demo/data"
	c.agrees()
}

// agrees holds the fake's ledger and the store's receipts against each other: one success
// for each period that has a receipt, of its amount, and nothing else.
func (c *stripeCLI) agrees() (charges int) {
	c.t.Helper()
	receipts := map[string]string{}
	for line := range strings.Lines(c.must("export", "receipts", "--format", "jsonl")) {
		var r struct {
			Account, Subscription, Charge string
			Period                        *int
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			c.t.Fatal(err)
		}
		if strings.HasPrefix(r.Charge, "pi_") {
			receipts[r.Charge] = fmt.Sprint(r.Account, "/", r.Subscription, "/", *r.Period)
		}
	}
	seen := map[string]string{}
	for e := range c.fake.Ledger() {
		if e.Type != "charge" {
			continue
		}
		charges++
		m := e.Metadata
		period := m["duesday_account"] + "/" + m["duesday_subscription"] + "/" + m["duesday_period"]
		if other := seen[period]; other != "" {
			c.t.Errorf("%s is charged by %s and %s", period, other, e.Intent)
		}
		seen[period] = e.Intent
		if receipts[e.Intent] != period {
			c.t.Errorf("%s has charged %s, and the receipt is of %q", e.Intent, period, receipts[e.Intent])
		}
		delete(receipts, e.Intent)
	}
	if len(receipts) > 0 {
		c.t.Errorf("receipts without a charge: %v", receipts)
	}
	if charges == 0 {
		c.t.Error("nothing was charged")
	}
	return charges
}
