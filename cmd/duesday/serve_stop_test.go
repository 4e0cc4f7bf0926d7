package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/duesday/duesday/stripefake"
)

// buy sells something at our own account that is paid at once, and returns the purchase's id.
func (c *serveCLI) buy(key string) string {
	c.t.Helper()
	sold := c.object(exitDone, "purchase", "create", "--account", ownAccount, "--kind", "product", "--key", key,
		"--amount", "5", "--currency", "EUR",
		"--email", "ann@example.com", "--payment-method", "pm_card_visa")
	return sold["purchase"].(map[string]any)["id"].(string)
}

// TestServe_FinishesWhatItHasBegun: a command that runs when serve is to stop ends by itself,
// and what it did is recorded.
func TestServe_FinishesWhatItHasBegun(t *testing.T) {
	c := newServeCLI(t)
	release := filepath.Join(t.TempDir(), "release")
	if err := syscall.Mkfifo(release, 0o600); err != nil {
		t.Fatal(err)
	}
	v, stop := c.serve("--on-fulfil", c.job()+"; read line < "+release+"; test \"$line\" = go", "--no-poll")
	c.must("connect", "add", "--account", ownAccount, "acct_duesday")
	id := c.buy("1")
	equal(t, "begun", c.await(1), map[string]int{"fulfil " + id: 1})
	stopped := make(chan result, 1)
	go func() { stopped <- stop() }()
	c.until("it takes nothing more", func() bool {
		res, err := http.Get(v.Base + "/healthz")
		if err == nil {
			res.Body.Close()
			http.DefaultClient.CloseIdleConnections()
		}
		return err != nil
	})
	f, err := os.OpenFile(release, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	r := <-stopped
	equal(t, "stopped", []any{r.code, r.errors}, []any{exitDone, noJobs + noKey})
	equal(t, "fulfilled", c.object(exitDone, "purchase", "show", id)["purchase"].(map[string]any)["fulfilled"], true)
}

// TestServe_GivesUp: what a command says can never be done waits for a person.
func TestServe_GivesUp(t *testing.T) {
	c := newServeCLI(t)
	_, stop := c.serve("--on-fulfil", c.job()+"; echo sold out with sk_test_hidden >&2; exit 100", "--no-poll")
	c.must("connect", "add", "--account", ownAccount, "acct_duesday")
	id := c.buy("1")
	c.await(1)
	equal(t, "stopped", stop().code, exitDone)
	o := c.object(exitDone, "outbox", "list")
	equal(t, "counts", members(o, "due", "later", "dead", "actions"),
		[]any{0, 0, 0, map[string]int{"due": 0, "later": 0, "dead": 1}})
	dead := o["dead_letters"].([]any)[0].(map[string]any)
	equal(t, "dead letter", members(dead, "lane", "kind", "tries"), []any{"actions", "fulfil", 1})
	text := c.must("outbox", "list")
	contains(t, text, "0 due, 0 later, 0 given up\nactions: 0 due, 0 later, 1 given up\n",
		"the command reported that it can never do this (exit code 100): sold out with sk_test_***")
	if strings.Contains(text, "hidden") {
		t.Errorf("a secret is shown: %s", text)
	}
	contains(t, c.must("outbox", "replay", dead["id"].(string)), "is due again; a running duesday serve processes it")
	equal(t, "due", c.object(exitDone, "outbox", "list")["actions"], map[string]int{"due": 1, "later": 0, "dead": 0})
	_, stop = c.serve("--on-fulfil", c.job(), "--no-poll")
	equal(t, "fulfilled", c.await(1), map[string]int{"fulfil " + id: 1})
	equal(t, "stopped", stop().code, exitDone)
	equal(t, "then", members(c.object(exitDone, "outbox", "list"), "dead_letters", "actions"), []any{[]any{}, nil})
}

// TestServe_LogsWithoutACommand: nobody is told but the log, and the purchase says so.
func TestServe_LogsWithoutACommand(t *testing.T) {
	c := newServeCLI(t)
	_, stop := c.serve("--on-unsubscribe", c.job(), "--no-poll")
	c.must("connect", "add", "--account", ownAccount, "acct_duesday")
	id := c.buy("1")
	c.until("fulfilled", func() bool {
		return strings.Contains(c.must("purchase", "show", id), "fulfil by log")
	})
	r := stop()
	equal(t, "exit", r.code, exitDone)
	contains(t, r.errors, "no automation accepts this action", "action=fulfil", "purchase="+id)
}

// TestServe_SettlesWhatBillingCharges: the customer authenticates a payment of Duesday's own
// subscription, and the event that tells of it settles the period, once.
func TestServe_SettlesWhatBillingCharges(t *testing.T) {
	c := newServeCLI(t)
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,15,pm_card_authenticationRequired\n"))
	if r := c.run("run", "payments"); r.code != exitDone && r.code != exitPerson {
		t.Fatal(r.errors)
	}
	open := c.object(exitDone, "subscription", "show", "1/1")["open"].(map[string]any)
	equal(t, "open", open["state"], "requires_action")
	_, stop := c.serve("--no-poll")
	if err := c.fake.Authenticate(open["intent"].(string), true); err != nil {
		t.Fatal(err)
	}
	c.until("taken in", func() bool {
		return strings.Contains(c.must("event", "list", "--waiting"),
			"payment_intent.succeeded")
	})
	equal(t, "stopped", stop().code, exitDone)
	equal(t, "not yet", c.list("receipt", "list", "1"), []any{})
	waiting := c.list("event", "list", "--waiting")[0].(map[string]any)["id"].(string)
	c.clock.Set(c.clock.Now().Add(time.Minute)) // a run that had confirmed it would have settled it by now
	_, stop = c.serve("--no-poll")
	equal(t, "stopped", stop().code, exitDone)
	equal(t, "settled", len(c.list("receipt", "list", "1")), 1)
	equal(t, "event", c.object(exitDone, "event", "show", waiting)["status"], "applied")
	equal(t, "replayed", c.list("replay", waiting)[0].(map[string]any)["status"], "applied")
	equal(t, "once", len(c.list("receipt", "list", "1")), 1)
}

// TestPoll_RunsUntilItIsStopped: as a process of its own, on the server's folder.
func TestPoll_RunsUntilItIsStopped(t *testing.T) {
	c := newServeCLI(t)
	c.serve("--on-fulfil", c.job(), "--no-poll")
	c.must("connect", "add", "--account", shopAccount, "acct_shop")
	if err := c.fake.SetFaults(stripefake.Faults{WebhookDrops: 1}); err != nil {
		t.Fatal(err)
	}
	sold := c.object(exitDone, "purchase", "create", "--account", shopAccount, "--kind", "legacy", "--key", "1",
		"--amount", "1", "--currency", "USD")
	intent, _, _ := strings.Cut(sold["client_secret"].(string), "_secret_")
	c.askAt("acct_shop", "POST", "/v1/payment_intents/"+intent+"/confirm",
		"payment_method=pm_card_visa&return_url=http://shop.example")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out strings.Builder
	now := c.clock.Now()
	p := newProgram(func(name string) string { return c.env[name] }, strings.NewReader(""), &out, io.Discard,
		func() time.Time { return now })
	p.Dir = c.dir
	done := make(chan int, 1)
	go func() { done <- p.run(ctx, []string{"poll"}) }()
	equal(t, "fulfilled", c.await(1), map[string]int{"fulfil " + sold["purchase"].(map[string]any)["id"].(string): 1})
	cancel()
	equal(t, "exit", <-done, exitDone)
	equal(t, "output", out.String(),
		"Every 10m0s, this command looks for events that pebble:./duesday-data is missing; --log-level info prints what it finds\n")

	r := c.run("rebuild")
	equal(t, "of a server", r.code, exitDone)
	delete(c.env, "DUESDAY_STRIPE_KEY")
	r = c.run("poll", "--once")
	equal(t, "no key", r.code, exitUsage)
	contains(t, r.errors, "DUESDAY_STRIPE_KEY")
}
