package main

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/session"
)

func (c *cli) create(name, method string, more ...string) {
	c.t.Helper()
	r := c.run(append([]string{"subscription", "create", name, "--sku", "news", "--amount", "12.99", "--currency", "USD",
		"--payment-day", "15",
		"--payment-method", method, "--email", "a@example.com"}, more...)...)
	if r.code != exitDone || r.errors != "" && !strings.Contains(r.errors, "periods are due from") {
		c.t.Fatalf("create %s: exit %d, %s", name, r.code, r.errors)
	}
}

func TestAccount(t *testing.T) {
	c := newCLI(t)
	o := c.object(exitDone, "account", "create", "1", "--email", "a@example.com", "--time-zone", "Asia/Tokyo")
	equal(t, "created", o, map[string]any{"id": "1", "version": 1, "email": "a@example.com", "time_zone": "Asia/Tokyo",
		"created_at": "2026-03-15T10:30:00.000Z"})
	r := c.run("account", "create", "1", "--email", "a@example.com")
	if r.code != exitFailed || r.errors != "duesday: account 1 already exists\n" {
		t.Errorf("exit %d, %s", r.code, r.errors)
	}
	c.create("1/7", "pm_card_visa")
	c.must("receipt", "create", "1/7")
	c.must("account", "update", "1", "--email", "b@example.com")
	o = c.object(exitDone, "account", "show", "1")
	equal(t, "show", members(o, "email", "time_zone"), []any{"b@example.com", "Asia/Tokyo"})
	equal(t, "copies", o["subscriptions"].([]any)[0].(map[string]any)["email"], "b@example.com")
	equal(t, "receipts", c.list("receipt", "list", "1")[0].(map[string]any)["email"], "b@example.com")
	contains(t, c.must("account", "show", "1"), "Asia/Tokyo", "1/7")
	o = c.object(exitDone, "account", "update", "1", "--time-zone", "America/Lima")
	equal(t, "time zone", members(o, "email", "time_zone", "unfinished"), []any{"b@example.com", "America/Lima", nil})
	equal(t, "its copy", members(c.object(exitDone, "subscription", "show", "1/7"), "email", "time_zone"),
		[]any{"b@example.com", "America/Lima"})
	contains(t, c.must("account", "list"), "ACCOUNT  EMAIL", "1 account\n")
	for _, line := range []string{"account show 2", "account update 2 --email a@example.com"} {
		if r := c.run(strings.Fields(line)...); r.code != exitFailed || r.errors != "duesday: there is no account 2\n" {
			t.Errorf("%s: exit %d, %s", line, r.code, r.errors)
		}
	}
}

func TestSubscription_CreateShowList(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa", "--next-payment-date", "2026-03-31", "--payment-day", "31", "--installments", "3",
		"--address", "12 Bridge Street", "--reminder-days", "3")
	o := c.object(exitDone, "subscription", "show", "1/1")
	equal(t, "show", members(o, "account", "id", "sku", "status", "amount", "currency", "payment_day",
		"interval", "period",
		"due_date", "next_payment_date", "next_reminder_date", "installments", "address", "periods", "receipts"),
		[]any{"1", "1", "news", "active", 1299, "USD", 31, "month", 0, "2026-03-31", "2026-03-31", "2026-03-28", 3,
			"12 Bridge Street", []any{}, []any{}})
	contains(t, c.must("subscription", "show", "1/1"), "$12.99", "0 of 3 paid", "2026-03-28 (3 days before)")
	c.create("1/2", "pm_card_visa", "--interval", "weekly", "--payment-day", "1", "--email", "")
	equal(t, "all", len(c.list("subscription", "list")), 2)
	equal(t, "of the account", len(c.list("subscription", "list", "--account", "1")), 2)
	equal(t, "of another", c.list("subscription", "list", "--account", "2"), []any{})
	equal(t, "paused", c.list("subscription", "list", "--status", "paused"), []any{})
	contains(t, c.must("subscription", "list", "--status", "active"), "SUBSCRIPTION", "1/2", "week", "2 subscriptions")
	r := c.run("subscription", "show", "1/9")
	if r.code != exitFailed || r.errors != "duesday: there is no subscription 1/9\n" {
		t.Errorf("exit %d, %s", r.code, r.errors)
	}
}

func TestSubscription_Changes(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa")
	o := c.object(exitDone, "subscription", "update", "1/1", "--amount", "15", "--payment-day", "20", "--reminder-days",
		"2", "--address", "x")
	equal(t, "update", members(o, "amount", "payment_day", "next_payment_date", "reminder_days", "address"),
		[]any{1500, 20, "2026-03-20", 2, "x"})
	for _, x := range []struct{ line, status string }{
		{"pause 1/1", "paused"}, {"resume 1/1", "active"}, {"cancel 1/1 --at-period-end", "active"}, {"resume 1/1", "active"},
		{"cancel 1/1 --at-period-end", "active"}, {"cancel 1/1", "canceled"},
	} {
		o := c.object(exitDone, append([]string{"subscription"}, strings.Fields(x.line)...)...)
		equal(t, x.line, o["status"], x.status)
	}
	for _, line := range []string{"resume 1/1", "pause 1/1", "cancel 1/1", "charge 1/1", "skip 1/1",
		"update 1/1 --amount 1", "pause 1/9"} {
		if r := c.run(append([]string{"subscription"}, strings.Fields(line)...)...); r.code != exitFailed {
			t.Errorf("%s: exit %d", line, r.code)
		}
	}
}

// TestSubscription_NewDay: the command tells the due date before and after, and of several
// corrections the last one counts.
func TestSubscription_NewDay(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa", "--next-payment-date", "2026-03-31", "--payment-day", "31")
	contains(t, c.must("subscription", "update", "1/1", "--payment-day", "10"),
		"period 0: due date changed from 2026-03-31 to 2026-04-10, 10 days later")
	contains(t, c.must("subscription", "update", "1/1", "--payment-day", "5"),
		"period 0: due date changed from 2026-04-10 to 2026-04-05, 5 days earlier")
	o := c.object(exitDone, "subscription", "update", "1/1", "--payment-day", "20", "--early")
	equal(t, "early", members(o, "due_before", "due_after", "days_later", "next_payment_date"),
		[]any{"2026-04-05", "2026-03-20", -16, "2026-03-20"})
	if r := c.run("subscription", "update", "1/1", "--amount", "15", "--early"); r.code != exitUsage {
		t.Errorf("exit %d, %s", r.code, r.errors)
	}
}

// TestSubscription_NewPlan: the answer tells what changes and when, the open period keeps its plan, and
// every list has the new one from then on.
func TestSubscription_NewPlan(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa")
	equal(t, "update", c.must("subscription", "update", "1/1", "--reminder-days", "3", "--address", "1 Road"), "subscription 1/1 updated\n"+
		"  address             - -> 1 Road\n  reminder days       7 -> 3\n  next reminder date  2026-03-08 -> -\n"+
		"  next due on 2026-03-15: $12.99 for news\n  then on 2026-04-15: $12.99 for news\n  then on 2026-05-15: $12.99 for news\n")
	equal(t, "again", strings.Split(c.must("account", "update", "1", "--locale", "pt-BR"), "\n")[1], "  locale  - -> pt-BR")
	contains(t, c.must("account", "update", "1", "--locale", "pt-BR"), "account 1 updated\n  nothing changed\n")
	text := c.must("subscription", "update", "1/1", "--sku", "gold", "--amount", "20")
	contains(t, text, "  pending  - -> gold for $20.00 from 2026-03-16", "next due on 2026-03-15: $12.99 for news",
		"then on 2026-04-15: $20.00 for gold", "then on 2026-05-15")
	o := c.object(exitDone, "subscription", "show", "1/1")
	equal(t, "pending", o["pending"], map[string]any{"sku": "gold", "amount": 2000, "currency": "USD", "from": "2026-03-16"})
	c.must("run", "payments")
	o = c.object(exitDone, "subscription", "update", "1/1", "--sku", "silver", "--from", "2026-05-01")
	equal(t, "after the period", members(o, "sku", "amount", "changed"), []any{"gold", 2000, map[string]any{
		"pending": map[string]any{
			"after": map[string]any{"sku": "silver", "amount": 2000, "currency": "USD", "from": "2026-05-01"}}}})
	equal(t, "the next three", o["next_due"], []any{
		map[string]any{"period": 1, "due_date": "2026-04-15", "sku": "gold", "amount": 2000, "currency": "USD"},
		map[string]any{"period": 2, "due_date": "2026-05-15", "sku": "silver", "amount": 2000, "currency": "USD"},
		map[string]any{"period": 3, "due_date": "2026-06-15", "sku": "silver", "amount": 2000, "currency": "USD"}})
	c.must("run", "payments", "--date", "2026-04-15", "--ahead")
	c.must("run", "payments", "--date", "2026-05-15", "--ahead")
	var skus []any
	for _, r := range c.list("receipt", "list", "1") {
		skus = append(skus, r.(map[string]any)["sku"])
	}
	equal(t, "receipts", skus, []any{"news", "gold", "silver"})
	equal(t, "list", c.list("subscription", "list")[0].(map[string]any)["sku"], "silver")
	equal(t, "due", c.list("due", "payments", "--date", "2026-06-15")[0].(map[string]any)["sku"], "silver")
	contains(t, c.must("export", "subscriptions"), ",silver,20.00,")
	c.must("verify")
	for _, line := range []string{"1/1 --from 2026-09-01", "1/1 --sku a#b", "1/1 --sku gold --from soon",
		"1/1 --amount 3 --date 2099-01-01"} {
		if r := c.run(append([]string{"subscription", "update"}, strings.Fields(line)...)...); r.code != exitUsage {
			t.Errorf("%s: exit %d, %s", line, r.code, r.errors)
		}
	}
	o = c.object(exitDone, "subscription", "pause", "1/1", "--date", "2026-06-20", "--ahead")
	equal(t, "paused", members(o, "paused_on", "next_due"), []any{"2026-06-20", []any{}})
	o = c.object(exitDone, "subscription", "resume", "1/1", "--date", "2026-07-01", "--ahead")
	equal(t, "resumed", members(o, "period", "next_payment_date"), []any{4, "2026-07-15"})
}

// TestSubscription_NewPrice: a change of every subscription of an SKU is shown first, done once, and told
// once to each customer.
func TestSubscription_NewPrice(t *testing.T) {
	c := newCLI(t)
	for _, name := range []string{"1/1", "2/1", "3/1"} {
		c.create(name, "pm_card_visa", "--email", "ada"+name[:1]+"@example.com")
	}
	c.create("4/1", "pm_card_visa", "--currency", "EUR", "--interval", "yearly")
	c.must("subscription", "update", "3/1", "--sku", "silver", "--from", "2026-06-01")
	change := []string{"subscription", "update", "--where", "sku=news", "--amount", "15", "--from", "2026-05-01", "--notify"}
	usd := map[string]any{"currency": "USD", "amount_before": 1299, "amount": 1500, "subscriptions": 2,
		"month_before": 2598, "month": 3000, "mail": 2}
	eur := map[string]any{"currency": "EUR", "amount_before": 1299, "amount": 1500, "subscriptions": 1,
		"month_before": 108, "month": 125, "mail": 1}
	contains(t, c.refused(change...), "--where sku=news: the subscriptions have different currencies, so one amount cannot fit all of them: "+
		"1/1 is in USD, but 4/1 is in EUR; add --where currency=CODE")
	euros := append(slices.Clone(change), "--where", "currency=eur")
	change = append(change, "--where", "currency=usd")
	left := []any{"subscription 3/1 already changes to silver on 2026-06-01: not possible now"}
	equal(t, "preview", c.object(exitPerson, change...), map[string]any{"to_change": 2, "changed": 0, "left": left,
		"plans": []any{usd}, "replaces": []any{}})
	contains(t, c.run(change...).out, "$12.99  $15.00  2 ", "2 subscriptions to change; nothing is changed yet, so add --yes to change them")
	equal(t, "in euros", c.object(exitDone, append(euros, "--yes")...)["plans"], []any{eur})
	equal(t, "done", members(c.object(exitPerson, append(change, "--yes")...), "to_change", "changed"), []any{2, 2})
	equal(t, "again", members(c.object(exitPerson, append(change, "--yes")...), "to_change", "changed"), []any{0, 0})
	mails, err := filepath.Glob(c.path("duesday-mail/*/price-change-*.eml"))
	if err != nil || len(mails) != 3 {
		t.Errorf("mails: %v, %v", mails, err)
	}
	o := c.object(exitDone, "subscription", "show", "1/1")
	equal(t, "pending", o["pending"], map[string]any{"sku": "news", "amount": 1500, "currency": "USD", "from": "2026-05-01"})
	contains(t, c.run("subscription", "update", "--where", "sku=news", "--where", "currency=USD", "--amount", "12.99").out,
		"$15.00  $12.99  2 ") // the pending price is taken back
	c.create("5/1", "pm_card_visa", "--currency", "JPY", "--amount", "1300")
	contains(t, c.refused("subscription", "update", "--where", "sku=news", "--where", "currency=JPY", "--amount", "13.50"),
		"subscription 5/1, in JPY: --amount: amount must be digits without decimals")
	again := []string{"subscription", "update", "--where", "sku=news", "--where", "currency=USD", "--amount", "16", "--from", "2026-07-01"}
	contains(t, c.run(again...).out, "  replaces: sku news 15.00 from 2026-05-01 of 2 subscriptions")
	equal(t, "replaces", c.object(exitPerson, again...)["replaces"], []any{map[string]any{"sku": "news", "amount": 1500,
		"from": "2026-05-01", "currency": "USD", "subscriptions": 2}})
	contains(t, c.must("subscription", "update", "3/1", "--amount", "16", "--from", "2026-07-01"),
		"  replaces: sku silver 12.99 from 2026-06-01")
	equal(t, "replaces", c.object(exitDone, "subscription", "update", "3/1", "--amount", "17", "--from", "2026-07-01")["replaces"],
		map[string]any{"sku": "news", "amount": 1600, "currency": "USD", "from": "2026-07-01"})
	for _, line := range []string{"1/1 --where sku=news --amount 1", "--where news --amount 1", "--where sku=news --address x",
		"--where sku=news", "--where sku=news --amount 0", "--where sku=news --amount 1.005", "1/1 --amount 1 --yes",
		"1/1 --address x --notify", "--where currency=USD --amount 2"} {
		if r := c.run(append([]string{"subscription", "update"}, strings.Fields(line)...)...); r.code != exitUsage {
			t.Errorf("%s: exit %d, %s", line, r.code, r.errors)
		}
	}
}

func TestSubscription_Trial(t *testing.T) {
	c := newCLI(t)
	create := []string{"subscription", "create", "1/1", "--sku", "news", "--amount", "12.99", "--currency", "USD",
		"--payment-method", "pm_card_visa", "--email", "a@example.com"}
	if r := c.run(create...); r.code != exitUsage {
		t.Errorf("without a payment day: exit %d", r.code)
	}
	o := c.object(exitDone, append(create, "--trial-days", "14")...)
	equal(t, "created", members(o, "payment_day", "trial_ends", "due_date", "next_reminder_date"),
		[]any{29, "2026-03-29", "2026-03-29", "2026-03-22"})
	contains(t, c.must("subscription", "show", "1/1"), "free; the first payment is due on 2026-03-29")
	c.must("run", "payments", "--date", "2026-03-29", "--ahead")
	o = c.object(exitDone, "subscription", "show", "1/1")
	equal(t, "after it", members(o, "paid_periods", "trial_ends", "due_date"), []any{1, "2026-03-29", "2026-04-29"})
	if strings.Contains(c.must("subscription", "show", "1/1"), "free") {
		t.Error("still shown as free")
	}
	c.file("book.csv", "account,email,subscription,sku,amount,currency,payment_day,payment_method,trial_days\n"+
		"2,b@example.com,1,news,5.00,USD,1,pm_card_visa,30\n")
	c.must("import", "book.csv")
	o = c.object(exitDone, "subscription", "show", "2/1")
	equal(t, "imported", members(o, "trial_ends", "due_date"), []any{"2026-05-01", "2026-05-01"})
}

func TestSubscription_ResumeTakesBackACancellation(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa")
	c.must("run", "payments")
	c.must("subscription", "cancel", "1/1", "--at-period-end")
	contains(t, c.must("subscription", "show", "1/1"), "active, ends with the period")
	o := c.object(exitDone, "subscription", "resume", "1/1")
	equal(t, "resumed", members(o, "status", "cancel_at_period_end", "next_payment_date", "next_reminder_date"),
		[]any{"active", nil, "2026-04-15", "2026-04-08"})
	equal(t, "charged", c.object(exitDone, "run", "payments", "--date", "2026-04-15", "--ahead")["paid"], 1)
}

func TestSubscription_NewMethodIsChargedAtOnce(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa_chargeDeclined")
	equal(t, "declined", members(c.object(exitDone, "run", "payments"), "due", "retry"), []any{1, 1})
	o := c.object(exitDone, "subscription", "show", "1/1")
	open := o["open"].(map[string]any)
	equal(t, "open", members(open, "period", "due_date", "amount", "attempt", "retry_date"),
		[]any{0, today, 1299, 2, "2026-03-16"})
	equal(t, "attempts", members(open["declined"].([]any)[0].(map[string]any), "attempt", "code", "payment_method", "at"),
		[]any{1, "generic_decline", "pm_card_visa_chargeDeclined", "2026-03-15T10:30:00.000Z"})
	contains(t, c.must("subscription", "show", "1/1"), "Open: period 0", "scheduled for 2026-03-16", "generic_decline")
	contains(t, c.must("subscription", "update", "1/1", "--payment-method", "pm_card_visa"),
		"period 0, due 2026-03-15, $12.99: paid", "2026-04-15")
	equal(t, "audit", members(c.object(exitDone, "verify"), "ok", "receipts", "charges"), []any{true, 1, 1})
}

func TestSubscription_ChargeAndSkipWhatIsParked(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa", "--next-payment-date", "2025-09-15") // more missed periods than one run catches up
	o := c.object(exitPerson, "run", "payments")
	equal(t, "run", members(o, "due", "paid", "parked"), []any{4, 3, 1})
	equal(t, "status", members(c.object(exitDone, "subscription", "show", "1/1"), "status", "period"), []any{"parked", 3})
	v := c.object(exitDone, "subscription", "charge", "1/1")
	equal(t, "charge", members(v["results"].([]any)[0].(map[string]any), "period", "outcome", "amount"),
		[]any{3, "paid", 1299})
	equal(t, "the next one waits too", members(v["subscription"].(map[string]any), "status", "period"), []any{"parked", 4})
	o = c.object(exitDone, "subscription", "skip", "1/1")
	equal(t, "skip", o["account"], "1")
	o = c.object(exitDone, "subscription", "show", "1/1")
	if n := len(o["periods"].([]any)); n < 1 {
		t.Errorf("%d periods that did not end paid", n)
	}
	contains(t, c.must("subscription", "show", "1/1"), "Periods that were not paid:", "skipped", "Receipts:")
	equal(t, "audit", c.object(exitDone, "verify")["ok"], true)
}

// TestSubscription_ChargeFailedPeriod: a failed period is paid by one command, and the same command
// again says so.
func TestSubscription_ChargeFailedPeriod(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa_chargeDeclinedLostCard")
	c.run("run", "payments")
	c.must("subscription", "update", "1/1", "--payment-method", "pm_card_visa_chargeDeclined")
	v := c.object(exitPerson, "subscription", "charge", "1/1", "--period", "0", "--key", "one")
	contains(t, c.must("subscription", "charge", "1/1", "--period", "0", "--key", "one"), "not tried again")
	equal(t, "declined", members(v["results"].([]any)[0].(map[string]any), "period", "outcome", "due_date"),
		[]any{0, "failed", "2026-03-15"})
	c.must("subscription", "update", "1/1", "--payment-method", "pm_card_visa")
	contains(t, c.must("subscription", "charge", "1/1", "--period", "0"), "period 0, due 2026-03-15, $12.99: paid",
		"2026-04-15")
	contains(t, c.must("subscription", "charge", "1/1", "--period", "0"), "period 0 of 1/1 is already paid: receipt 2026")
	v = c.object(exitDone, "subscription", "charge", "1/1", "--period", "0")
	equal(t, "again", members(v, "results", "paid_before"), []any{[]any{}, true})
	for line, want := range map[string]string{"--period 1": "period 1 is due on 2026-04-15",
		"--period 2": "period 2 is due on 2026-05-15", "--period -1": "period", "": "not parked"} {
		r := c.run(append([]string{"subscription", "charge", "1/1"}, strings.Fields(line)...)...)
		if r.code == exitDone || !strings.Contains(r.errors, want) {
			t.Errorf("%s: exit %d, %s", line, r.code, r.errors)
		}
	}
	if r := c.run("subscription", "charge", "1/1", "--reopen", "x"); r.code != exitUsage {
		t.Errorf("exit %d, %s", r.code, r.errors)
	}
	c.must("subscription", "pause", "1/1")
	c.must("subscription", "resume", "1/1")
	equal(t, "audit", members(c.object(exitDone, "verify"), "ok", "receipts", "charges"), []any{true, 1, 1})
}

func TestReceipt(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa")
	for amount, text := range map[string]string{"10": "cannot record a part", "20": "add --overpaid", "1299": "add --overpaid",
		"0": "got 0.00 USD", "-1": "got -1.00 USD"} {
		r := c.run("receipt", "create", "1/1", "--amount", amount)
		if r.code == exitDone || !strings.Contains(r.errors, "must be 12.99 USD, which period 0 owes") || !strings.Contains(r.errors, text) {
			t.Errorf("%s: exit %d, %s", amount, r.code, r.errors)
		}
	}
	equal(t, "none", len(c.list("receipt", "list", "1")), 0)
	o := c.object(exitDone, "receipt", "create", "1/1", "--amount", "20", "--overpaid", "--note", "cash")
	equal(t, "created", members(o, "account", "subscription", "period", "due_date", "amount", "currency", "note",
		"kind"),
		[]any{"1", "1", 0, today, 2000, "USD", "cash", "external"})
	r := c.run("receipt", "create", "1/1")
	if r.code != exitFailed || !strings.Contains(r.errors, "no period is due before 2026-04-15") {
		t.Errorf("exit %d, %s", r.code, r.errors)
	}
	equal(t, "list", len(c.list("receipt", "list", "--account", "1")), 1)
	contains(t, c.must("receipt", "list", "1"), "external", "1 receipt\n")
	equal(t, "audit", members(c.object(exitDone, "verify"), "ok", "external", "charges"), []any{true, 1, 0})
}

// TestReceipt_PastPeriod: a period that was skipped is paid by a transfer. The command is given twice.
func TestReceipt_PastPeriod(t *testing.T) {
	c := newCLI(t)
	c.must("account", "create", "1", "--email", "ada@example.com")
	c.run("subscription", "create", "1/1", "--sku", "gold", "--amount", "12.99", "--currency", "USD", "--payment-day", "15")
	c.run("run", "payments") // parked: there is no payment method
	c.must("subscription", "skip", "1/1")
	args := []string{"receipt", "create", "1/1", "--period", "0", "--key", "wire 7", "--note", "bank", "--date", "2026-03-10"}
	for _, repeated := range []any{nil, true} {
		o := c.object(exitDone, args...)
		equal(t, "receipt", members(o, "period", "amount", "kind", "processed_at", "repeated"),
			[]any{0, 1299, "external", "2026-03-10T00:00:00.000Z", repeated})
	}
	contains(t, c.must(args...), "this payment was requested before, so nothing was recorded again", "period 0 of 1/1, due 2026-03-15: $12.99 recorded as a manual payment")
	r := c.run("receipt", "create", "1/1", "--period", "0")
	if r.code != exitFailed || !strings.Contains(r.errors, "period 0 is paid (receipt 20260310-") {
		t.Errorf("exit %d, %s", r.code, r.errors)
	}
	if r := c.run("receipt", "create", "1/1", "--date", "2030-01-01"); r.code != exitUsage || !strings.Contains(r.errors, "date: must") {
		t.Errorf("exit %d, %s", r.code, r.errors)
	}
	equal(t, "audit", members(c.object(exitDone, "verify"), "ok", "external", "charges"), []any{true, 1, 0})
}

// TestReceipt_LiveIntent: a manual payment of a period that was declined cancels its intent.
func TestReceipt_LiveIntent(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa_chargeDeclined")
	c.run("run", "payments")
	o := c.object(exitDone, "receipt", "create", "1/1", "--note", "wire 7")
	equal(t, "receipt", members(o, "period", "amount", "kind", "note"), []any{0, 1299, "external", "wire 7"})
	equal(t, "audit", members(c.object(exitDone, "verify"), "ok", "external", "charges", "notes"), []any{true, 1, 0, nil})
}

// session has the engine and the processor beside the commands.
func (c *cli) session(do func(ctx context.Context, s *session.Session) error) {
	c.t.Helper()
	p := newProgram(func(string) string { return "" }, nil, io.Discard, io.Discard, c.clock.Now)
	p.Dir = c.dir
	p.Config = config.Config{Store: config.DefaultStore, Processor: config.DefaultProcessor}
	err := p.With(c.t.Context(), session.Need{Processor: true}, func(s *session.Session) error { return do(c.t.Context(), s) })
	if err != nil {
		c.t.Fatal(err)
	}
}

// paidLate has a declined period whose intent is paid after all, and nobody has heard of it.
func paidLate(t *testing.T) *cli {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa_chargeDeclined")
	c.run("run", "payments")
	c.session(func(ctx context.Context, s *session.Session) error {
		sub, err := s.Engine.Subscription(ctx, billing.Name{Account: "1", ID: "1"})
		if err == nil {
			_, err = s.Processor.Confirm(ctx, processor.ConfirmRequest{Key: "late", Ref: sub.Open.Ref, Method: "pm_card_visa", Attempt: 1})
		}
		return err
	})
	return c
}

// TestReceipt_Overpayment: the card is charged before the intent can be cancelled.
func TestReceipt_Overpayment(t *testing.T) {
	c := paidLate(t)
	r := c.run("receipt", "create", "1/1", "--note", "wire 7")
	if r.code != exitPerson || !strings.Contains(r.out, "was also charged, so $12.99 was recorded as an overpayment") {
		t.Errorf("exit %d, %s%s", r.code, r.out, r.errors)
	}
	contains(t, c.must("receipt", "list", "1"), "overpayment", "charge", "2 receipts")
	contains(t, c.must("verify"), "NOTE", "overpaid", "1/1", "a manual payment of 12.99 USD was recorded on "+today)
	equal(t, "audit", members(c.object(exitDone, "verify"), "ok", "external", "charges"), []any{true, 0, 1})
	contains(t, c.must("receipt", "refund", "1/1", "--period", "0"), "refund of $12.99 succeeded")
}

// TestReceipt_OverpaymentByARun: the command has died behind its request, and a run finds the money taken.
func TestReceipt_OverpaymentByARun(t *testing.T) {
	c := paidLate(t)
	c.session(func(ctx context.Context, s *session.Session) error {
		sub, err := s.Engine.Subscription(ctx, billing.Name{Account: "1", ID: "1"})
		if err != nil {
			return err
		}
		sub.Requested = billing.RequestManual
		sub.Manual = &billing.ManualRequest{Amount: sub.Amount, Note: "wire", Processed: s.Engine.Now()}
		return s.Engine.Put(ctx, sub)
	})
	shown := c.object(exitDone, "subscription", "show", "1/1")
	equal(t, "requested", members(shown["manual"].(map[string]any), "period", "amount", "note"), []any{0, 1299, "wire"})
	contains(t, c.must("subscription", "show", "1/1"), "a manual payment of $12.99 is recorded when the payment intent is canceled")
	c.clock.Set(c.clock.Now().AddDate(0, 0, 1))
	r := c.run("run", "payments")
	if r.code != exitPerson || !strings.Contains(r.out, "it was paid outside, too: give one of the payments back") {
		t.Errorf("exit %d, %s%s", r.code, r.out, r.errors)
	}
	contains(t, c.must("receipt", "list", "1"), "overpayment")
}

// TestAccount_Fallback: a lost card is followed by the account's second one, and the mail says so.
func TestAccount_Fallback(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa_chargeDeclinedLostCard")
	o := c.object(exitDone, "account", "attach", "1", "--fallback", "pm_card_visa_chargeDeclined")
	equal(t, "attached", o["fallback_payment_method"], "pm_card_visa_chargeDeclined")
	c.must("run", "payments")
	open := c.object(exitDone, "subscription", "show", "1/1")["open"].(map[string]any)
	equal(t, "open", members(open, "payment_method", "by_fallback", "attempt"), []any{"pm_card_visa_chargeDeclined", true, 3})
	contains(t, c.must("subscription", "show", "1/1"),
		"by pm_card_visa_chargeDeclined (the fallback for pm_card_visa_chargeDeclinedLostCard), attempt 3")
	contains(t, c.refused("account", "attach", "1", "--fallback", ""), "--fallback must be a token or none (got an empty value)")
	equal(t, "none", c.object(exitDone, "account", "attach", "1", "--fallback", "none")["fallback_payment_method"], nil)
	c.create("2/1", "pm_card_visa_chargeDeclinedLostCard")
	c.must("account", "attach", "2", "--fallback", "pm_card_visa")
	contains(t, c.must("run", "payments"), "paid")
	mails, err := filepath.Glob(c.path("duesday-mail/*/receipt-*.eml"))
	if err != nil || len(mails) != 1 {
		t.Fatalf("mails: %q, %v", mails, err)
	}
	contains(t, c.read(mails[0]), "second one.")
	equal(t, "audit", c.object(exitDone, "verify")["ok"], true)
}

// TestSubscription_CancelNamesArrears: the answers and the mail of cancellations with two overdue periods.
func TestSubscription_CancelNamesArrears(t *testing.T) {
	c := newCLI(t)
	for _, name := range []string{"1/1", "2/1", "3/1", "4/1"} {
		c.create(name, "pm_card_visa")
	}
	c.create("5/1", "pm_card_visa_chargeDeclined")
	c.clock.Set(c.clock.Now().AddDate(0, 1, 0))
	contains(t, c.must("subscription", "cancel", "1/1"), "period 0, due 2026-03-15, $12.99: unpaid and written off",
		"period 1, due 2026-04-15, $12.99: unpaid and written off", "written off in total: $25.98")
	mails, err := filepath.Glob(c.path("duesday-mail/*/cancelled-*.eml"))
	if err != nil || len(mails) != 1 {
		t.Fatal(mails, err)
	}
	contains(t, strings.ReplaceAll(c.read(mails[0]), "=\r\n", ""), "$12.99 (15 March 2026)", "$12.99 (15 April 2026)", "Total written off: $25.98")
	o := c.object(exitDone, "subscription", "cancel", "2/1")
	equal(t, "written off", members(o, "status", "written_off_sum"), []any{"canceled", 2598})
	equal(t, "periods", members(o["written_off"].([]any)[1].(map[string]any), "period", "due_date", "amount", "currency", "ending"),
		[]any{1, "2026-04-15", 1299, "USD", "void"})
	o = c.object(exitDone, "subscription", "cancel", "3/1", "--at-period-end")
	equal(t, "still owed", []any{len(o["next_due"].([]any)), o["written_off"]}, []any{2, nil})
	out := c.must("subscription", "cancel", "4/1", "--collect")
	contains(t, out, "period 0, due 2026-03-15, $12.99: paid", "period 1, due 2026-04-15, $12.99: paid", "is canceled")
	if strings.Contains(out, "written off") {
		t.Error(out)
	}
	contains(t, c.must("subscription", "cancel", "5/1", "--collect"), "period 1, due 2026-04-15, $12.99: skipped (declined: ",
		"written off in total: $25.98")
	if r := c.run("subscription", "cancel", "3/1", "--collect", "--at-period-end"); r.code != exitUsage {
		t.Errorf("exit %d, %s", r.code, r.errors)
	}
	equal(t, "run", members(c.object(exitDone, "run", "payments"), "due", "paid"), []any{2, 2})
	c.clock.Set(c.clock.Now().AddDate(0, 1, 0))
	equal(t, "the end", members(c.object(exitDone, "run", "payments"), "due"), []any{0})
	equal(t, "audit", members(c.object(exitDone, "verify"), "ok", "charges"), []any{true, 4})
	equal(t, "ended", c.object(exitDone, "subscription", "show", "3/1")["status"], "canceled")
}

// TestSubscription_ChargeNotPaid: a charge that does not pay exits with 3, whatever the period is then.
func TestSubscription_ChargeNotPaid(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa_chargeDeclined")
	c.create("2/1", "", "--next-payment-date", "2025-09-15")
	for name, want := range map[string]string{"1/1": "retry", "2/1": "p"} {
		v := c.object(exitPerson, "subscription", "charge", name, "--period", "0")
		if got := v["results"].([]any)[0].(map[string]any)["outcome"].(string); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestSubscription_CreateOverdue: a new subscription's overdue periods are counted, and a warning
// names them.
func TestSubscription_CreateOverdue(t *testing.T) {
	c := newCLI(t)
	create := func(name, from string) result {
		return c.run("subscription", "create", name, "--sku", "news", "--amount", "1", "--currency", "USD", "--payment-day", "15",
			"--payment-method", "pm_card_visa", "--email", "a@example.com", "--json", "--next-payment-date", from)
	}
	r := create("1/1", "2025-09-15")
	contains(t, r.errors, "7 periods are due from 2025-09-15 on", "subscription skip 1/1 --until "+today)
	contains(t, r.out, `"overdue_periods": 7`)
	if r := create("2/1", today); r.errors != "" || strings.Contains(r.out, "overdue") {
		t.Errorf("%s%s", r.errors, r.out)
	}
}

// TestRun_AheadIsWell: a run by a date ahead that leaves nothing is completed, and nothing is wrong.
func TestRun_AheadIsWell(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa", "--next-payment-date", "2026-04-15")
	c.must("run", "payments", "--date", "2026-04-15", "--ahead")
	equal(t, "state", c.list("run", "list")[0].(map[string]any)["state"], "completed")
	contains(t, c.must("status"), "All is well")
}

// TestVerify_CannotRepair: what cannot be repaired is said, and why.
func TestVerify_CannotRepair(t *testing.T) {
	c := newCLI(t)
	for _, name := range []string{"1/1", "2/1"} {
		c.create(name, "pm_card_visa")
		c.run("receipt", "create", name, "--amount", "92233720368547758.07", "--overpaid")
	}
	r := c.run("verify", "--repair-sums")
	equal(t, "exit", r.code, exitFailed)
	contains(t, r.errors, "no sum was corrected")
	contains(t, r.out, "outside of the 15 minutes from 2026-03-15", "the sum in USD is larger than an amount can hold")
	if strings.Contains(r.out, "must have a kind") {
		t.Error(r.out)
	}
}

// TestLists_Order: lists can be sorted and cut off, for people and for programs.
func TestLists_Order(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", header+"1,c@example.com,1,news,9.00,USD,20,pm_card_visa\n"+
		"2,a@example.com,1,gym,10.00,USD,18,pm_card_visa\n3,b@example.com,1,news,500,JPY,19,pm_card_visa\n"))
	for args, want := range map[string]string{
		"": "1 2 3", "--sort next-payment": "2 3 1", "--sort=-next-payment": "1 3 2", "--sort amount": "3 1 2",
		"--sort sku --limit 2": "2 1", "--sku news --sort -subscription": "3 1", "--limit 4": "1 2 3",
	} {
		var got []string
		for _, s := range c.list(append([]string{"subscription", "list"}, strings.Fields(args)...)...) {
			got = append(got, s.(map[string]any)["account"].(string))
		}
		equal(t, args, strings.Join(got, " "), want)
	}
	contains(t, c.must("sub", "list", "--limit", "2"), "\n2 subscriptions, and there are more; use a larger --limit to show them\n")
	contains(t, c.must("account", "list", "--sort", "email", "--limit", "3"), "\n3 accounts\n")
	contains(t, c.refused("account", "list", "--sort", "method"), "--sort must be one of account, email, created, or one of them after a - (got \"method\")")
	contains(t, c.refused("period", "list", "--limit", "-1"), "--limit must be 0 or more (got -1)")
	for _, list := range []string{"account list", "subscription list", "receipt list 1", "period list"} {
		args := strings.Fields(list)
		_, columns, _ := strings.Cut(c.must(append(args, "--help")...), "to sort by, one of ")
		columns, _, _ = strings.Cut(columns, ";")
		heading, _, _ := strings.Cut(c.must(args...), "\n")
		for column := range strings.SplitSeq(columns, ", ") {
			contains(t, "  "+heading+"  ", "  "+strings.ToUpper(strings.ReplaceAll(column, "-", " "))+"  ")
		}
	}
}

// TestSubscription_Days: an interval in days needs no payment day, and an export of it is imported as it was.
func TestSubscription_Days(t *testing.T) {
	c := newCLI(t)
	base := []string{"--sku", "news", "--amount", "5", "--currency", "USD", "--payment-method", "pm_card_visa", "--email", "a@example.com"}
	c.must(append([]string{"subscription", "create", "1/1", "--interval", "10 days"}, base...)...)
	c.must(append([]string{"subscription", "create", "2/1", "--interval", "28 days", "--payment-day", "31"}, base...)...)
	c.must(append([]string{"subscription", "create", "3/1", "--interval", "10 DAYS", "--next-payment-date", "2026-03-20"}, base...)...)
	var got []any
	for _, name := range []string{"1/1", "2/1", "3/1"} {
		got = append(got, members(c.object(exitDone, "subscription", "show", name), "interval", "payment_day", "due_date")...)
	}
	equal(t, "created", got, []any{"10 days", 15, "2026-03-15", "28 days", 31, "2026-03-31", "10 days", 20, "2026-03-20"})
	r := c.run(append([]string{"subscription", "create", "4/1", "--interval", "daily"}, base...)...)
	equal(t, "daily", r.code, exitUsage)
	contains(t, r.errors, "interval must be 7 to 3650 days")
	r = c.run(append([]string{"subscription", "create", "4/1", "--interval", "2 weeks"}, base...)...)
	contains(t, r.errors, "--payment-day is missing")
	r = c.run("subscription", "update", "1/1", "--payment-day", "3")
	contains(t, r.errors, "payment_day: cannot be changed for an interval in days")
	if shown := c.must("subscription", "show", "1/1"); strings.Contains(shown, "on day") || !strings.Contains(shown, "10 days") {
		t.Error(shown)
	}

	equal(t, "charged", members(c.object(exitDone, "run", "payments"), "paid", "failed"), []any{1, 0})
	book := c.must("export", "subscriptions")
	contains(t, book, ",15,pm_card_visa,,2026-03-25,10 days,", ",31,pm_card_visa,,2026-03-31,28 days,")
	other := func(args ...string) string { return c.must(append(args, "--store", "pebble:other")...) }
	other("import", c.file("book.csv", book))
	equal(t, "the book in another store", other("export", "subscriptions"), book)
	c.file("book.csv", strings.ReplaceAll(book, ",15,pm_card_visa", ",3,pm_card_visa"))
	equal(t, "another payment day", members(c.object(exitDone, "import", "book.csv", "--update"), "existing", "notes"), []any{3, nil})
	c.must("verify")
}

// TestAccount_Details: each flag and column sets one detail, "" removes it, and an export of accounts and
// subscriptions is imported as it was. The history has no text of theirs.
func TestAccount_Details(t *testing.T) {
	c := newCLI(t)
	const company = "株式会社, \"Ä & Söhne\""
	c.must("account", "create", "1", "--email", "a@example.com", "--company", company, "--address-line1", "Hauptstr. 1", "--address-line2", "Hof",
		"--postal-code", "10115", "--city", "Berlin", "--state", "BE", "--country", "DE", "--tax-id", "DE 123 456 789")
	equal(t, "show", members(c.object(exitDone, "account", "show", "1"), "company", "address", "tax_id"), []any{company,
		map[string]any{"line1": "Hauptstr. 1", "line2": "Hof", "postal_code": "10115", "city": "Berlin", "state": "BE", "country": "DE"}, "DE 123 456 789"})
	contains(t, c.must("account", "show", "1"), company, "Hauptstr. 1, Hof, 10115 Berlin, BE, DE", "DE 123 456 789")
	for _, bad := range [][]string{{"--country", "FR"}, {"--tax-id", "FR12345678901"}, {"--city", "4242 4242 4242 4242"}, {"--country", "Germany"}} {
		if r := c.run(append([]string{"account", "update", "1"}, bad...)...); r.code == exitDone || strings.Contains(r.errors, "4242 4242 4242") {
			t.Errorf("%v: exit %d, %s", bad, r.code, r.errors)
		}
	}
	o := c.object(exitDone, "account", "update", "1", "--address-line2", "", "--country", "FR", "--tax-id", "FR12345678901")
	equal(t, "updated", members(o, "address", "tax_id", "company"), []any{map[string]any{"line1": "Hauptstr. 1", "postal_code": "10115",
		"city": "Berlin", "state": "BE", "country": "FR"}, "FR12345678901", company})
	if history := c.must("history", "1"); !strings.Contains(history, "tax_id") || strings.Contains(history, "FR1234") || strings.Contains(history, "Haupt") {
		t.Error(history)
	}

	c.create("1/1", "pm_card_visa")
	c.create("2/1", "pm_card_visa")
	book, accounts := c.must("export", "subscriptions"), c.must("export", "accounts")
	other := func(args ...string) string { return c.must(append(args, "--store", "pebble:other")...) }
	other("import", c.file("book.csv", book))
	equal(t, "the book in another store", other("export", "subscriptions"), book)
	equal(t, "the accounts in another store", other("export", "accounts"), accounts)
	c.file("book.csv", strings.NewReplacer("Berlin", "Paris", ",FR,", ",DE,", "FR12345678901", "DE123456789").Replace(book))
	c.must("import", "book.csv", "--update")
	equal(t, "corrected by import", members(c.object(exitDone, "account", "show", "1"), "tax_id", "company"), []any{"DE123456789", company})
	contains(t, c.must("export", "accounts", "--format", "jsonl"), `"city":"Paris"`, `"country":"DE"`)
	c.must("account", "update", "1", "--company", "", "--address-line1", "", "--postal-code", "", "--city", "", "--state", "", "--country", "", "--tax-id", "")
	equal(t, "removed", members(c.object(exitDone, "account", "show", "1"), "company", "address", "tax_id"), []any{nil, nil, nil})
	c.must("verify")
}
