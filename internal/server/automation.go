package server

import (
	"bytes"
	"cmp"
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
	commandLimit   = 30 * time.Second // for one command
	permanentExit  = 100              // of a command whose job can never be done
	commandOutput  = 4096             // kept bytes of a command's output
	commandMessage = 200              // characters of it repeated in an error
)

// A Command delivers one kind of action by a shell command of the merchant's. The command gets
// the job as one line of JSON on its standard input and as variables of its environment. It gets
// Env besides, and nothing of this process's own environment.
type Command struct {
	Action tracking.Action
	Line   string        // run by sh
	Env    []string      // such as PATH=/usr/bin
	Dir    string        // where the command runs; "": in the folder of the process
	limit  time.Duration // 0: commandLimit
}

var _ tracking.Automation = (*Command)(nil)

func (c *Command) Name() string { return "command" }

func (c *Command) Takes(a tracking.Action) bool { return a == c.Action }

// Do runs the command for a job. Exit code 0 means done, and 100 means that the job can never be
// done. After any other result, the job is tried again.
func (c *Command) Do(ctx context.Context, j tracking.Job) error {
	input, err := json.Marshal(j)
	if err != nil {
		return err // unreachable: a job has a JSON form
	}
	return execute(ctx, c.Dir, cmp.Or(c.limit, commandLimit), append(input, '\n'), // a shell's read takes whole lines
		append(append([]string{}, c.Env...), "DUESDAY_ACTION="+string(j.Action), "DUESDAY_PURCHASE="+j.Purchase,
			"DUESDAY_KEY="+j.Key, "DUESDAY_ACCOUNT="+j.Merchant, "DUESDAY_STRIPE_ACCOUNT="+j.StripeAccount, "DUESDAY_JOB_ID="+
				j.ID), "sh", "-c", c.Line)
}

// An Alarm is a program of the operator's that is run, without a shell, for what the operator is
// told. It gets the text on its standard input, and nothing of this process's own environment.
type Alarm struct {
	Words []string // the program and its arguments
	Env   []string
	Dir   string        // where the program runs; "": in the folder of the process
	limit time.Duration // 0: commandLimit
}

// Run runs the program. It kills the program and its children after 30 seconds or when ctx ends.
func (a *Alarm) Run(ctx context.Context, subject, text string, checks []string) error {
	return execute(ctx, a.Dir, cmp.Or(a.limit, commandLimit), []byte(text), append(append([]string{}, a.Env...),
		"DUESDAY_ALARM_SUBJECT="+subject, "DUESDAY_ALARM_CHECKS="+strings.Join(checks, ",")), a.Words[0], a.Words[1:]...)
}

// execute runs the program in the folder, with the input and the environment. An ErrPermanent says
// that it never can do it.
func execute(ctx context.Context, dir string, limit time.Duration, input []byte, env []string, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, env, bytes.NewReader(input)
	var said firstBytes
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = time.Second                           // a child outside the group may hold the pipes
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // killing the group kills its children
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the command ran longer than %s, so it was killed%s", limit, said.message())
	case exited && exit.ExitCode() == permanentExit:
		return fmt.Errorf("%w: the command reported that it can never do this (exit code %d)%s", outbox.ErrPermanent, permanentExit,
			said.message())
	case errors.Is(err, exec.ErrWaitDelay): // it exited with 0; a child of it still holds the output
		return nil
	}
	return fmt.Errorf("the command failed: %w%s", err, said.message())
}

// firstBytes is an io.Writer that keeps the beginning of a command's output.
type firstBytes struct {
	mu   sync.Mutex
	kept []byte // guarded by mu
}

func (f *firstBytes) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = append(f.kept, b[:min(len(b), commandOutput-len(f.kept))]...)
	return len(b), nil
}

// message returns the first line with text, without secrets, as the end of an error message.
func (f *firstBytes) message() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for line := range strings.Lines(string(f.kept)) {
		line = strings.TrimSpace(strings.ToValidUTF8(line, ""))
		if line = secret.Line(secret.Clean(line)); line != "" {
			runes := []rune(line)
			return ": " + string(runes[:min(len(runes), commandMessage)])
		}
	}
	return ""
}
