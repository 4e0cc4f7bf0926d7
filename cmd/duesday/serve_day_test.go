package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/command/runs"
)

// until waits until it holds.
func (c *cli) until(what string, holds func() bool) {
	c.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 2000 {
		if holds() {
			return
		}
		<-tick.C
	}
	c.t.Fatalf("it never came to: %s", what)
}

// TestServe_TwoMonths: from an empty folder, one serve lives through two months, and is stopped and
// started again three times, with commands beside it. Each period is reminded of and charged, those
// of the standstills by the next start. The mail leaves through a mail server, each once. A clock
// too fast for a busy machine, which comes to where receipts expire, is set to half its speed.
func TestServe_TwoMonths(t *testing.T) {
	t.Parallel()
	for speed, again := 192*time.Hour, true; again; speed /= 2 {
		t.Run(speed.String(), func(t *testing.T) {
			again = false // so it stays if the test ends itself
			again = !liveTwoMonths(t, speed)
		})
	}
}

// liveTwoMonths returns false, and has checked nothing of the end, if the clock ran away.
func liveTwoMonths(t *testing.T, speed time.Duration) bool {
	c, post := newFolder(t), newSink(t)
	c.env["DUESDAY_SMTP"] = post.address
	c.clock.Set(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	beats := atomic.Int64{}
	monitor := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { beats.Add(1) }))
	defer monitor.Close()
	c.must("import", c.file("book.csv", header+
		"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n"+
		"2,b@example.com,1,gym,500,JPY,31,pm_card_visa\n"+
		"3,c@example.com,1,gym,9.00,EUR,10,pm_card_visa_chargeDeclined\n"+
		"4,d@example.com,1,gym,9.00,EUR,12,pm_sandbox_flaky\n"+
		"5,e@example.com,1,gym,9.00,EUR,20,pm_card_visa\n6,f@example.com,1,gym,9.00,EUR,5,pm_card_authenticationRequired\n"))
	c.must("settings", "set", "sender=Ada's Gym <billing@gym.example>", "daily=06:10,18:10", "time-zone=Europe/Berlin")
	begin, last := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), "2026-02-28" // a busy machine comes further
	var cancelled string
	beside := [][]string{nil, {"subscription", "cancel", "5/1"}, {"receipt", "list", "1"}, nil}
	for range 4 {
		v, stop := c.serveBy(time.Now, "--clock", fmt.Sprintf("%s,%v/s", begin.Format(time.RFC3339), speed), "--heartbeat", monitor.URL)
		equal(t, "announced", []any{v.Daily, v.TimeZone, v.StripeAccount},
			[]any{[]string{"06:10", "18:10"}, "Europe/Berlin", ""})
		shown, err := clock.Parse(v.Clock, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		<-shown.After(8 * 24 * time.Hour)
		if len(beside[0]) > 0 {
			c.until("5/1 paid January", func() bool { return len(c.list("receipt", "list", "5")) > 0 })
			// By this clock a moment of a busy machine is days, and a processor that answers is too slow.
			for code := exitFailed; code != exitDone; {
				var said strings.Builder
				p := newProgram(func(name string) string { return c.env[name] }, strings.NewReader(""), &said, &said, time.Now)
				p.Dir = c.dir
				if code = p.run(t.Context(), beside[0]); code != exitDone && !strings.Contains(said.String(), "in time") {
					t.Fatalf("duesday %s: exit %d\n%s", beside[0], code, &said)
				}
			}
		}
		if len(beside) == 3 {
			cancelled = shown.Now().Format(time.DateOnly)
		}
		beside = beside[1:]
		<-shown.After(6 * 24 * time.Hour)
		equal(t, "stopped", stop().code, exitDone)
		begin = shown.Now().AddDate(0, 0, 2) // nobody runs for two days
	}
	if begin.After(time.Date(2026, 3, 25, 0, 0, 0, 0, time.UTC)) {
		t.Logf("the clock came to %s: again, at half the speed", begin.Format(time.DateOnly))
		return false
	}
	c.clock.Set(begin)
	for account, want := range map[string][]string{"1/1": {"2026-01-15", "2026-02-15"}, "2/1": {"2026-01-31", "2026-02-28"},
		"3/1": {}, "4/1": {"2026-01-12", "2026-02-12"}, "5/1": {"2026-01-20"}, "6/1": {}} {
		id, _, _ := strings.Cut(account, "/")
		due := []string{}
		for _, r := range c.list("receipt", "list", id) {
			if date := r.(map[string]any)["due_date"].(string); date <= last {
				due = append(due, date)
			}
		}
		slices.Sort(due)
		if account == "5/1" && cancelled >= "2026-02-20" && len(due) == 2 {
			want = append(want, "2026-02-20") // a busy machine may cancel after February's charge
		}
		equal(t, account, due, want)
		if t.Failed() {
			t.Log(c.must("period", "list", id))
		}
	}
	kinds, ids := map[string]int{}, map[string]bool{}
	for _, message := range post.got() {
		id := regexp.MustCompile(`(?m)^Message-I[Dd]: <([a-z-]+)-\w+@`).FindStringSubmatch(message)
		if id == nil || ids[id[0]] {
			t.Fatalf("%q, once more or without an id:\n%s", id, message)
		}
		ids[id[0]] = true
		kinds[id[1]]++
	}
	if kinds["receipt"] < 7 || kinds["cancelled"] != 1 || kinds["action-required"] < 1 ||
		kinds["reminder"] < 3 || kinds["declined"] < 2 || kinds["failed"] < 1 {
		t.Errorf("mails: %v", kinds)
	}
	if n := beats.Load(); n > 90 {
		t.Errorf("%d heartbeats", n)
	}
	contains(t, c.must("verify"), "The audit is clean")
	return true
}

// TestServe_Day: serve takes the times from the settings, and everything that only one process has
// from flags.
func TestServe_Day(t *testing.T) {
	c := newCLI(t)
	for _, x := range []struct {
		args []string
		says string
	}{
		{[]string{"--daily", "06:10"}, "unknown flag: --daily"},
		{[]string{"--heartbeat", "http://monitor.example/secret"}, "--heartbeat: must be an https address"},
		{[]string{"--clock", "yesterday"}, "--clock: start \"yesterday\": a test clock must be START[,SPEED]"},
		{[]string{"--on-fulfil", "true"}, "DUESDAY_STRIPE_KEY"},
	} {
		r := c.run(append([]string{"serve", "--listen", "127.0.0.1:0", "--api=", "--pages="}, x.args...)...)
		equal(t, x.says, r.code, exitUsage)
		contains(t, r.errors, x.says)
	}
	c.env["DUESDAY_PROCESSOR"], c.env["DUESDAY_STRIPE_KEY"] = "stripe", "sk_live_1"
	r := c.run("serve", "--clock", "2026-01-01")
	equal(t, "live", r.code, exitUsage)
	contains(t, r.errors, "--clock is only for tests, but the processor is live")
	if names, _ := filepath.Glob(c.path("*")); len(names) > 0 {
		t.Errorf("refused, and made %q", names)
	}
	clear(c.env)

	_, stop := c.serveBy(c.clock.Now)
	r = stop()
	equal(t, "without times", []any{r.code, r.errors}, []any{exitDone, noJobs + noKey})
	c.must("settings", "set", "daily=06:10", "time-zone=Asia/Kathmandu")
	v, stop := c.serveBy(c.clock.Now)
	equal(t, "next", v.Next, "2026-03-16T00:25:00.000Z")
	health, err := http.Get(v.Base + "/readyz")
	if err != nil || health.StatusCode != http.StatusOK {
		t.Fatal(health, err)
	}
	health.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	r = stop()
	equal(t, "stopped", []any{r.code, r.errors}, []any{exitDone, noKey})
}

// TestServe_SettingsMeanwhile: serve keeps to the settings as they are now. Other commands live by
// its clock.
func TestServe_SettingsMeanwhile(t *testing.T) {
	c := newCLI(t)
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n"))
	_, stop := c.serveBy(time.Now, "--clock", "2026-03-20,1h/s")
	receipts := func() int { return len(c.list("receipt", "list", "1")) }
	equal(t, "without times", receipts(), 0)
	c.must("settings", "set", "daily=06:10", "time-zone=Europe/Berlin")
	c.until("charged", func() bool { return receipts() == 1 })
	contains(t, c.must("receipt", "list", "1"), "2026-03-2")
	equal(t, "stopped", stop().code, exitDone)
}

// TestServe_NamesFailures: the log of serve names the periods that have failed or are tried again,
// the first of them.
func TestServe_NamesFailures(t *testing.T) {
	c := newCLI(t)
	var book strings.Builder
	book.WriteString(header + "a,a@example.com,1,news,12.99,USD,15,pm_card_visa_chargeDeclined\n" +
		"b,b@example.com,1,news,12.99,USD,15,pm_card_visa\n")
	for i := range runs.ShownWaiting + 1 {
		fmt.Fprintf(&book, "%02d,x@example.com,1,news,12.99,USD,15,pm_card_visa_chargeDeclinedLostCard\n", i)
	}
	c.must("import", c.file("book.csv", book.String()))
	c.must("settings", "set", "daily=06:10")
	_, stop := c.serveBy(c.clock.Now)
	c.until("run", func() bool {
		runs := c.list("run", "list", "--kind", "payments")
		return len(runs) == 1 && runs[0].(map[string]any)["ended_at"] != nil
	})
	equal(t, "started by", c.list("run", "list", "--kind", "payments")[0].(map[string]any)["actor"], "schedule")
	said := stop().errors
	equal(t, "named", strings.Count(said, "payment: failed"), runs.ShownWaiting)
	contains(t, said, `msg="payment: failed" subscription=00/1 period=0 due=2026-03-15 amount=$12.99 reason="declined: lost_card"`,
		"number=2 ", "period list --from 2026-03-15")
	if strings.Contains(said, "b/1") {
		t.Errorf("names what was paid: %s", said)
	}
}

// TestServe_SettlesByEvent: with Stripe, serve charges by its own schedule, and a customer who
// confirms the payment gets the receipt within seconds, without another run.
func TestServe_SettlesByEvent(t *testing.T) {
	c := newServeCLI(t)
	begin := time.Now().UTC()
	c.clock.Set(begin) // by which the fake signs
	c.must("import", c.file("book.csv", header+
		"1,a@example.com,1,news,12.99,USD,"+strconv.Itoa(begin.Day())+",pm_card_authenticationRequired\n"))
	c.must("settings", "set", "daily=06:10")
	v, stop := c.serveBy(time.Now, "--no-poll", "--clock", begin.Format(time.RFC3339)+",1m/s")
	c.to.Store(&v.Base)
	mailed := func(kind string) func() bool {
		return func() bool {
			names, err := filepath.Glob(c.path("duesday-mail/*/") + kind + "-*.eml")
			return err == nil && len(names) > 0
		}
	}
	c.until("the customer is asked", mailed("action-required"))
	_, leaves := c.visit(c.linkIn(c.newMail("action-required", "a@example.com")), "Complete authentication", nil)
	contains(t, leaves, thanks, "redirect_status=succeeded")
	c.until("the period is settled", mailed("receipt"))
	equal(t, "stopped", stop().code, exitDone)
	c.clock.Set(time.Now().Add(time.Hour)) // later than the test clock has come
	equal(t, "charged", c.charged(), map[string]int{"1/1/0": 1})
	c.clean(1)
}
