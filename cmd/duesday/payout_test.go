package main

import (
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/stripefake"
)

// rates are what the fake's euros are worth.
var rates = map[string]float64{"eur": 1.1}

// parts adds up the ledger as an accountant would, by Stripe account and currency of the payout.
func (c *stripeCLI) parts() map[string]map[string]int64 {
	parts := map[string]map[string]int64{}
	for e := range c.fake.Ledger() {
		currency, rate := e.Currency, 1.0
		if r, converts := rates[currency]; converts {
			currency, rate = "usd", r
		}
		key := strings.TrimPrefix(e.Account, stripefake.DefaultAccount) + " " + strings.ToUpper(currency)
		if parts[key] == nil {
			parts[key] = map[string]int64{}
		}
		x, amount := parts[key], int64(math.Round(float64(e.Amount)*rate))
		add := func(name string, amount int64) {
			if e.Metadata["duesday_installation"] == "" {
				name = "other"
			}
			x[name] += amount
		}
		switch e.Type {
		case "charge":
			add("receipts", amount)
			x["fees"] -= amount*29/1000 + 30
			if e.Account == "acct_one" {
				x["fees"] -= 25
			}
		case "refund":
			add("refunds", -amount)
		case "dispute":
			if e.Status == "lost" {
				add("disputes", -amount)
			}
			x["fees"] -= 1500
		}
	}
	for _, x := range parts {
		sum := int64(0)
		for _, amount := range x {
			sum += amount
		}
		x["amount"] = sum
	}
	return parts
}

// TestReportPayouts recomputes every payout from the fake's ledger.
func TestReportPayouts(t *testing.T) {
	c := newStripeCLI(t, stripefake.Options{})
	if err := c.fake.Connect("acct_one", ""); err != nil {
		t.Fatal(err)
	}
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n2,b@example.com,1,gym,20,EUR,15,"+
		"pm_card_visa\n3,c@example.com,1,tea,5000,JPY,15,pm_card_visa\n4,d@example.com,1,gym,10.00,USD,15,\n"))
	c.must("account", "attach", "4", "--connected", "acct_one", "--fee", "2.5%", "--payment-method", "pm_card_visa")
	c.must("run", "payments")
	contains(t, c.must("report", "--payouts", "2026-03-01"), "Payouts: 0", "Receipts in no payout after 14 days: 0")
	c.must("receipt", "refund", "1/1", "--period", "0", "--amount", "5")
	for account, status := range map[string]string{"2": "lost", "3": "won"} {
		id, err := c.fake.Dispute(c.list("receipt", "list", account)[0].(map[string]any)["charge"].(string), "")
		if err == nil {
			err = c.fake.CloseDispute(id, status)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c.ask("POST", "/v1/payment_intents", "amount=9000&currency=usd&payment_method_types[]=card&payment_method=pm_card_visa&confirm=true")
	c.fake.PayOut(stripefake.Payout{Currency: "usd", Rates: rates})

	c.clock.Set(c.clock.Now().Add(20 * 24 * time.Hour))
	r := c.object(exitPerson, "report", "--payouts", "2026-03-01")
	missing := r["receipts_without_payout"].([]any)
	equal(t, "missing", len(missing), 1)
	equal(t, "its account", members(missing[0].(map[string]any), "account", "charged", "problem"), []any{"4", 1000, "in no payout"})
	contains(t, c.run("report", "--payouts", "2026-03-01").out, "acct_one/pi_")
	c.fake.PayOut(stripefake.Payout{Account: "acct_one"})

	r = c.object(exitDone, "report", "--payouts", "2026-03-01")
	equal(t, "complete", members(r, "complete", "charges_without_receipt", "receipts_without_payout", "incomplete"),
		[]any{true, []any{}, []any{}, []any{}})
	parts := c.parts()
	equal(t, "payouts", len(r["payouts"].([]any)), len(parts))
	sums := map[string]int64{}
	for _, p := range r["payouts"].([]any) {
		p := p.(map[string]any)
		at, _ := p["stripe_account"].(string)
		want := parts[at+" "+p["currency"].(string)]
		for _, name := range []string{"receipts", "refunds", "disputes", "other", "fees", "unlisted", "amount"} {
			equal(t, fmt.Sprint(p["payout"], " ", at, " ", p["currency"], " ", name), p[name], int(want[name]))
		}
		sums[p["payout"].(string)] = want["amount"]
	}
	table, err := csv.NewReader(strings.NewReader(c.must("report", "--payouts", "2026-03-01", "--csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range table[1:] { // payout, and net in decimals, which yen do not have
		digits, err := strconv.ParseInt(strings.ReplaceAll(line[11], ".", ""), 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		sums[line[0]] -= digits
	}
	for id, left := range sums {
		equal(t, "the rows of "+id, left, int64(0))
	}
	equal(t, "until", len(c.object(exitDone, "report", "--payouts", "2026-03-01", "--until", "2026-03-31")["payouts"].([]any)), 2)
	c.run("run", "payments") // records the disputes
	c.clean(4)
}

// TestReportPayouts_Findings: what is wrong, or cannot be known, is told by the exit code too.
func TestReportPayouts_Findings(t *testing.T) {
	c := newStripeCLI(t, stripefake.Options{})
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n"))
	c.must("run", "payments")
	installation := ""
	for e := range c.fake.Ledger() {
		installation = e.Metadata["duesday_installation"]
	}
	c.ask("POST", "/v1/payment_intents", "amount=700&currency=usd&payment_method_types[]=card&payment_method=pm_card_visa&confirm=true&"+
		"metadata[duesday_installation]="+installation+"&metadata[duesday_account]=9&metadata[duesday_period]=0&"+
		"metadata[duesday_generation]=0")
	payouts := c.fake.PayOut(stripefake.Payout{})
	r := c.object(exitPerson, "report", "--payouts", "2026-03-15")
	equal(t, "charges", len(r["charges_without_receipt"].([]any)), 1)
	equal(t, "its account", members(r["charges_without_receipt"].([]any)[0].(map[string]any), "account", "charged", "problem"),
		[]any{"9", 700, "no receipt"})

	if err := c.fake.FailNext("GET /v1/balance_transactions", 403, "", 2); err != nil {
		t.Fatal(err)
	}
	got := c.run("report", "--payouts", "2026-03-15")
	equal(t, "incomplete", got.code, exitFailed)
	contains(t, got.out, "Incomplete: 1", payouts[0])
	contains(t, got.errors, "the comparison is incomplete, and what is missing may contain 0 receipts: "+payouts[0])
	got = c.run("report", "--payouts", "2026-03-15", "--csv")
	equal(t, "incomplete", got.code, exitFailed)
	contains(t, got.out, ",unlisted,")

	for line, says := range map[string]string{
		"report --payouts 2026-03-15 --from 2026-03":     "--from cannot be combined with --payouts",
		"report --until 2026-03-15":                      "--until needs --payouts",
		"report --payouts 2026-03-15 --until 2026-03-14": "must not be before",
		"report --payouts 2026-03-15 --settled 400":      "--settled must be 0 to 366",
	} {
		got := c.run(strings.Fields(line)...)
		if got.code == exitDone || !strings.Contains(got.errors, says) {
			t.Errorf("%s: exit %d, want %q\n%s", line, got.code, says, got.errors)
		}
	}
}

// TestReportPayouts_Sandbox: it has no payouts, and says so.
func TestReportPayouts_Sandbox(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n"))
	r := c.run("report", "--payouts", "2026-03-15")
	equal(t, "exit", r.code, exitFailed)
	contains(t, r.errors, "pays nothing out")
}
