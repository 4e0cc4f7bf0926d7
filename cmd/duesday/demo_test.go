package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestDemo(t *testing.T) {
	c := newCLI(t)
	out := c.must("demo", "--accounts", "40", "--months", "2")
	contains(t, out, "MONTH", "2026-01", "2026-03", "The audit is clean", "Next, try:",
		"  duesday verify --store pebble:./duesday-demo/data --processor sandbox:./duesday-demo/sandbox.jsonl\n")
	// Every command that it names works.
	_, hints, _ := strings.Cut(out, "Next, try:\n")
	for line := range strings.Lines(hints) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "duesday "); ok {
			if r := c.run(strings.Fields(command)...); r.code != exitDone && r.code != exitPerson {
				t.Errorf("duesday %s: exit %d, %s", command, r.code, r.errors)
			}
		}
	}
	if _, err := os.Stat(c.path("duesday-sandbox.jsonl")); err == nil {
		t.Error("the demo has touched the usual ledger")
	}
}

// TestDemo_FollowsFromItsSeed also holds that a demo replaces the one before.
func TestDemo_FollowsFromItsSeed(t *testing.T) {
	c := newCLI(t)
	var months []any
	for range 2 {
		o := c.object(exitDone, "demo", "--accounts", "30", "--months", "1", "--seed", "7")
		equal(t, "demo", members(o, "ok", "accounts", "seed", "store"), []any{true, 30, 7, "pebble:./duesday-demo/data"})
		months = append(months, o["months"])
	}
	equal(t, "the same again", months[1], months[0])
	o := c.object(exitDone, "demo", "--accounts", "30", "--months", "1", "--seed", "8", "--store", "mem:",
		"--smtp", "smtp://localhost:1") // made-up customers get no real mail
	audit := o["audit"].(map[string]any)
	equal(t, "audit", members(audit, "ok", "problems"), []any{true, []any{}})
	if _, err := os.Stat(c.path("duesday-mail")); err == nil {
		t.Error("a demo in memory leaves mail behind")
	}
}

func TestDemo_DeletesNothingThatIsNotADemo(t *testing.T) {
	c := newCLI(t)
	if err := os.Mkdir(c.path("duesday-demo"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.file("duesday-demo/mine", "")
	r := c.run("demo", "--accounts", "1", "--months", "1")
	if r.code != exitFailed {
		t.Errorf("exit %d", r.code)
	}
	contains(t, r.errors, "was not created by a demo")
	c.read("duesday-demo/mine")

	c.must("account", "create", "1", "--email", "a@example.com")
	r = c.run("demo", "--accounts", "1", "--months", "1", "--store", "pebble:./duesday-data")
	if r.code != exitFailed {
		t.Errorf("exit %d", r.code)
	}
	contains(t, r.errors, "is not empty")
	c.must("demo", "--accounts", "2", "--months", "1", "--store", "pebble:./fresh")
	c.read("fresh-sandbox.jsonl")
}

// TestDemo_ServeTaken: the demo, which serves nothing but the pages, does not wait without them.
func TestDemo_ServeTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:8082")
	if err != nil {
		t.Logf("another process has the port: %v", err)
	} else {
		defer func() { _ = l.Close() }()
	}
	c := newCLI(t)
	r := c.run("demo", "--accounts", "2", "--months", "1", "--serve")
	equal(t, "exit", r.code, exitFailed)
	contains(t, r.errors, "127.0.0.1:8082", "in use", "--pages=")
}

// TestDemo_Serve: the demo's book is in the browser with one command, and the link in its output signs in.
func TestDemo_Serve(t *testing.T) {
	p := process(t, nil, "demo", "--json", "--accounts", "5", "--months", "1", "--serve=127.0.0.1:0")
	p.Dir = t.TempDir()
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = p.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, out)
		if err := p.Wait(); err != nil {
			t.Errorf("stopped: %v", err)
		}
	}()
	var s struct {
		serveView
		URL string `json:"url"`
	}
	for in := bufio.NewReader(out); s.PagesBase == ""; {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("the output ended: %v", err)
		}
		_ = json.Unmarshal([]byte(line), &s) // the demo's result may have many lines
	}
	equal(t, "other listeners", s.Base+s.APIBase, "")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	link, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	in, err := browser.PostForm(s.PagesBase+link.Path, url.Values{"key": {link.Query().Get("link")}, "next": {"/accounts/1001"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Body.Close() }()
	page, err := io.ReadAll(in.Body)
	if err != nil || in.StatusCode != http.StatusOK {
		t.Fatalf("signing in: %d, %v", in.StatusCode, err)
	}
	contains(t, string(page), "Account 1001", "@example.com")
}
