package server

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func testAlarm(t *testing.T, script string) *Alarm {
	t.Helper()
	file := filepath.Join(t.TempDir(), "alarm.sh")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return &Alarm{Words: []string{file, "a b", "$HOME"}, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()},
		limit: time.Minute}
}

// TestAlarm: the program gets the text on its standard input, its words without a shell, and no secret.
func TestAlarm(t *testing.T) {
	t.Setenv("DUESDAY_SMTP_PASSWORD", "hidden")
	out := filepath.Join(t.TempDir(), "out")
	a := testAlarm(t, `{ cat; echo "$1|$2"; env; } > `+out)
	if err := a.Run(t.Context(), "it's wrong; $(exit 1)", "disk is wrong: full\n", []string{"disk", "mail"}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"disk is wrong: full\na b|$HOME\n", "DUESDAY_ALARM_SUBJECT=it's wrong; $(exit 1)\n",
		"DUESDAY_ALARM_CHECKS=disk,mail\n", "HOME=/", "PATH="} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %q in %s", want, b)
		}
	}
	if strings.Contains(string(b), "hidden") {
		t.Errorf("a secret is in what the program gets: %s", b)
	}
}

// TestAlarm_Ends: a program that fails says why; one that hangs is killed with its children, at the
// limit or when serve stops; and one that cannot be run is an error.
func TestAlarm_Ends(t *testing.T) {
	if err := testAlarm(t, "echo no route >&2; exit 3").Run(t.Context(), "s", "t", nil); err == nil ||
		!strings.Contains(err.Error(), "exit status 3: no route") {
		t.Error(err)
	}
	begun := filepath.Join(t.TempDir(), "begun")
	hangs := testAlarm(t, "sleep 600 & echo > "+begun+"; wait")
	hangs.limit = 50 * time.Millisecond
	if err := hangs.Run(t.Context(), "s", "t", nil); err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Error(err)
	}
	hangs.limit = time.Hour
	ctx, stop := context.WithCancel(t.Context())
	if err := os.Remove(begun); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	go func() {
		defer stop()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := os.Stat(begun); err == nil {
				return
			}
		}
	}()
	if err := hangs.Run(ctx, "s", "t", nil); err == nil {
		t.Error("a stop does not end it")
	}
	if err := (&Alarm{Words: []string{"/none/such"}}).Run(t.Context(), "s", "t", nil); err == nil {
		t.Error("what is not there was run")
	}
}
