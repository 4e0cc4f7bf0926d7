package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/server"
	"github.com/duesday/duesday/stripefake"
)

const (
	shopAccount = "0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58" // of acct_shop
	ownAccount  = "5d1c9a52-8a0e-4b62-9f0d-2f6f5f0f6a11" // of the key's own
	hookSecret  = "whsec_platform"
	shopSecret  = "whsec_connect"
)

// noJobs is the warning of a serve without times of the daily jobs.
const noJobs = `{"warning":"neither job will run here, so no one is reminded or charged; set the times of day with ` +
	`duesday settings set daily=06:10 time-zone=ZONE"}` + "\n"

// noKey is the warning of a serve that has no key yet.
const noKey = `{"warning":"/v1 has no key yet; create one with duesday key create NAME --scope charge"}` + "\n"

// A serveCLI is duesday serve before a fake of Stripe that sends its webhooks there.
type serveCLI struct {
	*stripeCLI
	front *httptest.Server       // where the fake sends webhooks to
	to    atomic.Pointer[string] // where front leads: the base of what serves now
	pipe  *os.File
	jobs  *bufio.Reader // of pipe: a line for each job that a command was run for
}

func newServeCLI(t *testing.T) *serveCLI {
	t.Helper()
	c := new(serveCLI)
	c.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		base := c.to.Load()
		if base == nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		to, err := url.Parse(*base)
		if err != nil {
			t.Error(err)
			return
		}
		proxy := httputil.NewSingleHostReverseProxy(to)
		proxy.ErrorLog = log.New(io.Discard, "", 0) // of webhooks that come while nothing serves
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(c.front.Close)
	c.stripeCLI = newStripeCLI(t, stripefake.Options{Connected: []string{"acct_shop"}, Webhooks: []stripefake.Webhook{
		{URL: c.front.URL + server.HookPath, Secret: hookSecret},
		{URL: c.front.URL + server.ConnectPath, Secret: shopSecret, Connect: true}}})
	maps.Copy(c.env, map[string]string{"DUESDAY_STRIPE_WEBHOOK_SECRETS": "whsec_older, " + hookSecret,
		"DUESDAY_STRIPE_CONNECT_SECRETS": shopSecret,
		"PATH":                           os.Getenv("PATH"), "HOME": t.TempDir()})
	pipe := filepath.Join(t.TempDir(), "jobs")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(pipe, os.O_RDWR, 0) // it never ends
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	c.pipe, c.jobs = f, bufio.NewReader(f)
	c.env["TEST_PIPE"] = pipe
	return c
}

// job is the command line that notes the job.
func (c *serveCLI) job() string {
	return `echo "$DUESDAY_ACTION $DUESDAY_PURCHASE" > ` + c.env["TEST_PIPE"]
}

// A serveView is the line of JSON with which a program finds the server.
type serveView struct {
	Address       string   `json:"address"`
	Base          string   `json:"base"`
	APIAddress    string   `json:"api_address"`
	APIBase       string   `json:"api_base"`
	CustomerBase  string   `json:"customer_base"`
	PagesBase     string   `json:"pages_base"`
	Store         string   `json:"store"`
	StripeAccount string   `json:"stripe_account"`
	Mode          string   `json:"mode"`
	Webhooks      []string `json:"webhooks"`
	API           bool     `json:"api"`
	PollEvery     string   `json:"poll_every"`
	Daily         []string `json:"daily"`
	TimeZone      string   `json:"time_zone"`
	Next          string   `json:"next"`
	Clock         string   `json:"clock"`
}

// serve runs duesday serve until stop, and returns what it announced.
func (c *serveCLI) serve(args ...string) (v serveView, stop func() result) {
	c.t.Helper()
	now := c.clock.Now()
	v, end := c.serveBy(func() time.Time { return now }, args...)
	c.to.Store(&v.Base)
	return v, func() result {
		c.to.Store(nil)
		return end()
	}
}

// serveBy runs duesday serve by the machine's clock until stop, and returns what it announced.
func (c *cli) serveBy(machine func() time.Time, args ...string) (v serveView, stop func() result) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	read, write := io.Pipe()
	var errors strings.Builder
	p := newProgram(c.getenv(args), strings.NewReader(""), write, &errors, machine)
	p.Dir = c.dir
	done := make(chan int, 1)
	go func() {
		done <- p.run(ctx, append([]string{"serve", "--create", "--json", "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0", "--pages="}, args...))
		write.Close()
	}()
	out := bufio.NewReader(read)
	first, err := out.ReadString('\n')
	if err != nil {
		cancel()
		c.t.Fatalf("duesday serve %s: exit %d, %s", strings.Join(args, " "), <-done, errors.String())
	}
	stop = sync.OnceValue(func() result {
		cancel()
		text, _ := io.ReadAll(out)
		return result{<-done, string(text), errors.String()}
	})
	c.t.Cleanup(func() { stop() })
	if err := json.Unmarshal([]byte(first), &v); err != nil {
		c.t.Fatal(err)
	}
	return v, stop
}

// apiKey creates an API key of all merchants.
func (c *serveCLI) apiKey(scope string) string {
	c.t.Helper()
	return c.object(exitDone, "key", "create", "test", "--scope", scope)["key"].(string)
}

// await reads lines of jobs until there are as many.
func (c *serveCLI) await(n int) map[string]int {
	c.t.Helper()
	if err := c.pipe.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		c.t.Fatal(err)
	}
	jobs := map[string]int{}
	for range n {
		line, err := c.jobs.ReadString('\n')
		if err != nil {
			c.t.Fatal(err)
		}
		jobs[strings.TrimSpace(line)]++
	}
	return jobs
}

// flush has the fake deliver all its webhooks.
func (c *serveCLI) flush() {
	c.t.Helper()
	if left, err := c.fake.Flush(c.t.Context()); left > 0 || err != nil {
		c.t.Fatalf("%d webhooks are left: %v", left, err)
	}
}

// askAt is ask at a connected account.
func (c *stripeCLI) askAt(at, method, path, params string) map[string]any {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, strings.NewReader(params))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Stripe-Account", at)
	status, text, _ := c.send(r)
	if status != http.StatusOK {
		c.t.Fatalf("%s %s at %s: %d %s", method, path, at, status, text)
	}
	return decode(c.t, text).(map[string]any)
}

func TestServe_SellsAndFulfils(t *testing.T) {
	c := newServeCLI(t)
	v, stop := c.serve("--on-fulfil", c.job(), "--on-unsubscribe", c.job(), "--no-poll")
	equal(t, "announced", []any{v.StripeAccount, v.Mode, v.API, v.PollEvery, v.Webhooks},
		[]any{stripefake.DefaultAccount, "test", false, "", []string{v.Base + server.HookPath, v.Base + server.ConnectPath}})
	equal(t, "registered", members(c.object(exitDone, "connect", "add", "--account", shopAccount, "acct_shop"),
		"stripe_account", "id", "status"), []any{"acct_shop", shopAccount, "connected"})
	c.must("connect", "add", "--account", ownAccount, stripefake.DefaultAccount)
	price := c.askAt("acct_shop", "POST", "/v1/prices",
		"unit_amount=900&currency=usd&recurring[interval]=month&product_data[name]=Gym")["id"].(string)

	sell := func(code int, account, kind string, args ...string) map[string]any {
		t.Helper()
		return c.object(code, append([]string{"purchase", "create", "--account", account, "--kind", kind}, args...)...)
	}
	id := func(sold map[string]any) string { return sold["purchase"].(map[string]any)["id"].(string) }
	legacy := sell(exitDone, shopAccount, "legacy", "--key", "1", "--amount", "12.99", "--currency", "usd")
	secret := legacy["client_secret"].(string)
	intent, _, _ := strings.Cut(secret, "_secret_")
	c.askAt("acct_shop", "POST", "/v1/payment_intents/"+intent+"/confirm",
		"payment_method=pm_card_visa&return_url=http://shop.example")
	product := sell(exitDone, ownAccount, "product", "--key", "1", "--amount", "500", "--currency", "JPY", "--email",
		"ann@example.com", "--payment-method", "pm_card_visa")
	recurring := sell(exitDone, shopAccount, "subscription", "--key", "2", "--price", price, "--email", "ann@example.com",
		"--payment-method", "pm_card_visa")
	split := sell(exitDone, shopAccount, "split", "--key", "3", "--price", price, "--payments", "3", "--email",
		"bob@example.com", "--payment-method", "pm_card_visa")
	again := sell(exitDone, shopAccount, "split", "--key", "3", "--price", price, "--payments", "3", "--email",
		"bob@example.com", "--payment-method", "pm_card_visa")
	equal(t, "repeated", []any{id(again), again["repeated"]}, []any{id(split), true})

	want := map[string]int{}
	for _, sold := range []map[string]any{legacy, product, recurring, split} {
		want["fulfil "+id(sold)] = 1
	}
	equal(t, "fulfilled", c.await(4), want)
	for sold := range want {
		_, purchase, _ := strings.Cut(sold, " ")
		c.until(sold, func() bool {
			return c.object(exitDone, "purchase", "show", purchase)["purchase"].(map[string]any)["fulfilled"] == true
		})
	}

	r := c.run("purchase", "create", "--account", shopAccount, "--kind", "legacy", "--key", "1", "--amount", "13",
		"--currency", "usd")
	equal(t, "another order", r.code, exitFailed)
	contains(t, r.errors, "--key 1 was used before for another order (the key belongs to purchase "+id(legacy)+")")
	equal(t, "objects", members(legacy["objects"].([]any)[0].(map[string]any), "kind", "id"),
		[]any{"payment_intent", intent})

	declined := sell(exitPerson, shopAccount, "product", "--key", "4", "--amount", "7", "--currency", "EUR", "--email",
		"cy@example.com", "--payment-method", "pm_card_chargeCustomerFail")
	equal(t, "declined", declined["declined"], "generic_decline: Your card was declined.")
	c.flush()
	c.showsAll(id(legacy), id(recurring), intent)

	// The buyer's subscription ends: an unsubscribe, and once.
	sub := c.list("event", "list", "--account", "acct_shop")
	equal(t, "events of the account", len(sub) > 4, true)
	for name := range c.object(exitDone, "purchase", "show",
		id(recurring))["purchase"].(map[string]any)["subscriptions"].(map[string]any) {
		c.askAt("acct_shop", "DELETE", "/v1/subscriptions/"+name, "")
		c.flush()
		if n := len(c.list("event", "list", "--subscription", name)); n < 2 {
			t.Errorf("%d events of %s", n, name)
		}
	}
	equal(t, "ended", c.await(1), map[string]int{"unsubscribe " + id(recurring): 1})

	r = stop()
	equal(t, "stopped", []any{r.code, r.out, r.errors}, []any{exitDone, "", noJobs + noKey})
	equal(t, "once more", c.list("event", "list", "--waiting"), []any{})
	equal(t, "purchases", len(c.list("purchase", "list", "--account", shopAccount)), 4)
	c.must("rebuild")
	for text := range c.items() {
		if strings.Contains(text, "_secret_") {
			t.Errorf("a client secret is stored: %s", text)
		}
	}
}

// showsAll reads by every command that reads, for people.
func (c *serveCLI) showsAll(legacy, recurring, intent string) {
	t := c.t
	t.Helper()
	contains(t, c.must("purchase", "show", legacy), "legacy", "$12.99", "fulfilled", "yes", "by command", "Payments:",
		intent, "paid", "Timeline:", "evt_", "payment_intent.succeeded")
	contains(t, c.must("purchase", "show", recurring), "Subscriptions:", "active", "Timeline:")
	contains(t, c.must("purchase", "list", "--account", strings.ToUpper(shopAccount)), legacy, recurring, "4 purchases")
	for line, rows := range map[string]string{"payment list": "payment status created purchase", "purchase list": "purchase key kind created"} {
		for column := range strings.FieldsSeq(rows) {
			c.must(append(strings.Fields(line), "--account", shopAccount, "--sort", column, "--limit", "9")...)
		}
	}
	contains(t, c.must("payment", "list", "--account", shopAccount), "acct_shop/"+intent, "failed: generic_decline",
		"€7.00")
	contains(t, c.must("payment", "show", "acct_shop/"+intent), legacy, "paid", "$12.99", "Timeline:")
	contains(t, c.must("connect", "list"), "acct_shop", shopAccount, ownAccount, "connected", "2 Stripe accounts")
	contains(t, c.must("connect", "show", stripefake.DefaultAccount), "the account that owns the key")
	contains(t, c.must("event", "list", "--account", shopAccount, "--limit", "3"), "acct_shop",
		"3 events, and there are more")
	all := c.list("event", "list")
	contains(t, c.must("event", "list", "--limit", strconv.Itoa(len(all))), "TYPE", "STRIPE ACCOUNT", "acct_shop",
		"payment_intent.succeeded", strconv.Itoa(len(all))+" events\n")
	contains(t, c.must("rebuild", "--account", shopAccount), "acct_shop")
	event := c.list("event", "list", "--limit", "1")[0].(map[string]any)["id"].(string)
	contains(t, c.must("event", "show", event), event, "webhook", "applied", "object", "mode", "test", "API version")
	equal(t, "mode", c.object(exitDone, "event", "show", event)["live"], false)
	equal(t, "body", decode(t, c.must("event", "show", event, "--body")).(map[string]any)["id"], event)
	equal(t, "replayed", c.list("replay", event)[0].(map[string]any)["event"], event)
}

// TestServe_FindsWhatNeverCame: webhooks are dropped, and the poller of another process brings
// what they would have told.
func TestServe_FindsWhatNeverCame(t *testing.T) {
	c := newServeCLI(t)
	_, stop := c.serve("--on-fulfil", c.job(), "--no-poll")
	c.must("connect", "add", "--account", shopAccount, "acct_shop")
	if err := c.fake.SetFaults(stripefake.Faults{WebhookDrops: 1}); err != nil {
		t.Fatal(err)
	}
	legacy := c.object(exitDone, "purchase", "create", "--account", shopAccount, "--kind", "legacy", "--key", "1",
		"--amount", "12.99", "--currency", "USD")
	intent, _, _ := strings.Cut(legacy["client_secret"].(string), "_secret_")
	c.askAt("acct_shop", "POST", "/v1/payment_intents/"+intent+"/confirm",
		"payment_method=pm_card_visa&return_url=http://shop.example")
	equal(t, "none came", c.list("event", "list"), []any{})
	found := c.object(exitDone, "poll", "--once")
	equal(t, "found", found["missing"], found["sent"])
	if n := found["sent"].(float64); n < 2 {
		t.Errorf("%v were sent", n)
	}
	equal(t, "fulfilled", c.await(1), map[string]int{"fulfil " + legacy["purchase"].(map[string]any)["id"].(string): 1})
	again := c.object(exitDone, "poll", "--once", "--all", "--sweep")
	equal(t, "not again", []any{again["missing"], again["sweep"].(map[string]any)["changed"]}, []any{0, 0})
	contains(t, c.must("poll", "--once", "--all", "--sweep"), "1 Stripe account polled", "0 missing",
		"compared in 1 Stripe account: 0 had changed")
	for _, e := range c.list("event", "list", "--account", "acct_shop") {
		if v := c.object(exitDone, "event", "show", e.(map[string]any)["id"].(string)); v["source"] != "poll" ||
			v["status"] == "refused" {
			t.Errorf("event %v", v)
		}
	}
	equal(t, "verified", c.object(exitDone, "connect", "show",
		"acct_shop")["verified_through"] != nil, true)
	equal(t, "stopped", stop().code, exitDone)

	// A serve with a poller of its own does it by itself.
	legacy = c.object(exitDone, "purchase", "create", "--account", shopAccount, "--kind", "legacy", "--key", "2",
		"--amount", "1", "--currency", "USD")
	intent, _, _ = strings.Cut(legacy["client_secret"].(string), "_secret_")
	c.askAt("acct_shop", "POST", "/v1/payment_intents/"+intent+"/confirm",
		"payment_method=pm_card_visa&return_url=http://shop.example")
	c.clock.Set(c.clock.Now().Add(48 * time.Hour)) // whatever was put off is due
	_, stop = c.serve("--on-fulfil", c.job(), "--poll-every", "1s")
	equal(t, "fulfilled", c.await(1), map[string]int{"fulfil " + legacy["purchase"].(map[string]any)["id"].(string): 1})
	r := stop()
	equal(t, "exit", r.code, exitDone)
	contains(t, r.errors, `/v1 has no key yet; create one with duesday key create NAME --scope charge`)
}

// TestServe_StripeHangs: a store that knows its Stripe account is served within seconds, although Stripe
// does not reply, because webhooks can be stored.
func TestServe_StripeHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	c := newServeCLI(t)
	_, stop := c.serve("--no-poll", "--processor", "sandbox:")
	equal(t, "stopped", stop().code, exitDone)
	end := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-end:
		}
	}))
	defer hangs.Close()
	defer close(end)
	c.env["DUESDAY_STRIPE_API_BASE"] = hangs.URL
	begun := time.Now()
	_, stop = c.serve("--no-poll", "--processor", "sandbox:")
	if took := time.Since(begun); took > 25*time.Second {
		t.Errorf("it served after %s", took)
	}
	r := stop()
	equal(t, "stopped", r.code, exitDone)
	contains(t, r.errors, "until Stripe answers, Duesday continues with acct_")
}

func TestServe_Quarantines(t *testing.T) {
	c := newServeCLI(t)
	c.serve("--on-fulfil", c.job(), "--no-poll")
	c.askAt("acct_shop", "POST", "/v1/payment_intents",
		"amount=100&currency=usd&payment_method=pm_card_visa&confirm=true&return_url=http://shop.example")
	c.until("quarantined", func() bool { return strings.Contains(c.must("event", "list", "--waiting"), "quarantined") })
	id := c.list("event", "list", "--waiting")[0].(map[string]any)["id"].(string)
	r := c.run("replay", id)
	equal(t, "exit", r.code, exitPerson)
	contains(t, r.out, id, "quarantined")
	c.must("connect", "add", "--account", shopAccount, "acct_shop")
	c.until("taken", func() bool { return len(c.list("event", "list", "--waiting")) == 0 })
	r = c.run("replay", "evt_none")
	equal(t, "exit", r.code, exitFailed)
	contains(t, r.errors, "there is no event evt_none")
}

// TestServe_Beside: every command works beside a running serve, on its folder.
func TestServe_Beside(t *testing.T) {
	c := newServeCLI(t)
	c.serve("--no-poll")
	c.must("connect", "add", "--account", shopAccount, "acct_shop")
	for _, line := range []string{"connect list", "purchase list --account " + shopAccount, "event list", "account list",
		"subscription list", "due payments --until 2026-12-31", "run reminders", "run payments", "verify", "export subscriptions", "outbox list",
		"charging off --reason test", "store describe", "store backup --to backup"} {
		c.must(strings.Fields(line)...)
	}
	r := c.run("store", "copy", "--from", "pebble:duesday-data", "--to", "pebble:copy")
	equal(t, "a copy has the folder for itself", r.code, exitFailed)
	contains(t, r.errors, "is in use by", "duesday serve", "pid")
}

// TestServe_NoStore: a mistyped name makes no store.
func TestServe_NoStore(t *testing.T) {
	c := newCLI(t)
	r := c.run("serve", "--listen", "127.0.0.1:0", "--api=", "--pages=", "--store", "pebble:mistyped")
	equal(t, "exit", r.code, exitFailed)
	contains(t, r.errors, "there is no store at pebble:mistyped")
	if _, err := os.Stat(c.path("mistyped")); err == nil {
		t.Error("a folder was made")
	}
}

func TestServe_Refuses(t *testing.T) {
	c := newServeCLI(t)
	for _, x := range []struct {
		args, env, value string
		code             int
		says             string
	}{
		{"--listen 8080", "", "", exitUsage, "must be HOST:PORT"},
		{"--listen 0.0.0.0:0", "", "", exitUsage, "--behind-proxy"},
		{"--listen :0", "", "", exitUsage, "--behind-proxy"},
		{"--listen shop.example:80", "", "", exitUsage, "--behind-proxy"},
		{"--poll-every 1ms", "", "", exitUsage, "must be 1s"},
		{"--poll-every 5m --no-poll", "", "", exitUsage, "cannot be combined"},
		{"more", "", "", exitUsage, "takes no argument"},
		{"", "DUESDAY_STRIPE_KEY", "", exitUsage, "DUESDAY_STRIPE_KEY_FILE"},
		{"", "DUESDAY_STRIPE_KEY", "sk_test_nobody", exitFailed, "Check the key"},
		{"", "DUESDAY_STRIPE_WEBHOOK_SECRETS", "whsec_hidden,", exitUsage,
			"DUESDAY_STRIPE_WEBHOOK_SECRETS must be webhook secrets"},
		{"", "DUESDAY_STRIPE_CONNECT_SECRETS_FILE", "none", exitUsage,
			"DUESDAY_STRIPE_CONNECT_SECRETS and DUESDAY_STRIPE_CONNECT_SECRETS_FILE are both set"},
		{"", "DUESDAY_API_KEY", "hidden", exitUsage, "DUESDAY_API_KEY must be at least 16"},
		{"", "DUESDAY_API_KEY", strings.Repeat("hidden", 9), exitUsage, "duesday key create NAME --scope charge"},
		{"", "DUESDAY_API_KEY_FILE", "none", exitUsage, "duesday key create NAME --scope charge"},
		{"", "DUESDAY_STRIPE_API_BASE", "http://127.0.0.1:1", exitFailed, "Check that Stripe, or its fake, answers"},
	} {
		old := c.env[x.env]
		c.env[x.env] = x.value
		r := c.run(append([]string{"serve", "--create", "--listen", "127.0.0.1:0", "--api=", "--pages="}, strings.Fields(x.args)...)...)
		c.env[x.env] = old
		if r.code != x.code || strings.Contains(r.errors, "hidden") {
			t.Errorf("%s %s=%s: exit %d, want %d: %s", x.args, x.env, x.value, r.code, x.code, r.errors)
		}
		contains(t, r.errors, x.says)
	}
}

// TestServe_SecretsInFiles: several in one file, as they are exchanged.
func TestServe_SecretsInFiles(t *testing.T) {
	c := newServeCLI(t)
	delete(c.env, "DUESDAY_STRIPE_WEBHOOK_SECRETS")
	c.env["DUESDAY_STRIPE_WEBHOOK_SECRETS_FILE"] = c.file("hooks", "whsec_older\n"+hookSecret+"\n")
	if err := os.Chmod(c.path("hooks"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := c.run("serve")
	equal(t, "for all to read", r.code, exitUsage)
	contains(t, r.errors, "DUESDAY_STRIPE_WEBHOOK_SECRETS_FILE", "chmod 600")
	if err := os.Chmod(c.path("hooks"), 0o600); err != nil {
		t.Fatal(err)
	}
	v, stop := c.serve("--no-poll", "--behind-proxy", "--listen", ":0") // the last --listen counts
	contains(t, v.Base, "http://localhost:")
	c.must("connect", "add", "--account", ownAccount, stripefake.DefaultAccount)
	c.ask("POST", "/v1/payment_intents",
		"amount=100&currency=usd&payment_method=pm_card_visa&confirm=true&return_url=http://shop.example")
	c.until("taken", func() bool { return len(c.list("event", "list", "--account", ownAccount)) > 0 })
	equal(t, "exit", stop().code, exitDone)
}

func TestPurchaseCreate_Refuses(t *testing.T) {
	c := newServeCLI(t)
	base := "purchase create --account " + shopAccount + " --key k --kind "
	for line, says := range map[string]string{
		base + "gift": "must be one of legacy, product, subscription, split",
		base + "legacy --amount 1.999 --currency USD": "--amount",
		base + "legacy --amount 1":                    "--currency",
		base + "legacy --currency USD":                "--currency needs --amount",
		base + "legacy --amount 1 --currency USD --description 4242424242424242": "--description: looks like a card " +
			"number",
		"purchase create --kind legacy --key k":                          `"account"`,
		"payment show pi_1":                                              "must be STRIPE_ACCOUNT/PAYMENT",
		"event list --limit -1":                                          "--limit must be 0 or more",
		"event list --account acct_1 --subscription sub_1":               "cannot be combined",
		"event list --waiting --limit 3":                                 "cannot be combined with other flags",
		"event list --from yesterday":                                    "2026-03-15T10:30:00Z",
		"event list --from 2026-03-15 --to 2026-03-15":                   "must be after",
		base + "legacy":                                                  "--amount: must be 1 to 99999999 minor units",
		base + "split --price price_1":                                   "--payment",
		base + "product --amount 1 --currency EUR --email a@example.com": "--payment-method: must",
		"purchase create --account " + shopAccount +
			" --kind legacy --amount 1 --currency EUR --key 4242424242424242": "--key: looks like a card number",
		"event list --account shop":      "UUID",
		"rebuild --account shop":         "UUID",
		"purchase list --account acct_1": "must be a merchant's UUID",
		"payment list --account 1":       "must be a merchant's UUID",
		"job replay":                     "JOB is missing",
		"poll --all":                     "need --once",
		"replay":                         "EVENT is missing",
		"connect add acct_1":             `"account"`,
	} {
		r := c.run(strings.Fields(line)...)
		if r.code != exitUsage || strings.Contains(r.errors, "4242424242424242") {
			t.Errorf("%s: exit %d: %s", line, r.code, r.errors)
		}
		contains(t, r.errors, says)
	}
	if _, err := os.Stat(c.path("duesday-data")); err == nil {
		t.Error("a store was made")
	}
	c.must("connect", "add", "--account", shopAccount, "acct_shop")
	for line, says := range map[string]string{
		"connect add --account 1 acct_shop":              "--account: must be a UUID",
		"connect add --account " + shopAccount + " shop": `ACCT "shop": must`,
	} {
		r := c.run(strings.Fields(line)...)
		equal(t, line, r.code, exitUsage)
		contains(t, r.errors, says)
	}
	for line, says := range map[string]string{
		"purchase create --account " + ownAccount + " --key k --kind legacy --amount 1 --currency USD": "duesday connect add",
		"connect show acct_other":                             "not registered",
		"connect add --account " + ownAccount + " acct_shop":  "and stays with that merchant",
		"connect add --account " + ownAccount + " acct_other": "not connected",
		"purchase show " + ownAccount:                         "there is no purchase",
		"payment show acct_shop/pi_1":                         "there is no payment acct_shop/pi_1",
		"event show evt_1":                                    "there is no event evt_1",
		"job replay fulfil/1":                                 "there is no job fulfil/1 that was given up",
		"rebuild --account " + ownAccount:                     "has no Stripe account in this store",
		"event list --account " + ownAccount:                  "has no Stripe account in this store",
	} {
		r := c.run(strings.Fields(line)...)
		equal(t, line, r.code, exitFailed)
		contains(t, r.errors, says)
	}
}

// TestServe_Listeners: each can be turned off, and a taken address is an error that names its flag
// and leaves nothing behind.
func TestServe_Listeners(t *testing.T) {
	c := newServeCLI(t)
	answers := func(base, path string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		status, _, _ := c.send(r)
		return status
	}
	v, stop := c.serve("--no-poll")
	equal(t, "both", []int{answers(v.Base, "/healthz"), answers(v.APIBase, "/healthz"), answers(v.APIBase, "/v1/merchants"),
		answers(v.Base, "/v1/merchants"), answers(v.Base, "/metrics"), answers(v.APIBase, "/hooks/stripe")},
		[]int{200, 200, 401, 404, 404, 404})
	for _, flag := range []string{"--listen", "--api"} {
		taken := map[string]string{"--listen": v.Address, "--api": v.APIAddress}[flag]
		r := c.run("serve", "--create", "--store", "pebble:other", "--listen=", "--api=", "--pages=", flag, taken)
		equal(t, flag+" is taken", r.code, exitFailed)
		contains(t, r.errors, flag+" "+taken+":", "in use", flag+"=")
	}
	if _, err := os.Stat(c.path("other")); err == nil {
		t.Error("a store was made")
	}
	equal(t, "stopped", stop().code, exitDone)
	for off, want := range map[string][2]bool{"--listen=": {false, true}, "--api=": {true, false}, "--listen= --api=": {}} {
		v, stop := c.serve(append([]string{"--no-poll"}, strings.Fields(off)...)...)
		equal(t, off, [2]bool{v.Base != "", v.APIBase != ""}, want)
		equal(t, off+": webhooks", len(v.Webhooks) > 0, want[0])
		equal(t, off+": stopped", stop().code, exitDone)
	}
}
