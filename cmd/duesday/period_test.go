package main

import (
	"fmt"
	"strings"
	"testing"
)

// names returns ACCOUNT/SUBSCRIPTION, and with more its members, of each object of a list.
func names(list []any, more ...string) string {
	var all []string
	for _, v := range list {
		o := v.(map[string]any)
		var text strings.Builder
		id := o["subscription"]
		if id == nil { // the object is the subscription itself
			id = o["id"]
		}
		fmt.Fprintf(&text, "%s/%s", o["account"], id)
		for _, name := range more {
			fmt.Fprintf(&text, " %v", o[name])
		}
		all = append(all, text.String())
	}
	return strings.Join(all, ", ")
}

func TestPeriodList(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa", "--next-payment-date", "2025-09-15") // parked after three
	c.create("1/2", "pm_card_visa_chargeDeclinedLostCard")
	c.create("2/1", "pm_card_visa_chargeDeclinedLostCard", "--next-payment-date", "2026-03-20", "--payment-day", "20",
		"--email", "b@example.com")
	c.run("run", "payments")
	c.clock.Set(c.clock.Now().AddDate(0, 0, 5))
	c.run("run", "payments")
	c.must("subscription", "skip", "1/1")
	for line, want := range map[string]string{
		"":                                  "1/1 3 skipped, 1/1 4 parked, 1/2 0 failed, 2/1 0 failed",
		"--ending failed":                   "1/2 0 failed, 2/1 0 failed",
		"--ending parked":                   "1/1 4 parked",
		"--ending skipped":                  "1/1 3 skipped",
		"--ending void":                     "",
		"--ending failed --from 2026-03-16": "2/1 0 failed",
		"--ending failed --from 2026-03-20 --to 2026-03-20": "2/1 0 failed",
		"--ending failed --to 2026-03-19":                   "1/2 0 failed",
		"1":                                                 "1/1 3 skipped, 1/1 4 parked, 1/2 0 failed",
		"1/2":                                               "1/2 0 failed",
		"2 --ending parked":                                 "",
		"--account 1 --ending failed":                       "1/2 0 failed",
	} {
		equal(t, line, names(c.list(append([]string{"period", "list"}, strings.Fields(line)...)...), "period", "ending"), want)
	}
	contains(t, c.must("period", "list", "--ending", "failed"), "1/2", "2026-03-15", "$12.99",
		"declined: lost_card", "2 periods\n")
	first := c.list("period", "list", "1/2")[0].(map[string]any)
	equal(t, "one", members(first, "sku", "due_date", "amount", "currency", "detail"),
		[]any{"news", today, 1299, "USD", "declined: lost_card"})
	equal(t, "attempts", len(first["declined"].([]any)), 1)

	rows := strings.Split(c.must("export", "periods"), "\n")
	equal(t, "header", rows[0],
		"account,subscription,sku,period,ending,due_date,ended_at,reason,amount,currency,intent")
	contains(t, rows[3], "1,2,news,0,failed,2026-03-15,2026-03-15T10:30:00.000Z,declined: lost_card,12.99,USD,pi_sandbox_")
	equal(t, "rows", len(rows), 6)
	equal(t, "lines", strings.Count(c.must("export", "periods", "--json"), `{"account":"`), 4)

	equal(t, "of a day", strings.Count(c.must("export", "periods", "--from", "2026-03-20", "--to", "2026-03-20"), "\n2,1,news,"), 1)
	for line, rows := range map[string]int{"--from 2026-03-15 --to 2026-03-15": 4, "--from 2026-03-16": 1, "--to 2026-03-14": 1} {
		equal(t, "receipts "+line, strings.Count(c.must(append([]string{"export", "receipts"}, strings.Fields(line)...)...), "\n"), rows)
	}
	contains(t, c.refused("export", "refunds", "--from", "2026-03-02", "--to", "2026-03-01"), "--to 2026-03-01 must not be before")
	for line, want := range map[string]string{
		"--from 2026-03-02 --to 2026-03-01": "--to 2026-03-01 must not be before --from 2026-03-02",
		"--ending paid":                     "must be one of failed, void, skipped, parked",
		"1/":                                `subscription must be ACCOUNT/SUBSCRIPTION`,
		"1#":                                "account: must not contain # or /",
	} {
		contains(t, c.refused(append([]string{"period", "list"}, strings.Fields(line)...)...), want)
	}
	r := c.run("period", "list", "1/9")
	equal(t, "nobody", []any{r.code, r.errors}, []any{exitFailed, "duesday: there is no subscription 1/9\n"})
}

// TestList_Filters narrows the lists of subscriptions and accounts.
func TestList_Filters(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa")
	c.create("1/2", "pm_card_visa", "--sku", "gym", "--email", "")
	c.create("2/1", "pm_card_visa", "--sku", "gym", "--email", "b@example.com")
	c.must("account", "create", "3", "--email", "b@example.com")
	c.must("subscription", "pause", "1/1")
	for line, want := range map[string]string{
		"--email A@Example.com":             "1/1, 1/2",
		"--sku gym":                         "1/2, 2/1",
		"--sku gym --email b@example.com":   "2/1",
		"--status paused":                   "1/1",
		"--status paused --sku gym":         "",
		"--account 1 --sku gym":             "1/2",
		"--email c@example.com --sku gym":   "",
		"--account 2 --email b@example.com": "2/1",
		"2":                                 "2/1",
	} {
		equal(t, line, names(c.list(append([]string{"subscription", "list"}, strings.Fields(line)...)...)), want)
	}
	for line, want := range map[string][]any{
		"--email B@example.com":           {"2", "3"},
		"--sku gym":                       {"1", "2"},
		"--sku gym --email b@example.com": {"2"},
		"--status paused":                 {"1"},
		"--status paused --sku gym":       {},
		"--status canceled":               {},
	} {
		got := []any{}
		for _, a := range c.list(append([]string{"account", "list"}, strings.Fields(line)...)...) {
			got = append(got, a.(map[string]any)["id"])
		}
		equal(t, "accounts "+line, got, want)
	}
}
