package main

import (
	"strings"
	"testing"
)

// TestTerms: quantity and discount from the command line to the charge, the receipt, the export and an import.
func TestTerms(t *testing.T) {
	c := newCLI(t)
	out := c.must("subscription", "create", "1/seats", "--sku", "seat", "--amount", "12.00", "--currency", "EUR", "--payment-day", "15",
		"--email", "a@example.com", "--payment-method", "pm_card_visa", "--quantity", "5", "--discount", "10%", "--discount-periods", "1")
	contains(t, out, "next due on 2026-03-15: €54.00 for seat", "then on 2026-04-15: €60.00 for seat")
	contains(t, c.must("subscription", "show", "1/seats"), "€12.00", "quantity        5", "10%, up to period 0")
	contains(t, c.must("run", "payments", "--dry-run"), "54.00")
	contains(t, c.must("due", "payments", "--date", "2026-03-15"), "€54.00")
	c.must("run", "payments")
	receipt := c.list("receipt", "list", "1")[0].(map[string]any)
	equal(t, "price", members(receipt["price"].(map[string]any), "unit_amount", "quantity", "subtotal", "discount", "discount_terms"),
		[]any{1200, 5, 6000, 600, "10%"})
	contains(t, c.must("export", "receipts"), ",54.00,EUR,", ",12.00,5,6.00,,,,,,\n")
	contains(t, c.must("subscription", "update", "1/seats", "--quantity", "6", "--discount", "2.50"), "quantity", "€69.50 for seat")
	contains(t, c.must("history", "1/seats"), "quantity", "discount")
	c.must("export", "subscriptions", "--out", "book.csv")
	contains(t, c.read("book.csv"), ",6,2.50,,")
	contains(t, c.must("subscription", "update", "--where", "sku=seat", "--discount", "none", "--quantity", "7", "--from", "2026-05-01", "--yes"), "1 subscription changed")
	contains(t, c.must("subscription", "show", "1/seats"), "seat for €12.00 times 7 from 2026-05-01")
	contains(t, c.must("verify"), "The audit is clean")

	book := c.read("book.csv")
	t.Run("import", func(t *testing.T) {
		c := newCLI(t)
		c.must("import", c.file("book.csv", book))
		contains(t, c.must("subscription", "show", "1/seats"), "quantity        6", "2.50")
		changed := strings.Replace(book, ",6,2.50,,", `,8,"2,5%",3,`, 1)
		contains(t, c.must("import", c.file("book.csv", changed), "--update"), "quantity 6 -> 8", "discount 2.50 -> 2.5%")
		contains(t, c.must("subscription", "show", "1/seats"), "2.5%, up to period 2")
	})
}

// TestTerms_Refused: what leaves nothing to pay, or says nothing, is refused before anything is stored.
func TestTerms_Refused(t *testing.T) {
	c := newCLI(t)
	create := []string{"subscription", "create", "1/1", "--sku", "seat", "--amount", "12.00", "--currency", "EUR", "--payment-day", "15", "--email", "a@example.com", "--payment-method", "pm_card_visa"}
	for _, tt := range []struct{ flags, says string }{
		{"--quantity 0", "--quantity must be 1 or more"}, {"--quantity 2000000", "1000000"}, {"--discount 100%", "skip"},
		{"--discount 12", "less than 12.00 EUR"}, {"--discount 1.005", "discount"}, {"--discount-periods 3", "needs a --discount"},
		{"--discount 1 --discount-periods 0", "1 or more, or ever"}, {"--discount 1 --discount-periods soon", "1 or more, or ever"},
	} {
		r := c.run(append(create, strings.Fields(tt.flags)...)...)
		equal(t, tt.flags, r.code, exitUsage)
		contains(t, r.errors, tt.says)
	}
	c.must(create...)
	for _, tt := range []struct{ flags, says string }{
		{"--discount 12.00", "less than 12.00 EUR"}, {"--from 2027-01-01 --address Road", "--sku, --amount or --quantity"}, {"--discount-periods 2", "needs a --discount"},
	} {
		r := c.run(append([]string{"subscription", "update", "1/1"}, strings.Fields(tt.flags)...)...)
		equal(t, tt.flags, r.code, exitUsage)
		contains(t, r.errors, tt.says)
	}
}

// TestTerms_Step: no command accepts an amount that no card can pay, and a tax on top is charged in such amounts.
func TestTerms_Step(t *testing.T) {
	c := newCLI(t)
	create := []string{"subscription", "create", "1/1", "--sku", "seat", "--currency", "KWD", "--payment-day", "15", "--email", "a@example.com", "--payment-method", "pm_card_visa",
		"--tax", "exclusive", "--tax-rate", "5.5"}
	refused := func(args []string, more string) {
		t.Helper()
		r := c.run(append(args, strings.Fields(more)...)...)
		equal(t, more, r.code, exitUsage)
		contains(t, r.errors, "must be a multiple of 0.010 KWD, the smallest step of a card payment (got 1.234)")
	}
	refused(create, "--amount 1.234")
	refused(create, "--amount 12.350 --discount 1.234")
	c.must(append(create, "--amount", "12.350")...)
	contains(t, c.must("run", "payments"), "KWD 13.030") // 0.67925 of tax
	for _, flags := range []string{"--amount 1.234", "--amount 1.234 --from 2027-01-01", "--amount 1.234 --now", "--discount 1.234"} {
		refused([]string{"subscription", "update", "1/1"}, flags)
	}
	refused([]string{"receipt", "refund", "1/1", "--period", "0"}, "--amount 1.234")
	c.file("prices.csv", "sku,amount,currency\nseat,1.234,KWD\n")
	r := c.run("subscription", "update", "--prices", "prices.csv")
	contains(t, r.out, "must be a multiple of 0.010 KWD")
	contains(t, c.must("verify"), "The audit is clean")
}
