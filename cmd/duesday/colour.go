package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// The colours of messages on a terminal.
const (
	errorColour = "31"
	goodColour  = "32"
	warnColour  = "33"
)

// painted returns the text in the colour if out is a terminal and NO_COLOR is not set.
func (p *program) painted(out io.Writer, colour, text string) string {
	if !isTerminal(out) || p.env("NO_COLOR") != "" || p.env("TERM") == "dumb" {
		return text
	}
	return fmt.Sprintf("\x1b[%sm%s\x1b[0m", colour, text)
}

// isTerminal reports whether a person sees the output at once.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
