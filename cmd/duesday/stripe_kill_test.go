package main

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/soaktest"
	"github.com/duesday/duesday/stripefake"
)

const stripeKillSubscriptions = 300

// TestStripeKillNine kills the real binary with SIGKILL at random moments of a payment run
// through a fake of Stripe that loses replies, and then lets it finish: by the fake's ledger
// every subscription is charged exactly once, and the audit is clean. DUESDAY_SOAK=1 does it
// with 20 books.
func TestStripeKillNine(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "duesday")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	books := 1
	if soaktest.On() {
		books = 20
	}
	random := rand.New(rand.NewPCG(soaktest.Seed(t), 14))
	kills, programme := 0, soaktest.Start(t)
	for book := range books {
		if !programme.Next() {
			break
		}
		kills += stripeKillBook(t, binary, filepath.Join(dir, fmt.Sprint("book", book)), random)
	}
	if kills == 0 {
		t.Error("no run was killed: the book is too small")
	}
	t.Logf("%d kills, 0 violations", kills)
}

// stripeKillBook runs one book to its end under kills, and returns how many hit a living run.
func stripeKillBook(t *testing.T, binary, dir string, random *rand.Rand) (kills int) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	fake := stripefake.New(stripefake.Options{Faults: stripefake.Faults{LostReplies: 0.01, LateErrors: 0.01, Seed: random.Uint64(), Latency: 2 * time.Millisecond}})
	server := httptest.NewServer(fake)
	defer server.Close()
	due := time.Now().UTC().AddDate(0, 0, -3)
	var csv strings.Builder
	csv.WriteString("account,email,subscription,sku,amount,currency,payment_day,payment_method,next_payment_date\n")
	methods := []string{"pm_card_visa", "pm_card_visa", "pm_card_visa", "pm_sandbox_timeout", "pm_sandbox_flaky"}
	for i := range stripeKillSubscriptions {
		fmt.Fprintf(&csv, "a%d,a%d@example.com,s%d,gold,9.99,USD,%d,%s,%s\n", i, i, i, due.Day(), methods[i%len(methods)], due.Format(time.DateOnly))
	}
	file := filepath.Join(dir, "book.csv")
	if err := os.WriteFile(file, []byte(csv.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		c := exec.Command(binary, append(args, "--json", "--store", "pebble:"+filepath.Join(dir, "store"),
			"--processor", "stripe:?rate=1000&return_url=https%3A%2F%2Fshop.example%2Fthanks", "--mail", filepath.Join(dir, "mail"))...)
		c.Env = append(os.Environ(), "DUESDAY_STRIPE_KEY="+stripeFakeKey, "DUESDAY_STRIPE_API_BASE="+server.URL)
		c.Stderr = os.Stderr
		return c
	}
	must := func(c *exec.Cmd) {
		t.Helper()
		if out, err := c.Output(); err != nil {
			t.Fatalf("%v: %v\n%s", c.Args[1:], err, out)
		}
	}
	must(command("import", file))
	for range 8 {
		c := command("run", "payments")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(20+random.IntN(300))*time.Millisecond, func() { _ = c.Process.Kill() })
		err := c.Wait()
		timer.Stop()
		if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			kills++
		} else if err != nil {
			t.Fatalf("run: %v", err)
		}
	}
	before := successes(t, fake)
	if err := fake.SetFaults(stripefake.Faults{}); err != nil {
		t.Fatal(err)
	}
	for _, day := range []int{0, 1} { // the day after, the flaky ones are tried again
		must(command("run", "payments", "--date", time.Now().UTC().AddDate(0, 0, day).Format(time.DateOnly)))
	}
	must(command("verify"))
	t.Logf("%d kills; %d subscriptions were charged under them", kills, len(before))
	charged := successes(t, fake)
	if len(charged) != stripeKillSubscriptions {
		t.Errorf("%d periods were charged, want %d", len(charged), stripeKillSubscriptions)
	}
	return kills
}

// successes returns the periods that the fake's ledger shows as charged, each of which has to
// be charged once.
func successes(t *testing.T, fake *stripefake.Fake) map[string]int {
	t.Helper()
	charged := map[string]int{}
	for e := range fake.Ledger() {
		if e.Type == "charge" {
			charged[e.Metadata["duesday_account"]+"/"+e.Metadata["duesday_subscription"]+"/"+e.Metadata["duesday_period"]]++
		}
	}
	for period, n := range charged {
		if n != 1 {
			t.Errorf("%s was charged %d times", period, n)
		}
	}
	return charged
}
