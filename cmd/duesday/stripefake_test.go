package main

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/command/rehearsal"
	"github.com/duesday/duesday/stripefake"
)

// stripeFake runs duesday stripe-fake until stop, and returns the first line that it prints.
func (c *cli) stripeFake(args ...string) (first string, stop func() result) {
	c.t.Helper()
	return c.stripeFakeBy(c.clock.Now, args...)
}

// stripeFakeBy is stripeFake by the machine's clock.
func (c *cli) stripeFakeBy(machine func() time.Time, args ...string) (first string, stop func() result) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	read, write := io.Pipe()
	var errors strings.Builder
	p := newProgram(func(name string) string { return c.env[name] }, strings.NewReader(""), write, &errors,
		machine)
	p.Dir = c.dir
	done := make(chan int, 1)
	go func() {
		done <- p.run(ctx, append([]string{"stripe-fake", "--listen", "127.0.0.1:0"}, args...))
		write.Close()
	}()
	out := bufio.NewReader(read)
	first, err := out.ReadString('\n')
	if err != nil {
		cancel()
		c.t.Fatalf("duesday stripe-fake %s: exit %d, %s", strings.Join(args, " "), <-done, errors.String())
	}
	stop = sync.OnceValue(func() result {
		cancel()
		text, _ := io.ReadAll(out)
		return result{<-done, string(text), errors.String()}
	})
	c.t.Cleanup(func() { stop() })
	return first, stop
}

// stripeFakeBase is stripeFake that returns the base of its URLs.
func (c *cli) stripeFakeBase(args ...string) (base string, stop func() result) {
	c.t.Helper()
	first, stop := c.stripeFake(append(args, "--json")...)
	v := decode(c.t, first).(map[string]any)
	equal(c.t, "env", v["env"], map[string]any{"DUESDAY_STRIPE_API_BASE": v["base"], "DUESDAY_STRIPE_KEY": v["key"]})
	return v["base"].(string), stop
}

// stripeAsk sends a request with the key that the fake has told.
func stripeAsk(t *testing.T, base, path, params string) (int, string) {
	t.Helper()
	return stripeAskAt(t, "", base, path, params)
}

// stripeAskAt is stripeAsk about a connected account; "": our own.
func stripeAskAt(t *testing.T, account, base, path, params string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", base+path, strings.NewReader(params))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+rehearsal.StripeFakeKey)
	if account != "" {
		r.Header.Set("Stripe-Account", account)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestStripeFake(t *testing.T) {
	c := newCLI(t)
	base, stop := c.stripeFakeBase("--seed", "3", "--rate", "25", "--latency", "1ms", "--late-errors", "1")
	control := stripefake.Control{Base: base}
	faults, err := control.Faults(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "faults", faults, stripefake.Faults{Seed: 3, Rate: 25, Latency: 1e6, LateErrors: 1})
	status, _ := stripeAsk(t, base, "/v1/payment_intents",
		"amount=1000&currency=usd&payment_method=pm_card_visa&confirm=true&return_url=http://a.example")
	equal(t, "status", status, http.StatusInternalServerError)
	var amounts []int64
	for e, err := range control.Ledger(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		amounts = append(amounts, e.Amount)
	}
	equal(t, "ledger", amounts, []int64{1000})
	http.DefaultClient.CloseIdleConnections()
	equal(t, "exit", stop().code, exitDone)
}

func TestStripeFake_SaysHowToUseIt(t *testing.T) {
	c := newCLI(t)
	first, stop := c.stripeFake()
	contains(t, first, "A fake Stripe is served at 127.0.0.1:", "use it with DUESDAY_STRIPE_API_BASE=http://127.0.0.1:",
		"DUESDAY_STRIPE_KEY=sk_test_duesday duesday run payments --processor stripe")
	equal(t, "stop", stop(), result{code: exitDone})
	first, stop = c.stripeFake("--listen", ":0")
	contains(t, first, "DUESDAY_STRIPE_API_BASE=http://localhost:")
	contains(t, stop().errors, "can use and control this fake, because it has no password")
}

// TestStripeFake_Webhooks: the URLs get every event, of the account or of those that are
// connected, signed with what the environment or the file says.
func TestStripeFake_Webhooks(t *testing.T) {
	c := newCLI(t)
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("whsec_of_a_file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		at, sum, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Stripe-Signature"), "t="), ",v1=")
		for _, secret := range []string{"whsec_duesday", "whsec_duesday_connect", "whsec_of_the_environment",
			"whsec_of_a_file"} {
			mac := hmac.New(sha256.New, []byte(secret))
			mac.Write([]byte(at + "." + string(body)))
			if hex.EncodeToString(mac.Sum(nil)) == sum && strings.Contains(string(body), `"v2.core.event"`) {
				got <- r.URL.Path + " " + secret
			}
		}
	}))
	defer receiver.Close()
	const environment = "whsec_of_the_environment"
	for _, tt := range []struct {
		connect         bool
		env, file, want string
	}{
		{false, "", "", "whsec_duesday"}, {false, environment, "", environment},
		{false, environment, file, "whsec_of_a_file"},
		{true, "", "", "whsec_duesday_connect"}, {true, environment, "", environment},
		{true, environment, file, "whsec_of_a_file"},
	} {
		c.env[rehearsal.EnvHookSecret], c.env[rehearsal.EnvConnectSecret] = tt.env, ""
		args, name, account := []string{"--connect", "acct_a"}, "webhook", ""
		if tt.connect {
			c.env[rehearsal.EnvHookSecret], c.env[rehearsal.EnvConnectSecret] = "", tt.env
			name, account = "connect-webhook", "acct_a"
		}
		args = append(args, "--"+name+"-url", receiver.URL+"/a")
		if tt.file != "" {
			args = append(args, "--"+name+"-secret-file", tt.file)
		}
		base, stop := c.stripeFakeBase(append(args, "--events", "thin")...)
		if status, text := stripeAskAt(t, account, base, "/v1/customers", "name=A"); status != http.StatusOK {
			t.Fatalf("got %d %s", status, text)
		}
		equal(t, "signed by", <-got, "/a "+tt.want)
		http.DefaultClient.CloseIdleConnections()
		stop()
	}
}

func TestStripeFake_Refuses(t *testing.T) {
	c := newCLI(t)
	for says, args := range map[string][]string{
		"must be HOST:PORT":                    {"--listen", "12111"},
		"--lost-replies must be a probability": {"--lost-replies", "2"},
		"at most 1 (got 1.5)":                  {"--errors", ".5", "--busy", "1"},
		"--latency must be from 0 to 1m0s":     {"--latency", "-1s"},
		"--webhook-url must be http://":        {"--webhook-url", "a.example"},
		"--connect-webhook-url must be":        {"--connect-webhook-url", "a.example"},
		"--webhook-secret-file needs":          {"--webhook-secret-file", "x"},
		"needs --connect-webhook-url":          {"--connect-webhook-secret-file", "x", "--webhook-url", "http://a.example"},
		"must be acct_ and letters":            {"--connect", "shop"},
		"letters or digits":                    {"--connect", "acct_a,acct_b"},
		"except acct_duesday":                  {"--connect", "acct_duesday"},
		"--event-losses must be a probability": {"--event-losses", "2"},
		"--api-version: Invalid":               {"--api-version", "new"},
		"must be snapshot, thin or both":       {"--events", "fat"},
		"unknown flag: --key":                  {"--key", "sk_test_x"},
		"takes no argument":                    {"extra"},
		"unknown flag: --webhook-secr":         {"--webhook-secret", "whsec_x"},
	} {
		r := c.run(append([]string{"stripe-fake"}, args...)...)
		if r.code != exitUsage {
			t.Errorf("%v: exit %d, %s", args, r.code, r.errors)
		}
		contains(t, r.errors, says)
	}
	r := c.run("stripe-fake", "--webhook-url", "http://a.example", "--webhook-secret-file", "none")
	equal(t, "no secret file", r.code, exitFailed)
	contains(t, r.errors, "--webhook-secret-file: ")
}
