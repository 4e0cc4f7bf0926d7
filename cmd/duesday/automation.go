package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

const (
	commandLimit   = 30 * time.Second // that a command may take
	permanentExit  = 100              // of a command that no repetition would help
	commandOutput  = 4096             // bytes of a command's output that are looked at
	commandMessage = 200              // characters of it that an error repeats
)

// A command does an action by a shell command of the merchant's own: the job is its standard
// input, as one line of JSON, and the job's fields are in its environment. It gets PATH and HOME besides,
// and nothing else that we know.
type command struct {
	action tracking.Action
	line   string
	env    []string
	limit  time.Duration
}

var _ tracking.Automation = (*command)(nil)

// Name implements tracking.Automation.
func (c *command) Name() string { return "command" }

// Takes implements tracking.Automation.
func (c *command) Takes(a tracking.Action) bool { return a == c.action }

// Do implements tracking.Automation. Exit 0 means done, 100 that it can never be done, and
// everything else that it is to be tried again.
func (c *command) Do(ctx context.Context, j tracking.Job) error {
	input, err := json.Marshal(j)
	if err != nil {
		return err // unreachable: a job has a JSON form
	}
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", c.line)
	cmd.Env = append(append([]string{}, c.env...), "DUESDAY_ACTION="+string(j.Action), "DUESDAY_PURCHASE="+j.Purchase,
		"DUESDAY_KEY="+j.Key, "DUESDAY_ACCOUNT="+j.Account, "DUESDAY_STRIPE_ACCOUNT="+j.StripeAccount, "DUESDAY_JOB_ID="+j.ID)
	cmd.Stdin = bytes.NewReader(append(input, '\n')) // a shell's read wants whole lines, and so does who gathers them in a file
	var said firstBytes
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = time.Second                           // a child that has left the group may hold the pipes
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its end is the end of all that it has started
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the command did not end within %s and was killed%s", c.limit, said.message())
	case exited && exit.ExitCode() == permanentExit:
		return fmt.Errorf("%w: the command says that it never can (exit %d)%s", outbox.ErrPermanent, permanentExit, said.message())
	case errors.Is(err, exec.ErrWaitDelay): // it has exited with 0, and left something running that holds its output
		return nil
	}
	return fmt.Errorf("the command failed: %w%s", err, said.message())
}

// firstBytes keeps the beginning of what a command says.
type firstBytes struct {
	mu   sync.Mutex
	kept []byte // guarded by mu
}

// Write implements io.Writer.
func (f *firstBytes) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = append(f.kept, b[:min(len(b), commandOutput-len(f.kept))]...)
	return len(b), nil
}

// message returns the first line that says something, without secrets, to end an error with.
func (f *firstBytes) message() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for line := range strings.Lines(string(f.kept)) {
		line = strings.TrimSpace(strings.ToValidUTF8(line, ""))
		if line = printable(secret.MaskCards(secret.Redact(line))); line != "-" {
			runes := []rune(line)
			return ": " + string(runes[:min(len(runes), commandMessage)])
		}
	}
	return ""
}

// automations are the commands that there are: what has none is logged by who asks for it.
func (p *program) automations(fulfil, unsubscribe string) (list []tracking.Automation) {
	var env []string
	for _, name := range []string{"PATH", "HOME"} {
		if value := p.env(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	for action, line := range map[tracking.Action]string{tracking.ActionFulfil: fulfil, tracking.ActionUnsubscribe: unsubscribe} {
		if line != "" {
			list = append(list, &command{action: action, line: line, env: env, limit: commandLimit})
		}
	}
	return list
}
