package main

import (
	"strings"
	"testing"
)

// TestTax: new subscriptions have the rate of their country, one without a country is parked, a rate for many puts it
// on, and the report has the sums of receipts and refunds.
func TestTax(t *testing.T) {
	c := newCLI(t)
	c.must("store", "create")
	contains(t, c.run("settings", "set", "tax=on").errors, "receipt-months: must be 0 (kept for ever) or at least 120 with tax=on (got 6)")
	c.must("settings", "set", "tax=on", "receipt-months=120", "tax-rates=DE:19,FR:20", "tax-mode=exclusive")
	c.must("import", c.file("book.csv", strings.TrimSuffix(header, "\n")+",country,tax_rate,tax,tax_note\n"+
		"1,a@example.com,1,news,12.99,EUR,15,pm_card_visa,DE,,,\n2,b@example.com,1,news,12.99,EUR,15,pm_card_visa,FR,,,\n"+
		"3,c@example.com,1,news,12.99,EUR,15,pm_card_visa,,,,\n4,d@example.com,1,news,10.00,EUR,15,pm_card_visa,FR,0,exclusive,reverse charge\n"))
	c.must("subscription", "create", "1/2", "--sku", "book", "--amount", "10.70", "--currency", "EUR", "--payment-day", "15", "--payment-method",
		"pm_card_visa", "--tax-rate", "7", "--tax", "inclusive")
	equal(t, "of the country", c.object(exitDone, "subscription", "show", "1/1")["tax"], map[string]any{"rate": "19", "mode": "exclusive", "country": "DE"})
	equal(t, "own", c.object(exitDone, "subscription", "show", "4/1")["tax"],
		map[string]any{"rate": "0", "mode": "exclusive", "country": "FR", "note": "reverse charge"})
	r := c.run("run", "payments")
	equal(t, "run", r.code, exitPerson)
	contains(t, r.out, "no tax rate")
	contains(t, c.must("subscription", "show", "3/1"), "parked", "no tax rate")
	equal(t, "by a person", c.run("subscription", "charge", "3/1").code, exitPerson)

	contains(t, c.run("subscription", "update", "--where", "tax-rate=none", "--tax-rate", "19", "--amount", "5").errors, "cannot be combined")
	contains(t, c.run("subscription", "update", "--where", "city=Ulm", "--tax-rate", "19").errors, "--where must be sku=SKU")
	contains(t, c.must("subscription", "update", "--where", "tax-rate=none", "--tax-rate", "19", "--tax", "inclusive"), "1 subscription to change")
	equal(t, "nothing yet", c.object(exitDone, "subscription", "show", "3/1")["tax"], nil)
	o := c.object(exitDone, "subscription", "update", "--where", "tax-rate=none", "--tax-rate", "19", "--tax", "inclusive", "--yes")
	equal(t, "changed", members(o, "to_change", "changed"), []any{1, 1})
	equal(t, "again", members(c.object(exitDone, "subscription", "update", "--where", "tax-rate=19", "--tax-rate", "19", "--tax", "inclusive"), "to_change"), []any{1})
	c.must("run", "payments")
	c.must("receipt", "refund", "1/1", "--period", "0", "--amount", "5.00")
	c.must("receipt", "refund", "1/1", "--period", "0")
	equal(t, "report", c.must("report", "--tax", "--csv"),
		"month,country,rate,note,currency,receipts,net,tax,gross,refunds,refunded_net,refunded_tax,refunded\n"+
			"2026-03,,19,,EUR,1,10.92,2.07,12.99,0,0.00,0.00,0.00\n"+
			"2026-03,DE,7,,EUR,1,10.00,0.70,10.70,0,0.00,0.00,0.00\n"+
			"2026-03,DE,19,,EUR,1,12.99,2.47,15.46,2,12.99,2.47,15.46\n"+
			"2026-03,FR,0,reverse charge,EUR,1,10.00,0.00,10.00,0,0.00,0.00,0.00\n"+
			"2026-03,FR,20,,EUR,1,12.99,2.60,15.59,0,0.00,0.00,0.00\n")
	contains(t, c.must("export", "receipts"), ",12.99,2.47,19,exclusive,DE,", ",10.00,0.00,0,exclusive,FR,reverse charge")
	contains(t, c.must("export", "subscriptions"), ",19,exclusive,,", ",0,exclusive,reverse charge,")
	contains(t, c.must("verify"), "The audit is clean")
	contains(t, c.run("settings", "set", "receipt-months=12").errors, "receipt-months: must be 0")

	c.must("export", "subscriptions", "--out", "out.csv")
	c.must("import", c.path("out.csv"), "--store", "pebble:./other")
	equal(t, "imported", c.object(exitDone, "subscription", "show", "1/1", "--store", "pebble:./other")["tax"],
		map[string]any{"rate": "19", "mode": "exclusive", "country": "DE"})
	equal(t, "note", c.object(exitDone, "subscription", "show", "4/1", "--store", "pebble:./other")["tax"].(map[string]any)["note"], "reverse charge")
}
