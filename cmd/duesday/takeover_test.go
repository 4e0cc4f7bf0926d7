package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/stripefake"
)

// TestTakeover_NoStore: a start in an empty folder makes no store, and no subscription at Stripe ends.
func TestTakeover_NoStore(t *testing.T) {
	c := newStripeCLI(t, stripefake.Options{})
	_, sub := c.subscribeAtStripe()
	for _, verb := range []string{"plan", "start"} {
		r := c.run("takeover", verb)
		equal(t, verb, r.code, exitFailed)
		contains(t, r.errors, "there is no store at")
	}
	if files, err := os.ReadDir(c.dir); err != nil || len(files) > 0 {
		t.Errorf("%v, %v", files, err)
	}
	equal(t, "ends", c.askAt("", "GET", "/v1/subscriptions/"+sub, "")["cancel_at_period_end"], any(false))
}

// releasedHeld is when the store of makeReleasedTakeovers was packed: a subscription is held for two weeks.
const releasedHeld = "2026-05-01"

// upgradeReleasedTakeovers: what a version took over, handed back and followed is the same in this one. What it held
// stays held: at its boundary nothing is charged, because Stripe does not know the subscription, and then it is parked.
func upgradeReleasedTakeovers(t *testing.T, file string) {
	c := newStripeCLI(t, stripefake.Options{})
	unpackTo(t, file, c.dir)
	c.at(releasedHeld)
	c.must("store", "check")
	for records, list := range releasedTakeovers(c) {
		old, now := c.read(records+".jsonl"), strings.Join(list, "\n")
		if missing := absent(t, old, now); missing != "" || old == "" {
			t.Errorf("%s that differ now, of %d bytes:\n%s\n%s", records, len(old), missing, now)
		}
	}
	var held string
	for _, s := range c.list("subscription", "list") {
		if k, ok := s.(map[string]any)["takeover"].(map[string]any); ok && k["stage"] == "ending" {
			held = fmt.Sprint(s.(map[string]any)["account"], "/", s.(map[string]any)["id"])
		}
	}
	for _, day := range []struct{ date, status string }{{"2026-05-16", "active"}, {"2026-05-19", "parked"}} {
		c.at(day.date)
		c.run("run", "payments")
		s := c.object(exitDone, "subscription", "show", held)
		equal(t, day.date, members(s, "status", "period"), []any{day.status, 0.0})
	}
}

// releasedTakeovers are the records of a store that has taken over, as JSON lines.
func releasedTakeovers(c *stripeCLI) map[string][]string {
	c.t.Helper()
	all := map[string][]string{}
	add := func(noun string, record any) {
		line, err := json.Marshal(record)
		if err != nil {
			c.t.Fatal(err)
		}
		all[noun] = append(all[noun], string(line))
	}
	for _, s := range c.list("subscription", "list") {
		add("subscription", s)
	}
	for _, p := range c.list("purchase", "list", "--account", ownAccount) {
		add("purchase", c.json(exitDone, "purchase", "show", fmt.Sprint(p.(map[string]any)["id"])))
	}
	for _, p := range c.list("payment", "list", "--account", ownAccount) {
		add("payment", p)
	}
	return all
}

// makeReleasedTakeovers packs a store that follows Stripe's subscriptions and has taken some of them over: one is
// charged here, one is handed back, one is held, and one stays at Stripe.
func makeReleasedTakeovers(t *testing.T, file string) {
	c := newStripeCLI(t, stripefake.Options{})
	now, err := time.Parse(time.DateTime, releasedClock)
	if err != nil {
		t.Fatal(err)
	}
	days := func(n int) {
		for range n {
			now = now.AddDate(0, 0, 1)
			c.clock.Set(now)
			c.run("run", "reminders")
			c.run("run", "payments")
		}
	}
	c.clock.Set(now)
	c.must("store", "create")
	c.must("connect", "add", "--account", ownAccount, stripefake.DefaultAccount)
	var customers, subs [3]string
	for i := range subs {
		customers[i], subs[i] = c.subscribeAtStripe()
	}
	days(3)
	c.must("connect", "import", stripefake.DefaultAccount)
	for _, sub := range subs[:2] {
		c.must("takeover", "start", "--where", "subscription="+sub)
	}
	c.must("takeover", "undo", customers[1]+"/"+subs[1])
	days(29)
	_, held := c.subscribeAtStripe()
	days(1)
	c.must("connect", "import", stripefake.DefaultAccount)
	c.must("takeover", "start", "--where", "subscription="+held)
	c.at(releasedHeld)
	c.must("connect", "import", stripefake.DefaultAccount)
	c.must("verify")
	for records, list := range releasedTakeovers(c) {
		c.file(records+".jsonl", strings.Join(list, "\n"))
	}
	packFrom(t, c.dir, file)
}
