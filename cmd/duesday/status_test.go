package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// machineLines are what differs from machine to machine.
var machineLines = regexp.MustCompile(`(?m)^(  (disk|folder): .*\n|(disk|folder) +\w+ .*|store .*)`)

// TestStatus holds what duesday status prints to its golden text, and its exit codes.
func TestStatus(t *testing.T) {
	golden, err := os.ReadFile("testdata/status.txt")
	if err != nil {
		t.Fatal(err)
	}
	c := newCLI(t)
	var got strings.Builder
	show := func() {
		r := c.run("status")
		if strings.HasPrefix(r.out, "All is well.") != (r.code == exitDone) || r.code != exitDone && r.code != exitPerson {
			t.Errorf("exit %d of\n%s", r.code, r.out)
		}
		shown := c.run("status", "--all")
		equal(t, "exit code with --all", shown.code, r.code)
		text := machineLines.ReplaceAllString(shown.out, "")
		got.WriteString("---\n" + text)
		rows := strings.Split(shown.out, "\n")
		ok := slices.DeleteFunc(slices.Clone(rows), func(row string) bool { return !strings.Contains(row, " ok ") })
		contains(t, r.out, fmt.Sprintf("\n%d checks ok; to list them, run: duesday status --all\n", len(ok)))
		if strings.Contains(r.out, " ok ") || strings.Contains(shown.out, "checks ok") {
			t.Errorf("got\n%s\nwith --all\n%s", r.out, shown.out)
		}
	}
	c.must("import", c.file("book.csv", header+"1,a@example.com,1,news,12.99,USD,15,pm_card_visa\n"+
		"2,b@example.com,1,gym,9.00,EUR,15,pm_card_authenticationRequired\n"))
	c.must("run", "reminders")
	c.run("run", "payments")
	show()
	c.must("settings", "set", "daily=06:10", "alarm-at=08:00", "time-zone=Europe/Berlin")
	c.must("charging", "off", "--reason", "prices are being checked")
	c.clock.Set(c.clock.Now().AddDate(0, 0, 2))
	show()
	// The first line counts the disk of this machine as well.
	text := regexp.MustCompile(`(?m)^(\d+ checks? wrong or unknown:|All is well\.)\n`).ReplaceAllString(got.String(), "")
	text = strings.ReplaceAll(text, "What to do:\n---", "---") // of the disk alone
	text = regexp.MustCompile(`\n+`).ReplaceAllString(text, "\n")
	if text != string(golden) {
		t.Errorf("got\n%s\nwant\n%s", text, golden)
	}
	v := c.json(exitPerson, "status").(map[string]any)
	equal(t, "ok", v["ok"], false)
}

// TestStatus_BesideServe: a running serve is seen from another process, and its absence is wrong.
// By a fast test clock its last look is hours old, and still about now.
func TestStatus_BesideServe(t *testing.T) {
	c := newCLI(t)
	serve := func() string {
		for _, check := range decode(t, c.run("status", "--json").out).(map[string]any)["checks"].([]any) {
			if check := check.(map[string]any); check["check"] == "serve" {
				return check["found"].(string)
			}
		}
		return ""
	}
	c.must("store", "create")
	c.must("settings", "set", "daily=06:10")
	_, stop := c.serveBy(c.clock.Now)
	c.until("serve stores its first look", func() bool { return strings.Contains(serve(), ", which ran the checks ") })
	equal(t, "stopped", stop().code, exitDone)
	contains(t, serve(), "serve is not running, but both jobs are scheduled daily at 06:10; no process has run the checks since 2026-03-15 10:30 UTC")
	_, stop = c.serveBy(time.Now, "--clock", "2026-04-01,240h/s")
	row := 0
	c.until("five looks in a row are about now", func() bool {
		if row++; !strings.Contains((&served{cli: c}).status("--all").out, ", which ran the checks ") {
			row = 0
		}
		return row == 5
	})
	equal(t, "stopped", stop().code, exitDone)
}
