package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/secret"
)

// mailed returns how many mails are in the folder.
func (c *cli) mailed() (n int) {
	c.t.Helper()
	_ = filepath.WalkDir(c.path("duesday-mail"), func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return nil
	})
	return n
}

// lostTime is a store whose backup lacks a day: charges, a reminder, and what people changed. Mail waited
// in the backup, and was sent since. The clock goes on.
func lostTime(t *testing.T) *cli {
	t.Helper()
	c := newCLI(t)
	c.clock.Set(time.Date(2026, 3, 15, 9, 0, 0, 0, time.UTC))
	c.must("import", c.file("book.csv", header+
		"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n"+
		"2,b@example.com,1,news,12.99,USD,15,pm_card_visa\n"+
		"3,c@example.com,1,news,12.99,USD,20,pm_card_visa\n"+
		"4,d@example.com,1,news,12.99,USD,31,pm_card_visa\n"+
		"5,e@example.com,1,news,12.99,USD,31,\n"))
	c.must("settings", "set", "sender=Ada <billing@example.com>")             // so that mail stays in the outbox
	equal(t, "cancel", c.run("subscription", "cancel", "5/1").code, exitDone) // its mail cannot leave
	c.must("store", "backup", "--to", "backup")
	c.clock.Set(c.clock.Now().Add(time.Hour))
	c.must("settings", "set", "sender=")
	c.must("run", "payments")
	c.must("run", "reminders")
	c.must("subscription", "cancel", "2/1")
	c.must("subscription", "pause", "4/1")
	c.must("subscription", "update", "3/1", "--amount", "20.00")
	c.must("account", "update", "1", "--email", "new@example.com")
	c.must("account", "create", "9", "--email", "z@example.com")
	c.clock.Set(c.clock.Now().Add(time.Hour))
	if err := os.RemoveAll(c.path("duesday-mail")); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestReconcile_WithTheReplacedStore: what it has sent is not sent again, neither receipts nor mail that
// waited in the backup nor reminders, and what people changed is named with the command that does it again.
func TestReconcile_WithTheReplacedStore(t *testing.T) {
	c := lostTime(t)
	contains(t, c.must("store", "restore", "--from", "backup", "--replace"), "1 mail waiting in the backup held")
	contains(t, c.run("status").out, "mail is held")
	r := c.run("run", "reminders")
	equal(t, "reminders before reconcile", r.code, exitFailed)
	contains(t, r.errors, "until duesday reconcile")
	c.must("run", "reminders", "--dry-run")
	r = c.run("reconcile")
	equal(t, "reconcile", r.code, exitPerson)
	contains(t, r.out, "2 charges adopted", "not sent again  3", "duesday subscription cancel 2/1", "duesday subscription pause 4/1",
		"duesday subscription update 3/1 --amount 20.00", "duesday account update 1 --email new@example.com",
		"duesday account create 9 --email z@example.com")
	if strings.Contains(r.out, "5/1") {
		t.Errorf("5/1 was cancelled before the backup:\n%s", r.out)
	}
	equal(t, "again", c.run("reconcile").code, exitPerson)
	equal(t, "reminders after reconcile", c.run("run", "reminders").code, exitDone) // charging is still off
	c.must("settings", "set", "sender=")
	c.must("charging", "on")
	c.run("run", "reminders")
	c.must("outbox", "send")
	equal(t, "mail", c.mailed(), 0)
	contains(t, c.must("verify"), "The audit is clean")
	for _, line := range []string{"subscription cancel 2/1", "subscription pause 4/1", "subscription update 3/1 --amount 20.00",
		"account update 1 --email new@example.com", "account create 9 --email z@example.com"} {
		c.must(strings.Fields(line)...)
	}
	equal(t, "when all is done again", len(c.object(exitDone, "reconcile")["changed"].([]any)), 0)
}

// TestReconcile_WithoutTheReplacedStore: mail is held and counted, and release or drop decides. The sums
// are right before and after.
func TestReconcile_WithoutTheReplacedStore(t *testing.T) {
	for _, decide := range []string{"release", "drop"} {
		t.Run(decide, func(t *testing.T) {
			c := lostTime(t)
			c.must("store", "restore", "--from", "backup", "--replace")
			aside, err := filepath.Glob(c.path("duesday-data.before-restore-*"))
			if err != nil || len(aside) != 1 {
				t.Fatal(aside, err)
			}
			if err := os.Rename(aside[0], c.path("elsewhere")); err != nil {
				t.Fatal(err)
			}
			r := c.run("reconcile")
			equal(t, "reconcile", r.code, exitPerson)
			contains(t, r.out, "3 mails held", "duesday outbox release", "duesday outbox drop")
			contains(t, r.errors, "mail stays held")
			contains(t, c.must("verify"), "The audit is clean")
			contains(t, c.run("status").out, "WRONG  mail is held")
			contains(t, c.run("outbox", "list").out, "3 mails held", "receipt/")
			c.must("settings", "set", "sender=")
			c.must("outbox", "send")
			equal(t, "mail before", c.mailed(), 0)
			o := c.object(exitDone, "outbox", decide)
			equal(t, "decided", o[map[string]string{"release": "released", "drop": "dropped"}[decide]], 3)
			c.must("outbox", decide)
			c.must("outbox", "send")
			equal(t, "mail", c.mailed(), map[string]int{"release": 3, "drop": 0}[decide])
			contains(t, c.must("report"), "25.98")
			contains(t, c.must("verify"), "The audit is clean")
			r = c.run("reconcile", "--old", "pebble:nowhere")
			equal(t, "another store", r.code, exitFailed)
			contains(t, r.errors, "--old pebble:nowhere")
			r = c.run("reconcile", "--old", "pebble:elsewhere")
			contains(t, r.out, "duesday subscription cancel 2/1")
		})
	}
}

// TestReconcile_NamesEveryFlag: each flag that changes a subscription or an account is named, with
// a command that has it. A flag that is new has to be added here.
func TestReconcile_NamesEveryFlag(t *testing.T) {
	flags := map[string]string{"amount": "13.00", "payment-day": "20", "payment-method": "pm_card_mastercard", "collection": "manual",
		"reminder-days": "9", "address": "1 Road", "sku": "other", "email": "n@example.com", "time-zone": "Asia/Tokyo", "locale": "de", "name": "Ann Smith",
		"company": "Ann", "address-line1": "Hauptstr.1", "address-line2": "B4", "city": "Ulm", "postal-code": "89073", "state": "BW", "country": "DE",
		"tax-id":   "DE123456789",
		"quantity": "4", "discount": "10%", "tax-rate": "19",
		"customer": "", "fallback": "pm_card_visa", "connected": "", "fee": ""}
	asks := []string{"from", "notify", "where", "prices", "yes", "now", "key", "discount-periods", "tax", "tax-note", "early", "paid-once", "date", "ahead", "help"} // no attribute by themselves
	c := newCLI(t)
	c.clock.Set(time.Date(2026, 3, 5, 9, 0, 0, 0, time.UTC))
	var cases [][]string
	var rows strings.Builder
	rows.WriteString(header)
	for _, command := range []string{"subscription update", "account update", "account attach"} {
		found, _, err := newProgram(nil, nil, nil, nil, nil).root().Find(strings.Fields(command))
		if err != nil {
			t.Fatal(err)
		}
		found.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			value, known := flags[f.Name]
			if !known && !slices.Contains(asks, f.Name) {
				t.Errorf("%s --%s: is a change of it named?", command, f.Name)
			}
			if value != "" {
				id := strconv.Itoa(len(cases) + 1)
				rows.WriteString(id + ",a@example.com,1,news,12.99,USD,15,pm_card_visa\n")
				if name := id; strings.HasPrefix(command, "subscription") {
					id = name + "/1"
				}
				cases = append(cases, append(strings.Fields(command), id, "--"+f.Name, value))
			}
		})
	}
	c.must("import", c.file("book.csv", rows.String()))
	c.must("store", "backup", "--to", "backup")
	for _, change := range cases {
		c.must(change...)
	}
	c.must("store", "restore", "--from", "backup", "--replace")
	r := c.run("reconcile")
	equal(t, "reconcile", r.code, exitPerson)
	for _, change := range cases {
		if change[4] == "pm_card_mastercard" || change[4] == "pm_card_visa" {
			change = change[:4] // the token is masked
		}
		if change[2] == "1 Road" {
			change[2] = "'1 Road'"
		}
		contains(t, r.out, strings.Join(change[:4], " "))
	}
}

// TestReconcile_NamesWhatWasCreated: the list comes although a charge cannot be adopted, and its command
// creates the subscription so that the next reconcile adopts the charge.
func TestReconcile_NamesWhatWasCreated(t *testing.T) {
	c := newCLI(t)
	c.clock.Set(time.Date(2026, 3, 15, 9, 0, 0, 0, time.UTC))
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,20,pm_card_visa\n"))
	c.must("store", "backup", "--to", "backup")
	c.must("account", "create", "9", "--email", "z@example.com")
	for _, id := range []string{"9/1", "9/2"} {
		c.must("subscription", "create", id, "--sku", "z", "--amount", "5", "--currency", "USD", "--payment-day", "15",
			"--payment-method", "pm_card_visa")
	}
	c.must("subscription", "pause", "9/2")
	c.must("settings", "set", "retry-days=2,4", "merchant-name=Ada's Gym")
	c.must("run", "payments")
	c.must("store", "restore", "--from", "backup", "--replace")
	r := c.run("reconcile")
	equal(t, "reconcile", r.code, exitFailed)
	contains(t, r.errors, "subscription 9/1 with SKU z is not in the store")
	contains(t, r.out, "duesday account create 9 --email z@example.com", "duesday subscription show 9/1 --store pebble:",
		"duesday subscription create 9/1 --sku z --amount 5.00 --currency USD --payment-day 15 --next-payment-date 2026-03-15",
		"duesday settings set retry-days=2,4 'merchant-name=Ada'\\''s Gym'")
	c.must("settings", "set", "retry-days=2,4", "merchant-name=Ada's Gym")
	for line := range strings.Lines(r.out) {
		if _, command, ok := strings.Cut(strings.TrimSpace(line), "duesday subscription show"); ok {
			c.must(append([]string{"subscription", "show"}, strings.Fields(command)...)...)
		}
		if _, command, ok := strings.Cut(line, "duesday account create"); ok {
			c.must(append([]string{"account", "create"}, strings.Fields(command)...)...)
		}
	}
	for line := range strings.Lines(r.out) {
		if _, command, ok := strings.Cut(line, "duesday subscription create"); ok {
			command = strings.ReplaceAll(command, secret.MaskMethod("pm_card_visa"), "pm_card_visa")
			c.must(append([]string{"subscription", "create"}, strings.Fields(command)...)...)
		}
	}
	r = c.run("reconcile")
	equal(t, "again", r.code, exitPerson)
	contains(t, r.out, "1 charge adopted", "subscription pause 9/2")
	c.must("subscription", "pause", "9/2")
	equal(t, "when all is done again", len(c.object(exitDone, "reconcile")["changed"].([]any)), 0)
}

// mails returns the addresses and subjects of the mails in the folder.
func (c *cli) mails() (all []string) {
	c.t.Helper()
	err := filepath.WalkDir(c.path("duesday-mail"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		var to, subject string
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "To: "); ok {
				to = strings.TrimSpace(rest)
			} else if rest, ok := strings.CutPrefix(line, "Subject: "); ok {
				subject = strings.TrimSpace(rest)
			}
		}
		all = append(all, to+" "+subject)
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// TestReconcile_MailsNothingTwice: mail of every kind that the replaced store has sent is not sent
// again, neither by reconcile nor by later runs and the repeated requests of people. What it has
// not sent is sent then: the second decline of one customer, and of two the second request to act.
func TestReconcile_MailsNothingTwice(t *testing.T) {
	c := newCLI(t)
	c.clock.Set(time.Date(2026, 3, 15, 9, 0, 0, 0, time.UTC))
	row := func(id, day, method string) string {
		return id + "," + id + "@example.com,1,news,12.99,USD," + day + "," + method + "\n"
	}
	c.must("import", c.file("book.csv", header+row("declined", "16", "pm_card_visa_chargeDeclinedInsufficientFunds")+
		row("failed", "16", "pm_card_visa_chargeDeclinedLostCard")+row("action", "16", "pm_card_authenticationRequired")+
		row("wire", "16", "")+row("refunded", "15", "pm_card_visa")+row("bare", "16", "")+row("cash", "16", "pm_card_visa")+
		row("cancelled", "25", "pm_card_visa")+row("reminded", "20", "pm_card_visa")+
		row("unsent", "17", "pm_card_visa_chargeDeclinedInsufficientFunds")))
	c.must("subscription", "update", "wire/1", "--collection", "manual")
	c.run("run", "payments")
	c.must("outbox", "send")
	c.must("store", "backup", "--to", "backup")
	play := func() {
		t.Helper()
		c.clock.Set(time.Date(2026, 3, 16, 9, 0, 0, 0, time.UTC))
		c.must("receipt", "create", "cash/1", "--period", "0", "--amount", "12.99", "--note", "at the desk", "--date", "2026-03-16")
		c.run("run", "payments")
		c.run("run", "reminders")
		c.must("subscription", "cancel", "cancelled/1")
		c.clock.Set(time.Date(2026, 3, 17, 9, 0, 0, 0, time.UTC))
	}
	play()
	c.must("receipt", "refund", "refunded/1", "--period", "0")
	c.must("outbox", "send")
	before := c.mails()
	for _, want := range []string{"declined@", "failed@", "action@", "wire@", "refunded@", "bare@", "cash@", "cancelled@", "reminded@"} {
		if !slices.ContainsFunc(before, func(m string) bool { return strings.Contains(m, want) }) {
			t.Errorf("the replaced store has sent nothing to %s: %q", want, before)
		}
	}
	c.must("settings", "set", "sender=Ada <billing@example.com>") // its mail waits
	c.run("run", "payments")
	c.must("store", "restore", "--from", "backup", "--replace")
	if err := os.RemoveAll(c.path("duesday-mail")); err != nil {
		t.Fatal(err)
	}
	c.must("settings", "set", "sender=")
	c.run("run", "payments")
	c.run("reconcile")
	c.must("charging", "on")
	play()
	c.run("run", "payments")
	c.run("run", "reminders")
	c.must("outbox", "send")
	var again []string
	for _, m := range c.mails() {
		if slices.Contains(before, m) {
			again = append(again, m)
		}
	}
	if len(again) != 3 || !strings.Contains(again[0], "action@") || !strings.Contains(again[1], "bare@") ||
		!strings.Contains(again[2], "declined@") {
		t.Errorf("sent a second time: %q", again)
	}
	if got := c.mails(); !slices.ContainsFunc(got, func(m string) bool { return strings.Contains(m, "unsent@") }) {
		t.Errorf("what waited in the replaced store was not sent: %q", got)
	}
	contains(t, c.must("verify"), "The audit is clean")

	// The same backup again: the second store has sent nothing of what the first one has sent.
	c.must("store", "restore", "--from", "backup", "--replace")
	if err := os.RemoveAll(c.path("duesday-mail")); err != nil {
		t.Fatal(err)
	}
	c.run("reconcile")
	c.must("charging", "on")
	play()
	c.run("run", "payments")
	c.must("outbox", "send")
	if got := c.mails(); len(got) != 0 {
		t.Errorf("sent a third time: %q", got)
	}
}
