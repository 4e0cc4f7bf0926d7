package main

import (
	"io"
	"time"

	"github.com/duesday/duesday/internal/session"
)

// A program is one invocation, with its tree of commands.
type program struct{ *session.Program }

func newProgram(env func(string) string, stdin io.Reader, stdout, stderr io.Writer, now func() time.Time) *program {
	return &program{session.New(env, stdin, stdout, stderr, now)}
}
