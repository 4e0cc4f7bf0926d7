package main

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/command/rehearsal"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/stripefake"
)

const (
	stripeKillSubscriptions = 300
	killRequests            = 120 // after as many a run is killed at the latest
)

// requested reports whether the fake has had so many requests more than at the call of requested.
func requested(fake *stripefake.Fake, n int64) func() bool {
	all := func() (sum int64) {
		for _, c := range fake.Counts() {
			sum += c.Requests
		}
		return sum
	}
	before := all()
	return func() bool { return all() >= before+n }
}

// TestStripeKillNine kills the real binary with SIGKILL at random moments of a payment run
// through a fake of Stripe that loses replies, and then lets it finish: by the fake's ledger
// every subscription is charged exactly once, and the audit is clean. DUESDAY_SOAK=1 does it
// with 20 books.
func TestStripeKillNine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
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
		kills += stripeKillBook(t, filepath.Join(dir, fmt.Sprint("book", book)), random)
	}
	if kills == 0 {
		t.Error("no run was killed: the book is too small")
	}
	t.Logf("%d kills, 0 violations", kills)
}

// stripeKillBook runs one book to its end under kills, and returns how many hit a living run.
func stripeKillBook(t *testing.T, dir string, random *rand.Rand) (kills int) {
	fake := stripefake.New(stripefake.Options{Faults: stripefake.Faults{LostReplies: 0.01, LateErrors: 0.01,
		Seed: random.Uint64(), Latency: 2 * time.Millisecond}})
	server := httptest.NewServer(fake)
	defer server.Close()
	file := dueBook(t, filepath.Join(dir, "book.csv"), 3, 0, stripeKillSubscriptions, 1,
		"pm_card_visa", "pm_card_visa", "pm_card_visa", "pm_sandbox_timeout", "pm_sandbox_flaky")
	command := func(args ...string) *exec.Cmd {
		return process(t, []string{"DUESDAY_STRIPE_KEY=" + rehearsal.StripeFakeKey, "DUESDAY_STRIPE_API_BASE=" + server.URL},
			append(args, "--json", "--store", "pebble:"+filepath.Join(dir, "store"),
				"--processor", "stripe:?rate=1000&return_url=https%3A%2F%2Fshop.example%2Fthanks", "--mail",
				filepath.Join(dir, "mail"))...)
	}
	mustRun(t, command("import", file))
	for range 8 {
		if killed(t, command("run", "payments"), requested(fake, random.Int64N(killRequests))) {
			kills++
		}
	}
	before := successes(t, fake)
	if err := fake.SetFaults(stripefake.Faults{}); err != nil {
		t.Fatal(err)
	}
	for _, day := range []int{0, 1} { // the day after, the flaky ones are tried again
		run := command("run", "payments", "--date", time.Now().UTC().AddDate(0, 0, day).Format(time.DateOnly), "--ahead")
		out, err := run.Output()
		if code := run.ProcessState.ExitCode(); code != exitDone && code != exitPerson { // Stripe replays a late error for a
			t.Fatalf("%v: %v\n%s", run.Args[1:], err, out) // day: a mail's link may have to wait that long
		}
	}
	mustRun(t, command("verify"))
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
