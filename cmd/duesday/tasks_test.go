package main

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/tasks.md anew")

// tasksBook has what happens in a small business from January to April 2026.
func tasksBook(c *cli) {
	c.at("2026-01-02")
	c.must("import", c.file("book.csv", "account,email,subscription,sku,amount,currency,payment_day,payment_method,start_date\n"+
		"1001,ada@example.com,1,news,12.99,EUR,5,pm_card_visa,\n"+
		"1002,ben@example.com,1,gym,34.90,EUR,10,pm_card_visa,\n"+
		"1003,cleo@example.com,1,news,12.99,EUR,15,pm_sandbox_flaky,\n"+
		"1004,dan@example.com,1,gold,99.00,USD,20,pm_card_visa,\n"+
		"1005,eve@example.com,1,gym,34.90,EUR,12,pm_card_visa,\n"+
		"1006,fay@example.com,1,news,12.99,EUR,8,pm_card_visa,\n"+
		"1007,gus@example.com,1,gold,99.00,USD,10,,2026-04-01\n"+
		"1008,hal@example.com,1,news,14.99,USD,18,pm_card_visa,\n"+
		"1009,ivy@example.com,1,gym,34.90,EUR,22,pm_card_visa,\n"+
		"1010,joe@example.com,1,news,12.99,EUR,17,pm_card_visa,\n"+
		"1010,joe@example.com,2,gym,34.90,EUR,17,pm_card_visa,\n"))
	c.file("prices.csv", "Account;Email;Subscription;SKU;Amount;Currency;Payment Day;Sales\n"+
		"1001;ada@example.com;1;news;13.99;EUR;5;x\n1004;dan@example.com;1;gold;99.00;USD;20;x\n"+
		"1008;hal@example.com;1;news;15.99;USD;18;x\n")
	for day := c.clock.Now(); day.Format(time.DateOnly) <= "2026-04-13"; day = day.AddDate(0, 0, 1) {
		c.clock.Set(day)
		switch day.Format(time.DateOnly) {
		case "2026-03-01":
			c.must("subscription", "update", "1005/1", "--payment-method", "pm_card_visa_chargeDeclinedInsufficientFunds")
			c.must("subscription", "update", "1006/1", "--payment-method", "pm_card_visa_chargeDeclinedLostCard")
			c.must("subscription", "cancel", "1009/1", "--at-period-end")
		case "2026-04-03":
			c.must("subscription", "update", "1005/1", "--payment-method", "pm_card_visa")
		}
		if r := c.run("run", "payments"); r.code != exitDone && r.code != exitPerson {
			c.t.Fatalf("%s: run payments: %s%s", day, r.out, r.errors)
		}
	}
}

// varying are the parts of an output that are random or measured, and what stands for them on the page.
var varying = []struct {
	form *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`pi_sandbox_[a-z0-9]{13}`), "pi_sandbox_k3v7q2m9x4p8a"},
	{regexp.MustCompile(`re_sandbox_[a-z0-9]{13}`), "re_sandbox_k3v7q2m9x4p8a"},
	{regexp.MustCompile(`(\d{8})-[0-9A-Z]{8}-[0-9A-Z]{8}`), "$1-8F3K20QX-M4ZN7TRA"},
	{regexp.MustCompile(`in \d+(\.\d+)? (ms|s)`), "in 12 ms"},
}

// TestTasks runs the commands of docs/tasks.md, and compares their output with the page.
func TestTasks(t *testing.T) {
	const page = "docs/tasks.md"
	root, err := os.OpenRoot("../..")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	text, err := root.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	c := newCLI(t)
	tasksBook(c)
	parts := strings.Split(string(text), "```\n")
	for i := 1; i < len(parts); i += 2 {
		command, _, _ := strings.Cut(parts[i], "\n")
		words, ok := strings.CutPrefix(command, "$ duesday ")
		if !ok {
			t.Fatalf("%q is no command", command)
		}
		r := c.run(strings.Fields(words)...)
		if r.code != exitDone && r.code != exitPerson {
			t.Errorf("%s: exit %d\n%s", command, r.code, r.errors)
		}
		out := r.errors + r.out
		for _, v := range varying {
			out = v.form.ReplaceAllString(out, v.text)
		}
		parts[i] = command + "\n" + out
	}
	got := strings.Join(parts, "```\n")
	if *update {
		if err := root.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got != string(text) && !*update {
		t.Errorf("%s differs; go test -run TestTasks -update writes it anew:\n%s", page, got)
	}
	if n := strings.Count(got, "\n## "); n != 14 {
		t.Errorf("%d tasks; the page says fourteen", n)
	}
}
