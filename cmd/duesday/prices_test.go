package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestPrices: a price list is shown, applied once, and again from where it was interrupted; one wrong row
// changes nothing. Mail has the product's name.
func TestPrices(t *testing.T) {
	c := newCLI(t)
	var b strings.Builder
	b.WriteString(header)
	for i := range 20 {
		plan := []string{"news,12.99,USD", "gym,500,JPY", "gold,30.00,EUR", "other,1.00,USD"}[i%4]
		fmt.Fprintf(&b, "%d,u%d@example.com,1,%s,20,pm_card_visa\n", i, i, plan)
	}
	c.must("import", c.file("book.csv", b.String()))
	c.file("bad.csv", "sku;amount;currency;name;payment_day\nnews;13,99;USD;;\nnews;14,99;USD;;\ngym;5,00;JPY;;\ngold;1,234;;;\na b;;;;3\n;1;EUR;"+
		"4242424242424242;\nfree;0;EUR;;\n")
	r := c.run("subscription", "update", "--prices", "bad.csv", "--yes")
	equal(t, "exit", r.code, exitFailed)
	contains(t, r.out, "3     sku          already has a price on line 2", "4     amount       amount must be digits without decimals", "5     amount       must be 1234.00 or 1.23",
		"6     sku          must not contain spaces", "6     amount       is missing", "6     payment_day  is not a column of a price list",
		"7     sku          is missing", "7     name         looks like a card number", "8     amount       must be more than zero")
	contains(t, r.errors, "bad.csv has 9 problems, so no price was changed")

	c.file("prices.csv", "sep=;\r\nSKU;Amount;Currency;Name\r\nnews;13,99;USD;Daily news\r\ngym;600;;Fitness\r\ngold;33,00;EUR;\r\nsilver;1,00;EUR;\r\n")
	args := []string{"subscription", "update", "--prices", "prices.csv", "--notify"}
	r = c.run(args...)
	contains(t, r.out, "$12.99", "$13.99", "15 subscriptions to change; nothing is changed yet")
	contains(t, r.errors, "no subscription has SKU silver")
	equal(t, "nothing yet", c.object(exitDone, "settings", "show")["products"], nil)
	c.must("subscription", "update", "4/1", "--amount", "13.99", "--notify") // as an interrupted run has left it
	args = append(args, "--yes")
	equal(t, "applied", members(c.object(exitDone, args...), "to_change", "changed", "unused"), []any{14, 14, []any{"silver"}})
	equal(t, "again", members(c.object(exitDone, args...), "to_change", "changed"), []any{0, 0})
	equal(t, "names", c.object(exitDone, "settings", "show")["products"], map[string]any{"news": "Daily news", "gym": "Fitness"})
	contains(t, c.must("settings", "show"), "product.news", "Daily news")
	contains(t, c.must("settings", "set", "product.news=Weekly news"), "Daily news -> Weekly news")
	contains(t, c.must("settings", "set", "product.news=Daily news"), "Weekly news -> Daily news")
	c.must("settings", "set", "product.gym=")
	equal(t, "names", c.object(exitDone, "settings", "show")["products"], map[string]any{"news": "Daily news"})
	equal(t, "amount", c.object(exitDone, "subscription", "show", "3/1")["amount"], 100)
	c.clock.Set(c.clock.Now().AddDate(0, 0, 6))
	o := c.object(exitDone, "run", "payments")
	equal(t, "charged", members(o, "paid", "amounts"), []any{20, map[string]any{"EUR": 16500, "JPY": 3000, "USD": 7495}})

	c.file("several.csv", "sku,amount\nnews,10\n")
	c.create("99/1", "pm_card_visa")
	for _, args := range []string{"--prices several.csv --sku x", "1/1 --prices several.csv", "--prices several.csv --amount 3"} {
		if r := c.run(append([]string{"subscription", "update"}, strings.Fields(args)...)...); r.code != exitUsage {
			t.Errorf("%s: exit %d: %s", args, r.code, r.errors)
		}
	}
	c.must("verify")
}
