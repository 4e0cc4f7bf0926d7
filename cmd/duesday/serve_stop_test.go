package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// buy sells something at our own account that is paid at once, and returns the purchase's id.
func (c *serveCLI) buy(key string) string {
	c.t.Helper()
	sold := c.object(exitDone, "purchase", "create", "--account", ownAccount, "--kind", "product", "--key", key, "--amount", "5", "--currency", "EUR",
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
	c.env["DUESDAY_SERVER"] = v.Base
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
	equal(t, "stopped", []any{r.code, r.errors}, []any{exitDone, ""})
	delete(c.env, "DUESDAY_SERVER")
	equal(t, "fulfilled", c.object(exitDone, "purchase", "show", id)["purchase"].(map[string]any)["fulfilled"], true)
}

// TestServe_GivesUp: what a command says can never be done waits for a person.
func TestServe_GivesUp(t *testing.T) {
	c := newServeCLI(t)
	v, stop := c.serve("--on-fulfil", c.job()+"; echo sold out with sk_test_hidden >&2; exit 100", "--no-poll")
	c.env["DUESDAY_SERVER"] = v.Base
	c.must("connect", "add", "--account", ownAccount, "acct_duesday")
	id := c.buy("1")
	c.await(1)
	equal(t, "stopped", stop().code, exitDone)
	delete(c.env, "DUESDAY_SERVER")
	o := c.object(exitDone, "outbox", "list")
	equal(t, "counts", members(o, "due", "later", "dead", "actions"), []any{0, 0, 0, map[string]int{"due": 0, "later": 0, "dead": 1}})
	dead := o["dead_letters"].([]any)[0].(map[string]any)
	equal(t, "dead letter", members(dead, "lane", "kind", "tries"), []any{"actions", "fulfil", 1})
	text := c.must("outbox", "list")
	contains(t, text, "0 due, 0 later, 0 given up\nactions: 0 due, 0 later, 1 given up\n", "the command says that it never can (exit 100): sold out with sk_test_***")
	if strings.Contains(text, "hidden") {
		t.Errorf("a secret is shown: %s", text)
	}
	contains(t, c.must("outbox", "replay", dead["id"].(string)), "is due again: a running duesday serve takes it")
	equal(t, "due", c.object(exitDone, "outbox", "list")["actions"], map[string]int{"due": 1, "later": 0, "dead": 0})
	_, stop = c.serve("--on-fulfil", c.job(), "--no-poll")
	equal(t, "fulfilled", c.await(1), map[string]int{"fulfil " + id: 1})
	equal(t, "stopped", stop().code, exitDone)
	equal(t, "then", members(c.object(exitDone, "outbox", "list"), "dead_letters", "actions"), []any{[]any{}, nil})
}

// TestServe_LogsWithoutACommand: nobody is told but the log, and the purchase says so.
func TestServe_LogsWithoutACommand(t *testing.T) {
	c := newServeCLI(t)
	v, stop := c.serve("--on-unsubscribe", c.job(), "--no-poll")
	c.env["DUESDAY_SERVER"] = v.Base
	c.must("connect", "add", "--account", ownAccount, "acct_duesday")
	id := c.buy("1")
	c.until("fulfilled", func() bool {
		return strings.Contains(c.must("purchase", "show", id), "fulfil by log for fulfil, command for unsubscribe")
	})
	r := stop()
	equal(t, "exit", r.code, exitDone)
	contains(t, r.errors, "no command is set for this action", "action=fulfil", "purchase="+id)
}
