package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/test/dynamotest"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// TestThreeWorkers lets three processes of the real binary charge one book on DynamoDB
// Local, through one processor. In the middle one is killed and one is stopped; the third
// takes their shares over and finishes; the stopped one wakes and harms nothing. By the
// processor's own ledger every subscription is charged exactly once, and the audit is clean.
// DUESDAY_SOAK=1 takes 20,000 subscriptions.
func TestThreeWorkers(t *testing.T) {
	n := 600
	if soaktest.On() {
		n = 20_000
	}
	f := newFleet(t)
	f.must("store", "create", "--shards", "8")
	f.must("import", f.book(n))
	killed, stopped, survivor := f.worker(), f.worker(), f.worker()
	f.waitForLedger(n / 4)
	f.stop(stopped.Process)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := killed.Wait(); err == nil {
		t.Error("the killed worker was done before it was killed: the book is too small")
	}
	if err := survivor.Wait(); err != nil {
		t.Errorf("the survivor: %v", err)
	}
	checkLedger(t, f.ledger, n) // while one still sleeps
	if err := stopped.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	switch err := stopped.Wait(); {
	case err != nil && strings.Contains(stopped.errors.String(), "so the next run continues"): // its requests have waited too long
		f.must("run", "payments")
	case err != nil:
		t.Errorf("the sleeper: %v\n%s", err, &stopped.errors)
	}
	checkLedger(t, f.ledger, n)
	f.must("verify")
	var one, all struct{ Paid int }
	for _, w := range []*fleetWorker{stopped, survivor} {
		if err := json.Unmarshal(w.out.Bytes(), &one); err != nil {
			t.Fatalf("%v in %q", err, w.out.String())
		}
		all.Paid += one.Paid
	}
	if all.Paid < n/2 {
		t.Errorf("the two that came to their end say that they charged %d", all.Paid)
	}
	t.Logf("%d subscriptions: the sleeper and the survivor settled %d, the rest was the killed one's", n, all.Paid)
}

// A fleet is the real binary, a set of tables on DynamoDB Local, and a ledger.
type fleet struct {
	t      *testing.T
	dir    string
	ledger string
	flags  []string
}

// newFleet returns a fleet of a test that runs alone: beside others, DynamoDB Local answers its
// processes so late on a busy machine that an import gives up.
func newFleet(t *testing.T) *fleet {
	endpoint := dynamotest.Endpoint(t)
	dir := t.TempDir()
	f := &fleet{t: t, dir: dir, ledger: filepath.Join(dir, "ledger.jsonl")}
	f.flags = []string{"--store", "dynamodb:?region=us-east-1&prefix=" + dynamotest.Prefix(t) + "&endpoint=" + endpoint}
	f.flags = append(f.flags, "--processor", "sandbox:"+f.ledger+"?latency=5ms", "--mail",
		filepath.Join(dir, "mail"), "--json")
	return f
}

// TestTwoServes lets two serves charge one book on DynamoDB Local, at once and by their schedule.
// They share the work, and every subscription is charged once.
func TestTwoServes(t *testing.T) {
	const n = 100
	f := newFleet(t)
	f.must("store", "create", "--shards", "4")
	f.must("settings", "set", "daily=06:10", "time-zone=Asia/Kathmandu")
	f.must("import", f.book(n))
	var serves []*exec.Cmd
	for range 2 {
		c := f.command("serve", "--listen", "127.0.0.1:0", "--api=", "--pages=")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		serves = append(serves, c)
	}
	f.waitForLedger(n)
	for _, c := range serves {
		if err := errors.Join(c.Process.Signal(syscall.SIGTERM), c.Wait()); err != nil {
			t.Error(err)
		}
	}
	f.must("run", "payments") // of periods whose answer was lost
	checkLedger(t, f.ledger, n)
	f.must("verify")
}

func (f *fleet) command(args ...string) *exec.Cmd {
	return process(f.t, dynamotest.Environ(), append(args, f.flags...)...)
}

func (f *fleet) must(args ...string) {
	f.t.Helper()
	mustRun(f.t, f.command(args...))
}

// book writes an import file of n subscriptions that are due today.
func (f *fleet) book(n int) string {
	methods := slices.Repeat([]string{"pm_card_visa"}, 10)
	methods[0] = "pm_sandbox_timeout"
	return dueBook(f.t, filepath.Join(f.dir, "book.csv"), 0, 0, n, 1, methods...)
}

// A fleetWorker is one process of the payment job.
type fleetWorker struct {
	*exec.Cmd
	out, errors bytes.Buffer
}

func (f *fleet) worker() *fleetWorker {
	w := &fleetWorker{Cmd: f.command("run", "payments", "--lease", "5s", "--workers", "8")}
	w.Stdout, w.Stderr = &w.out, &w.errors
	if err := w.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { // after a failure: also one that is stopped
		if w.ProcessState == nil {
			_ = w.Process.Kill()
			_ = w.Wait()
		}
	})
	return w
}

// waitForLedger waits until the processor has that many successes.
func (f *fleet) waitForLedger(n int) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(10 * time.Minute)
	for range tick.C {
		b, err := os.ReadFile(f.ledger)
		if err != nil && !os.IsNotExist(err) { // the first worker makes it
			f.t.Fatal(err)
		}
		if bytes.Count(b, []byte(`"succeeded"`)) >= n {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the workers have not charged %d in ten minutes", n)
		}
	}
}

// stop has the process stand still while it has not locked the ledger, where it would stop the others.
func (f *fleet) stop(p *os.Process) {
	f.t.Helper()
	ledger, err := os.Open(f.ledger)
	if err == nil {
		err = syscall.Flock(int(ledger.Fd()), syscall.LOCK_EX)
	}
	if err == nil {
		err = errors.Join(p.Signal(syscall.SIGSTOP), ledger.Close())
	}
	if err != nil {
		f.t.Fatal(err)
	}
}
