package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestHistory: each command that changes a subscription or an account leaves one row with the user of the
// operating system, and reading leaves none.
func TestHistory(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", smallBook))
	if rows := c.list("history", "1"); len(rows) != 0 {
		t.Error("imported:", rows)
	}
	for i, command := range []string{"subscription pause 1/1", "subscription resume 1/1", "subscription update 1/1 --amount 19.99",
		"account update 1 --name Ann", "account attach 1 --payment-method pm_card_visa", "subscription cancel 1/1 --at-period-end",
		"account create 9 --email new@example.com", "subscription create 9/1 --sku gold --amount 5 --currency USD --payment-day 1 --payment-method pm_card_visa"} {
		account := "1"
		if strings.Contains(command, " 9") {
			account, i = "9", i-6
		}
		c.must(strings.Fields(command)...)
		c.must("subscription", "list")
		rows := c.list("history", account)
		if len(rows) != i+1 {
			t.Fatalf("%s: %d rows, want %d: %v", command, len(rows), i+1, rows)
		}
		if actor, _ := rows[0].(map[string]any)["actor"].(string); !strings.HasPrefix(actor, "user ") {
			t.Errorf("%s: %v", command, rows[0])
		}
	}
	c.run("run", "payments")
	rows := c.list("history", "1/1", "--limit", "2")
	last, _ := rows[1].(map[string]any)
	if len(rows) != 2 || last["what"] != "subscription.updated" || !strings.Contains(fmt.Sprint(last["changed"]), "after:1999") {
		t.Error(rows)
	}
	contains(t, c.must("history", "1"), "amount 12.99 -> 19.99", "name", "user ")
	contains(t, c.run("history", "7").errors, "account 7")
	contains(t, c.run("history", "1/7").errors, "1/7")
	c.must("settings", "set", "retry-days=2")
	contains(t, c.must("settings", "show", "--history"), "user ")
}
