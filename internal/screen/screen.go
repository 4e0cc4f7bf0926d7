// Package screen formats command output as text for people or as JSON for programs, and parses flag values.
// Say, Fields, Table and List print only in text mode; JSON and ListWriter print only in JSON mode. The
// flag values are dates, months, times, shares and choices.
//
// It does not open a store, and does not know any command.
package screen

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/duesday/duesday/internal/secret"
)

// The exit codes of a command that is not simply done.
const (
	ExitFailed = 1
	ExitUsage  = 2
	ExitPerson = 3 // it is done, but something needs a person
	ExitDamage = 4 // store.ErrDamaged
)

// A Screen prints what a command has found, for people or as JSON for programs, and its warnings.
type Screen struct {
	Out     *bufio.Writer
	Raw     io.Writer // below Out
	Err     io.Writer
	TTY     func(io.Writer) bool     // reports whether it is a terminal: only there is colour, and progress
	Env     func(name string) string // NO_COLOR and TERM
	AsJSON  bool                     // the output is for programs
	LogJSON bool                     // the log is, so warnings are too
	Code    int                      // the exit code of a command without an error
}

// New returns a screen of the streams. The environment says whether it has colours.
func New(out, err io.Writer, env func(string) string) *Screen {
	return &Screen{Out: bufio.NewWriterSize(out, 64<<10), Raw: out, Err: err, TTY: isTerminal, Env: env}
}

// Fields prints names and values for people, one a line, without the empty ones.
func (s *Screen) Fields(pairs ...any) {
	if s.AsJSON {
		return
	}
	w := tabwriter.NewWriter(s.Out, 0, 8, 2, ' ', 0)
	for i := 0; i+1 < len(pairs); i += 2 {
		if value := Cell(pairs[i+1]); value != "" {
			value = Printable(value)
			if pairs[i] == "status" {
				value = s.paintedState(value)
			}
			fmt.Fprintf(w, "%s\t%s\n", pairs[i], value)
		}
	}
	w.Flush()
}

// Painted returns the text in the colour if out is a terminal that has colours, and NO_COLOR is not set.
func (s *Screen) Painted(out io.Writer, colour, text string) string {
	if !s.TTY(out) || s.Env("NO_COLOR") != "" || s.Env("TERM") == "dumb" {
		return text
	}
	return fmt.Sprintf("\x1b[%sm%s\x1b[0m", colour, text)
}

// paintedState paints the first word. Every word gets the same number of extra bytes, so tables
// stay aligned.
func (s *Screen) paintedState(text string) string {
	word, colour := text, noColour
	if i := strings.IndexAny(text, " :,"); i > 0 {
		word = text[:i]
	}
	switch word {
	case "WRONG", "failed", "declined", "refused", "lost", "disconnected":
		colour = ErrorColour
	case "warning", "unknown", "parked", "past_due", "unpaid", "requires_action", "retry", "pending", "void":
		colour = WarnColour
	case "ok", "active", "paid", "succeeded", "completed", "applied", "connected":
		colour = GoodColour
	}
	return s.Painted(s.Raw, colour, word) + text[len(word):]
}

// Problem writes a line to standard error, or with --json or a log in JSON an object of the key.
func (s *Screen) Problem(key, colour, message string) {
	if !s.AsJSON && !s.LogJSON {
		fmt.Fprintf(s.Err, "%s %s\n", s.Painted(s.Err, colour, "duesday:"), secret.Visible(message))
		return
	}
	b, _ := json.Marshal(map[string]string{key: message}) // strings have a JSON form
	fmt.Fprintln(s.Err, secret.Visible(string(b)))
}

// Say prints a line for people.
func (s *Screen) Say(format string, args ...any) {
	if !s.AsJSON {
		s.Out.WriteString(secret.Visible(fmt.Sprintf(format+"\n", args...)))
	}
}

// Warn prints a warning on standard error.
func (s *Screen) Warn(format string, args ...any) {
	s.Problem("warning", WarnColour, secret.Clean(fmt.Sprintf(format, args...)))
}

// The colours of messages and states on a terminal.
const (
	ErrorColour = "31"
	GoodColour  = "32"
	WarnColour  = "33"
	noColour    = "39" // the terminal's own
)

// isTerminal reports whether a person sees the output at once.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
