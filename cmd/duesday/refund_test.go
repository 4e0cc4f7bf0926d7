package main

import (
	"strings"
	"testing"
	"time"
)

func TestReceiptRefund(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n"))
	c.must("run", "payments")
	charge := c.list("receipt", "list", "1")[0].(map[string]any)["charge"].(string)

	first := c.object(exitDone, "receipt", "refund", "1/1", "--period", "0", "--amount", "5", "--reason", "duplicate")
	equal(t, "refund", members(first, "account", "subscription", "sku", "period", "kind", "amount", "currency", "state",
		"reason", "charge"),
		[]any{"1", "1", "news", 0, "refund", 500, "USD", "succeeded", "duplicate", charge})
	if ref, _ := first["refund"].(string); !strings.HasPrefix(ref, "re_sandbox_") {
		t.Errorf("refund: %v", first)
	}
	c.clock.Set(c.clock.Now().Add(time.Minute))
	again := c.object(exitDone, "receipt", "refund", "1/1", "--period", "0", "--amount", "5.00")
	equal(t, "again", members(again, "id", "refund", "repeated"), []any{first["id"], first["refund"], true})
	contains(t, c.must("receipt", "refund", "1/1", "--period", "0", "--amount", "5"), "nothing was done now",
		"another --key")
	contains(t, c.must("receipt", "refund", "1/1", "--period", "0", "--amount", "1", "--key", "b"),
		"period 0 of 1/1: refund of $1.00 succeeded (re_sandbox_")
	contains(t, c.must("receipt", "list", "1"), "REFUNDED", "$6.00")
	rest := c.object(exitDone, "receipt", "refund", "1/1", "--period", "0")
	equal(t, "rest", rest["amount"], 699)

	r := c.list("receipt", "list", "1")[0].(map[string]any)
	equal(t, "receipt", members(r, "amount", "refunded", "kind"), []any{1299, 1299, "charge"})
	equal(t, "its refunds", len(r["returns"].([]any)), 3)
	lines := strings.Split(strings.TrimSpace(c.must("export", "refunds")), "\n")
	equal(t, "header", lines[0], "account,subscription,sku,period,kind,id,created_at,amount,currency,state,reason,"+
		"charge,refund,processed_at,number")
	if len(lines) != 4 || !strings.Contains(lines[1], ",5.00,USD,succeeded,duplicate,"+charge+",re_sandbox_") {
		t.Errorf("export: %q", lines)
	}
	equal(t, "lines", strings.Count(c.must("export", "refunds", "--format", "jsonl"), "\n"), 3)
	equal(t, "audit", c.object(exitDone, "verify")["ok"], true)
	equal(t, "run", c.object(exitDone, "run", "payments")["due"], 0)
}

func TestReceiptRefund_WhatIsWrong(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n"))
	c.must("run", "payments")
	for _, x := range []struct {
		line string
		code int
		says string
	}{
		{"receipt refund 1/1", exitUsage, `"period"`},
		{"receipt refund 1/1 --period 0 --amount 5.001", exitUsage, "--amount"},
		{"receipt refund 1/1 --period 0 --amount 0", exitUsage, "must be more than zero"},
		{"receipt refund 1/1 --period 0 --amount 13", exitUsage, "must be at most 12.99 USD, which is left of 12.99 USD"},
		{"receipt refund 1/1 --period 0 --reason whim", exitUsage, "duplicate, fraudulent, requested_by_customer"},
		{"receipt refund 1/1 --period 0 --key 4242424242424242", exitUsage, "card number"},
		{"receipt refund 1/1 --period 7", exitFailed, "period 7 is not paid"},
		{"receipt refund 1/2 --period 0", exitFailed, "there is no subscription 1/2"},
		{"receipt refund 1/1 --period 0 --charge pi_x", exitFailed, "pi_x"},
		{"receipt refund 1/1 --period 0 --processor sandbox:ledger.jsonl?lost=1", exitFailed, "lost"},
	} {
		r := c.run(strings.Fields(x.line)...)
		if r.code != x.code || !strings.Contains(r.errors, x.says) || strings.Contains(r.errors, "4242424242424242") {
			t.Errorf("%s: exit %d, want %d with %q\n%s", x.line, r.code, x.code, x.says, r.errors)
		}
	}
	equal(t, "refunds", c.must("export", "refunds", "--format", "jsonl"), "")
}
