package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/stripefake"
)

// returned sums the ledger's refunds by payment intent.
func (c *stripeCLI) returned() map[string]int64 {
	n := map[string]int64{}
	for e := range c.fake.Ledger() {
		if e.Type == "refund" && e.Status == "succeeded" {
			n[e.Intent] += e.Amount
		}
	}
	return n
}

// TestStripeRefunds gives back by the program, and records what was given back, or is claimed
// back, at Stripe.
func TestStripeRefunds(t *testing.T) {
	c := newStripeCLI(t, stripefake.Options{})
	c.must("import", c.file("book.csv",
		header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n2,b@example.com,1,gym,500,JPY,15,pm_card_visa\n3,"+
			"c@example.com,1,tea,7.00,EUR,15,pm_card_visa\n"))
	c.must("run", "payments")
	charge := func(account string) string {
		return c.list("receipt", "list", account)[0].(map[string]any)["charge"].(string)
	}
	mine, yen := charge("1"), charge("2")
	refund := func(code int, args ...string) map[string]any {
		t.Helper()
		return c.object(code, append([]string{"receipt", "refund", "1/1", "--period", "0"}, args...)...)
	}
	first := refund(exitDone, "--amount", "5", "--reason", "duplicate")
	equal(t, "first", members(first, "amount", "state", "reason", "charge", "repeated"),
		[]any{500, "succeeded", "duplicate", mine, nil})
	c.clock.Set(c.clock.Now().Add(25 * time.Hour)) // Stripe has forgotten the key
	again := refund(exitDone, "--amount", "5")
	equal(t, "again", members(again, "refund", "repeated"), []any{first["refund"], true})
	equal(t, "with a key", members(refund(exitDone, "--amount", "5", "--key", "b"), "amount", "repeated"),
		[]any{500, nil})
	equal(t, "at Stripe", c.returned(), map[string]int64{mine: 1000})
	r := c.run("receipt", "refund", "1/1", "--period", "0", "--amount", "3", "--key", "c")
	equal(t, "too much", r.code, exitUsage)
	contains(t, r.errors, "must be at most 2.99 USD, which is left of 12.99 USD")
	equal(t, "rest", refund(exitDone)["amount"], 299)
	equal(t, "whole yen", c.object(exitDone, "receipt", "refund", "2/1", "--period", "0")["amount"], 500)
	equal(t, "at Stripe", c.returned(), map[string]int64{mine: 1299, yen: 500})
	c.clean(3)

	// A refund and a dispute that are made at Stripe; the dispute is lost.
	tea := charge("3")
	c.ask("POST", "/v1/refunds", "payment_intent="+tea+"&amount=100")
	dispute, err := c.fake.Dispute(tea, "fraudulent")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "recorded", c.object(exitDone, "run", "payments")["refunds_and_disputes"], 2)
	contains(t, c.must("receipt", "list", "3"), "€1.00", "disputed")
	if err := c.fake.CloseDispute(dispute, "lost"); err != nil {
		t.Fatal(err)
	}
	c.clock.Set(c.clock.Now().Add(time.Hour))
	equal(t, "changed", c.object(exitDone, "run", "payments")["refunds_and_disputes"], 1)
	contains(t, c.must("receipt", "list", "3"), "dispute lost")
	equal(t, "no more", c.object(exitDone, "run", "payments")["refunds_and_disputes"], nil)
	equal(t, "audit", members(c.object(exitDone, "verify"), "refunds", "disputes", "problems"), []any{5, 1, []any{}})

	var lines []string
	for line := range strings.Lines(c.must("export", "refunds", "--format", "jsonl")) {
		var v struct{ Account, Kind, Amount, Currency, State, Charge, Refund string }
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Join([]string{v.Account, v.Kind, v.Amount, v.Currency, v.State, v.Charge, v.Refund[:3]},
			" "))
	}
	slices.Sort(lines)
	equal(t, "export", lines, []string{
		"1 refund 2.99 USD succeeded " + mine + " re_", "1 refund 5.00 USD succeeded " + mine + " re_",
		"1 refund 5.00 USD succeeded " + mine + " re_",
		"2 refund 500 JPY succeeded " + yen + " re_",
		"3 dispute 6.00 EUR succeeded " + tea + " du_", "3 refund 1.00 EUR succeeded " + tea + " re_",
	})
}

// TestStripeConnected charges at connected accounts; one of them lets go of us, and the others
// go on.
func TestStripeConnected(t *testing.T) {
	c := newStripeCLI(t, stripefake.Options{})
	places := map[string]string{"1": "acct_one", "2": "acct_two"}
	for _, at := range places {
		if err := c.fake.Connect(at, ""); err != nil {
			t.Fatal(err)
		}
	}
	var book strings.Builder
	book.WriteString(header)
	for _, account := range []string{"1", "2", "3"} {
		fmt.Fprintf(&book, "%s,a@example.com,1,gym,10.00,USD,15,\n", account)
	}
	c.must("import", c.file("book.csv", book.String()))
	for account, at := range places {
		v := c.object(exitDone, "account", "attach", account, "--connected", at, "--fee", "2.5%", "--payment-method",
			"pm_card_visa")
		equal(t, "attached", members(v, "connected_account", "application_fee", "payment_method"),
			[]any{at, 250, "pm_card_visa"})
	}
	c.must("account", "attach", "3", "--payment-method", "pm_card_visa")
	if err := c.fake.Disconnect("acct_two"); err != nil {
		t.Fatal(err)
	}
	equal(t, "run", members(c.object(exitPerson, "run", "payments"), "due", "paid", "pending"), []any{3, 2, 1})
	equal(t, "charged", c.charged(), map[string]int{"1/1/0": 1, "3/1/0": 1})
	c.clock.Set(c.clock.Now().Add(time.Hour))
	r := c.run("run", "payments")
	equal(t, "exit", r.code, exitPerson)
	contains(t, r.out, "2/1", "acct_two")

	if err := c.fake.Connect("acct_two", ""); err != nil {
		t.Fatal(err)
	}
	c.clock.Set(c.clock.Now().Add(time.Hour))
	equal(t, "back", members(c.object(exitDone, "run", "payments"), "due", "paid"), []any{1, 1})
	at := map[string]string{}
	for e := range c.fake.Ledger() {
		at[e.Metadata["duesday_account"]] = e.Account
		fee := any(nil)
		if e.Account != stripefake.DefaultAccount {
			fee = 25
		}
		equal(t, "fee at "+e.Account, c.intentAt(e.Account, e.Intent)["application_fee_amount"], fee)
	}
	equal(t, "places", at, map[string]string{"1": "acct_one", "2": "acct_two", "3": stripefake.DefaultAccount})
	c.clean(3)
}

// intentAt asks for a payment intent of a connected account.
func (c *stripeCLI) intentAt(at, id string) map[string]any {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.base+"/v1/payment_intents/"+id, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("Stripe-Account", at)
	_, text, _ := c.send(r)
	return decode(c.t, text).(map[string]any)
}

// storeText is all items of the store that are somebody's.
func (c *stripeCLI) storeText() string {
	c.t.Helper()
	var all strings.Builder
	for text := range c.items() {
		if strings.Contains(text, "ACC#") {
			all.WriteString(text + "\n")
		}
	}
	return all.String()
}

// TestStripePinned: a store that was charged at an account of Stripe's, in one mode, is
// charged nowhere else; and a key that is revoked stops all, and changes nothing.
func TestStripePinned(t *testing.T) {
	c := newStripeCLI(t, stripefake.Options{Keys: append(stripefake.DefaultKeys(),
		stripefake.Key{Secret: "sk_test_other", Account: "acct_other"})})
	c.must("import", c.file("book.csv",
		header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n2,b@example.com,1,news,12.99,USD,16,pm_card_visa\n"))
	c.must("run", "payments")
	c.clock.Set(c.clock.Now().AddDate(0, 0, 1)) // one more is due
	before := c.storeText()
	for _, x := range []struct {
		name, env, value string
		code             int
		want             []string
	}{
		{"live", "DUESDAY_STRIPE_KEY", "sk_live_duesday", exitFailed,
			[]string{"belongs to another processor", "test", "live", "nothing was done"}},
		{"another account", "DUESDAY_STRIPE_KEY", "sk_test_other", exitFailed,
			[]string{"belongs to another processor", "acct_duesday", "acct_other"}},
		{"sandbox", "DUESDAY_PROCESSOR", "sandbox:./ledger.jsonl", exitFailed,
			[]string{"belongs to another processor", "a sandbox"}},
		{"unknown key", "DUESDAY_STRIPE_KEY", "sk_test_nobody", exitFailed,
			[]string{"DUESDAY_STRIPE_KEY", "nothing was done"}},
		{"no key", "DUESDAY_STRIPE_KEY", "", exitUsage, []string{"DUESDAY_STRIPE_KEY", "DUESDAY_STRIPE_KEY_FILE"}},
		{"publishable", "DUESDAY_STRIPE_KEY", "pk_test_duesday", exitUsage, []string{"sk_test_"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			old := c.env[x.env]
			c.env[x.env] = x.value
			defer func() { c.env[x.env] = old }()
			for _, line := range []string{"run payments", "verify", "reconcile", "receipt refund 1/1 --period 0",
				"account attach 1 --payment-method pm_card_visa"} {
				r := c.run(strings.Fields(line)...)
				if r.code != x.code || r.out != "" {
					t.Errorf("%s: exit %d, want %d: %s%s", line, r.code, x.code, r.out, r.errors)
				}
				contains(t, r.errors, x.want...)
			}
		})
	}
	if err := c.fake.Revoke(c.key); err != nil {
		t.Fatal(err)
	}
	r := c.run("run", "payments")
	equal(t, "revoked", r.code, exitFailed)
	contains(t, r.errors, "DUESDAY_STRIPE_KEY", "nothing was done")
	if after := c.storeText(); after != before {
		t.Errorf("the store was\n%s\nand is\n%s", before, after)
	}
	equal(t, "charged", c.charged(), map[string]int{"1/1/0": 1})
	if err := c.fake.Restore(c.key); err != nil {
		t.Fatal(err)
	}
	equal(t, "then", c.object(exitDone, "run", "payments")["paid"], 1)
	c.clean(2)
}

// TestStripeKeyFile: the key may lie in a file that nobody else can read.
func TestStripeKeyFile(t *testing.T) {
	c := newStripeCLI(t, stripefake.Options{})
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n"))
	delete(c.env, "DUESDAY_STRIPE_KEY")
	c.env["DUESDAY_STRIPE_KEY_FILE"] = c.file("key", c.key+"\n")
	if err := os.Chmod(c.path("key"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := c.run("run", "payments")
	equal(t, "for all to read", r.code, exitUsage)
	contains(t, r.errors, "DUESDAY_STRIPE_KEY_FILE", "chmod")
	if err := os.Chmod(c.path("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	equal(t, "paid", c.object(exitDone, "run", "payments")["paid"], 1)
}
