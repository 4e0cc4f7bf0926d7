package main

import (
	"os"
	"strings"
	"testing"
)

func TestDemo(t *testing.T) {
	c := newCLI(t)
	out := c.must("demo", "--accounts", "40", "--months", "2")
	contains(t, out, "MONTH", "2026-01", "2026-03", "The audit is clean", "Next, try:",
		"  duesday verify --store pebble:./duesday-demo/data --processor sandbox:./duesday-demo/sandbox.jsonl\n")
	// Every command that it names works.
	_, hints, _ := strings.Cut(out, "Next, try:\n")
	for line := range strings.Lines(hints) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "duesday "); ok {
			if r := c.run(strings.Fields(command)...); r.code != exitDone && r.code != exitPerson {
				t.Errorf("duesday %s: exit %d, %s", command, r.code, r.errors)
			}
		}
	}
	if _, err := os.Stat(c.path("duesday-sandbox.jsonl")); err == nil {
		t.Error("the demo has touched the usual ledger")
	}
}

// TestDemo_FollowsFromItsSeed also holds that a demo replaces the one before.
func TestDemo_FollowsFromItsSeed(t *testing.T) {
	c := newCLI(t)
	var months []any
	for range 2 {
		o := c.object(exitDone, "demo", "--accounts", "30", "--months", "1", "--seed", "7")
		equal(t, "demo", members(o, "ok", "accounts", "seed", "store"), []any{true, 30, 7, "pebble:./duesday-demo/data"})
		months = append(months, o["months"])
	}
	equal(t, "the same again", months[1], months[0])
	o := c.object(exitDone, "demo", "--accounts", "30", "--months", "1", "--seed", "8", "--store", "mem:",
		"--smtp", "smtp://localhost:1") // made-up customers get no real mail
	audit := o["audit"].(map[string]any)
	equal(t, "audit", members(audit, "ok", "problems"), []any{true, []any{}})
	if _, err := os.Stat(c.path("duesday-mail")); err == nil {
		t.Error("a demo in memory leaves mail behind")
	}
}

func TestDemo_DeletesNothingThatIsNotADemo(t *testing.T) {
	c := newCLI(t)
	if err := os.Mkdir(c.path("duesday-demo"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.file("duesday-demo/mine", "")
	r := c.run("demo", "--accounts", "1", "--months", "1")
	if r.code != exitFailed {
		t.Errorf("exit %d", r.code)
	}
	contains(t, r.errors, "was not created by a demo")
	c.read("duesday-demo/mine")

	c.must("account", "create", "1", "--email", "a@example.com")
	r = c.run("demo", "--accounts", "1", "--months", "1", "--store", "pebble:./duesday-data")
	if r.code != exitFailed {
		t.Errorf("exit %d", r.code)
	}
	contains(t, r.errors, "is not empty")
	c.must("demo", "--accounts", "2", "--months", "1", "--store", "pebble:./fresh")
	c.read("fresh-sandbox.jsonl")
}
