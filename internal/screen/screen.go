// Package screen formats command output as text for human readers or as JSON for programs, and
// parses flag values. Say, Fields, Table and List print only in text mode, and JSON and ListWriter
// print only in JSON mode. The flag values are dates, months, times, shares and choices.
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

// These are the exit codes of a command that did not simply succeed.
const (
	ExitFailed = 1
	ExitUsage  = 2
	ExitPerson = 3 // the command succeeded, but someone needs to act
	ExitDamage = 4 // the error is store.ErrDamaged
)

// A Screen prints a command's results as text for human readers or as JSON for programs. It also
// prints the command's warnings.
type Screen struct {
	Out     *bufio.Writer
	Raw     io.Writer // the writer below Out
	Err     io.Writer
	TTY     func(io.Writer) bool     // reports whether a writer is a terminal; only those get colors
	Env     func(name string) string // for NO_COLOR and TERM
	AsJSON  bool                     // print JSON for programs
	LogJSON bool                     // the log is JSON, so warnings are JSON, too
	Code    int                      // exit code of a command that returns no error
}

// New returns a screen for the two streams. The environment decides whether it uses colors.
func New(out, err io.Writer, env func(string) string) *Screen {
	return &Screen{Out: bufio.NewWriterSize(out, 64<<10), Raw: out, Err: err, TTY: isTerminal, Env: env}
}

// Fields prints names and values for human readers, one pair per line, and omits empty values.
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

// Painted returns the text in the given color if out is a terminal with colors and NO_COLOR is not
// set.
func (s *Screen) Painted(out io.Writer, colour, text string) string {
	if !s.TTY(out) || s.Env("NO_COLOR") != "" || s.Env("TERM") == "dumb" {
		return text
	}
	return fmt.Sprintf("\x1b[%sm%s\x1b[0m", colour, text)
}

// paintedState colors the first word of the text. It adds the same number of bytes to every word,
// so that tables stay aligned.
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

// Problem writes a message to standard error. With --json or a JSON log, the message is the value
// of the key in a JSON object.
func (s *Screen) Problem(key, colour, message string) {
	if !s.AsJSON && !s.LogJSON {
		fmt.Fprintf(s.Err, "%s %s\n", s.Painted(s.Err, colour, "duesday:"), secret.Visible(message))
		return
	}
	b, _ := json.Marshal(map[string]string{key: message}) // encoding strings cannot fail
	fmt.Fprintln(s.Err, secret.Visible(string(b)))
}

// Say prints a line for human readers.
func (s *Screen) Say(format string, args ...any) {
	if !s.AsJSON {
		s.Out.WriteString(secret.Visible(fmt.Sprintf(format+"\n", args...)))
	}
}

// Warn prints a warning to standard error.
func (s *Screen) Warn(format string, args ...any) {
	s.Problem("warning", WarnColour, secret.Clean(fmt.Sprintf(format, args...)))
}

// These are the terminal colors for messages and states.
const (
	ErrorColour = "31"
	GoodColour  = "32"
	WarnColour  = "33"
	noColour    = "39" // the terminal's default color
)

// isTerminal reports whether the writer is a terminal.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
