package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/screen"
	"github.com/duesday/duesday/internal/session"
)

// TestLogger: what libraries log has no secrets, durations are seconds, and a test clock is shown
// beside the machine's.
func TestLogger(t *testing.T) {
	var log strings.Builder
	p := newProgram(func(string) string { return "" }, nil, nil, &log, time.Now)
	p.Config.LogLevel, p.LogJSON = slog.LevelWarn, true
	p.LogClock.Store(clock.Machine(func() time.Time { return time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC) }))
	if _, err := (session.Stray{Program: p.Program}).Write([]byte("Unsolicited response: sk_live_hidden0123456789\n")); err != nil {
		t.Fatal(err)
	}
	p.Logger().With("a", 1).Warn("took", "took", 1500*time.Millisecond)
	p.Warn("a warning")
	p.fail(errors.New("an error"), "duesday")
	p.fail(screen.Usagef("an error"), "duesday")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	equal(t, "lines", len(lines), 5)
	for i, line := range lines {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if i < 2 && (v["test_clock"] != "2031-01-01T00:00:00Z" || v["time"] == nil) {
			t.Errorf("the clocks of %s", line)
		}
		if i == 1 {
			equal(t, "seconds", v["took"], 1.5)
		}
	}
	contains(t, lines[0], "Unsolicited response", "WARN")
	if strings.Contains(log.String(), "hidden") {
		t.Errorf("a secret is in the log: %s", log.String())
	}
}

// TestServe_StoppedWhileStarting: that is no failure.
func TestServe_StoppedWhileStarting(t *testing.T) {
	c := newCLI(t)
	c.must("store", "create")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs strings.Builder
	p := newProgram(c.getenv(nil), strings.NewReader(""), &out, &errs, c.clock.Now)
	p.Dir = c.dir
	if code := p.run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--api=", "--pages="}); code != exitDone {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

// TestServe_Signals: a stop by a supervisor, and by a terminal that closes, is no failure either.
func TestServe_Signals(t *testing.T) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP) // under nohup, too, a process that is started here does not ignore it
	defer signal.Stop(caught)
	dir := t.TempDir()
	for _, ends := range []os.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		serve := process(t, nil, "serve", "--create", "--json", "--listen", "127.0.0.1:0", "--api=", "--pages=", "--store", "pebble:"+dir+"/data",
			"--mail", dir, "--processor", "sandbox:"+dir+"/ledger")
		serve.Stderr = nil
		out, err := serve.StdoutPipe()
		if err := errors.Join(err, serve.Start()); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // it serves
			t.Error(err)
		}
		if err := errors.Join(serve.Process.Signal(ends), serve.Wait()); err != nil {
			t.Errorf("%v: %v", ends, err)
		}
	}
}

// TestServe_HeartbeatVariable: the URL comes from the environment, or from a file, and no error repeats it.
func TestServe_HeartbeatVariable(t *testing.T) {
	c := newCLI(t)
	for _, x := range []struct{ value, file, want string }{
		{"ftp://hc.example/hidden", "", "DUESDAY_HEARTBEAT: must be an https address"},
		{"", c.file("beat", "ftp://hc.example/hidden"), "DUESDAY_HEARTBEAT: must be an https address"},
		{"", "none", "DUESDAY_HEARTBEAT_FILE: "},
		{"https://hc.example/hidden", "none", "DUESDAY_HEARTBEAT and DUESDAY_HEARTBEAT_FILE are both set"},
		{"https://hc.example/hidden", "", "there is no store"}, // a valid one
	} {
		c.env["DUESDAY_HEARTBEAT"], c.env["DUESDAY_HEARTBEAT_FILE"] = x.value, x.file
		r := c.run("serve", "--listen=", "--api=", "--pages=")
		if r.code == exitDone || strings.Contains(r.errors, "hidden") {
			t.Errorf("%+v: exit %d: %s", x, r.code, r.errors)
		}
		contains(t, r.errors, x.want)
	}
}

// TestLogFormat_OfUsage: with a log in JSON, errors of a command line that cannot be read are JSON, too.
func TestLogFormat_OfUsage(t *testing.T) {
	c := newCLI(t)
	for _, args := range [][]string{{"serve", "--log-format", "json", "--none"}, {"serve", "none"}} {
		r := c.run(args...)
		equal(t, "exit", r.code, exitUsage)
		if _, is := decode(t, r.errors).(map[string]any)["error"]; !is {
			t.Errorf("%q: %s", args, r.errors)
		}
		c.env["DUESDAY_LOG_FORMAT"] = "json"
	}
}
