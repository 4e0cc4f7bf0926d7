package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A served is duesday serve in a process of its own.
type served struct {
	*cli
	serveView
	log  *locked
	stop func()
	key  string // of scope read
}

// A locked buffer is written by a process.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// serveBinary starts duesday serve as a process.
func (c *cli) serveBinary(args ...string) *served {
	c.t.Helper()
	var env []string
	for name, value := range c.env {
		env = append(env, name+"="+value)
	}
	p := process(c.t, env, append([]string{"serve", "--json", "--listen", "127.0.0.1:0", "--api",
		"127.0.0.1:0"}, args...)...)
	s := &served{cli: c, log: new(locked)}
	p.Stderr = s.log
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		c.t.Fatalf("%v: %s", err, s.log)
	}
	c.do(json.Unmarshal([]byte(first), &s.serveView))
	s.key = c.object(exitDone, "key", "create", "prometheus", "--scope", "read")["key"].(string)
	s.stop = sync.OnceFunc(func() {
		_ = p.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, out)
		if err := p.Wait(); err != nil {
			c.t.Errorf("serve: %v: %s", err, s.log)
		}
	})
	c.t.Cleanup(s.stop)
	return s
}

func (s *served) get(path string) (int, string) {
	s.t.Helper()
	q, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.APIBase+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+s.key)
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

// status runs duesday status by the machine's clock, below the test clock of serve.
func (s *served) status() result {
	var out, errors bytes.Buffer
	p := newProgram(s.getenv(nil), strings.NewReader(""), &out, &errors, time.Now)
	return result{p.run(s.t.Context(), []string{"status"}), out.String(), errors.String()}
}

// A fault is what is broken, and what tells of it.
type fault struct {
	name   string
	breaks func()
	found  string // by duesday status, which exits 3; then the check's metric is 0
	check  string
	ready  int    // of /readyz
	metric string // more of /metrics; "": nothing
	mends  func() // nil: time does
	quiet  bool   // the operator was told of this check today
}

// tells breaks and mends, and wants everything to tell, and to be well again.
func (s *served) tells(post *sink, x fault) {
	s.t.Helper()
	x.breaks()
	var mail, last string
	s.until(x.name, func() bool {
		r := s.status()
		_, metrics := s.get("/metrics")
		mail += strings.Join(post.got(), "")
		told := "something is wrong\" check=" + x.check
		last = fmt.Sprintf("exit %d: %s%s", r.code, r.out, mail)
		return r.code == exitPerson && strings.Contains(r.out, x.found) && !strings.Contains(r.out, "All is well") &&
			strings.Contains(metrics, "duesday_check_ok{check=\""+x.check+"\"} 0\n") && strings.Contains(metrics, x.metric) &&
			strings.Contains(s.log.String(), told) && (x.quiet || strings.Contains(mail, x.check+" is wrong: "))
	}, &last)
	if ready, _ := s.get("/readyz"); ready != x.ready {
		s.t.Errorf("%s: /readyz %d, want %d", x.name, ready, x.ready)
	}
	if x.mends == nil {
		return
	}
	x.mends()
	s.until(x.name+", mended", func() bool {
		r := s.status()
		mail += strings.Join(post.got(), "")
		last = r.out + mail
		return r.code == exitDone && (x.quiet || strings.Contains(mail, "all is well again"))
	}, &last)
}

func (s *served) until(what string, holds func() bool, last *string) {
	s.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 300 {
		if holds() {
			return
		}
		<-tick.C
	}
	s.t.Fatalf("it never came to: %s\n%s", what, *last)
}

// withOperator has mail leave through a sink, also that to the operator.
func withOperator(c *cli) *sink {
	post := newSink(c.t)
	c.env["DUESDAY_SMTP"] = post.address
	c.must("settings", "set", "operator=ops@example.com", "sender=Ada <ada@example.com>")
	return post
}

// TestStatus_FaultsOfStripe plays faults of Stripe on one process: whatever is broken, status, /readyz, /metrics,
// the log and the operator's mail tell within minutes of its clock, and that all is well again.
func TestStatus_FaultsOfStripe(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits half a minute for an hour of its clock")
	}
	c := newServeCLI(t)
	var hangs atomic.Bool
	base, err := url.Parse(c.base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(base)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() {
			panic(http.ErrAbortHandler) // no answer; api's tests have one that hangs
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	c.env["DUESDAY_STRIPE_API_BASE"] = front.URL
	delete(c.env, "DUESDAY_API_KEY") // or /metrics would need it
	begin := time.Now().UTC()
	c.clock.Set(begin)
	c.must("store", "create")
	post := withOperator(c.cli)
	s := c.serveBinary("--clock", begin.Format(time.RFC3339)+",10m/s", "--poll-every", "1s", "--on-fulfil", "true")
	c.to.Store(&s.Base)
	c.must("connect", "add", "--account", shopAccount, "acct_shop")
	for _, x := range []fault{
		{"Stripe refuses the key", func() { c.do(c.fake.Revoke(c.key)) }, "refuses the key", "stripe",
			http.StatusServiceUnavailable, "", func() { c.do(c.fake.Restore(c.key)) }, false},
		{"Stripe does not answer", func() { hangs.Store(true) }, "has not answered for ", "stripe", http.StatusOK, "",
			func() { hangs.Store(false) }, true},
		{"webhooks do not come, and the poller covers", func() {
			c.to.Store(nil)
			c.clock.Set(begin.Add(50 * time.Minute)) // of the fake: after serve has begun
			for i := range 3 {
				c.must("purchase", "create", "--account", shopAccount, "--kind", "product", "--key", fmt.Sprint("k", i), "--amount", "5",
					"--email", "ann@example.com",
					"--currency", "EUR", "--payment-method", "pm_card_visa")
			}
		}, "no webhook at /hooks/stripe/connect for ", "webhooks", http.StatusOK,
			`duesday_events_total{endpoint="/hooks/stripe/connect",source="poll"}`, func() {
				c.to.Store(&s.Base)
				c.clock.Set(time.Now()) // by which the fake signs
				c.askAt("acct_shop", "POST", "/v1/payment_intents", "amount=500&currency=eur")
				c.flush()
			}, false},
		{"a merchant is disconnected", func() { c.do(c.fake.Disconnect("acct_shop")) }, "1 disconnected, such as acct_shop", "accounts",
			http.StatusOK, "duesday_accounts_disconnected 1\n", nil, true}, // a day later it is no alarm
	} {
		s.tells(post, x)
	}
}

func (c *cli) do(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// TestServe_AlarmsWithoutMail: while the mail server is down, the operator's command tells that a day's payments
// were all declined and that mail does not leave, and the heartbeat is withheld.
func TestServe_AlarmsWithoutMail(t *testing.T) {
	c := newCLI(t)
	c.must("store", "create")
	post := withOperator(c)
	c.env["DUESDAY_SMTP"], c.env["PATH"] = "smtp://127.0.0.1:1", os.Getenv("PATH")
	c.env["SECRET_OF_MINE"] = "hidden"
	var book strings.Builder
	book.WriteString(header)
	for i := range 25 {
		fmt.Fprintf(&book, "%d,x@example.com,1,news,12.99,USD,15,pm_card_visa_chargeDeclinedLostCard\n", i)
	}
	c.must("import", c.file("book.csv", book.String()))
	var beats atomic.Int64
	monitor := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { beats.Add(1) }))
	defer monitor.Close()
	c.file("alarm.sh", "#!/bin/sh\n{ cat; env; } >> alarms\n")
	c.do(os.Chmod("alarm.sh", 0o700))
	s := c.serveBinary("--clock", today+"T10:30:00Z,10m/s", "--daily", "06:10", "--heartbeat", monitor.URL, "--on-alarm",
		"./alarm.sh --now")
	var told string
	s.until("told", func() bool {
		b, _ := os.ReadFile("alarms") // not there at first
		told = string(b)
		return strings.Contains(told, "payments is wrong: none was paid of 25 tried on "+today) &&
			strings.Contains(told, "mail is wrong: the oldest row waits for ") &&
			strings.Contains(told, "DUESDAY_ALARM_CHECKS=mail\n")
	}, &told)
	_, metrics := s.get("/metrics")
	contains(t, metrics, "duesday_payments_total{outcome=\"failed\"} 25\n", "duesday_payment_minor_units_total{currency=\"USD\",outcome=\"failed\"} 32475\n",
		"duesday_http_open_connections 1\n")
	if strings.Contains(told, "hidden") || beats.Load() > 0 || len(post.got()) > 0 {
		t.Errorf("%d heartbeats; %s", beats.Load(), told)
	}
	s.stop()
	r := c.run("serve", "--on-alarm", "./none")
	equal(t, "no program", r.code, exitUsage)
	contains(t, r.errors, `--on-alarm "./none": the first word must be a program`)
}

// TestStatus_Unserved: where no serve has looked yet, status tells what it can see by itself: a payment that was
// due yesterday, a first day without any run, and runs that are refused because the clock went back.
func TestStatus_Unserved(t *testing.T) {
	c := newCLI(t)
	wants := func(texts ...string) {
		t.Helper()
		r := c.run("status")
		equal(t, "exit code of "+r.out, r.code, exitPerson)
		contains(t, r.out, texts...)
	}
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n"))
	c.clock.Set(c.clock.Now().AddDate(0, 0, 1))
	wants("1 due before today; no run has completed yet", "due: charge them: duesday run payments")
	c.must("settings", "set", "daily=06:10")
	wants("no run of payments has completed yet", "none runs, and both jobs are to run daily at 06:10; no process has looked yet")
	c.must("run", "payments")
	c.must("settings", "set", "daily=")
	contains(t, c.must("status"), "All is well.", "completed 2026-03-16 10:30 UTC: 1 due, 1 paid")
	c.clock.Set(c.clock.Now().Add(-time.Hour))
	equal(t, "refused", c.run("run", "payments").code, exitFailed)
	wants("it is 2026-03-16 09:30 UTC, and the last run ended at 2026-03-16 10:30 UTC")
	c.must("settings", "set", "daily=06:10")
	s := c.serveBinary("--clock", "2026-03-16T09:00:00Z,10m/s")
	var last string
	s.until("refused", func() bool {
		r := s.status()
		last = r.out
		return r.code == exitPerson && strings.Contains(r.out, "refused since 2026-03-16 09:") &&
			strings.Contains(r.out, ": the clock is wrong: it is ")
	}, &last)
	s.stop()
}
