// Command duesday charges recurring payments and records them: it imports subscriptions from a
// file, two daily jobs remind and charge customers, and an audit checks that no period was charged
// twice or skipped.
//
// It assembles the families of commands under internal/command, each a package on package session, and
// contains the texts of their help. It does not decide anything about money: package billing does.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/duesday/duesday/internal/session"
	"github.com/duesday/duesday/internal/view"
)

func main() {
	if os.Getenv("GOGC") == "" {
		// At its default the collector was a sixth of the CPU of a payment run.
		debug.SetGCPercent(150)
	}
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, func() { // the first signal asks, a later one ends the process
		time.AfterFunc(time.Second, stop) // not at once: timeout(1) and some supervisors send the first one twice
	})
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	os.Exit(code)
}

func run(ctx context.Context, args []string, env func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := newProgram(env, stdin, stdout, stderr, time.Now)
	p.Name = calledAs()
	log.SetFlags(0)
	log.SetOutput(session.Stray{Program: p.Program})
	p.Umask = fmt.Sprintf("umask %03o; ", syscall.Umask(0o077)) // Pebble's files, too, are the user's alone
	return p.run(ctx, args)
}

// calledAs returns the call of this program for hints: go run without a built binary.
func calledAs() string {
	path, err := os.Executable()
	if err == nil && strings.Contains(path, "go-build") {
		return "go run ./cmd/duesday"
	}
	return "duesday"
}

func (p *program) showVersion(context.Context, []string) error {
	v := session.BuildVersion()
	p.Say("duesday %s", v.Text())
	return p.JSON(view.Object{"version", v.Number, "revision?", v.Revision, "time?", v.Time, "modified?", v.Modified,
		"go", runtime.Version(), "platform", session.Platform})
}
