package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/schema/iam"
	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/stripefake"
)

func TestPolicy_RetryDays(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa_chargeDeclined")
	c.create("2/1", "pm_card_visa_chargeDeclined")
	c.must("settings", "set", "retry-days=none")
	equal(t, "none", members(c.object(exitPerson, "run", "payments"), "failed", "retry"), []any{2, 0})
	equal(t, "past due", c.object(exitDone, "subscription", "show", "1/1")["status"], "past_due")
	c.create("3/1", "pm_card_visa_chargeDeclined")
	c.must("settings", "set", "retry-days=2,60")
	equal(t, "declined", c.object(exitDone, "run", "payments")["retry"], 1)
	open := c.object(exitDone, "subscription", "show", "3/1")["open"].(map[string]any)
	equal(t, "retry", open["retry_date"], "2026-03-17")
}

func TestPolicy_CatchUpAndReceiptMonths(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa", "--next-payment-date", "2026-01-15")
	c.must("settings", "set", "catch-up=1", "receipt-months=0")
	equal(t, "run", members(c.object(exitPerson, "run", "payments"), "paid",
		"parked"), []any{1, 1})
	receipt := c.list("receipt", "list", "1")[0].(map[string]any)
	if at, there := receipt["expires_at"]; there {
		t.Errorf("kept for ever, but expires at %v", at)
	}
	c.must("settings", "set", "receipt-months=1")
	c.must("subscription", "charge", "1/1")
	receipt = c.list("receipt", "list", "1")[1].(map[string]any)
	equal(t, "expires", receipt["expires_at"], "2026-04-15T10:30:00.000Z")
}

// TestPolicies_AllowWhatServeDoes: what serve asks of DynamoDB, and what the commands about
// purchases, payments and events do beside it, is in the runtime policy: no scan.
func TestPolicies_AllowWhatServeDoes(t *testing.T) {
	endpoint := dynamotest.Endpoint(t)
	c := newServeCLI(t)
	c.clock.Set(time.Date(2040, 3, 15, 10, 30, 0, 0,
		time.UTC)) // DynamoDB Local deletes what has expired, by the machine's clock
	prefix := dynamotest.Prefix(t)
	store := newDuty(c.cli, prefix, endpoint, "")
	store.does(exitDone, "store create --shards 2")
	c.must("settings", "set", "ended-by=unpaid", "--store", store.at)

	d := newDuty(c.cli, prefix, endpoint, "")
	d.line = "serve"
	_, stop := c.serve("--store", d.at, "--on-fulfil", c.job(), "--on-unsubscribe", c.job(), "--poll-every", "1s")
	show := func(args ...string) map[string]any { return c.object(exitDone, append(args, "--store", d.at)...) }
	c.askAt("acct_shop", "POST", "/v1/payment_intents",
		"amount=100&currency=usd&payment_method=pm_card_visa&confirm=true&return_url=http://shop.example")
	c.flush() // quarantined
	d.does(exitDone, "event list --waiting")
	d.does(exitDone, "connect add --account "+shopAccount+" acct_shop")
	d.does(exitDone, "connect add --account "+ownAccount+" "+stripefake.DefaultAccount)
	price := c.askAt("acct_shop", "POST", "/v1/prices",
		"unit_amount=900&currency=usd&recurring[interval]=month&product_data[name]=Gym")["id"].(string)
	buyer := " --email ann@example.com --payment-method pm_card_visa"
	for i, line := range []string{"legacy --amount 12.99 --currency USD", "product --amount 5 --currency USD" + buyer,
		"subscription --price " + price + buyer, "split --payments 2 --price " + price + buyer} {
		d.does(exitDone, fmt.Sprintf("purchase create --account %s --key %d --kind %s", shopAccount, i, line))
	}
	c.flush()
	if done := c.await(3); len(done) != 3 {
		t.Errorf("fulfilled %v", done)
	}
	var sub string
	purchases := c.list("purchase", "list", "--account", shopAccount, "--store", d.at)
	equal(t, "purchases", len(purchases), 4)
	for _, p := range purchases {
		id := p.(map[string]any)["id"].(string)
		d.does(exitDone, "purchase show "+id)
		for name := range show("purchase", "show", id)["purchase"].(map[string]any) {
			if name == "subscriptions" && p.(map[string]any)["kind"] == "subscription" {
				for sub = range show("purchase", "show", id)["purchase"].(map[string]any)[name].(map[string]any) {
				}
			}
		}
	}
	c.askAt("acct_shop", "DELETE", "/v1/subscriptions/"+sub, "")
	c.flush()
	c.await(1)
	payment := c.list("payment", "list", "--account", shopAccount, "--store", d.at)[0].(map[string]any)
	event := c.list("event", "list", "--limit", "1", "--store", d.at)[0].(map[string]any)["id"].(string)
	for _, line := range []string{"connect list", "connect show acct_shop", "purchase list --account " + shopAccount,
		"payment list --account " + shopAccount,
		fmt.Sprintf("payment show %v/%v", payment["stripe_account"], payment["id"]), "event list",
		"event list --account acct_shop", "event list --subscription " + sub,
		"event list --from 2040-03-14 --to 2040-03-16", "event show " + event, "replay " + event, "rebuild"} {
		d.does(exitDone, line)
	}
	c.until("polled and swept", func() bool {
		polled := show("connect", "show", "acct_shop")
		return polled["verified_through"] != nil
	})
	equal(t, "stopped", stop().code, exitDone)
	d.allowedBy(iam.Runtime, iam.Options{Account: "123456789012", Region: "*", Prefix: prefix}, "GetItem", "Query",
		"PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem")
	for u, line := range d.uses {
		if u.operation == "Scan" {
			t.Errorf("duesday %s scans %s", line, u.table)
		}
	}
}
