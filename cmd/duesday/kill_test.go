package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/test/soaktest"
)

// TestKillNine kills the real binary with SIGKILL at random moments of a payment run, again
// and again, and then lets it finish: every subscription is charged exactly once, by the
// processor's own ledger, and the audit is clean. DUESDAY_SOAK=1 kills it 200 times.
func TestKillNine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
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
		kills += killBook(t, filepath.Join(dir, fmt.Sprint("book", book)), rounds, random)
	}
	if kills == 0 {
		t.Error("no run was killed: the book is too small")
	}
	t.Logf("%d kills, 0 violations", kills)
}

const (
	killSubscriptions = 1500
	ledgerBytes       = 500 // of a charge in the ledger, roughly
)

// killBook runs one book to its end under kills, and returns how many hit a living run.
func killBook(t *testing.T, dir string, rounds int, random *rand.Rand) (kills int) {
	many := soaktest.Cases(t, 0, killSubscriptions*2/5, killSubscriptions)
	file := dueBook(t, filepath.Join(dir, "book.csv"), 3, 0, many, 1,
		"pm_card_visa", "pm_card_visa", "pm_card_visa", "pm_sandbox_timeout", "pm_sandbox_flaky")
	ledger := filepath.Join(dir, "ledger.jsonl")
	command := func(args ...string) *exec.Cmd {
		return process(t, nil, append(args, "--json", "--store", "pebble:"+filepath.Join(dir, "store"),
			"--processor", "sandbox:"+ledger+"?latency=1ms", "--mail", filepath.Join(dir, "mail"))...)
	}
	mustRun(t, command("import", file))
	for range rounds {
		if killed(t, command("run", "payments"), grown(ledger, random.Int64N(int64(many/8*ledgerBytes)))) {
			kills++
		}
	}
	for _, day := range []int{0, 1} { // the day after, the flaky ones are tried again
		mustRun(t, command("run", "payments", "--date", time.Now().UTC().AddDate(0, 0, day).Format(time.DateOnly), "--ahead"))
	}
	mustRun(t, command("verify"))
	checkLedger(t, ledger, many)
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
