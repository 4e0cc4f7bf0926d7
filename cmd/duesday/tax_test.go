package main

import (
	"regexp"
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

// TestTax_Invoice: the choice of invoices needs what an invoice must have. A payment that has it is invoiced, another
// one stays a receipt, and a later change or an erasure changes nothing about it.
func TestTax_Invoice(t *testing.T) {
	c := newCLI(t)
	c.must("store", "create")
	contains(t, c.run("settings", "set", "document=invoice").errors, "seller, seller-address, seller-country, seller-tax-id, tax=on, receipt-months=120 or more")
	c.must("settings", "set", "document=invoice", "seller=Gym Ltd", "seller-address=1 Road, Berlin", "seller-country=DE", "seller-tax-id=DE123456789", "tax=on",
		"receipt-months=120", "tax-rates=AT:20,DE:19", "product.gold=Gold & more")
	contains(t, c.run("settings", "set", "tax=off").errors, "document: must be receipt, because invoice needs tax=on")
	c.must("account", "create", "1", "--email", "a@example.com", "--company", "Ada GmbH", "--address-line1", "Hauptstr. 1", "--postal-code", "89073",
		"--city", "Ulm", "--country", "DE", "--tax-id", "DE987654321")
	c.must("account", "create", "2", "--email", "a@example.com", "--company", "Bob AG", "--address-line1", "Ring 2", "--city", "Wien", "--country", "AT",
		"--tax-id", "ATU12345678")
	c.must("account", "create", "3", "--email", "a@example.com", "--country", "DE") // without a name and an address
	c.create("1/gym", "pm_card_visa", "--sku", "gold", "--amount", "35.70", "--currency", "EUR", "--quantity", "2")
	c.create("2/gym", "pm_card_visa", "--sku", "gold", "--amount", "35.70", "--currency", "EUR", "--tax-rate", "0", "--tax", "exclusive", "--tax-note",
		"Reverse charge")
	c.create("3/gym", "pm_card_visa", "--sku", "gold", "--amount", "35.70", "--currency", "EUR")
	c.must("run", "payments")

	page := func(account string) string {
		number := c.list("receipt", "list", account)[0].(map[string]any)["number"].(string)
		text := c.must("receipt", "show", number, "--html")
		contains(t, text, number)
		return text
	}
	first, second := page("1"), page("2")
	contains(t, first, "<h1>Invoice</h1>", "Gym Ltd", "1 Road, Berlin", "Tax ID: DE123456789", "Ada GmbH", "Hauptstr. 1", "89073 Ulm", "Tax ID: DE987654321",
		"Date of issue", "Paid on", "Gold &amp; more", "Quantity: 2", "Unit price: €35.70", "Unit price without tax: €30.00", "€71.40",
		"Net amount", "€60.00", "Tax 19% DE", "€11.40")
	contains(t, second, "<h1>Invoice</h1>", "Tax ID: ATU12345678", "Tax 0% AT", "Reverse charge", "€0.00")
	contains(t, page("3"), "<h1>Receipt</h1>", "Tax 19% DE", "€5.70")

	c.must("settings", "set", "seller=Other", "product.gold=Silver")
	c.must("account", "update", "1", "--company", "Else", "--city", "Bonn")
	equal(t, "later", page("1"), first)
	c.must("receipt", "refund", "1/gym", "--period", "0", "--amount", "10.00")
	c.must("outbox", "send")
	contains(t, page("1"), "Refunded on", "-€10.00", "Number: R-2026-000004", "Partly refunded", "Remaining", "€61.40")
	c.must("subscription", "cancel", "2/gym")
	c.must("account", "erase", "2", "--confirm", "2")
	equal(t, "erased", page("2"), second)
	contains(t, c.must("verify"), "The audit is clean")
}

// TestTax_Restored: an adopted charge has the tax with which it was charged, although the backup's rate is another one. The
// charge of a build that did not tell the processor has the tax of the backup's rate, or none if the amount differs, and
// reconcile names both receipts.
func TestTax_Restored(t *testing.T) {
	t.Run("told", func(t *testing.T) { taxRestored(t, true) })
	t.Run("older", func(t *testing.T) { taxRestored(t, false) })
}

func taxRestored(t *testing.T, told bool) {
	c := newCLI(t)
	c.must("store", "create")
	c.must("settings", "set", "tax=on", "receipt-months=0")
	for id, mode := range map[string]string{"1/1": "inclusive", "2/1": "exclusive", "3/1": "inclusive"} {
		c.create(id, "pm_card_visa", "--tax-rate", "19", "--tax", mode)
	}
	c.must("store", "backup", "--to", "backup")
	c.must("subscription", "update", "1/1", "--tax-rate", "7")
	c.must("subscription", "update", "2/1", "--tax-rate", "7")
	c.must("run", "payments")
	taxes := c.must("report", "--tax", "--csv")
	if !told {
		prices := regexp.MustCompile(`"price":"([^"\\]|\\.)*",?`)
		equal(t, "prices", len(prices.FindAllString(c.read("duesday-sandbox.jsonl"), -1)), 6) // opened and succeeded
		c.file("duesday-sandbox.jsonl", prices.ReplaceAllString(c.read("duesday-sandbox.jsonl"), ""))
	}
	c.must("store", "restore", "--from", "backup", "--replace")
	r := c.run("reconcile")
	equal(t, "reconcile", r.code, exitPerson)
	if told {
		equal(t, "taxes", c.must("report", "--tax", "--csv"), taxes)
		if strings.Contains(r.out, "had another discount or tax") {
			t.Error(r.out)
		}
		c.must("verify")
		return
	}
	equal(t, "receipts", strings.Count(r.out, "the receipt of period 0 had another discount or tax than the restored store's"), 2)
	if _, other, found := strings.Cut(r.out, "3/1"); found {
		t.Errorf("its receipt is the same: %s", other)
	}
}

// TestTax_None: a subscription without a rate is named at its creation. A payment by hand is taxed once it has a rate.
func TestTax_None(t *testing.T) {
	c := newCLI(t)
	c.must("store", "create")
	c.must("settings", "set", "tax=on", "receipt-months=0")
	terms := []string{"--email", "ada@example.com", "--sku", "gold", "--amount", "10.00", "--currency", "EUR", "--payment-day", "15", "--payment-method", "pm_card_visa"}
	contains(t, c.run(append([]string{"subscription", "create", "1/1"}, terms...)...).errors, "subscription 1/1 has no tax rate",
		"subscription update 1/1 --tax-rate RATE")
	if r := c.run(append([]string{"subscription", "create", "2/1", "--tax-rate", "0"}, terms...)...); strings.Contains(r.errors, "tax rate") {
		t.Errorf("a rate of zero is one: %s", r.errors)
	}
	c.must("settings", "set", "tax-rates=DE:19", "tax-mode=exclusive")
	c.must("account", "update", "2", "--country", "DE")
	contains(t, c.run("subscription", "create", "2/3", "--sku", "gold", "--amount", "5.00", "--currency", "EUR", "--payment-day", "15", "--tax-rate", "none").errors,
		"tax_rate: must be a percentage for a new subscription") // which would have the country's rate
	large := c.run("subscription", "create", "2/2", "--sku", "gold", "--amount", "9999999999.99", "--currency", "EUR", "--payment-day", "15")
	contains(t, large.errors, "tax_rate: must leave an amount of at most twelve digits")
	equal(t, "run", c.run("run", "payments").code, exitPerson)
	c.must("subscription", "update", "1/1", "--tax-rate", "19", "--tax", "exclusive")
	c.must("receipt", "create", "1/1")
	contains(t, c.must("report", "--tax", "--csv"), ",,19,,EUR,1,10.00,1.90,11.90,0,")
}

// TestTax_NoRate: a manual payment of a past period that had no rate has a row without a rate in the report of taxes, so
// that the totals of both reports are the same. A store without tax has no such row.
func TestTax_NoRate(t *testing.T) {
	c := newCLI(t)
	c.must("store", "create")
	c.must("settings", "set", "tax=on", "receipt-months=0")
	terms := []string{"--email", "ada@example.com", "--sku", "gold", "--amount", "10.00", "--currency", "EUR", "--payment-day", "15", "--payment-method", "pm_card_visa"}
	c.run(append([]string{"subscription", "create", "1/1"}, terms...)...)
	c.must(append([]string{"subscription", "create", "2/1", "--tax-rate", "0", "--tax", "exclusive"}, terms...)...)
	equal(t, "run", c.run("run", "payments").code, exitPerson)
	c.must("subscription", "skip", "1/1")
	c.must("receipt", "create", "1/1", "--period", "0", "--note", "cash")
	c.must("receipt", "refund", "2/1", "--period", "0", "--amount", "4.00")
	const columns = "month,country,rate,note,currency,receipts,net,tax,gross,refunds,refunded_net,refunded_tax,refunded\n"
	equal(t, "CSV", c.must("report", "--tax", "--csv"), columns+"2026-03,,0,,EUR,1,10.00,0.00,10.00,1,4.00,0.00,4.00\n2026-03,,,,EUR,1,,,10.00,0,,,0.00\n")
	if row := regexp.MustCompile(`(?m)^2026-03( +-){3} +EUR +1 +- +- +10\.00 +0 +- +- +0\.00$`); !row.MatchString(c.must("report", "--tax")) {
		t.Errorf("no row without a rate in the table:\n%s", c.must("report", "--tax"))
	}
	o := c.object(exitDone, "report", "--tax")
	equal(t, "JSON", o["taxes"].([]any)[1], map[string]any{"month": "2026-03", "currency": "EUR", "receipts": 1.0, "gross": 1000.0, "refunds": 0.0, "refunded": 0.0})
	equal(t, "journal", members(o["months"].([]any)[0].(map[string]any), "collected", "outside", "refunded"), []any{1000, 1000, 400})

	c.must("store", "create", "--store", "pebble:./other")
	c.must(append([]string{"subscription", "create", "1/1", "--store", "pebble:./other"}, terms...)...)
	c.must("receipt", "create", "1/1", "--note", "cash", "--store", "pebble:./other")
	equal(t, "without tax", c.must("report", "--tax", "--csv", "--store", "pebble:./other"), columns)
}
