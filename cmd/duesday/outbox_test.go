package main

import (
	"path/filepath"
	"testing"
	"time"
)

func TestOutbox(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n"))
	equal(t, "empty", c.object(exitDone, "outbox", "list"),
		map[string]any{"dead_letters": []any{}, "due": 0, "later": 0, "dead": 0})
	contains(t, c.must("outbox", "list"), "0 due, 0 later, 0 given up\n")
	c.file("no-folder", "")
	c.run("run", "payments", "--mail", "no-folder")
	equal(t, "put off", c.object(exitDone, "outbox", "list")["later"], 1)
	equal(t, "nothing is due", c.object(exitDone, "outbox", "send"),
		map[string]any{"delivered": 0, "dropped": 0, "failed": 0, "dead": 0})
	for range 8 {
		c.clock.Set(c.clock.Now().Add(25 * time.Hour))
		equal(t, "fails", c.object(exitPerson, "outbox", "send", "--mail", "no-folder")["failed"], 1)
	}
	c.clock.Set(c.clock.Now().Add(25 * time.Hour))
	equal(t, "due", c.object(exitDone, "outbox", "list")["due"], 1)
	r := c.run("outbox", "send", "--mail", "no-folder")
	if r.code != exitPerson {
		t.Errorf("exit %d", r.code)
	}
	contains(t, r.errors, "1 mail to no-folder can never be delivered; for details, run: duesday outbox list --mail no-folder")

	o := c.object(exitDone, "outbox", "list")
	equal(t, "counts", members(o, "due", "later", "dead"), []any{0, 0, 1})
	dead := o["dead_letters"].([]any)[0].(map[string]any)
	equal(t, "dead letter", members(dead, "kind", "email", "account", "subscription", "tries", "created_at"),
		[]any{"receipt", "a@example.com", "1", "1", 10, "2026-03-15T10:30:00.000Z"})
	id, reason := dead["id"].(string), dead["detail"].(string)
	contains(t, c.must("outbox", "list"), "0 due, 0 later, 1 given up", id, "receipt", "a@example.com", "10", reason,
		"duesday outbox replay ID")

	r = c.run("outbox", "replay", "nobody")
	if r.code != exitFailed || r.errors != "duesday: there is no mail nobody that was given up\n" {
		t.Errorf("exit %d, %s", r.code, r.errors)
	}
	equal(t, "replay", c.object(exitDone, "outbox", "replay", id), map[string]any{"replayed": id})
	equal(t, "then", c.object(exitDone, "outbox", "list"),
		map[string]any{"dead_letters": []any{}, "due": 1, "later": 0, "dead": 0})
	contains(t, c.must("outbox", "send"), "1 mail written to ./duesday-mail\n")
	mails, err := filepath.Glob(c.path("duesday-mail/*/receipt-*.eml"))
	if err != nil || len(mails) != 1 {
		t.Errorf("mails: %q, %v", mails, err)
	}
}

// TestOutbox_DropsWhatIsNotWanted has a reminder wait while its subscription is cancelled: the
// customer is told of that alone.
func TestOutbox_DropsWhatIsNotWanted(t *testing.T) {
	c := newCLI(t)
	c.create("1/1", "pm_card_visa", "--next-payment-date", "2026-03-22", "--payment-day", "22")
	c.file("no-folder", "")
	c.run("run", "reminders", "--mail", "no-folder")
	c.run("subscription", "cancel", "1/1", "--mail", "no-folder")
	c.clock.Set(c.clock.Now().Add(time.Hour))
	equal(t, "send", members(c.object(exitDone, "outbox", "send"), "delivered", "dropped"), []any{1, 1})
}
