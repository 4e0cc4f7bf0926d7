package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mailed returns how many mails are in the folder.
func mailed(t *testing.T) (n int) {
	t.Helper()
	_ = filepath.WalkDir("duesday-mail", func(_ string, d os.DirEntry, err error) error {
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
	if err := os.RemoveAll("duesday-mail"); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestReconcile_WithTheReplacedStore: what it has sent is not sent again, neither receipts nor mail that
// waited in the backup nor reminders, and what people changed is named with the command that does it again.
func TestReconcile_WithTheReplacedStore(t *testing.T) {
	c := lostTime(t)
	contains(t, c.must("store", "restore", "--from", "backup", "--replace"), "1 mail that waited in the backup held")
	contains(t, c.run("status").out, "mails are held")
	r := c.run("reconcile")
	equal(t, "reconcile", r.code, exitPerson)
	contains(t, r.out, "2 charges adopted", "not sent again  3", "duesday subscription cancel 2/1", "duesday subscription pause 4/1",
		"duesday subscription update 3/1 --amount 20.00", "duesday account update 1 --email new@example.com",
		"duesday account create 9 --email z@example.com", "duesday settings show --history")
	if strings.Contains(r.out, "5/1") {
		t.Errorf("5/1 was cancelled before the backup:\n%s", r.out)
	}
	equal(t, "again", c.run("reconcile").code, exitPerson)
	c.must("settings", "set", "sender=")
	c.must("charging", "on")
	c.run("run", "reminders")
	c.must("outbox", "send")
	equal(t, "mail", mailed(t), 0)
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
			aside, err := filepath.Glob("duesday-data.before-restore-*")
			if err != nil || len(aside) != 1 {
				t.Fatal(aside, err)
			}
			if err := os.Rename(aside[0], "elsewhere"); err != nil {
				t.Fatal(err)
			}
			r := c.run("reconcile")
			equal(t, "reconcile", r.code, exitPerson)
			contains(t, r.out, "3 mails held", "duesday outbox release", "duesday outbox drop")
			contains(t, r.errors, "mail stays held")
			contains(t, c.must("verify"), "The audit is clean")
			contains(t, c.run("status").out, "WRONG  mails are held")
			contains(t, c.run("outbox", "list").out, "3 mails held", "receipt/")
			c.must("settings", "set", "sender=")
			c.must("outbox", "send")
			equal(t, "mail before", mailed(t), 0)
			o := c.object(exitDone, "outbox", decide)
			equal(t, "decided", o[map[string]string{"release": "released", "drop": "dropped"}[decide]], 3)
			c.must("outbox", decide)
			c.must("outbox", "send")
			equal(t, "mail", mailed(t), map[string]int{"release": 3, "drop": 0}[decide])
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
