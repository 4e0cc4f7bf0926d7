package main

import (
	"strings"
	"testing"
)

// TestUpgrade: the command shows what an upgrade charges and gives away, and charges only with --yes.
func TestUpgrade(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa") // period 0 is due on 15 March
	c.create("2/1", "pm_card_visa")
	c.must("run", "payments")
	c.at("2026-03-25")
	upgrade := []string{"subscription", "update", "1/1", "--now", "--sku", "gold", "--amount", "39.99"}
	contains(t, c.must(upgrade...), "period 1, due 2026-04-15: $39.99 today for gold",
		"given away: 21 days of the paid period; period 2 is due on 2026-04-25", "nothing is charged yet")
	equal(t, "nothing is charged", len(c.list("receipt", "list", "1")), 1)
	offer := c.object(exitDone, upgrade...)["offer"]
	equal(t, "offer", offer, map[string]any{"period": 1, "sku": "gold", "amount": 3999, "currency": "USD", "due_date": "2026-03-25",
		"due_before": "2026-04-15", "days_given_away": 21, "next_due_date": "2026-04-25"})
	upgrade = append(upgrade, "--key", "K1")
	o := c.object(exitDone, append(upgrade, "--yes")...)
	equal(t, "charged", members(o, "sku", "amount", "payment_day", "due_date", "paid_periods", "upgrade", "offer", "repeated"), []any{"gold", 3999,
		25, "2026-04-25", 2, map[string]any{"state": "charged", "period": 1, "sku": "gold", "amount": 3999, "currency": "USD",
			"date": "2026-03-25"}, offer, nil})
	o = c.object(exitDone, append(upgrade, "--yes")...)
	equal(t, "again", members(o, "paid_periods", "results", "offer", "repeated"), []any{2, []any{}, nil, true})
	contains(t, c.must("subscription", "show", "1/1"), "upgrade         gold for $39.99 on 2026-03-25, charged")
	contains(t, c.must("history", "1/1"), "upgrade.amount - -> 39.99, upgrade.date - -> 2026-03-25, upgrade.period - -> 1, upgrade.sku - -> gold")
	contains(t, c.must("prove", "1/1", "--period", "1"), "39.99")
	c.refusedWith(exitFailed, "needs a new key", "subscription", "update", "1/1", "--now", "--sku", "platinum", "--yes")
	c.refusedWith(exitFailed, "already has this plan", "subscription", "update", "1/1", "--now", "--sku", "gold")
	contains(t, c.must("verify"), "The audit is clean")

	c.must("subscription", "update", "2/1", "--payment-method", "pm_card_visa_chargeDeclinedLostCard")
	r := c.run("subscription", "update", "2/1", "--now", "--amount", "20", "--yes")
	equal(t, "declined", r.code, exitPerson)
	contains(t, r.out, "news for $20.00 on 2026-03-25, not upgraded: declined: lost_card", "next due on 2026-04-15: $12.99 for news")
	for _, line := range []string{"1/1 --now", "1/1 --now --address x", "1/1 --now --sku gold --notify", "1/1 --key K --sku gold",
		"1/1 --now --sku gold --from 2027-01-01", "1/1 --now --amount 1 --quantity 2", "--now --where sku=news --amount 2",
		"1/1 --now --amount 1 --discount 10%", "1/1 --now --amount 0", "1/1 --now --sku a/b"} {
		if r := c.run(append([]string{"subscription", "update"}, strings.Fields(line)...)...); r.code != exitUsage {
			t.Errorf("%s: exit %d, %s", line, r.code, r.errors)
		}
	}
}

// TestUpgrade_Restored: reconcile lists what an upgrade changed as the plan and the payment day, and no line says once more
// that the mark of the upgrade, which the restored store has lost, was changed. An upgrade that still waited for the customer is listed as
// one, with the command that makes it again.
func TestUpgrade_Restored(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa")
	c.create("2/1", "pm_card_visa")
	c.must("run", "payments")
	c.must("store", "backup", "--to", "backup")
	c.at("2026-03-25")
	c.must("subscription", "update", "1/1", "--now", "--sku", "gold", "--amount", "39.99", "--yes")
	c.must("subscription", "update", "2/1", "--payment-method", "pm_card_authenticationRequired")
	equal(t, "waits", c.run("subscription", "update", "2/1", "--now", "--amount", "20", "--yes").code, exitPerson)
	c.must("store", "restore", "--from", "backup", "--replace")
	r := c.run("reconcile")
	contains(t, r.out, "gold", "an upgrade for period 1 was requested", "subscription update 2/1 --now --sku news --amount 20.00")
	if strings.Contains(r.out, "attribute Upgrade") || strings.Count(r.out, "an upgrade for period") != 1 {
		t.Error(r.out)
	}
}
