package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"github.com/duesday/duesday/internal/test/soaktest"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strconv"
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
	log    *locked
	stop   func()
	kill   func() error
	signal func(os.Signal) error
	key    string // of scope read
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
		"127.0.0.1:0", "--pages="}, args...)...)
	p.Dir = c.dir
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
	s.signal = p.Process.Signal
	s.kill = func() error {
		err := p.Process.Kill()
		_ = p.Wait() // it was killed
		s.stop = func() {}
		return err
	}
	c.t.Cleanup(func() { s.stop() })
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
func (s *served) status(args ...string) result {
	var out, errors bytes.Buffer
	p := newProgram(s.getenv(nil), strings.NewReader(""), &out, &errors, time.Now)
	p.Dir = s.dir
	return result{p.run(s.t.Context(), append([]string{"status"}, args...)), out.String(), errors.String()}
}

// A fault is what is broken: a row of the page about it.
type fault struct {
	name   string // the row's
	breaks func()
	metric string // more of /metrics; "": nothing
	mends  func() // nil: time does
	quiet  bool   // the operator was told of this check today
}

// A faultRow says what tells of a fault.
type faultRow struct {
	check, says string
	ready       int
}

type faultRows map[string]faultRow

var faultLine = regexp.MustCompile("(?m)^\\| (.*?)( \\(503\\))? \\| `([a-z]+)` \\| (.*) \\| .* \\|$")

// readFaults returns the rows of the page, by their faults. It is called before newCLI, which
// leaves the folder.
func readFaults(t *testing.T) faultRows {
	t.Helper()
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "### Which check reports which fault\n")
	text, _, _ = strings.Cut(text, "\n#")
	rows := faultRows{}
	for _, m := range faultLine.FindAllStringSubmatch(text, -1) {
		ready := http.StatusOK
		if m[2] != "" {
			ready = http.StatusServiceUnavailable
		}
		rows[m[1]] = faultRow{m[3], m[4], ready}
	}
	return rows
}

// of returns the row of the fault.
func (rows faultRows) of(t *testing.T, name string) faultRow {
	t.Helper()
	row, ok := rows[name]
	if !ok {
		t.Fatalf("the page has no row about: %s", name)
	}
	return row
}

// in reports whether the text of status is as the row says.
func (r faultRow) in(text string) bool {
	words := strings.Split(r.says, "…")
	for i := range words {
		words[i] = regexp.QuoteMeta(words[i])
	}
	return regexp.MustCompile(`(?m)^` + r.check + ` +(WRONG|unknown) .*` + strings.Join(words, ".*")).MatchString(text)
}

// TestFaults_ArePlayed: each row of the page is a case of a test in this file.
func TestFaults_ArePlayed(t *testing.T) {
	source, err := os.ReadFile("status_fault_test.go")
	if err != nil {
		t.Fatal(err)
	}
	rows := readFaults(t)
	for name := range rows {
		if !strings.Contains(string(source), strconv.Quote(name)) {
			t.Errorf("no test plays: %s", name)
		}
	}
	if len(rows) != 14 {
		t.Errorf("the page has %d faults, and these tests play 14", len(rows))
	}
}

// tells breaks and mends, and wants everything to tell, and to be well again.
func (s *served) tells(post *sink, rows faultRows, x fault) {
	s.t.Helper()
	row := rows.of(s.t, x.name)
	x.breaks()
	var mail, last string
	s.until(x.name, func() bool {
		r := s.status()
		_, metrics := s.get("/metrics")
		mail += strings.Join(post.got(), "")
		told := "a check is wrong\" check=" + row.check
		last = fmt.Sprintf("exit %d: %s%s", r.code, r.out, mail)
		return r.code == exitPerson && row.in(r.out) && !strings.Contains(r.out, "All is well") &&
			strings.Contains(metrics, "duesday_check_ok{check=\""+row.check+"\"} 0\n") && strings.Contains(metrics, x.metric) &&
			strings.Contains(s.log.String(), told) && (x.quiet || strings.Contains(mail, row.check+" is wrong: "))
	}, &last)
	if ready, text := s.get("/readyz"); ready != row.ready || ready != http.StatusOK && !strings.Contains(text, `"code":"unready"`) {
		s.t.Errorf("%s: /readyz %d %s, want %d", x.name, ready, text, row.ready)
	}
	if x.mends == nil {
		return
	}
	x.mends()
	s.until(x.name+", mended", func() bool {
		r := s.status()
		mail += strings.Join(post.got(), "")
		last = r.out + mail
		return r.code == exitDone && (x.quiet || strings.Contains(mail, "all checks pass again"))
	}, &last)
}

func (s *served) until(what string, holds func() bool, last *string) {
	s.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(3 * time.Minute); time.Now().Before(until); <-tick.C {
		if holds() {
			return
		}
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

// TestStatus_FaultsOfStripe plays faults of Stripe on one process: whatever is broken, status,
// /readyz, /metrics, the log and the operator's mail tell within minutes of its clock, and that all
// is well again.
func TestStatus_FaultsOfStripe(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits half a minute for an hour of its clock")
	}
	rows := readFaults(t)
	c := newServeCLI(t)
	var hangs, refuses atomic.Bool
	base, err := url.Parse(c.base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(base)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() {
			panic(http.ErrAbortHandler) // no answer; api's tests have one that hangs
		}
		if refuses.Load() && r.URL.Path != "/v1/account" && r.Header.Get("Stripe-Account") != "" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"error":{"type":"invalid_request_error","message":"The key lacks a permission"}}`)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	c.env["DUESDAY_STRIPE_API_BASE"] = front.URL
	delete(c.env, "DUESDAY_PROCESSOR") // it only follows Stripe
	begin := time.Now().UTC()
	c.clock.Set(begin)
	c.must("store", "create")
	post := withOperator(c.cli)
	s := c.serveBinary("--clock", begin.Format(time.RFC3339)+",10m/s", "--poll-every", "1s", "--on-fulfil", "true")
	c.to.Store(&s.Base)
	for _, x := range []fault{
		{"Stripe refuses a merchant's account, which was never read", func() {
			refuses.Store(true)
			c.must("connect", "add", "--account", shopAccount, "acct_shop")
		}, "duesday_accounts_failed 1\n", func() { refuses.Store(false) }, false},
		{"Stripe refuses the key", func() { c.do(c.fake.Revoke(c.key)) }, "", func() { c.do(c.fake.Restore(c.key)) }, false},
		{"Stripe does not answer", func() { hangs.Store(true) }, "", func() { hangs.Store(false) }, true},
		{"webhooks stop, and the poller covers for them", func() {
			c.to.Store(nil)
			c.clock.Set(begin.Add(50 * time.Minute)) // of the fake: after serve has begun
			for i := range 3 {
				c.must("purchase", "create", "--account", shopAccount, "--kind", "product", "--key", fmt.Sprint("k", i), "--amount", "5",
					"--email", "ann@example.com",
					"--currency", "EUR", "--payment-method", "pm_card_visa")
			}
		}, `duesday_events_total{endpoint="/hooks/stripe/connect",source="poll"}`, func() {
			c.to.Store(&s.Base)
			c.clock.Set(time.Now()) // by which the fake signs
			c.askAt("acct_shop", "POST", "/v1/payment_intents", "amount=500&currency=eur")
			c.flush()
		}, false},
		{"a merchant disconnects", func() { c.do(c.fake.Disconnect("acct_shop")) }, "duesday_accounts_disconnected 1\n", nil,
			true}, // a day later it is no alarm
	} {
		s.tells(post, rows, x)
	}
	s.stop()
	maps.DeleteFunc(c.env, func(name, _ string) bool { return strings.HasPrefix(name, "DUESDAY_STRIPE_") })
	s = c.serveBinary("--clock", begin.AddDate(0, 0, 2).Format(time.RFC3339)+",10m/s")
	row, last := rows.of(t, "`serve` runs without Stripe's key in a store that follows Stripe"), ""
	s.until("not followed", func() bool { last = s.status().out; return row.in(last) }, &last)
}

// TestServe_StoreDoesNotAnswer: while the process that holds the folder stands still, another one
// tells so by its command, its log and /readyz. What needs the folder ends, and names that process.
func TestServe_StoreDoesNotAnswer(t *testing.T) {
	if !soaktest.Checked() {
		t.Skip("it waits 80 seconds for time limits: make check plays it")
	}
	rows := readFaults(t)
	c := newCLI(t)
	c.must("store", "create")
	c.env["PATH"] = os.Getenv("PATH")
	c.file("alarm.sh", "#!/bin/sh\ncat >> alarms\n")
	c.do(os.Chmod(c.path("alarm.sh"), 0o700))
	holder := c.serveBinary("--clock", today+"T10:30:00Z,10m/s")
	s := c.serveBinary("--on-alarm", "./alarm.sh")
	c.do(holder.signal(syscall.SIGSTOP))
	defer func() { c.do(holder.signal(syscall.SIGCONT)) }()
	row, last := rows.of(t, "the store does not answer"), ""
	s.until("told", func() bool {
		b, _ := os.ReadFile(c.path("alarms")) // not there at first
		ready, text := s.get("/readyz")
		last = fmt.Sprint(string(b), ready, text, s.log)
		return ready == row.ready && strings.Contains(text, `"code":"unready"`) &&
			strings.Contains(string(b), row.check+" is unknown: "+strings.TrimSuffix(row.says, "…")) &&
			strings.Contains(s.log.String(), "a check is unknown\" check="+row.check)
	}, &last)
	r := s.status()
	equal(t, "exit code", r.code, exitFailed)
	contains(t, r.errors, "it does not answer; resume it, or stop it")
	if code, _ := s.get("/metrics"); code == http.StatusOK {
		t.Error("/metrics answers, though no key can be read")
	}
}

func (c *cli) do(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// TestServe_AlarmsWithoutMail: while the mail server is down, the operator's command tells that a
// day's payments were all declined and that mail does not leave, and the heartbeat is withheld.
func TestServe_AlarmsWithoutMail(t *testing.T) {
	rows := readFaults(t)
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
	c.do(os.Chmod(c.path("alarm.sh"), 0o700))
	c.must("settings", "set", "daily=06:10")
	s := c.serveBinary("--clock", today+"T10:30:00Z,10m/s", "--heartbeat", monitor.URL, "--on-alarm",
		"./alarm.sh --now")
	var told string
	declined := rows.of(t, "at least 20 payments are declined on one day, and none is paid")
	down := rows.of(t, "the mail server does not answer")
	s.until("told", func() bool {
		b, _ := os.ReadFile(c.path("alarms")) // not there at first
		told = string(b)
		out := s.status().out
		return strings.Contains(told, "payments is wrong: none of 25 payments succeeded on "+today) &&
			strings.Contains(told, "mail is wrong: the oldest row has waited for ") &&
			strings.Contains(told, "DUESDAY_ALARM_CHECKS=mail\n") && declined.in(out) && down.in(out)
	}, &told)
	_, metrics := s.get("/metrics")
	contains(t, metrics, "duesday_payments_total{outcome=\"failed\"} 25\n", "duesday_payment_minor_units_total{currency=\"USD\",outcome=\"failed\"} 32475\n",
		"duesday_http_open_connections 1\n")
	if strings.Contains(told, "hidden") || beats.Load() > 0 || len(post.got()) > 0 {
		t.Errorf("%d heartbeats; %s", beats.Load(), told)
	}
	c.do(s.kill())
	out := c.run("status").out
	if row := rows.of(t, "`serve` is killed"); !row.in(out) {
		t.Error(out)
	}
	r := c.run("serve", "--on-alarm", "./none")
	equal(t, "no program", r.code, exitUsage)
	contains(t, r.errors, `--on-alarm must begin with a program (got "./none")`)
}

// TestStatus_Unserved: where no serve has looked yet, status tells what it can see by itself: a
// payment that was due yesterday, a first day without any run, and runs that are refused because
// the clock went back.
func TestStatus_Unserved(t *testing.T) {
	rows := readFaults(t)
	c := newCLI(t)
	wants := func(fault string, texts ...string) {
		t.Helper()
		r := c.run("status")
		equal(t, "exit code of "+r.out, r.code, exitPerson)
		contains(t, r.out, texts...)
		if !rows.of(t, fault).in(r.out) {
			t.Errorf("%s: %s", fault, r.out)
		}
	}
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n"))
	c.clock.Set(c.clock.Now().AddDate(0, 0, 1))
	wants("a payment was due yesterday, and nothing ever ran", "due: to charge them, run: duesday run payments")
	c.must("settings", "set", "daily=06:10")
	if out := c.run("status").out; regexp.MustCompile("days +WRONG").MatchString(out) {
		t.Errorf("a moment after the times were set: %s", out)
	}
	c.clock.Set(c.clock.Now().Add(61 * time.Minute))
	wants("job times are set, and no job ever ran", "no daily run of payments has completed yet", "serve is not running, but both jobs are scheduled daily at 06:10; no process has run the checks yet")
	c.must("run", "payments")
	c.must("settings", "set", "daily=")
	contains(t, c.must("status", "--all"), "All is well.", "completed 2026-03-16 11:31 UTC: 1 due, 1 paid")
	c.clock.Set(c.clock.Now().Add(-time.Hour))
	equal(t, "refused", c.run("run", "payments").code, exitFailed)
	wants("the clock is before the last run's end", "the clock shows 2026-03-16 10:31 UTC, but the last run ended at 2026-03-16 11:31 UTC")
	c.must("settings", "set", "daily=06:10")
	s := c.serveBinary("--clock", "2026-03-16T09:00:00Z,10m/s")
	var last string
	row := rows.of(t, "each run is refused, such as for a wrong clock")
	s.until("refused", func() bool {
		r := s.status()
		last = r.out
		return r.code == exitPerson && row.in(r.out)
	}, &last)
	s.stop()
}
