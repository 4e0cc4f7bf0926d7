package main

import (
	"strings"
	"testing"
	"time"
)

// TestCollection: a customer who pays by wire, from the flag to the audit, and through an export.
func TestCollection(t *testing.T) {
	c := newCLI(t)
	c.clock.Set(time.Date(2026, 1, 10, 9, 0, 0, 0, time.UTC))
	create := []string{"subscription", "create", "1/1", "--sku", "gold", "--amount", "12.99", "--currency", "USD", "--payment-day", "10",
		"--email", "a@example.com", "--collection"}
	r := c.run(append(create, "wire")...)
	equal(t, "exit", r.code, exitUsage)
	contains(t, r.errors, "collection", "automatic or manual", `"wire"`)
	r = c.run(append(create, "manual")...)
	if strings.Contains(r.errors, "no payment method") || r.code != exitDone {
		t.Errorf("exit %d, %s", r.code, r.errors)
	}
	c.must("settings", "set", "pay-to=Ada Ltd, IBAN DE89 3704 0044 0532 0130 00", "pay-days=10")
	contains(t, c.must("run", "payments"), "asked    1  the customer")
	contains(t, c.must("subscription", "show", "1/1"), "the customer was asked to pay", "by wire; it fails on 2026-01-20")
	contains(t, c.must("due", "payments", "--until", "2026-01-30"), "2026-01-20  $12.99  manual")
	contains(t, c.must("status"), "All is well")
	contains(t, c.must("prove", "1/1", "--period", "0"), "pays the period by wire, before 2026-01-20")
	for _, more := range [][]string{nil, {"--period", "0"}} {
		r := c.run(append([]string{"subscription", "charge", "1/1"}, more...)...)
		equal(t, "exit", r.code, exitFailed)
		contains(t, r.errors, "by wire", "duesday receipt create 1/1 --period 0")
	}
	contains(t, c.must("verify"), "The audit is clean")
	c.must("receipt", "create", "1/1", "--note", "transfer")

	c.must("export", "subscriptions", "--out", "book.csv")
	contains(t, c.read("book.csv"), ",manual,")
	c.must("import", "book.csv", "--store", "pebble:other", "--processor", "sandbox:other.jsonl")
	equal(t, "imported", c.object(exitDone, "subscription", "show", "1/1", "--store", "pebble:other")["collection"], "manual")
	c.file("book.csv", strings.Replace(c.read("book.csv"), ",manual,", ",automatic,", 1))
	contains(t, c.run("import", "book.csv").out, "collection manual -> automatic")
	c.must("import", "book.csv", "--update")
	equal(t, "updated", c.object(exitDone, "subscription", "show", "1/1")["collection"], nil)
	contains(t, c.must("subscription", "update", "1/1", "--collection", "manual"), "  collection  automatic -> manual")

	c.clock.Set(time.Date(2026, 2, 10, 9, 0, 0, 0, time.UTC))
	equal(t, "February", c.run("run", "payments").code, exitDone)
	c.clock.Set(time.Date(2026, 2, 20, 9, 0, 0, 0, time.UTC))
	contains(t, c.run("run", "payments").out, "not paid before 2026-02-20")
	c.must("receipt", "create", "1/1", "--period", "1", "--note", "late")
	contains(t, c.must("verify"), "The audit is clean", "charges          0")
}

// TestCollection_DryRun: a request by wire is no charge, and no money of a dry run.
func TestCollection_DryRun(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "", "--collection", "manual")
	c.create("2/1", "pm_card_visa")
	contains(t, c.must("run", "payments", "--dry-run"), "the customer would be asked to pay",
		"1 would be charged on "+today+": $12.99; asked to pay by wire: 1; nothing was done")
	o := c.object(exitDone, "run", "payments", "--dry-run")
	equal(t, "dry run", members(o, "asked", "amounts"), []any{1, map[string]any{"USD": 1299}})
	equal(t, "charges", len(o["would_charge"].([]any)), 1)
}
