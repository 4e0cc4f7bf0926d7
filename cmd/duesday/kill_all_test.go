package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/command/rehearsal"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/stripefake"
)

// bookKills is how many kills a store lives through before its last audit.
const bookKills = 100

// A killedStore is a store whose processes are killed with SIGKILL, whatever they do.
type killedStore struct {
	t        *testing.T
	dir      string
	random   *rand.Rand
	fake     *stripefake.Fake
	base     string        // of the fake
	ahead    *atomic.Int64 // of the machine's clock, in nanoseconds
	least    time.Duration // of any process
	took     map[string]time.Duration
	kills    map[string]int // by kind of command
	moves    map[string]int // what people and banks did, and refusals by their reason
	disputes []string
	names    []string // of subscriptions that nobody has canceled
	next     int      // number of the next folder, key or subscription
	orders   *os.File
}

// TestKillEverything kills the real binary with SIGKILL at random moments of everything that opens a
// store: reads, runs, requests of people, backups, restores, raises of older stores. After each kill
// the store opens and its audit is clean. A script of its own holds an export of the store, and the
// ledger of a fake of Stripe, against the calendar. DUESDAY_SOAK=1 kills 3,000 times.
func TestKillEverything(t *testing.T) {
	programme := soaktest.Start(t)
	t.Parallel()
	node := lookNode(t)
	all, total, moves := soaktest.Cases(t, 0, 50, 3000), map[string]int{}, map[string]int{}
	seed, begun := soaktest.Seed(t), time.Now()
	for kills, book := 0, uint64(0); kills < all; book++ {
		k := newKilledStore(t, rand.New(rand.NewPCG(seed, book)))
		for audits := 1; k.sum() < min(bookKills, all-kills) && !t.Failed() && programme.Next(); {
			k.round()
			if k.sum() >= audits*25 {
				k.audit(node, "")
				audits++
			}
		}
		k.settle()
		k.audit(node, "14")
		if book == 0 && programme.Whole() {
			k.plant(node)
		}
		kills += k.sum()
		for kind, n := range k.kills {
			total[kind] += n
		}
		for what, n := range k.moves {
			moves[what] += n
		}
		if t.Failed() || !programme.Whole() {
			break
		}
	}
	if !t.Failed() {
		t.Logf("kills in %.0f s: %v; 0 stores refused, 0 lost; moves: %v", time.Since(begun).Seconds(), total, moves)
	}
}

// lookNode returns the path of node. Without it the test is skipped; under CI=true it fails.
func lookNode(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("SKIPPED, no kill was tried, because its audit needs node: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func newKilledStore(t *testing.T, random *rand.Rand) *killedStore {
	t.Helper()
	k := &killedStore{t: t, dir: t.TempDir(), random: random, ahead: new(atomic.Int64), took: map[string]time.Duration{},
		kills: map[string]int{}, moves: map[string]int{}}
	k.ahead.Store(int64(time.Until(time.Date(2026, 1, 20, 9, 0, 0, 0, time.UTC))))
	k.fake = stripefake.New(stripefake.Options{Now: k.now, Faults: stripefake.Faults{LostReplies: 0.01, LateErrors: 0.005,
		Seed: random.Uint64(), Latency: time.Millisecond}})
	server := httptest.NewServer(k.fake)
	t.Cleanup(func() {
		server.Close()
		if err := errors.Join(k.fake.Close(), k.orders.Close()); err != nil {
			t.Error(err)
		}
	})
	k.base = server.URL
	var err error
	if k.orders, err = os.Create(k.path("orders.jsonl")); err != nil {
		t.Fatal(err)
	}
	k.least = time.Hour
	for range 3 {
		begun := time.Now()
		mustRun(t, k.command("version"))
		k.least = min(k.least, time.Since(begun))
	}
	mustRun(t, k.command("import", k.book()))
	mustRun(t, k.command("settings", "set", "receipt-months=0")) // the script holds the receipts of a whole year
	return k
}

func (k *killedStore) path(name string) string { return filepath.Join(k.dir, name) }

func (k *killedStore) now() time.Time { return time.Now().Add(time.Duration(k.ahead.Load())) }

func (k *killedStore) today() string { return k.now().UTC().Format(time.DateOnly) }

func (k *killedStore) sum() (n int) {
	for _, kills := range k.kills {
		n += kills
	}
	return n
}

func (k *killedStore) fresh(name string) string {
	k.next++
	return fmt.Sprint(name, k.next)
}

// order writes down what somebody asks for.
func (k *killedStore) order(kind, name string, o map[string]any) {
	k.t.Helper()
	o["order"] = kind
	o["account"], o["subscription"], _ = strings.Cut(name, "/")
	if err := json.NewEncoder(k.orders).Encode(o); err != nil {
		k.t.Fatal(err)
	}
}

// book writes the subscriptions, and orders them.
func (k *killedStore) book() string {
	k.t.Helper()
	var csv strings.Builder
	csv.WriteString("account,email,subscription,sku,amount,currency,payment_day,payment_method,next_payment_date,interval\n")
	methods := []string{"pm_card_visa", "pm_card_visa", "pm_card_mastercard", "pm_sandbox_flaky", "pm_card_chargeCustomerFail"}
	amounts := []string{"9.99,USD", "900,JPY", "24.00,EUR"}
	for i := range 24 {
		first := time.Date(2026, 1, 21+i, 0, 0, 0, 0, time.UTC) // to 13 February
		day, every, unit := first.Day(), 1+i%2*i%3, "month"
		switch {
		case i%4 == 0:
			if day, unit = int(first.Weekday()), "week"; day == 0 {
				day = 7
			}
		case i%4 == 1:
			first, day = time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), 31
		case i%4 == 2:
			every, unit = 7+i, "day"
		}
		interval := unit
		if every > 1 {
			interval = fmt.Sprintf("%d %ss", every, unit)
		}
		amount, currency, _ := strings.Cut(amounts[i%3], ",")
		name := fmt.Sprintf("a%d/s%d", i%20, i) // some accounts have two
		fmt.Fprintf(&csv, "a%d,a%d@example.com,s%d,gold,%s,%s,%d,%s,%s,%s\n", i%20, i%20, i, amount, currency, day,
			methods[i%len(methods)], first.Format(time.DateOnly), interval)
		k.subscribed(name, amount, currency, first, unit, every, day)
	}
	if err := os.WriteFile(k.path("book.csv"), []byte(csv.String()), 0o600); err != nil {
		k.t.Fatal(err)
	}
	return k.path("book.csv")
}

func (k *killedStore) subscribed(name, amount, currency string, first time.Time, unit string, every, day int) {
	k.order("subscribe", name, map[string]any{"amount": amount, "currency": currency, "first": first.Format(time.DateOnly),
		"unit": unit, "every": every, "day": day})
	k.names = append(k.names, name)
}

// command returns a command on the store, which lives by the fake's clock.
func (k *killedStore) command(args ...string) *exec.Cmd { return k.commandOn("store", args...) }

func (k *killedStore) commandOn(name string, args ...string) *exec.Cmd {
	now := time.Now()
	clock := now.Add(time.Duration(k.ahead.Load())).UTC().Format(time.RFC3339Nano) + ",1s/s," + now.UTC().Format(time.RFC3339Nano)
	c := process(k.t, []string{"DUESDAY_STRIPE_KEY=" + rehearsal.StripeFakeKey, "DUESDAY_STRIPE_API_BASE=" + k.base, "DUESDAY_CLOCK=" + clock},
		append(args, "--store", "pebble:"+k.path(name), "--processor",
			"stripe:?rate=1000&return_url=https%3A%2F%2Fshop.example%2Fthanks", "--mail", k.path("mail"))...)
	c.Stderr = new(bytes.Buffer)
	return c
}

// kill runs the command, and kills it at a random moment of the time that the last one took. It reports
// whether that hit it.
func (k *killedStore) kill(kind string, c *exec.Cmd) bool {
	k.t.Helper()
	line := strings.Join(c.Args[1:3], " ")
	usual := cmp.Or(k.took[line], k.least+50*time.Millisecond)
	begun := time.Now()
	var out bytes.Buffer
	if c.Stdout == nil {
		c.Stdout = &out
	}
	hit, err := strike(k.t, c, after(k.least/2+time.Duration(k.random.Int64N(int64(usual)))))
	if hit {
		k.kills[kind]++
	} else if k.took[line] = time.Since(begun); err != nil && !k.tells(c, out.Bytes()) {
		k.accept(c, out.String())
	}
	return hit
}

// lostAnswer is that of an idle connection that the fake has just closed: nobody knows what was done.
const lostAnswer = "answer was lost"

// refused are the reasons for which a request may be refused.
var refused = []string{"not possible now", "with another clock", "already exists", "cannot record a part", lostAnswer}

// accept holds the end of a command that was not killed: it is done, needs a person, or was a request
// that does not fit the state of the store. It returns what the command said.
func (k *killedStore) accept(c *exec.Cmd, out string) string {
	k.t.Helper()
	said := fmt.Sprint(c.Stderr, out)
	code := c.ProcessState.ExitCode()
	if code == exitDone || code == exitPerson {
		return said
	}
	for _, reason := range refused {
		if code == exitFailed || code == exitUsage {
			if strings.Contains(said, reason) && !strings.Contains(said, "panic") {
				k.moves["refused: "+reason]++
				return said
			}
		}
	}
	k.t.Errorf("duesday %s: exit %d\n%s", strings.Join(c.Args[1:4], " "), code, said)
	return said
}

// whole runs a command to its end, which must be good, and returns what it printed.
func (k *killedStore) whole(c *exec.Cmd, codes ...int) string {
	k.t.Helper()
	out, _ := c.Output()
	if code := c.ProcessState.ExitCode(); code != exitDone && !slices.Contains(codes, code) {
		k.t.Errorf("duesday %s: exit %d\n%s%s", strings.Join(c.Args[1:], " "), code, c.Stderr, out)
	}
	return string(out)
}

// unmet is a dispute that no run has met yet: all that an audit may find, beside what is allowed.
const unmet = "at the processor; the next payment run records it"

var problems = regexp.MustCompile(`FOUND (\d+) PROBLEM`)

// clean holds that the store in the folder opens, and that nothing is wrong with it.
func (k *killedStore) clean(name, since string, allowed ...string) {
	k.t.Helper()
	c := k.commandOn(name, "verify")
	out, _ := c.Output()
	code := c.ProcessState.ExitCode()
	if k.tells(c, out, allowed...) {
		return
	}
	if code != exitDone || !strings.Contains(string(out), "The audit is clean") {
		k.t.Errorf("after %s: exit %d\n%s%s", since, code, c.Stderr, out)
	}
}

// tells reports whether an audit has found problems, and none but those that are allowed or that no run has met yet.
func (k *killedStore) tells(c *exec.Cmd, out []byte, allowed ...string) bool {
	found := problems.FindSubmatch(out)
	if found == nil || c.ProcessState.ExitCode() != exitFailed {
		return false
	}
	n := 0
	for _, problem := range append(allowed, unmet) {
		n += strings.Count(string(out), problem)
	}
	if fmt.Sprint(n) != string(found[1]) {
		return false
	}
	k.moves["verify tells of a new dispute, or of a charge after the copy"]++
	return true
}

// round kills one process, or finds that it was too late.
func (k *killedStore) round() {
	k.t.Helper()
	if k.random.IntN(3) == 0 {
		k.ahead.Add(int64(24*time.Hour) * (1 + k.random.Int64N(4)))
	}
	if k.random.IntN(4) == 0 {
		k.bank()
	}
	kinds := []struct {
		weight int
		name   string
		do     func()
	}{{5, "open", k.killOpen}, {6, "run", k.killRun}, {7, "request", k.killRequest}, {2, "backup", k.killBackup},
		{2, "restore", k.killRestore}, {1, "replace", k.killReplace}, {1, "raise", k.killRaise}, {1, "holder", k.killHolder}}
	n := k.random.IntN(25)
	for _, kind := range kinds {
		if n -= kind.weight; n < 0 {
			kind.do()
			k.clean("store", kind.name)
			return
		}
	}
}

// killOpen kills processes that open the store, one after the other.
func (k *killedStore) killOpen() {
	lines := []string{"store describe", "verify", "account list", "subscription list", "status", "outbox list", "store check",
		"export receipts", "due payments --until 2027-01-01"}
	for range 1 + k.random.IntN(3) {
		line := lines[k.random.IntN(len(lines))]
		k.kill("open", k.command(strings.Fields(line)...))
	}
}

func (k *killedStore) killRun() {
	line := []string{"run payments", "run payments", "run payments", "run reminders"}[k.random.IntN(4)]
	k.kill("run", k.command(strings.Fields(line)...))
	if k.random.IntN(2) == 0 {
		k.whole(k.command(strings.Fields(line)...), exitPerson)
	}
}

// killRequest kills a request, and then makes it again, as people do, until it is answered.
func (k *killedStore) killRequest() {
	args, done := k.request()
	k.kill("request", k.command(args...))
	for {
		c := k.command(args...)
		out, _ := c.Output()
		said := k.accept(c, string(out))
		if c.ProcessState.ExitCode() == exitFailed && strings.Contains(said, lostAnswer) && !k.t.Failed() {
			continue
		}
		if done != nil {
			done(c.ProcessState.ExitCode(), said)
		}
		return
	}
}

// request returns a request of a person, and what to do when it was answered.
func (k *killedStore) request() (args []string, done func(code int, said string)) {
	i := k.random.IntN(len(k.names))
	name := k.names[i]
	account, _, _ := strings.Cut(name, "/")
	switch k.random.IntN(13) {
	case 0:
		return []string{"account", "create", k.fresh("b"), "--email", "b@example.com"}, nil
	case 1, 2:
		name, first := k.fresh("c")+"/1", k.now().UTC().AddDate(0, 0, 1+k.random.IntN(5))
		k.subscribed(name, "12.50", "USD", first, "month", 1, first.Day())
		return []string{"subscription", "create", name, "--email", "c@example.com", "--sku", "gym", "--amount", "12.50", "--currency", "USD",
			"--payment-day", fmt.Sprint(first.Day()), "--next-payment-date", first.Format(time.DateOnly), "--payment-method", "pm_card_visa"}, nil
	case 3:
		return []string{"subscription", "skip", name, "--until", k.now().UTC().AddDate(0, 0, k.random.IntN(2)).Format(time.DateOnly)}, nil
	case 4:
		if len(k.names) < 15 {
			return []string{"account", "show", account}, nil
		}
		flag := []string{"", "--at-period-end", "--collect"}[k.random.IntN(3)]
		return strings.Fields("subscription cancel " + name + " " + flag), func(code int, said string) {
			if code == exitDone || code == exitPerson || strings.Contains(said, "is canceled") {
				k.names = slices.Delete(k.names, i, i+1)
				k.moves["cancel"+flag]++
				k.order("cancel", name, map[string]any{"at": k.today(), "end": flag == "--at-period-end"})
			}
		}
	case 5, 6:
		return []string{"subscription", "charge", name, "--period", fmt.Sprint(k.random.IntN(5)), "--reopen", "asked", "--key", k.fresh("key")}, nil
	case 7, 8:
		return k.payment(name)
	case 9:
		return []string{"account", "attach", account, "--payment-method", "pm_card_visa"}, nil
	case 10:
		k.order("pause", name, map[string]any{}) // perhaps in vain
		return []string{"subscription", "pause", name}, nil
	case 11:
		if k.random.IntN(2) == 0 {
			account = fmt.Sprint("a", 4+5*k.random.IntN(4)) // its subscription has a method of its own, which fails
		}
		return []string{"account", "card-link", account, "--json"}, k.give
	}
	return []string{"subscription", "resume", name}, nil
}

// payment returns a manual payment: of what is owed, less, or more.
func (k *killedStore) payment(name string) (args []string, done func(code int, said string)) {
	args = []string{"receipt", "create", name, "--key", k.fresh("key"), "--note", "wire"}
	period := k.random.IntN(4)
	if k.random.IntN(2) == 0 {
		args = append(args, "--period", fmt.Sprint(period))
	}
	switch k.random.IntN(3) {
	case 0:
		k.order("receipt", name, map[string]any{"amount": "77777", "currency": "JPY"})
		for _, o := range []string{"USD", "EUR"} {
			k.order("receipt", name, map[string]any{"amount": "77777.00", "currency": o})
		}
		return append(args, "--amount", "77777", "--overpaid"), func(code int, _ string) {
			if code == exitDone || code == exitPerson {
				k.moves["overpaid"]++
			}
		}
	case 1:
		return append(args, "--amount", "1"), func(code int, said string) {
			if code == exitDone || code == exitPerson {
				k.t.Errorf("a part payment was taken: %v\n%s", args, said)
			}
		}
	}
	for _, o := range []string{"9.99,USD", "900,JPY", "24.00,EUR", "12.50,USD"} { // its own one
		amount, currency, _ := strings.Cut(o, ",")
		k.order("receipt", name, map[string]any{"amount": amount, "currency": currency})
	}
	return args, nil
}
