package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/command/rehearsal"
	"github.com/duesday/duesday/stripefake"
)

// A gym is the example of that name, beside stripe-fake and serve in processes of their own.
type gym struct {
	t          *testing.T
	dir        string
	env        []string // of the product
	control    stripefake.Control
	api        *httptest.Server // before serve: loses answers
	hook       *httptest.Server // before the example's receiver: notes deliveries
	receiver   atomic.Pointer[url.URL]
	deliveries chan delivered
	secret     string
	key        string
}

// A delivered is a request to the receiver.
type delivered struct {
	header http.Header
	body   []byte
}

// newGym skips the test without Python, except in CI.
func newGym(t *testing.T) *gym {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("NOT TESTED: examples/gym needs python3")
	}
	g := &gym{t: t, dir: t.TempDir(), deliveries: make(chan delivered, 100)}
	fake := g.start(process(t, nil, rehearsal.StripeFakeName, "--json", "--listen", "127.0.0.1:0"))
	g.control = stripefake.Control{Base: fake["base"].(string)}
	g.env = []string{"DUESDAY_STRIPE_API_BASE=" + g.control.Base, "DUESDAY_STRIPE_KEY=" + rehearsal.StripeFakeKey,
		"DUESDAY_PROCESSOR=stripe:?return_url=" + thanks, "DUESDAY_STORE=pebble:" + g.dir + "/data", "DUESDAY_MAIL=" + g.dir + "/mail"}
	g.printed("store", "create")
	g.hook = httptest.NewServer(http.HandlerFunc(g.deliver))
	t.Cleanup(g.hook.Close)
	g.key = g.product("key", "create", "gym", "--scope", "charge")["key"].(string)
	g.secret = g.product("endpoint", "create", g.hook.URL+"/duesday")["secret"].(string)
	serve := g.start(process(t, g.env, "serve", "--json", "--no-poll", "--listen=", "--api", "127.0.0.1:0", "--pages=", "--allow-private"))
	to, err := url.Parse(serve["api_base"].(string))
	if err != nil {
		t.Fatal(err)
	}
	g.api = httptest.NewServer(losing(httputil.NewSingleHostReverseProxy(to)))
	t.Cleanup(g.api.Close)
	return g
}

// losing cuts off the answer to the first POST to each path, once the API has answered. It refuses the
// second one.
func losing(api http.Handler) http.HandlerFunc {
	var mu sync.Mutex
	count := map[string]int{}
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if r.Method == http.MethodPost {
			count[r.URL.Path]++
		}
		n := count[r.URL.Path]
		mu.Unlock()
		switch {
		case r.Method == http.MethodPost && n == 1:
			api.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case r.Method == http.MethodPost && n == 2:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			api.ServeHTTP(w, r)
		}
	}
}

// deliver passes a delivery on to the receiver, and notes it.
func (g *gym) deliver(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	to := g.receiver.Load()
	if err != nil || to == nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	d := delivered{r.Header.Clone(), body}
	status, err := d.send(to.String())
	if err != nil {
		status = http.StatusBadGateway
	}
	w.WriteHeader(status)
	g.deliveries <- d
}

func (d delivered) send(to string) (status int, err error) {
	r, err := http.NewRequest(http.MethodPost, to, bytes.NewReader(d.body))
	if err != nil {
		return 0, err
	}
	r.Header = d.header.Clone()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// start starts a server, and returns the line with which it says where it listens.
func (g *gym) start(c *exec.Cmd) (v map[string]any) {
	g.t.Helper()
	line, _ := g.begin(c)
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		g.t.Fatalf("%v: %v", c.Args, err)
	}
	return v
}

// begin starts a program that runs until the end of the test, and returns its first line and the others.
func (g *gym) begin(c *exec.Cmd) (first string, more *bufio.Reader) {
	g.t.Helper()
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
	more = bufio.NewReader(out)
	limit := time.AfterFunc(10*time.Minute, func() { _ = c.Process.Kill() }) // who reads on gets an error
	g.t.Cleanup(func() { limit.Stop() })
	if first, err = more.ReadString('\n'); err != nil {
		g.t.Fatalf("%v: %v", c.Args, err)
	}
	return strings.TrimSpace(first), more
}

// product runs a command of the product with --json.
func (g *gym) product(args ...string) map[string]any {
	g.t.Helper()
	return decode(g.t, g.printed(args...)).(map[string]any)
}

func (g *gym) printed(args ...string) string {
	g.t.Helper()
	c := process(g.t, g.env, append(args, "--json")...)
	c.Stderr = nil
	out, err := c.Output()
	if err != nil {
		g.t.Fatalf("%v: %v", args, err)
	}
	return string(out)
}

func (g *gym) python(args ...string) *exec.Cmd {
	g.t.Helper()
	file, err := filepath.Abs("../../examples/gym/gym.py")
	if err != nil {
		g.t.Fatal(err)
	}
	c := exec.Command("python3", append([]string{"-W", "error", file}, args...)...)
	c.Dir = g.dir
	c.Env = append(os.Environ(), "GYM_API="+g.api.URL, "GYM_KEY="+g.key, "GYM_SECRET="+g.secret)
	return c
}

// run runs a command of the example, and returns what it prints.
func (g *gym) run(args ...string) string {
	g.t.Helper()
	out, err := g.python(args...).CombinedOutput()
	if err != nil {
		g.t.Fatalf("gym.py %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestExamples_Gym: a member joins, gives a card, pays once, changes the plan and leaves, although the
// answer to the first request of each kind is lost. The receiver accepts each delivery once, and no
// other request.
func TestExamples_Gym(t *testing.T) {
	t.Parallel()
	g := newGym(t)
	listen := g.python("listen", "0")
	line, events := g.begin(listen)
	to, err := url.Parse(strings.TrimPrefix(line, "listening on "))
	if err != nil {
		t.Fatal(err)
	}
	g.receiver.Store(to)

	today := time.Now().UTC().Format(time.DateOnly)
	link := g.run("join", "ada", "ada@example.com", today)
	browser := &stripeCLI{cli: &cli{t: t}}
	if text, leaves := browser.visit(link, "Save this card", url.Values{"card": {"pm_card_visa"}}); leaves != thanks {
		t.Fatalf("the page leads to %q:\n%s", leaves, text)
	}
	equal(t, "charge", g.run("charge"), "completed: 1 paid")
	paid := g.run("paid", "ada")
	contains(t, paid, "active, period 0 is paid, next payment ", "3900 GBP for "+today)
	for range 2 {
		equal(t, "upgrade", g.run("upgrade", "ada", "7"), "GYM-PLUS")
		contains(t, g.run("leave", "ada", "8"), "active, ends on ")
	}
	equal(t, "paid once", strings.Count(g.run("paid", "ada"), "receipt "), 1)
	contains(t, g.run("join", "ada", "ada@example.com", today), g.control.Base+"/checkout/") // done before: another link

	wrong := g.python("join", "bob", "nowhere", today)
	out, err := wrong.CombinedOutput()
	if err == nil {
		t.Errorf("a wrong address was accepted:\n%s", out)
	}
	contains(t, string(out), "422 field", "/email: ", "request ")

	charges := 0
	for range g.control.Ledger(t.Context()) {
		charges++
	}
	equal(t, "charges", charges, 1)
	g.receives(events)
	_ = listen.Process.Signal(syscall.SIGTERM)
	if text, err := io.ReadAll(events); err != nil || strings.Contains(string(text), "period.paid") {
		t.Errorf("the same delivery was handled again: %s %v", text, err)
	}
}

// receives checks what the receiver does with the delivery of a payment, the same one again, and others.
func (g *gym) receives(events *bufio.Reader) {
	g.t.Helper()
	for event := ""; event != "period.paid ada\n"; {
		var err error
		if event, err = events.ReadString('\n'); err != nil {
			g.t.Fatalf("no delivery of the payment: %v\n%v", err, decode(g.t, g.printed("delivery", "list")))
		}
	}
	good := <-g.deliveries
	for !bytes.Contains(good.body, []byte("period.paid")) {
		good = <-g.deliveries
	}
	send := func(change func(*delivered)) int {
		d := delivered{good.header.Clone(), bytes.Clone(good.body)}
		change(&d)
		status, err := d.send(g.receiver.Load().String())
		if err != nil {
			g.t.Fatal(err)
		}
		return status
	}
	equal(g.t, "again", send(func(*delivered) {}), http.StatusNoContent)
	for what, change := range map[string]func(*delivered){
		"another body":   func(d *delivered) { d.body = bytes.ReplaceAll(d.body, []byte("ada"), []byte("bob")) },
		"another id":     func(d *delivered) { d.header.Set("Webhook-Id", "msg_other") },
		"another time":   func(d *delivered) { d.header.Set("Webhook-Timestamp", "1700000000") },
		"no time":        func(d *delivered) { d.header.Del("Webhook-Timestamp") },
		"no signature":   func(d *delivered) { d.header.Del("Webhook-Signature") },
		"other versions": func(d *delivered) { d.header.Set("Webhook-Signature", "v2"+good.header.Get("Webhook-Signature")[2:]) },
	} {
		equal(g.t, what, send(change), http.StatusBadRequest)
	}
	// Two signatures, of which the second is right: the secret was rotated.
	both := func(d *delivered) { d.header.Set("Webhook-Signature", "v1,AAAA "+good.header.Get("Webhook-Signature")) }
	equal(g.t, "a rotated secret", send(both), http.StatusNoContent)
}
