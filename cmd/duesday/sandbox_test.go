package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/test/soaktest"
)

// TestSandbox_Shared has two stores charge through one ledger at the same time.
func TestSandbox_Shared(t *testing.T) {
	c := newCLI(t)
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		folder := []string{"--store", "pebble:./" + name, "--mail", "./" + name + "-mail"}
		c.must(append([]string{"import", c.file(name+".csv", smallBook)}, folder...)...)
		wg.Go(func() {
			r := c.run(append([]string{"run", "payments", "--json"}, folder...)...)
			var o map[string]any
			if err := json.Unmarshal([]byte(r.out), &o); err != nil || r.code != exitPerson {
				t.Errorf("%s: exit %d, %s%s", name, r.code, r.out, r.errors)
				return
			}
			equal(t, name, members(o, "due", "paid", "retry", "failed", "pending"), []any{5, 2, 1, 1, 1})
		})
	}
	wg.Wait()
	for _, name := range []string{"a", "b"} {
		audit := c.object(exitFailed, "verify", "--store", "pebble:./"+name)
		equal(t, "audit of "+name, members(audit, "ok", "receipts", "charges", "foreign"), []any{false, 2, 2, 2})
		for _, x := range audit["problems"].([]any) {
			equal(t, "problem", x.(map[string]any)["kind"], "charged by another installation")
		}
		equal(t, "reconcile", c.object(exitDone, "reconcile", "--store", "pebble:./"+name)["adopted"], 0)
	}
	if n := strings.Count(c.read("duesday-sandbox.jsonl"), `"outcome":"succeeded"`); n != 4 {
		t.Errorf("%d charges in the ledger, want 4", n)
	}
}

func TestSandbox_Wrong(t *testing.T) {
	c := newCLI(t)
	for line, want := range map[string]string{
		"demo --store mem: --processor sandbox:x?lost=2":         "a rate from 0 to 1",
		"demo --store mem: --processor sandbox:http://1.2.3.4:1": "must be sandbox:FILE",
		"demo --store mem: --processor http://127.0.0.1:1":       "stripe or sandbox:FILE",
	} {
		r := c.run(strings.Fields(line)...)
		if r.code != exitUsage || r.out != "" {
			t.Errorf("duesday %s: exit %d, %s%s", line, r.code, r.out, r.errors)
		}
		contains(t, r.errors, want)
	}
}

// TestSandbox_KillNine has two stores charged through one ledger, and kills one of the processes with
// SIGKILL at random moments. In the end every subscription is charged exactly once.
func TestSandbox_KillNine(t *testing.T) {
	soaktest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(soaktest.Seed(t), 10))
	many := soaktest.Cases(t, 0, killSubscriptions*2/5, killSubscriptions)
	ledger := filepath.Join(dir, "ledger.jsonl")
	stores := []string{"a", "b"}
	command := func(store string, args ...string) *exec.Cmd {
		c := process(t, nil, append(args, "--json", "--store", "pebble:"+filepath.Join(dir, store),
			"--processor", "sandbox:"+ledger, "--mail", filepath.Join(dir, store+"-mail"))...)
		c.Stderr = nil
		return c
	}
	for i, store := range stores {
		mustRun(t, command(store, "import",
			dueBook(t, filepath.Join(dir, fmt.Sprint(i, ".csv")), 3, i, many, 2, "pm_card_visa",
				"pm_sandbox_timeout")))
	}
	for round := range 4 {
		var wg sync.WaitGroup
		for i, store := range stores {
			c := command(store, "run", "payments")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			if i == round%2 {
				timer := time.AfterFunc(time.Duration(20+random.IntN(many*2/5))*time.Millisecond, func() { _ = c.Process.Kill() })
				defer timer.Stop()
			}
			wg.Go(func() { _ = c.Wait() }) // with or without success
		}
		wg.Wait()
	}
	for _, store := range stores {
		mustRun(t, command(store, "run", "payments"))
		mustRun(t, command(store, "verify"))
	}
	checkLedger(t, ledger, many)
}
