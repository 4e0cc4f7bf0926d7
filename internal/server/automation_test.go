package server

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/tracking"
)

func testJob() tracking.Job {
	return tracking.Job{ID: "job/1", Action: tracking.ActionFulfil, Purchase: "p-1", Merchant: "a-1",
		StripeAccount: "acct_1", Kind: tracking.Legacy, Key: "order 1",
		Reason: "paid pi_1", At: time.Date(2026, 3, 15, 10, 30, 0, 0, time.UTC)}
}

func testCommand(t *testing.T, line string) *Command {
	t.Helper()
	return &Command{Line: line, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, limit: time.Minute}
}

// TestCommand_GetsTheJobAndNoSecrets: what it is given is the job, PATH and HOME.
func TestCommand_GetsTheJobAndNoSecrets(t *testing.T) {
	t.Setenv("DUESDAY_STRIPE_KEY", "sk_test_hidden")
	t.Setenv("DUESDAY_API_KEY", "hidden")
	out := filepath.Join(t.TempDir(), "out")
	c := testCommand(t, "cat > "+out+"; env >> "+out)
	if err := c.Do(t.Context(), testJob()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"id":"job/1","action":"fulfil","purchase":"p-1","merchant":"a-1","stripe_account":"acct_1","kind":"legacy","key":"order 1","reason":"paid pi_1","at":"2026-03-15T10:30:00Z"}` + "\n",
		"DUESDAY_ACTION=fulfil\n", "DUESDAY_PURCHASE=p-1\n", "DUESDAY_KEY=order 1\n", "DUESDAY_ACCOUNT=a-1\n",
		"DUESDAY_STRIPE_ACCOUNT=acct_1\n", "DUESDAY_JOB_ID=job/1\n", "HOME=", "PATH="} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %q in %s", want, b)
		}
	}
	if strings.Contains(string(b), "hidden") {
		t.Errorf("a secret is in what the command gets: %s", b)
	}
}

func TestCommand_Fails(t *testing.T) {
	for _, x := range []struct {
		line, says string
		permanent  bool
	}{
		{"echo; echo no such product >&2; echo more; exit 3", "exit status 3: no such product", false},
		{"echo never; exit 100", "(exit code 100): never", true},
		{"echo key sk_test_hidden card 4242424242424242; exit 1", "key sk_test_*** card ", false},
		{"printf 'a\\033[2Jb'; exit 1", `a\u001b[2Jb`, false},
		{"exit 1", "exit status 1", false},
		{"no-such-command-at-all", "exit status 127", false},
		{"kill -9 $$", "signal: killed", false},
		{"head -c 100000 /dev/zero | tr '\\0' x; exit 1", strings.Repeat("x", commandMessage), false},
	} {
		err := testCommand(t, x.line).Do(t.Context(), testJob())
		if err == nil || !strings.Contains(err.Error(), x.says) || errors.Is(err, outbox.ErrPermanent) != x.permanent {
			t.Errorf("%s: %v, want %q, permanent %t", x.line, err, x.says, x.permanent)
			continue
		}
		for _, hidden := range []string{"hidden", "4242424242424242", "more", strings.Repeat("x", commandMessage+1), "\x1b"} {
			if strings.Contains(err.Error(), hidden) {
				t.Errorf("%s: %q is in %v", x.line, hidden, err)
			}
		}
	}
}

func TestCommand_HasALimit(t *testing.T) {
	c := testCommand(t, "echo begun; sleep 600")
	c.limit = 50 * time.Millisecond
	err := c.Do(t.Context(), testJob())
	if err == nil || !strings.Contains(err.Error(), "ran longer than 50ms, so it was killed") ||
		errors.Is(err, outbox.ErrPermanent) {
		t.Errorf("got %v", err)
	}
}

// TestCommand_IsKilledWithItsChildren: the pipe ends when nobody holds it any more.
func TestCommand_IsKilledWithItsChildren(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	c := testCommand(t, "sh -c 'echo begun; exec sleep 600' >"+pipe+" & wait")
	go func() { done <- c.Do(ctx, testJob()) }()
	f, err := os.Open(pipe) // waits for the child
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	begun := make([]byte, len("begun\n"))
	if _, err := io.ReadFull(f, begun); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("a command that was killed is done")
	}
	if rest, err := io.ReadAll(f); err != nil || len(rest) > 0 {
		t.Errorf("got %q, %v", rest, err)
	}
}

// TestCommand_LeavesSomethingRunning: exit 0 is done, and what is done is not done again.
func TestCommand_LeavesSomethingRunning(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := testCommand(t, "read -r line < "+pipe+" &").Do(t.Context(), testJob()); err != nil {
		t.Errorf("exit 0: %v", err)
	}
	f, err := os.OpenFile(pipe, os.O_WRONLY, 0) // the child still reads, and ends with this
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("go\n"); err != nil {
		t.Error(err)
	}
	f.Close()
}
