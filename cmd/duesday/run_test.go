package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/command/runs"
	"github.com/duesday/duesday/internal/config"
)

func TestRun_Payments(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", smallBook))

	dry := c.object(exitDone, "run", "payments", "--dry-run")
	equal(t, "dry run", members(dry, "kind", "date", "due", "dry_run", "paid"), []any{"payments", today, 5, true, 0})
	would := dry["would_charge"].([]any)
	equal(t, "would charge", len(would), 5)
	first := map[string]map[string]any{}
	for _, w := range would {
		o := w.(map[string]any)
		first[o["account"].(string)+"/"+o["subscription"].(string)] = o
	}
	equal(t, "one of them", members(first["1/2"], "account", "subscription", "sku", "period", "due_date", "amount",
		"currency"),
		[]any{"1", "2", "gym", 0, today, 500, "JPY"})
	contains(t, c.must("run", "payments", "--dry-run"), "5 would be charged on "+today, "KWD 1.500  $38.97",
		"nothing was done")

	o := c.object(exitPerson, "run", "payments", "--workers", "3")
	periods := o["periods"].(map[string]any)
	for outcome, want := range map[string]string{"failed": "4/1 true declined: lost_card <nil>",
		"retried": "2/1 true declined: generic_decline 2026-03-16", "parked": "",
		"pending": "3/1 true the customer has to authenticate the payment <nil>", "unreadable": ""} {
		equal(t, outcome, names(periods[outcome].([]any), "new", "detail", "retry_date"), want)
	}
	equal(t, "mail", o["mail"], map[string]any{"written": 5, "to": "./duesday-mail"})
	delete(o, "periods")
	delete(o, "mail")
	delete(o, "elapsed_ms")
	equal(t, "run", o, map[string]any{"kind": "payments", "date": today, "from": "2026-02-08", "due": 5, "paid": 2,
		"retry": 1, "failed": 1,
		"pending": 1, "parked": 0, "asked": 0, "skipped": 0, "amounts": map[string]any{"USD": 1299, "JPY": 500}, "pending_customer": 1,
		"amounts_unpaid": map[string]any{"failed": map[string]any{"USD": 1299}, "retry": map[string]any{"USD": 1299}, "pending": map[string]any{"KWD": 1500},
			"pending_customer": map[string]any{"KWD": 1500}}})

	contains(t, c.must("run", "payments", "--dry-run"), "the customer has to authenticate", "\n0 would be charged on "+today+";")
	equal(t, "waits", members(c.object(exitDone, "run", "payments", "--dry-run"), "would_charge", "amounts"),
		[]any{[]any{}, map[string]any{}})

	// Again: what waits for the customer still does, which is nothing new, and nothing is charged twice.
	contains(t, c.must("run", "payments"), "1 due", "3/1", "pending  -    the customer", "duesday subscription show 3/1")

	c.clock.Set(c.clock.Now().AddDate(0, 0, 1))
	o = c.object(exitDone, "run", "payments")
	equal(t, "the day after", members(o, "due", "paid", "pending", "amounts"),
		[]any{2, 1, 1, map[string]any{"USD": 1299}})

	audit := c.object(exitDone, "verify")
	equal(t, "audit", members(audit, "ok", "subscriptions", "receipts", "charges", "problems"),
		[]any{true, 6, 3, 3, []any{}})
	contains(t, c.must("verify"), "The audit is clean", "subscriptions  6")
	mails, err := filepath.Glob(c.path("duesday-mail/*/*.eml"))
	if err != nil || len(mails) < 5 { // three receipts, a decline, a failure, an authentication
		t.Errorf("mails: %q, %v", mails, err)
	}
}

// TestRun_NamesThePeriods holds the text of a run that names some, and that old waits are cut off
// and new ones are not.
func TestRun_NamesThePeriods(t *testing.T) {
	c := newCLI(t)
	var book strings.Builder
	book.WriteString(smallBook)
	for i := range runs.ShownWaiting + 2 {
		fmt.Fprintf(&book, "6,f@example.com,%02d,news,1.00,USD,16,pm_card_authenticationRequired\n", i)
	}
	c.must("import", c.file("book.csv", book.String()))
	r := c.run("run", "payments")
	equal(t, "exit", r.code, exitPerson)
	_, text, _ := strings.Cut(r.out, "\n\n")
	equal(t, "text", text, `Failed:
SUBSCRIPTION  PERIOD  DUE         AMOUNT  REASON
4/1           0       2026-03-15  $12.99  declined: lost_card

Declined, to be tried again:
SUBSCRIPTION  PERIOD  DUE         AMOUNT  NEXT ATTEMPT  REASON
2/1           0       2026-03-15  $12.99  2026-03-16    declined: generic_decline

Waiting for the customer or for you:
SUBSCRIPTION  PERIOD  DUE         AMOUNT     OUTCOME  NEW  REASON
3/1           0       2026-03-15  KWD 1.500  pending  new  the customer has to authenticate the payment

For details, run: duesday subscription show 3/1
`)
	r = c.run("run", "watch")
	equal(t, "watch", r.code, exitPerson)
	contains(t, r.out, "\nTo list the failed periods, run: duesday period list --ending failed --from 2026-03-15\n")
	c.clock.Set(c.clock.Now().AddDate(0, 0, 1))
	r = c.run("run", "payments")
	equal(t, "exit", r.code, exitPerson)
	equal(t, "new", strings.Count(r.out, " new "), runs.ShownWaiting+2)
	contains(t, r.out, "3/1           0       2026-03-15  KWD 1.500  pending  -    the customer")
	out := c.must("run", "payments")
	equal(t, "old", strings.Count(out, "pending  -"), runs.ShownWaiting)
	contains(t, out, "and 3 more that have been waiting since earlier runs\n")
	c.clock.Set(c.clock.Now().Add(time.Minute)) // so that it is the latest one
	equal(t, "in JSON", len(c.object(exitDone, "run", "payments")["periods"].(map[string]any)["pending"].([]any)),
		runs.ShownWaiting+3)
	contains(t, c.must("run", "watch"), "23 due")
}

func TestRun_Reminders(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", header+"5,e@example.com,1,news,12.99,USD,31,pm_card_visa\n"))
	c.clock.Set(c.clock.Now().AddDate(0, 0, 9)) // a week before the 31st
	dry := c.object(exitDone, "run", "reminders", "--dry-run")
	equal(t, "would remind", len(dry["would_remind"].([]any)), 1)
	contains(t, c.must("run", "reminders", "--dry-run"), "1 would be reminded")
	o := c.object(exitDone, "run", "reminders")
	if o["from"] == "" || o["elapsed_ms"] == nil {
		t.Errorf("run: %v", o)
	}
	delete(o, "elapsed_ms")
	delete(o, "from")
	equal(t, "run", o, map[string]any{"kind": "reminders", "date": "2026-03-24", "due": 1, "written": 1, "skipped": 0,
		"failed": 0, "mail": map[string]any{"written": 1, "to": "./duesday-mail"}})
	contains(t, c.must("run", "reminders"), "reminders for 2026-03-24", "0 due")
	mails, err := filepath.Glob(c.path("duesday-mail/*/reminder-*.eml"))
	if err != nil || len(mails) != 1 {
		t.Errorf("mails: %q, %v", mails, err)
	}
}

func TestRun_ChargingOff(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", smallBook))
	off := c.object(exitDone, "charging", "off", "--reason", "holiday")
	equal(t, "off", off, map[string]any{"charging": false, "reason": "holiday", "actor": off["actor"]})
	if actor, _ := off["actor"].(string); !strings.HasPrefix(actor, "user ") {
		t.Error(actor)
	}
	r := c.run("run", "payments")
	if r.code != exitPerson {
		t.Errorf("exit %d", r.code)
	}
	contains(t, r.errors, "charging is off (holiday)", "duesday charging on")
	equal(t, "nothing was charged", c.object(exitDone, "verify")["charges"], 0)
	equal(t, "on", c.object(exitDone, "charging", "on"), map[string]any{"charging": true, "actor": off["actor"]})
	equal(t, "then", c.object(exitPerson, "run", "payments")["paid"], 2)
}

func TestRun_ADateAheadIsForTheSandbox(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,20,pm_card_visa\n"))
	o := c.object(exitDone, "run", "payments", "--date", "2026-03-20", "--ahead")
	equal(t, "ahead", members(o, "date", "paid"), []any{"2026-03-20", 1})
}

// TestRun_ADateAheadIsRefused: without --ahead no command takes a business day that has begun in no
// time zone by the clock it lives by, the machine's or a test clock; and nothing is done.
func TestRun_ADateAheadIsRefused(t *testing.T) {
	c := newCLI(t) // it is 2026-03-15 10:30 UTC, and 00:30 of the 16th at UTC+14
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,20,pm_card_visa\n"))
	before := c.object(exitDone, "subscription", "show", "1/1")
	for _, line := range []string{"run payments", "run reminders", "subscription update 1/1 --amount 3", "subscription pause 1/1",
		"subscription update --where sku=news --amount 3 --yes", "subscription resume 1/1", "subscription skip 1/1",
		"subscription cancel 1/1"} {
		r := c.run(append(strings.Fields(line), "--date", "2026-03-17")...)
		if r.code != exitUsage {
			t.Errorf("%s: exit %d", line, r.code)
		}
		contains(t, r.errors, "--date 2026-03-17 has not begun in any time zone", "--ahead")
	}
	equal(t, "the subscription", c.object(exitDone, "subscription", "show", "1/1"), before)
	equal(t, "runs", c.list("run", "list"), []any{})
	c.must("run", "payments", "--date", "2026-03-16")
	contains(t, c.must("run", "payments", "--date", "2026-03-20", "--dry-run"), "1 would be charged")
	c.env[config.EnvClock] = "2026-03-19T09:59:59Z,1s/s"
	equal(t, "by a test clock before the day", c.run("run", "payments", "--date", "2026-03-20").code, exitUsage)
	c.env[config.EnvClock] = "2026-03-19T10:00:00Z,1s/s"
	equal(t, "charged", c.object(exitDone, "run", "payments", "--date", "2026-03-20")["paid"], 1)
}

// TestRun_MailThatDoesNotLeave: the run is done, names the first reason, and exits with 3. The mail
// leaves with a later run.
func TestRun_MailThatDoesNotLeave(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n"))
	c.file("no-folder", "")
	r := c.run("run", "payments", "--mail", "no-folder")
	if r.code != exitPerson {
		t.Errorf("exit %d: %s", r.code, r.errors)
	}
	contains(t, r.errors, "1 mail to no-folder failed; later runs try again; first error: ", "not a directory")
	c.clock.Set(c.clock.Now().Add(10 * time.Second))
	m := c.object(exitPerson, "run", "payments", "--mail", "no-folder")["mail"].(map[string]any)
	equal(t, "mail", members(m, "written", "to", "put_off"), []any{0, "no-folder", 1})
	contains(t, m["detail"].(string), "not a directory")
	c.clock.Set(c.clock.Now().Add(10 * time.Minute))
	contains(t, c.must("run", "payments"), "also: 1 mail written to ./duesday-mail\n")
	mails, err := filepath.Glob(c.path("duesday-mail/*/receipt-*.eml"))
	if err != nil || len(mails) != 1 {
		t.Errorf("mails: %q, %v", mails, err)
	}
}

// TestRun_SeedModel is the published model, day by day.
func TestRun_SeedModel(t *testing.T) {
	model, err := filepath.Abs("../../internal/book/testdata/RecurringPaymentsSchema.json")
	if err != nil {
		t.Fatal(err)
	}
	c := newCLI(t)
	o := c.object(exitDone, "import", model, "--overdue", "charge")
	equal(t, "import", members(o, "created", "existing", "due", "receipts", "rejected"), []any{1, 0, 1, 1, []any{}})
	o = c.object(exitDone, "import", model)
	equal(t, "import again", members(o, "created", "existing", "due", "receipts"), []any{0, 1, 0, 0})

	due := c.list("due", "reminders", "--date", "2023-06-21")
	equal(t, "due reminders", due,
		[]any{map[string]any{"account": "123", "subscription": "123", "sku": "999", "email": "s@s.com",
			"next_reminder_date": "2023-06-21", "next_payment_date": "2023-06-28"}})
	equal(t, "due a day later", c.list("due", "reminders", "--date", "2023-06-22"), []any{})
	o = c.object(exitDone, "run", "reminders", "--date", "2023-06-21")
	equal(t, "reminders", members(o, "due", "written"), []any{1, 1})

	due = c.list("due", "payments", "--until", "2023-06-30")
	equal(t, "due payments", members(due[0].(map[string]any), "account", "amount", "currency", "next_payment_date",
		"payment_method"),
		[]any{"123", 1299, "USD", "2023-06-28", "pm_card_visa"})
	o = c.object(exitDone, "run", "payments", "--date", "2023-06-28")
	equal(t, "payments", members(o, "due", "paid", "amounts"), []any{1, 1, map[string]any{"USD": 1299}})
	equal(t, "audit", members(c.object(exitDone, "verify"), "ok", "receipts", "charges", "imported"), []any{true, 1, 1, 1})
	for _, text := range []string{c.read("duesday-sandbox.jsonl"), c.must("subscription", "show", "123/123", "--json"),
		c.must("export", "subscriptions")} {
		if strings.Contains(text, "1234123412341234") {
			t.Errorf("default-card: %s", text)
		}
	}
}
