package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/config"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/view"
)

// The exit codes.
const (
	exitDone   = 0
	exitFailed = screen.ExitFailed
	exitUsage  = screen.ExitUsage
	exitPerson = screen.ExitPerson
	exitDamage = screen.ExitDamage
)

// today is the day that the tests' clock shows, unless they move it.
const today = "2026-03-15"

// A cli runs command lines in an empty folder, with a clock of its own.
type cli struct {
	t     *testing.T
	dir   string
	clock *testClock
	env   map[string]string
}

// A testClock stands still until a test moves it. A fake's deliveries read it at any time.
type testClock struct {
	mu  sync.Mutex
	now time.Time // guarded by mu
}

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set moves the clock.
func (c *testClock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// newCLI returns a cli of an empty folder. From here on the test runs beside others.
func newCLI(t *testing.T) *cli {
	t.Helper()
	t.Parallel()
	return newFolder(t)
}

// newFolder returns a cli of an empty folder.
func newFolder(t *testing.T) *cli {
	t.Helper()
	now, err := time.Parse(time.DateTime, today+" 10:30:00")
	if err != nil {
		t.Fatal(err)
	}
	return &cli{t: t, dir: t.TempDir(), clock: &testClock{now: now}, env: map[string]string{}}
}

type result struct {
	code        int
	out, errors string
}

func (c *cli) run(args ...string) result {
	c.t.Helper()
	var out, errors bytes.Buffer
	p := newProgram(c.getenv(args), strings.NewReader(""), &out, &errors, c.clock.Now)
	p.Dir = c.dir
	code := p.run(c.t.Context(), append([]string{}, args...)) // cobra reads os.Args instead of nil
	return result{code, c.seen(out.String()), c.seen(errors.String())}
}

// path returns the path of a file in the folder.
func (c *cli) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return c.dir + "/" + name
}

// seen returns the text as a process in the folder prints it.
func (c *cli) seen(text string) string { return strings.ReplaceAll(text, c.dir+"/", "") }

// getenv returns the environment of a command line. DynamoDB Local has the machine's clock, and no
// command may disagree with it; so one on DynamoDB has the clock of the cli as a test clock. No
// command changes the collector of the test process.
func (c *cli) getenv(args []string) func(name string) string {
	return func(name string) string {
		switch name {
		case "GOGC", "GOMEMLIMIT":
			return "off"
		case envCache:
			return cmp.Or(c.env[name], testCache())
		}
		if name != config.EnvClock || c.env[name] != "" ||
			!strings.Contains(strings.Join(args, " ")+c.env[config.EnvStore], "dynamodb:?") {
			return c.env[name]
		}
		now := c.clock.Now().UTC().Format(time.RFC3339Nano)
		return now + ",1s/s," + now
	}
}

// must runs a command that is to be done, and returns what it printed.
func (c *cli) must(args ...string) string {
	c.t.Helper()
	r := c.run(args...)
	if r.code != exitDone || r.errors != "" {
		c.t.Fatalf("duesday %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.errors, r.out)
	}
	return r.out
}

// json runs a command with --json and returns its one value.
func (c *cli) json(code int, args ...string) any {
	c.t.Helper()
	r := c.run(append(args, "--json")...)
	if r.code != code {
		c.t.Fatalf("duesday %s: exit %d, want %d\n%s%s", strings.Join(args, " "), r.code, code, r.errors, r.out)
	}
	v := decode(c.t, r.out)
	if name := args[0]; name != "export" && name != "schema" {
		checkJSON(c.t, strings.Join(args, " "), v)
	}
	return v
}

// checkJSON checks the conventions of --json: nothing is null, a time has three decimals and is in UTC,
// and an amount is a number of minor units beside its currency.
func checkJSON(t *testing.T, at string, v any) {
	t.Helper()
	switch v := v.(type) {
	case nil:
		t.Errorf("%s is null", at)
	case string:
		if then, err := time.Parse(time.RFC3339Nano, v); err == nil && view.Stamp(then) != v {
			t.Errorf("%s is the time %s", at, v)
		}
	case []any:
		for _, x := range v {
			checkJSON(t, at+"[]", x)
		}
	case map[string]any:
		if a, ok := v["amount"]; ok && v["line"] == nil {
			if n, number := a.(float64); (!number || n != math.Trunc(n) || v["currency"] == nil) && !strings.HasSuffix(at, ".changed") {
				t.Errorf("%s.amount is %v, with the currency %v", at, a, v["currency"])
			}
		}
		for name, x := range v {
			checkJSON(t, at+"."+name, x)
		}
	}
}

func (c *cli) object(code int, args ...string) map[string]any {
	c.t.Helper()
	m, ok := c.json(code, args...).(map[string]any)
	if !ok {
		c.t.Fatalf("duesday %s --json: no object", strings.Join(args, " "))
	}
	return m
}

func (c *cli) list(args ...string) []any {
	c.t.Helper()
	l, ok := c.json(exitDone, args...).([]any)
	if !ok {
		c.t.Fatalf("duesday %s --json: no array", strings.Join(args, " "))
	}
	return l
}

// decode reads exactly one JSON value.
func decode(t *testing.T, text string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	if dec.More() {
		t.Fatalf("more than one value in %q", text)
	}
	return v
}

func (c *cli) file(name, content string) string {
	c.t.Helper()
	if err := os.WriteFile(c.path(name), []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return name
}

func (c *cli) read(name string) string {
	c.t.Helper()
	b, err := os.ReadFile(c.path(name))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	g, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	w, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(g, w) {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}

// members picks members of an object.
func members(o map[string]any, names ...string) []any {
	values := make([]any, len(names))
	for i, name := range names {
		values[i] = o[name]
	}
	return values
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

const header = "account,email,subscription,sku,amount,currency,payment_day,payment_method\n"

// book is a small book with one of each behaviour; all are due on the 15th.
const smallBook = header +
	"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n" +
	"1,a@example.com,2,gym,500,JPY,15,pm_sandbox_timeout\n" +
	"2,b@example.com,1,news,12.99,USD,15,pm_sandbox_flaky\n" +
	"3,c@example.com,1,news,1.500,KWD,15,pm_card_authenticationRequired\n" +
	"4,d@example.com,1,news,12.99,USD,15,pm_card_visa_chargeDeclinedLostCard\n" +
	"5,e@example.com,1,news,12.99,USD,31,pm_card_visa\n"
