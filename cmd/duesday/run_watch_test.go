package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A liveRun is a store with a payment run under way in a process of its own.
type liveRun struct {
	*testing.T
	dir  string
	env  []string
	live *exec.Cmd
}

// startRun imports a book and starts its payment run. It returns when the run has dealt with rows.
func startRun(t *testing.T, subscriptions int) *liveRun {
	t.Helper()
	t.Parallel()
	r := &liveRun{T: t, dir: t.TempDir(), env: []string{"DUESDAY_PROCESSOR=sandbox:./ledger.jsonl?latency=30ms"}}
	mustRun(t, r.process("import", dueBook(t, r.dir+"/book.csv", 0, 0, subscriptions, 1, "pm_card_visa")))
	r.live = r.process("run", "payments", "--workers", "1")
	r.live.Stderr = nil
	if err := r.live.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); ; {
		if runs := r.list(); len(runs) > 0 && runs[0].State == "running" && runs[0].Paid > 0 {
			return r
		}
		if time.Now().After(end) {
			t.Fatal("the run does not begin")
		}
	}
}

// process returns a command of the product in the folder.
func (r *liveRun) process(args ...string) *exec.Cmd {
	c := process(r.T, r.env, args...)
	c.Dir = r.dir
	return c
}

// A listed run is one of run list --json, or of run watch --json.
type listed struct {
	ID, State, Kind, Process, Detail string
	Due, Paid, Rows                  int
	ChargingOff                      bool `json:"charging_off"`
}

func (r *liveRun) list() (runs []listed) {
	r.Helper()
	out, err := r.process("run", "list", "--json").Output()
	if err == nil {
		err = json.Unmarshal(out, &runs)
	}
	if err != nil {
		r.Fatalf("run list: %v\n%s", err, out)
	}
	return runs
}

// beside starts a command, and returns when it has written the word to standard error. end returns
// its exit code and outputs.
func (r *liveRun) beside(word string, args ...string) (end func() (code int, out, errors string)) {
	r.Helper()
	c := r.process(args...)
	var out strings.Builder
	c.Stdout, c.Stderr = &out, nil
	pipe, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		r.Fatal(err)
	}
	said := ""
	lines := bufio.NewReader(pipe)
	for word != "" && !strings.Contains(said, word) {
		line, err := lines.ReadString('\n')
		if said += line; err != nil {
			r.Fatalf("%v has not said %q: %s", args, word, said)
		}
	}
	return func() (int, string, string) {
		rest, _ := io.ReadAll(lines)
		_ = c.Wait() // the code tells
		return c.ProcessState.ExitCode(), out.String(), said + string(rest)
	}
}

// TestRun_AttachesAndTakesOver: beside a live run a second one attaches to it. The live run is
// killed; the second one goes on at once, and does the rest. A run of another day waits.
func TestRun_AttachesAndTakesOver(t *testing.T) {
	r := startRun(t, 300)
	first := r.list()[0]
	attached := r.beside("attached to it", "run", "payments")
	dry := r.process("run", "payments", "--dry-run")
	mustRun(t, dry)
	if err := r.live.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.live.Wait() // it was killed
	killed := time.Now()
	code, out, said := attached()
	if took := time.Since(killed); took > 60*time.Second {
		t.Errorf("the rest was done after %s", took)
	}
	contains(t, said, strings.Replace(first.ID, "~", "#", 1), fmt.Sprint("process ", r.live.Process.Pid, "@"), "was broken off; this process continues it")
	contains(t, out, "payments for", "paid")
	runs := r.list()
	if code != exitDone || len(runs) != 2 || runs[0].State != "completed" || runs[1].State != "broken_off" ||
		runs[1].ID != first.ID || runs[0].Paid == 0 || runs[0].Paid+runs[1].Paid > 300 {
		t.Errorf("exit %d, runs %+v", code, runs)
	}
	mustRun(t, r.process("verify"))
}

// TestRun_WatchedAndStopped: a watcher and an attached run see a live run stop when charging is
// switched off, and end with its balance and its exit code.
func TestRun_WatchedAndStopped(t *testing.T) {
	r := startRun(t, 300)
	attached := r.beside("attached to it", "run", "payments")
	tomorrow := time.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly)
	waits := r.beside("waiting for it to end before running "+tomorrow, "run", "payments", "--date", tomorrow, "--ahead")
	watch := r.beside("", "run", "watch", "--json")
	mustRun(t, r.process("charging", "off", "--reason", "holiday"))
	off := time.Now()
	_ = r.live.Wait() // the code tells
	if took := time.Since(off); took > 5*time.Second || r.live.ProcessState.ExitCode() != exitPerson {
		t.Errorf("the run ended %s after charging off, with %d", took, r.live.ProcessState.ExitCode())
	}
	last := r.list()[0]
	if last.State != "ended" || !last.ChargingOff || last.Paid == 0 || last.Paid > 290 || last.Detail == "" {
		t.Errorf("its record: %+v", last)
	}
	code, out, said := attached()
	if code != exitPerson {
		t.Errorf("the attached run: exit %d", code)
	}
	contains(t, out, fmt.Sprintf("paid     %d ", last.Paid))
	contains(t, said, "charging is off (holiday), so nothing more was charged")
	if code, _, said = waits(); code != exitPerson {
		t.Errorf("the run of another day: exit %d", code)
	}
	contains(t, said, "charging is off (holiday), so nothing was charged")
	code, out, said = watch()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var shown listed
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &shown); err != nil || shown != last || code != exitPerson {
		t.Errorf("watch: exit %d, %v\n%s%s", code, err, out, said)
	}
	mustRun(t, r.process("charging", "on"))
	mustRun(t, r.process("run", "payments"))
	mustRun(t, r.process("verify"))
	if runs := r.list(); runs[0].Paid != 300-last.Paid || runs[0].State != "completed" {
		t.Errorf("then: %+v", runs[0])
	}
}

func TestRun_ListAndShow(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", smallBook))
	equal(t, "no runs", c.list("run", "list"), []any{})
	contains(t, c.run("run", "watch").errors, "there has been no run")
	c.run("run", "payments")
	c.must("run", "reminders")
	runs := c.list("run", "list")
	if len(runs) != 2 || len(c.list("run", "list", "--limit", "1")) != 1 {
		t.Fatalf("runs: %v", runs)
	}
	payments := c.list("run", "list", "--kind", "payments")[0].(map[string]any)
	equal(t, "the payment run", members(payments, "kind", "state", "date", "due", "paid", "pending", "rows", "amounts"),
		[]any{"payments", "completed", today, 5, 2, 1, 5, map[string]any{"USD": 1299, "JPY": 500}})
	if actor, _ := payments["actor"].(string); !strings.HasPrefix(actor, "user ") {
		t.Errorf("the payment run was started by %q", actor)
	}
	id := payments["id"].(string)
	equal(t, "show", c.object(exitDone, "run", "show", id), payments)
	contains(t, c.must("run", "show", id), "payments for "+today, "state      completed", "retry-days=1,3,5,7")
	r := c.run("run", "watch", id)
	if r.code != exitPerson {
		t.Errorf("watch: exit %d", r.code)
	}
	contains(t, r.out, "payments for "+today, "$12.99")
	for _, command := range []string{"show", "watch"} {
		if r := c.run("run", command, "none"); r.code != exitFailed || !strings.Contains(r.errors, "there is no run none") {
			t.Errorf("run %s none: %+v", command, r)
		}
	}
	if r := c.run("run", "list", "--kind", "both"); r.code != exitUsage {
		t.Errorf("--kind both: %+v", r)
	}
}
