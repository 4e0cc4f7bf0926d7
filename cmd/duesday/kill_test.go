package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/soaktest"
)

// TestKillNine kills the real binary with SIGKILL at random moments of a payment run, again
// and again, and then lets it finish: every subscription is charged exactly once, by the
// processor's own ledger, and the audit is clean. DUESDAY_SOAK=1 kills it 200 times.
func TestKillNine(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "duesday")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	rounds, books := 12, 1
	if soaktest.On() {
		books = 20
	}
	random := rand.New(rand.NewPCG(soaktest.Seed(t), 9))
	kills, programme := 0, soaktest.Start(t)
	for book := range books {
		if !programme.Next() {
			break
		}
		kills += killBook(t, binary, filepath.Join(dir, fmt.Sprint("book", book)), rounds, random)
	}
	if kills == 0 {
		t.Error("no run was killed: the book is too small")
	}
	t.Logf("%d kills, 0 violations", kills)
}

const killSubscriptions = 3000

// killBook runs one book to its end under kills, and returns how many hit a living run.
func killBook(t *testing.T, binary, dir string, rounds int, random *rand.Rand) (kills int) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	due := time.Now().UTC().AddDate(0, 0, -3)
	var csv strings.Builder
	csv.WriteString("account,email,subscription,sku,amount,currency,payment_day,payment_method,next_payment_date\n")
	methods := []string{"pm_card_visa", "pm_card_visa", "pm_card_visa", "pm_sandbox_timeout", "pm_sandbox_flaky"}
	for i := range killSubscriptions {
		fmt.Fprintf(&csv, "a%d,a%d@example.com,s%d,gold,9.99,USD,%d,%s,%s\n", i, i, i, due.Day(), methods[i%len(methods)], due.Format(time.DateOnly))
	}
	file := filepath.Join(dir, "book.csv")
	if err := os.WriteFile(file, []byte(csv.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	ledger := filepath.Join(dir, "ledger.jsonl")
	command := func(args ...string) *exec.Cmd {
		c := exec.Command(binary, append(args, "--json", "--store", "pebble:"+filepath.Join(dir, "store"),
			"--processor", "sandbox:"+ledger+"?latency=1ms", "--mail", filepath.Join(dir, "mail"))...)
		c.Stderr = os.Stderr
		return c
	}
	if out, err := command("import", file).Output(); err != nil {
		t.Fatalf("import: %v\n%s", err, out)
	}
	for range rounds {
		c := command("run", "payments")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(5+random.IntN(400))*time.Millisecond, func() { _ = c.Process.Kill() })
		err := c.Wait()
		timer.Stop()
		if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			kills++
		} else if err != nil {
			t.Fatalf("run: %v", err)
		}
	}
	for _, day := range []int{0, 1} { // the day after, the flaky ones are tried again
		date := time.Now().UTC().AddDate(0, 0, day).Format(time.DateOnly)
		if out, err := command("run", "payments", "--date", date).Output(); err != nil {
			t.Fatalf("run --date %s: %v\n%s", date, err, out)
		}
	}
	out, err := command("verify").Output()
	if err != nil {
		t.Fatalf("verify: %v\n%s", err, out)
	}
	checkLedger(t, ledger, killSubscriptions)
	return kills
}

// checkLedger holds the ledger to one success for each of the subscriptions.
func checkLedger(t *testing.T, ledger string, subscriptions int) {
	t.Helper()
	f, err := os.Open(ledger)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	charged := map[string]int{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var line struct {
			Account, Subscription, Outcome string
			Period                         int
		}
		if err := json.Unmarshal(sc.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Outcome == "succeeded" {
			charged[fmt.Sprint(line.Account, "/", line.Subscription, "/", line.Period)]++
		}
	}
	if len(charged) != subscriptions {
		t.Errorf("%d periods were charged, want %d", len(charged), subscriptions)
	}
	for period, n := range charged {
		if n != 1 {
			t.Errorf("%s was charged %d times", period, n)
		}
	}
}
