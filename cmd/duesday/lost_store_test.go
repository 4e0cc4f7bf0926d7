package main

import (
	"os"
	"testing"
)

// TestLostStore_MadeAgain: with the built-in processor, where no money moves, the first run of a store
// that was lost and made again warns and goes on. The audit says what has happened, until a person has
// accepted it.
func TestLostStore_MadeAgain(t *testing.T) {
	c := newCLI(t)
	book := c.file("book.csv", smallBook)
	lost := c.object(exitDone, "store", "create")["installation"].(string)
	c.must("import", book)
	equal(t, "the first store", c.object(exitPerson, "run", "payments")["paid"], 2)
	if err := os.RemoveAll(c.path("duesday-data")); err != nil {
		t.Fatal(err)
	}
	c.must("import", book)
	r := c.run("run", "payments")
	equal(t, "the run", r.code, exitPerson)
	contains(t, r.errors, "another installation has charged subscriptions of this store", lost, "To start over",
		"charging on --accept-other-installation "+lost)
	o := c.object(exitFailed, "verify")
	equal(t, "audit", members(o, "ok", "foreign"), []any{false, 2})
	for _, x := range o["problems"].([]any) {
		equal(t, "problem", x.(map[string]any)["kind"], "charged by another installation")
	}
	own := c.object(exitDone, "store", "describe")["meta"].(map[string]any)["installation"].(string)
	for _, id := range []string{own, "a b"} {
		if r := c.run("charging", "on", "--accept-other-installation", id); r.code != exitUsage {
			t.Errorf("%q: exit %d, %s", id, r.code, r.out)
		}
	}
	equal(t, "accepted", c.object(exitDone, "charging", "on", "--accept-other-installation", lost)["accepted_installation"], lost)
	equal(t, "audit", c.object(exitDone, "verify")["ok"], true)
}
