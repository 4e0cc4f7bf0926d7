package main

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

// overdueBook has, on 2026-03-15, rows with 87, two and 324 periods due, and rows with one or none.
const overdueBook = "account,email,subscription,sku,amount,currency,payment_day,payment_method,next_payment_date,start_date," +
	"interval,installments\n" +
	"1,a@example.com,1,news,1.00,USD,31,pm_card_visa,2018-12-31,,monthly,2\n" +
	"2,b@example.com,1,news,1.00,USD,15,pm_card_visa,2026-02-15,,monthly,\n" +
	"3,c@example.com,1,news,1.00,USD,1,pm_card_visa,,2020-01-01,weekly,\n" +
	"4,d@example.com,1,news,1.00,USD,16,pm_card_visa,2026-02-16,,monthly,\n" +
	"5,e@example.com,1,news,1.00,USD,15,pm_card_visa,2026-03-15,,,\n" +
	"6,f@example.com,1,news,1.00,USD,20,pm_card_visa,2025-03-20,,yearly,\n"

// TestImport_Overdue: rows with several periods due are refused by line and counted, in a new store,
// in one with accounts, in a dry run and with --update, and nothing is written; --overdue decides.
func TestImport_Overdue(t *testing.T) {
	c := newCLI(t)
	c.file("book.csv", overdueBook)
	refused := func(args ...string) {
		t.Helper()
		o := c.object(exitFailed, append([]string{"import", "book.csv"}, args...)...)
		equal(t, "refused", members(o, "created", "overdue", "rejected_rows"), []any{0, 3, 3})
		var lines []any
		for _, r := range o["rejected"].([]any) {
			lines = append(lines, members(r.(map[string]any), "line", "column"))
		}
		equal(t, "lines", lines, []any{[]any{2, "next_payment_date"}, []any{3, "next_payment_date"}, []any{4, "start_date"}})
		contains(t, c.run(append([]string{"import", "book.csv"}, args...)...).errors, "for 3 overdue rows add --overdue charge or --overdue skip")
	}
	refused()
	refused("--dry-run")
	contains(t, c.run("import", "book.csv", "--dry-run", "--skip-bad").out, "3  (left out; add --overdue charge or --overdue skip)")
	if _, err := os.Stat(c.path("duesday-data")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused import has made a store: %v", err)
	}
	contains(t, c.run("import", "book.csv").out, "87 periods are due from 2018-12-31 on", "--overdue skip begins on 2026-03-31")
	c.create("9/1", "pm_card_visa")
	refused()
	refused("--update")
	equal(t, "stored", len(c.list("subscription", "list")), 1)
	for _, how := range []string{"", "--dry-run"} {
		if r := c.run("import", "book.csv", "--overdue", "never", how); r.code != exitUsage {
			t.Errorf("--overdue never: exit %d", r.code)
		}
	}
}

func TestImport_OverdueSkip(t *testing.T) {
	c := newCLI(t)
	c.file("book.csv", overdueBook)
	for _, args := range [][]string{{"--dry-run"}, {}} {
		o := c.object(exitDone, append([]string{"import", "book.csv", "--overdue", "skip"}, args...)...)
		// due: 2/1 on this day, 4/1 and 6/1 with their one period, and 5/1
		equal(t, "skipped", members(o, "created", "overdue", "due"), []any{6, 3, 4})
		equal(t, "notes", len(o["notes"].([]any)), 3)
	}
	for name, want := range map[string][]any{"1/1": {0, "2026-03-31", "2026-03-24", 2}, "2/1": {0, "2026-03-15", nil, nil},
		"3/1": {0, "2026-03-16", "2026-03-15", nil}, "4/1": {0, "2026-02-16", "2026-02-09", nil}} {
		o := c.object(exitDone, "subscription", "show", name)
		if name == "2/1" {
			want[2] = "2026-03-08"
		}
		equal(t, name, members(o, "period", "due_date", "next_reminder_date", "installments"), want)
	}
	equal(t, "paid", c.object(exitDone, "run", "payments")["paid"], 4)
	c.must("verify")
	c.clock.Set(c.clock.Now().AddDate(0, 0, 46))
	c.run("run", "payments") // parks the weekly one
	equal(t, "both installments", members(c.object(exitDone, "subscription", "show", "1/1"), "status", "paid_periods"),
		[]any{"completed", 2})
	c.must("verify")
}

// TestImport_OverdueLeftOut: with --skip-bad the overdue rows go to the file of bad rows, and only they do.
func TestImport_OverdueLeftOut(t *testing.T) {
	c := newCLI(t)
	c.file("book.csv", overdueBook)
	o := c.object(exitPerson, "import", "book.csv", "--skip-bad")
	equal(t, "imported", members(o, "created", "overdue", "rejected_rows"), []any{3, 3, 3})
	o = c.object(exitDone, "import", "book.csv.rejected", "--ignore-columns", "line,reason", "--overdue", "skip")
	equal(t, "then", members(o, "created", "overdue"), []any{3, 3})
}

// TestImport_OverdueCharge: what is due is charged, as many periods as a run catches up with, and the
// same file again is no new subscription, and needs no --overdue.
func TestImport_OverdueCharge(t *testing.T) {
	c := newCLI(t)
	c.file("book.csv", overdueBook)
	o := c.object(exitDone, "import", "book.csv", "--overdue", "charge")
	equal(t, "imported", members(o, "created", "overdue", "due"), []any{6, 3, 6})
	equal(t, "again", members(c.object(exitDone, "import", "book.csv"), "created", "existing", "overdue"), []any{0, 6, nil})
	equal(t, "run", members(c.object(exitPerson, "run", "payments"), "paid", "parked"), []any{10, 1})
	c.must("verify", "--json")
}

// TestSubscription_SkipUntil: what an import of old dates has left overdue is skipped to a day, by one
// command that may be repeated.
func TestSubscription_SkipUntil(t *testing.T) {
	c := newCLI(t)
	c.file("book.csv", overdueBook)
	c.must("import", "book.csv", "--overdue", "charge")
	o := c.object(exitDone, "subscription", "skip", "1/1", "--until", today)
	equal(t, "skipped", members(o, "status", "period", "due_date", "paid_periods"), []any{"active", 87, "2026-03-31", 0})
	equal(t, "again", c.object(exitDone, "subscription", "skip", "1/1", "--until", today)["changed"], map[string]any{})
	equal(t, "records", len(c.list("period", "list", "1/1", "--ending", "skipped")), 87)
	equal(t, "the day itself", c.object(exitDone, "subscription", "skip", "2/1", "--until", today)["due_date"], today)
	equal(t, "and it", c.object(exitDone, "subscription", "skip", "2/1", "--until", "2026-03-16")["due_date"], "2026-04-15")
	r := c.run("subscription", "skip", "5/1", "--until", "2026-03-17")
	equal(t, "ahead", r.code, exitUsage)
	contains(t, r.errors, "until: must be 2026-03-16 or earlier")
	c.must("verify")
}
