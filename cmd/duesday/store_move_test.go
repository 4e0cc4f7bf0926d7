package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/store/dynamotable"
	"github.com/duesday/duesday/internal/store/storeurl"
	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/transfer"
)

// movingBook is due on the 15th and the 31st; one is declined on the 15th and pays on the 16th.
const movingBook = header +
	"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n" +
	"1,a@example.com,2,gym,500,JPY,15,pm_sandbox_timeout\n" +
	"2,b@example.com,1,news,12.99,USD,15,pm_sandbox_flaky\n" +
	"5,e@example.com,1,news,12.99,USD,31,pm_card_visa\n"

// auditOf returns the audit of the store at the URL.
func (c *cli) auditOf(url string) []any {
	c.t.Helper()
	return members(c.object(exitDone, "verify", "--store", url), "ok", "subscriptions", "receipts", "charges", "problems")
}

// TestStoreCopy: a book moves in the middle of a month, and goes on in the other place.
func TestStoreCopy(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", movingBook))
	equal(t, "first day", c.object(exitDone, "run", "payments")["paid"], 2)
	before := c.must("export", "subscriptions")

	o := c.object(exitDone, "store", "copy", "--from", "pebble:duesday-data", "--to", "pebble:moved", "--shards", "4")
	equal(t, "copy", members(o, "live", "before", "charging", "shards", "different"), []any{true, false, true, 4, 0})
	equal(t, "to", o["to"], "pebble:moved")
	equal(t, "the same book", c.must("export", "subscriptions", "--store", "pebble:moved"), before)
	again := c.must("store", "copy", "--from", "pebble:duesday-data", "--to", "pebble:moved")
	contains(t, again, "nothing was done", "turned off permanently", "duesday run payments --store pebble:")

	for _, args := range [][]string{{"run", "payments"}, {"charging", "on"}, {"subscription", "pause", "1/1"}} {
		if r := c.run(args...); r.code != exitFailed || !strings.Contains(r.errors, "moved to another store: pebble:") {
			t.Errorf("%v on the source: exit %d, %s", args, r.code, r.errors)
		}
	}
	c.clock.Set(c.clock.Now().AddDate(0, 0, 1))
	equal(t, "second day", c.object(exitDone, "run", "payments", "--store", "pebble:moved")["paid"], 1)
	equal(t, "audit", c.auditOf("pebble:moved"), []any{true, 4, 3, 3, []any{}})

	r := c.run("store", "copy", "--from", "pebble:duesday-data", "--to", "pebble:moved", "--cancel")
	equal(t, "cancel", r.code, exitFailed)
	contains(t, r.errors, "is live, so it may already have charged customers")
	r = c.run("store", "copy", "--from", "pebble:duesday-data", "--to", "pebble:third")
	equal(t, "a second place", r.code, exitFailed)
	contains(t, r.errors, "was already moved")
	contains(t, c.must("store", "copy", "--from", "pebble:moved", "--to", "pebble:third"), "items copied from")
	equal(t, "audit of the third", c.auditOf("pebble:third"), []any{true, 4, 3, 3, []any{}})
}

// TestStoreCopy_DynamoDB: from a folder to DynamoDB and back to a folder, in the middle of a
// month.
func TestStoreCopy_DynamoDB(t *testing.T) {
	at, _ := onDynamo(t)
	c := newCLI(t)
	c.must("import", c.file("book.csv", movingBook))
	equal(t, "first day", c.object(exitDone, "run", "payments")["paid"], 2)
	before := c.must("export", "subscriptions")
	o := c.object(exitDone, "store", "copy", "--from", "pebble:duesday-data", "--to", at, "--shards", "4")
	equal(t, "there", members(o, "live", "charging", "shards"), []any{true, true, 4})
	equal(t, "the same book", c.must("export", "subscriptions", "--store", at), before)
	c.clock.Set(c.clock.Now().AddDate(0, 0, 1))
	equal(t, "second day", c.object(exitDone, "run", "payments", "--store", at)["paid"], 1)
	equal(t, "audit", c.auditOf(at), []any{true, 4, 3, 3, []any{}})
	o = c.object(exitDone, "store", "copy", "--from", at, "--to", "pebble:back", "--shards", "1")
	equal(t, "back", members(o, "live", "charging", "shards"), []any{true, true, 1})
	r := c.run("run", "payments", "--store", at)
	equal(t, "on what was moved", r.code, exitFailed)
	contains(t, r.errors, "moved to another store: pebble:")
	c.clock.Set(c.clock.Now().AddDate(0, 0, 15))
	equal(t, "the 31st", c.object(exitDone, "run", "payments", "--store", "pebble:back")["paid"], 1)
	equal(t, "audit", c.auditOf("pebble:back"), []any{true, 4, 4, 4, []any{}})
}

// TestStoreCopy_Cancel: a copy that is not live is given up, and the source charges again.
func TestStoreCopy_Cancel(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", movingBook))
	c.must("account", "create", "x", "--email", "x@example.com", "--store", "pebble:other")
	r := c.run("store", "copy", "--from", "pebble:duesday-data", "--to", "pebble:other")
	equal(t, "onto another store", r.code, exitFailed)
	contains(t, r.errors, "is already another store")
	equal(t, "nothing was done", c.object(exitDone, "store", "describe")["meta"].(map[string]any)["charging"], true)
	r = c.run("store", "copy", "--from", "pebble:duesday-data", "--to", "pebble:nowhere", "--cancel")
	equal(t, "nothing to cancel", r.code, exitFailed)
	contains(t, r.errors, "there is nothing to cancel, because no copy of pebble:")
	equal(t, "then", c.object(exitDone, "run", "payments")["paid"], 2)

	c.interrupted("pebble:duesday-data", "pebble:half")
	for url, want := range map[string]string{"pebble:duesday-data": "pebble:half",
		"pebble:half": "this is an unfinished copy of pebble:duesday-data; nobody charges before"} {
		r = c.run("run", "payments", "--store", url)
		equal(t, "meanwhile", r.code, exitFailed)
		contains(t, r.errors, "moved to another store: "+want)
		equal(t, "described", c.object(exitDone, "store", "describe", "--store", url)["meta"].(map[string]any)["charging"],
			false)
	}
	contains(t, c.must("store", "copy", "--from", "pebble:duesday-data", "--to", "pebble:half", "--cancel"),
		"is canceled and does not charge", "charges as before")
	r = c.run("store", "copy", "--from", "pebble:duesday-data", "--to", "pebble:half")
	contains(t, r.errors, "was canceled")
	c.clock.Set(c.clock.Now().AddDate(0, 0, 1))
	equal(t, "the source again", c.object(exitDone, "run", "payments")["paid"], 1)
	equal(t, "audit", c.auditOf("pebble:duesday-data"), []any{true, 4, 3, 3, []any{}})
}

// interrupted begins a copy, and stops it when it has copied something.
func (c *cli) interrupted(from, to string) {
	c.t.Helper()
	ctx, stop := context.WithCancel(c.t.Context())
	defer stop()
	p := newProgram(func(string) string { return "" }, strings.NewReader(""), io.Discard, io.Discard,
		c.clock.Now)
	p.Dir = c.dir
	var sides [2]move.Side
	for i, url := range []string{from, to} {
		place, err := p.PlaceOf(url)
		if err != nil {
			c.t.Fatal(err)
		}
		if sides[i].Tables, err = session.TablesAt(place); err != nil {
			c.t.Fatal(err)
		}
		if sides[i].Store, err = place.Open(c.t.Context(),
			storeurl.Options{Tables: sides[i].Tables.All(), Names: schema.Names(), Now: p.Now, Create: true}); err != nil {
			c.t.Fatal(err)
		}
	}
	run := transfer.Copy{From: sides[0], To: sides[1], FromName: from, ToName: to, Now: p.Now,
		Progress: func(_ transfer.Phase, n int64) {
			if n > 0 {
				stop()
			}
		}}
	_, err := run.Run(ctx)
	if !errors.Is(err, context.Canceled) {
		c.t.Fatalf("interrupted: %v", err)
	}
	for _, s := range sides {
		if err := s.Store.Close(); err != nil {
			c.t.Fatal(err)
		}
	}
}

func TestStoreCopy_Usage(t *testing.T) {
	c := newCLI(t)
	for want, args := range map[string]string{
		`required flag(s) "to" not set`:       "--from pebble:a",
		"must be different stores":            "--from pebble:a --to pebble:./a",
		"--rate must be 0 or more":            "--from pebble:a --to pebble:b --rate -1",
		"--shards must be 1 to 100 (got 101)": "--from pebble:a --to pebble:b --shards 101",
		"--segments must be 1 to 14":          "--from pebble:a --to pebble:b --segments 0",
		"ends with its process":               "--from pebble:a --to mem:",
		"no scheme":                           "--from a --to pebble:b",
	} {
		r := c.run(append([]string{"store", "copy"}, strings.Fields(args)...)...)
		equal(t, args, r.code, exitUsage)
		contains(t, r.errors, want)
	}
	r := c.run("store", "copy", "--from", "pebble:none", "--to", "pebble:b")
	equal(t, "no source", r.code, exitFailed)
	contains(t, r.errors, "there is no store at pebble:")
	if _, err := os.Stat(c.path("b")); err == nil {
		t.Error("the destination was made")
	}
}

// TestStoreCopy_IntoWrongTables: a table without an index is no destination; nothing was copied,
// and the source charges as before.
func TestStoreCopy_IntoWrongTables(t *testing.T) {
	at, prefix := onDynamo(t)
	c := newCLI(t)
	c.must("import", c.file("book.csv", movingBook))
	table := schema.New(prefix).RecurringPayments
	table.Indexes = table.Indexes[1:]
	if _, err := dynamotest.Client(t).CreateTable(t.Context(),
		dynamotable.Input(table, dynamotable.Settings{})); err != nil {
		t.Fatal(err)
	}
	r := c.run("store", "copy", "--from", "pebble:duesday-data", "--to", at)
	equal(t, "refused", r.code, exitFailed)
	contains(t, r.errors, "nothing was copied", "index GSI-1")
	r = c.run("store", "copy", "--from", at, "--to", "pebble:there")
	equal(t, "from nothing", r.code, exitFailed)
	contains(t, r.errors, "there is no store at dynamodb:")
	if _, err := os.Stat(c.path("there")); err == nil {
		t.Error("a destination was made of nothing")
	}
	equal(t, "first day", c.object(exitDone, "run", "payments")["paid"], 2)
}

// TestStoreBackup: charge, back up, charge more, restore. The run refuses, the processor's
// charges are adopted, and nothing is charged twice.
func TestStoreBackup(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", movingBook))
	equal(t, "first day", c.object(exitDone, "run", "payments")["paid"], 2)
	o := c.object(exitDone, "store", "backup", "--to", "backup")
	equal(t, "backup", members(o, "backup", "made"), []any{"backup", "2026-03-15T10:30:00.000Z"})
	r := c.run("store", "backup", "--to", "backup")
	equal(t, "again", r.code, exitFailed)
	contains(t, r.errors, "is not empty")
	c.clock.Set(c.clock.Now().AddDate(0, 0, 1))
	equal(t, "second day", c.object(exitDone, "run", "payments")["paid"], 1)
	c.clock.Set(c.clock.Now().AddDate(0, 0, 15)) // the 31st
	equal(t, "the 31st", c.object(exitDone, "run", "payments")["paid"], 1)
	equal(t, "audit", c.auditOf("pebble:duesday-data"), []any{true, 4, 4, 4, []any{}})

	r = c.run("store", "restore", "--from", "backup")
	equal(t, "onto the store", r.code, exitFailed)
	contains(t, r.errors, "a store already exists", "--replace")
	o = c.object(exitDone, "store", "restore", "--from", "backup", "--replace")
	equal(t, "restored", members(o, "made", "charging"), []any{"2026-03-15T10:30:00.000Z", false})
	aside, ok := o["aside"].(string)
	if is, err := os.Stat(c.path(aside)); !ok || err != nil || !is.IsDir() {
		t.Errorf("aside: %v, %v", o["aside"], err)
	}
	c.clock.Set(c.clock.Now().Add(time.Hour))
	r = c.run("run", "payments")
	equal(t, "refused", r.code, exitPerson)
	contains(t, r.errors, "charging is off", "duesday reconcile")
	c.must("charging", "on") // too early: the gate sees what the store does not know
	r = c.run("run", "payments")
	equal(t, "refused again", r.code, exitFailed)
	contains(t, r.errors, "the store went back in time",
		"1 payment intents that succeeded or were tried and that this store does not know", "duesday reconcile")
	r = c.run("run", "payments")
	contains(t, r.errors, "charging is off")
	equal(t, "reconcile", members(c.object(exitDone, "reconcile"), "adopted", "charging", "held", "sent_before"),
		[]any{1, false, 0, 1})
	c.must("charging", "on")
	// The flaky one is bound in the backup: its success is found by looking it up.
	o = c.object(exitDone, "run", "payments")
	equal(t, "settled", members(o, "paid", "retry", "failed"), []any{1, 0, 0})
	equal(t, "audit of the restored", c.auditOf("pebble:duesday-data"), []any{true, 4, 4, 4, []any{}})
	// Next month all is due once more, and only once.
	c.clock.Set(c.clock.Now().AddDate(0, 0, 15))
	c.object(exitDone, "run", "payments")
	c.clock.Set(c.clock.Now().AddDate(0, 0, 1))
	c.object(exitDone, "run", "payments")
	c.clock.Set(c.clock.Now().AddDate(0, 0, 15))
	c.object(exitDone, "run", "payments")
	equal(t, "audit a month on", c.auditOf("pebble:duesday-data"), []any{true, 4, 8, 8, []any{}})
}

// TestStoreBackup_WhileInUse: another command has the store open, and is asked.
func TestStoreBackup_WhileInUse(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", movingBook))
	var out, errs bytes.Buffer
	p := newProgram(func(string) string { return "" }, strings.NewReader(""), &out, &errs,
		c.clock.Now)
	p.Dir = c.dir
	p.Config.Store, p.Command = "pebble:duesday-data", "duesday run payments"
	if err := p.With(t.Context(), session.Need{}, func(*session.Session) error {
		c.must("store", "backup", "--to", "backup", "--timeout", "1m")
		return nil
	}); err != nil {
		t.Fatal(err, errs.String())
	}
	c.must("store", "restore", "--from", "backup", "--store", "pebble:restored")
	equal(t, "the same book", c.must("export", "subscriptions", "--store", "pebble:restored"),
		c.must("export", "subscriptions"))
}

func TestStoreBackup_Refused(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", movingBook))
	for i, test := range []struct{ args, want string }{
		{"backup --to duesday-data/backup", "must not contain each other"},
		{"backup --to b --store pebble:none", "there is no store at pebble:none"},
		{"backup --to b --store dynamodb:", "point-in-time recovery"},
		{"restore --from b --store dynamodb:", "point-in-time recovery"},
		{"restore --from duesday-data --store pebble:r", "not a finished backup"},
		{"restore --from none --store pebble:r", "not a finished backup"},
	} {
		r := c.run(append([]string{"store"}, strings.Fields(test.args)...)...)
		equal(t, fmt.Sprint(i), r.code, exitFailed)
		contains(t, r.errors, test.want)
	}
	// A backup that was cut short is none.
	c.must("store", "backup", "--to", "half")
	if err := os.Remove(c.path("half/BACKUP.json")); err != nil {
		t.Fatal(err)
	}
	r := c.run("store", "restore", "--from", "half", "--store", "pebble:r")
	contains(t, r.errors, "half is not a finished backup")
	left, err := filepath.Glob(c.path("r*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestStoreCopy_KilledAgainAndAgain kills the real binary with SIGKILL while it copies, until
// it has come through. Each time it goes on from where it was.
func TestStoreCopy_KilledAgainAndAgain(t *testing.T) {
	soaktest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	const many = 800
	var csv strings.Builder
	csv.WriteString(header)
	for i := range many {
		fmt.Fprintf(&csv, "a%d,a%d@example.com,s%d,gold,9.99,USD,15,pm_card_visa\n", i, i, i)
	}
	command := func(args ...string) *exec.Cmd {
		c := process(t, nil, args...)
		c.Dir = dir
		return c
	}
	if err := os.WriteFile(filepath.Join(dir, "book.csv"), []byte(csv.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, command("import", "book.csv"))
	kills := 0
	for round := range 40 {
		var out bytes.Buffer
		c := command("store", "copy", "--from", "pebble:duesday-data", "--to", "pebble:moved", "--rate", "5000", "--json")
		c.Stdout = &out
		if killed(t, c, after(time.Duration(100+100*round)*time.Millisecond)) {
			kills++
			continue
		}
		if v, ok := decode(t, out.String()).(map[string]any); !ok || v["live"] != true {
			t.Fatalf("copy: %s", out.String())
		}
		t.Logf("%d kills", kills)
		text, err := command("verify", "--store", "pebble:moved").Output()
		if err != nil {
			t.Fatalf("verify: %v\n%s", err, text)
		}
		contains(t, string(text), "subscriptions  800")
		return
	}
	t.Fatalf("%d kills, and it never came through", kills)
}
