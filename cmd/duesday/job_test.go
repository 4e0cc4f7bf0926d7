package main

import (
	"os"
	"testing"
)

// TestJob has a job given up, looked at and done after all, while duesday serve has the store.
func TestJob(t *testing.T) {
	c := newServeCLI(t)
	_, stop := c.serve("--on-fulfil",
		"read -r job && test \"$DUESDAY_KEY\" = order-1 && test -e ready || { echo no such product; exit 100; }; "+c.job(),
		"--no-poll")
	c.must("connect", "add", "--account", ownAccount, "acct_duesday")
	equal(t, "none", c.list("job", "list"), []any{})
	id := c.buy("order-1")
	job := "fulfil/" + id
	c.until("given up", func() bool {
		l := c.list("job", "list")
		return len(l) == 1 &&
			l[0].(map[string]any)["dead"] == true
	})
	equal(t, "job", members(c.list("job", "list")[0].(map[string]any), "id", "action", "purchase"),
		[]any{job, "fulfil", id})
	contains(t, c.must("job", "list"), job, "given up", "no such product", "1 job, 1 given up", "duesday job replay JOB")
	contains(t, c.must("purchase", "show", id), "key", "order-1", "job "+job, "given up: ", "no such product")
	contains(t, c.must("purchase", "list", "--account", ownAccount), "KEY", "order-1")
	contains(t, c.must("outbox", "list"), "actions") // beside the server

	if err := os.WriteFile(c.path("ready"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	equal(t, "replay", c.object(exitDone, "job", "replay", job), map[string]any{"replayed": job})
	equal(t, "done", c.await(1), map[string]int{"fulfil " + id: 1})
	c.until("no job is left", func() bool { return len(c.list("job", "list")) == 0 })
	equal(t, "fulfilled", c.object(exitDone, "purchase", "show", id)["purchase"].(map[string]any)["fulfilled"], true)
	equal(t, "exit", stop().code, exitDone)

	// The same without a server.
	contains(t, c.must("job", "list"), "0 jobs, 0 given up")
	contains(t, c.run("job", "replay", job).errors, "there is no job "+job+" that was given up")
}
