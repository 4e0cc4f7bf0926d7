package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// A killedServe is a folder whose serve is killed again and again, while commands work beside it.
type killedServe struct {
	t      *testing.T
	dir    string
	clock  *clock.Clock
	bank   string // the sandbox
	random *rand.Rand

	commands, failed atomic.Int64
}

// TestServe_KilledDays lives through days with the real binary: a sandbox that is slow and loses
// answers, a serve that is killed with SIGKILL again and again, hours and days without it, and
// commands beside it, all by one test clock. In the end an own calendar is held against the ledger of
// the sandbox: no due date is missing, and none was charged twice. DUESDAY_SOAK=1 plays 120 days with
// 2,000 subscriptions and 300 kills.
func TestServe_KilledDays(t *testing.T) {
	soaktest.Long(t)
	t.Parallel()
	days, kills := soaktest.Cases(t, 0, 8, 120), soaktest.Cases(t, 0, 5, 300)
	many := soaktest.Cases(t, 0, 60, 2000)
	programme := soaktest.Start(t)
	k := &killedServe{t: t, dir: t.TempDir(), random: rand.New(rand.NewPCG(soaktest.Seed(t), 12))}
	ledger := filepath.Join(k.dir, "ledger.jsonl")
	speed := 24
	if soaktest.On() {
		speed = 6 // hours a second
	}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var err error
	k.clock, err = clock.Parse(fmt.Sprintf("%s,%dh/s,%s", begin.Format(time.DateOnly), speed,
		time.Now().UTC().Format(time.RFC3339Nano)), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	k.bank = "sandbox:" + ledger + "?latency=3ms&unknown=0.02&lost=0.01&busy=0.01"
	mustRun(t, k.command("store", "create"))
	mustRun(t, k.command("settings", "set", "daily=06:10,18:10", "time-zone=Europe/Berlin"))
	serve := k.serve()
	mustRun(t, k.command("import", k.book(many, begin)))

	ctx, cancel := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	for range 2 {
		random := rand.New(rand.NewPCG(k.random.Uint64(), 13))
		beside.Go(func() { k.work(ctx, random) })
	}
	killed, each := 0, time.Duration(days)*24*time.Hour/time.Duration(kills)
	for killed < kills && programme.Next() {
		<-k.clock.After(time.Duration(k.random.Int64N(int64(2*each - each/2))))
		if killed%3 == 2 { // one that is told to stop does, also within a run
			if err := errors.Join(serve.Process.Signal(syscall.SIGTERM), serve.Wait()); err != nil {
				t.Errorf("serve, told to stop: %v", err)
			}
		} else {
			_ = serve.Process.Kill()
			_ = serve.Wait() // it was killed
		}
		if killed++; k.random.IntN(20) == 0 {
			<-k.clock.After(time.Duration(k.random.IntN(60)) * time.Hour) // nobody runs
		}
		serve = k.serve()
	}
	cancel()
	beside.Wait()
	mustRun(t, k.command("charging", "on"))
	end := k.clock.Now()
	<-k.clock.After(60 * time.Hour) // what fell due is charged, and tried again
	if err := errors.Join(serve.Process.Signal(os.Interrupt), serve.Wait()); err != nil {
		t.Errorf("serve, interrupted: %v", err)
	}
	k.audit(ledger, many, begin, end)
	t.Logf("%d kills in %d days, %d commands beside serve, %d of them refused or cut off", killed,
		int(end.Sub(begin).Hours()/24), k.commands.Load(), k.failed.Load())
	if k.commands.Load() < int64(kills) {
		t.Errorf("only %d commands beside serve", k.commands.Load())
	}
}

// command returns a command on the folder.
func (k *killedServe) command(args ...string) *exec.Cmd {
	c := process(k.t, []string{"DUESDAY_CLOCK=" + k.clock.String()}, append(args, "--json",
		"--store", "pebble:"+filepath.Join(k.dir, "store"),
		"--processor", k.bank, "--mail", filepath.Join(k.dir, "mail"))...)
	c.Stderr = nil
	return c
}

// serve starts serve, and waits until it says that it serves.
func (k *killedServe) serve() *exec.Cmd {
	k.t.Helper()
	c := k.command("serve", "--create", "--listen", "127.0.0.1:0", "--api=", "--pages=")
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		k.t.Fatal(err)
	}
	var v struct{ Address string }
	if err := json.NewDecoder(out).Decode(&v); err != nil {
		k.t.Fatalf("serve: %v\n%s", err, &said)
	}
	return c
}

// due is when period n of subscription i is due, by a calendar of its own: each seventh subscription
// is weekly, the others are monthly, on the last day of months that are too short for their day.
func (k *killedServe) due(i, n int, begin time.Time) time.Time {
	first := begin.AddDate(0, 0, 1+i%28)
	if i%7 == 0 {
		return first.AddDate(0, 0, 7*n)
	}
	day := 1 + (1+i%28+i%3)%31
	last := time.Date(2026, time.January+time.Month(n)+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return time.Date(2026, time.January+time.Month(n), min(day, last), 0, 0, 0, 0, time.UTC)
}

// book writes the subscriptions. Those of one day have it in their first month too.
func (k *killedServe) book(many int, begin time.Time) string {
	var csv strings.Builder
	csv.WriteString("account,email,subscription,sku,amount,currency,payment_day,payment_method,next_payment_date,interval\n")
	methods := []string{"pm_card_visa", "pm_card_visa", "pm_sandbox_timeout", "pm_card_visa", "pm_sandbox_flaky"}
	for i := range many {
		first := k.due(i, 0, begin)
		day, interval := 1+(1+i%28+i%3)%31, "month"
		if i%7 == 0 {
			day, interval = int(first.Weekday()), "week"
			if day == 0 {
				day = 7
			}
		}
		fmt.Fprintf(&csv, "a%d,a%d@example.com,s%d,gold,9.99,USD,%d,%s,%s,%s\n", i, i, i, day, methods[i%len(methods)],
			first.Format(time.DateOnly), interval)
	}
	file := filepath.Join(k.dir, "book.csv")
	if err := os.WriteFile(file, []byte(csv.String()), 0o600); err != nil {
		k.t.Fatal(err)
	}
	return file
}

// work runs commands beside serve, one after the other. A command may be refused while nobody answers
// it, or be unable to tell what came of it; it never panics and never calls good input bad.
func (k *killedServe) work(ctx context.Context, random *rand.Rand) {
	lines := []string{"run payments", "run reminders", "subscription list", "outbox list", "due payments --until 2026-12-31",
		"outbox send", "charging off --reason test", "charging on", "charging on", "store describe", "settings show"}
	for ctx.Err() == nil {
		line := lines[random.IntN(len(lines))]
		c := k.command(strings.Fields(line)...)
		var said bytes.Buffer
		c.Stderr = &said
		err := c.Run()
		k.commands.Add(1)
		if code := c.ProcessState.ExitCode(); code == exitFailed {
			k.failed.Add(1)
		} else if code != exitDone && code != exitPerson {
			k.t.Errorf("duesday %s: %v\n%s", line, err, &said)
		}
	}
}

// audit holds the ledger against the calendar: one success for each due date up to the end.
func (k *killedServe) audit(ledger string, many int, begin, end time.Time) {
	text, err := os.ReadFile(ledger)
	if err != nil {
		k.t.Fatal(err)
	}
	charged := map[string]int{}
	for line := range bytes.Lines(text) {
		var v struct {
			Subscription, Outcome string
			Period                int
		}
		if err := json.Unmarshal(line, &v); err != nil {
			k.t.Fatal(err)
		}
		if v.Outcome == "succeeded" {
			charged[fmt.Sprint(v.Subscription, "/", v.Period)]++
		}
	}
	missing, due := 0, 0
	for i := range many {
		for n := 0; k.due(i, n, begin).Before(end.AddDate(0, 0, -1)); n++ {
			due++
			if period := fmt.Sprintf("s%d/%d", i, n); charged[period] == 0 {
				if missing++; missing <= 5 {
					k.t.Errorf("%s, due on %s, is missing", period, k.due(i, n, begin).Format(time.DateOnly))
				}
			}
		}
	}
	for period, n := range charged {
		if n > 1 {
			k.t.Errorf("%s was charged %d times", period, n)
		}
		var i, p int
		if _, err := fmt.Sscanf(period, "s%d/%d", &i, &p); err != nil || k.due(i, p, begin).After(k.clock.Now()) {
			k.t.Errorf("%s was charged before %s: %v", period, k.due(i, p, begin).Format(time.DateOnly), err)
		}
	}
	k.t.Logf("%d due dates, %d missing, %d charged", due, missing, len(charged))
	if due == 0 {
		k.t.Error("nothing fell due")
	}
}
