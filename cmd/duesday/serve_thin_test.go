package main

import (
	"strings"
	"testing"

	"github.com/duesday/duesday/stripefake"
)

// TestServe_ThinEvents: purchases are followed to their end by thin events, alone and beside their
// snapshots, with one fulfilment and one unsubscribe each. Then all webhooks are lost, and the
// poller of another process finds the thin events.
func TestServe_ThinEvents(t *testing.T) {
	for _, form := range []stripefake.EventForm{stripefake.ThinEvents, stripefake.BothEvents} {
		t.Run(string(form), func(t *testing.T) {
			c := newServeCLI(t)
			if err := c.fake.SetEvents(form); err != nil {
				t.Fatal(err)
			}
			c.env["DUESDAY_POLL_SECRET"] = strings.ReplaceAll(pollSecret, " ", "-")
			v, stop := c.serve("--on-fulfil", c.job(), "--on-unsubscribe", c.job(), "--no-poll")
			c.must("connect", "add", "--account", shopAccount, "acct_shop")
			price := c.askAt("acct_shop", "POST", "/v1/prices",
				"unit_amount=900&currency=usd&recurring[interval]=month&product_data[name]=Gym")["id"].(string)
			legacy := c.buysLegacy("1")
			sold := c.object(exitDone, "purchase", "create", "--account", shopAccount, "--kind", "subscription", "--key", "2",
				"--price", price, "--email", "ann@example.com", "--payment-method", "pm_card_visa")["purchase"].(map[string]any)
			id := sold["id"].(string)
			equal(t, "fulfilled", c.await(2), map[string]int{"fulfil " + legacy: 1, "fulfil " + id: 1})
			purchase := func(of string) map[string]any {
				return c.object(exitDone, "purchase", "show", of)["purchase"].(map[string]any)
			}
			c.until("fulfilled", func() bool { return purchase(id)["fulfilled"] == true })
			for sub := range purchase(id)["subscriptions"].(map[string]any) {
				c.askAt("acct_shop", "DELETE", "/v1/subscriptions/"+sub, "")
			}
			equal(t, "ended", c.await(1), map[string]int{"unsubscribe " + id: 1})
			if _, err := c.fake.EmitThin("acct_shop", false, "v2.core.account.updated",
				stripefake.Related{ID: "acct_shop", Type: "v2.core.account"}); err != nil {
				t.Fatal(err)
			}
			c.flush()
			c.until("applied", func() bool { return len(c.list("event", "list", "--waiting")) == 0 })
			c.tellsOfTwins(form)

			// Nothing comes any more: the poller asks for both lists.
			if err := c.fake.SetFaults(stripefake.Faults{WebhookDrops: 1}); err != nil {
				t.Fatal(err)
			}
			legacy = c.buysLegacy("3")
			poll := []string{"poll", "--once", "--all"}
			if form == stripefake.BothEvents { // by a poller without the store, for which the server asks Stripe again
				poll = append(poll, "--to", v.APIBase)
				c.env["DUESDAY_API_KEY"] = c.apiKey("read")
			}
			found := c.object(exitDone, poll...)
			if n := found["sent"].(float64); n < 2 || n != found["missing"] {
				t.Errorf("%s: polled %v", form, found)
			}
			equal(t, "fulfilled", c.await(1), map[string]int{"fulfil " + legacy: 1})
			equal(t, "not again", c.object(exitDone, poll...)["missing"], 0)
			equal(t, "stopped", stop().code, exitDone)
			contains(t, c.must("rebuild"), "acct_shop")
		})
	}
}

// buysLegacy has a buyer pay a legacy purchase, and returns its id.
func (c *serveCLI) buysLegacy(key string) string {
	c.t.Helper()
	sold := c.object(exitDone, "purchase", "create", "--account", shopAccount, "--kind", "legacy", "--key", key,
		"--amount", "12.99", "--currency", "USD")
	intent, _, _ := strings.Cut(sold["client_secret"].(string), "_secret_")
	c.askAt("acct_shop", "POST", "/v1/payment_intents/"+intent+"/confirm",
		"payment_method=pm_card_visa&return_url=http://shop.example")
	return sold["purchase"].(map[string]any)["id"].(string)
}

// tellsOfTwins reads every stored event: each has a status, and of two twins one names the other.
func (c *serveCLI) tellsOfTwins(form stripefake.EventForm) {
	c.t.Helper()
	twins, applied := 0, 0
	for _, row := range c.list("event", "list") {
		id := row.(map[string]any)["id"].(string)
		e := c.object(exitDone, "event", "show", id)
		reason, _ := e["reason"].(string)
		thin := e["told_type"] != nil
		switch {
		case e["status"] != "applied" && e["status"] != "ignored", e["status"] == "ignored" && reason == "":
			c.t.Errorf("%s: %v", form, e)
		case strings.HasPrefix(e["type"].(string), "v2."):
			equal(c.t, "of version 2", e["status"], "ignored")
		case strings.HasPrefix(e["type"].(string), "v1."):
			c.t.Errorf("%s: %v", form, e)
		}
		if strings.HasPrefix(reason, "the same as evt_") {
			twins++
		}
		if thin && e["status"] == "applied" {
			applied++
		}
	}
	if (twins > 0) != (form == stripefake.BothEvents) || form == stripefake.ThinEvents && applied < 4 {
		c.t.Errorf("%s: %d twins, %d thin events applied", form, twins, applied)
	}
}
