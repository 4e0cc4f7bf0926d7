package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"golang.org/x/term"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

// say prints a line for people.
func (p *program) say(format string, args ...any) {
	if !p.cfg.JSON {
		fmt.Fprintf(p.stdout, format+"\n", args...)
	}
}

// fields prints names and values for people, one a line, without the empty ones.
func (p *program) fields(pairs ...any) {
	if p.cfg.JSON {
		return
	}
	w := tabwriter.NewWriter(p.stdout, 0, 8, 2, ' ', 0)
	for i := 0; i+1 < len(pairs); i += 2 {
		if value := cell(pairs[i+1]); value != "" {
			fmt.Fprintf(w, "%s\t%s\n", pairs[i], printable(value))
		}
	}
	w.Flush()
}

// cell returns a value as people read it.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case time.Time:
		return stamp(v)
	case civil.Date:
		return date(v)
	case money.Amount:
		if v.Currency().IsZero() { // of a row that cannot be read
			return ""
		}
		return v.Format()
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case *int: // nil: not known
		if v == nil {
			return ""
		}
		return strconv.Itoa(*v)
	}
	return fmt.Sprint(v)
}

// A table is aligned text for people: a header and rows.
type table struct {
	w    *tabwriter.Writer
	rows int
}

// tableChunk is how many rows are aligned with each other: an endless list must not be
// held in memory for its width.
const tableChunk = 1000

// table begins a table with a header for people.
func (p *program) table(columns ...string) *table {
	var out io.Writer = p.stdout
	if p.cfg.JSON {
		out = io.Discard
	}
	t := &table{w: tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)}
	if len(columns) > 0 {
		t.line(slices.Clone(columns))
	}
	return t
}

func (t *table) line(cells []string) {
	for i, c := range cells {
		cells[i] = printable(c)
	}
	io.WriteString(t.w, strings.Join(cells, "\t")+"\n")
}

func (t *table) row(values ...any) {
	cells := make([]string, len(values))
	for i, v := range values {
		cells[i] = cell(v)
	}
	t.line(cells)
	if t.rows++; t.rows%tableChunk == 0 {
		t.w.Flush()
	}
}

// flush writes the rows held back; the error is the writer's.
func (t *table) flush() error { return t.w.Flush() }

// section prints rows for people in a table under a title; nothing of none.
func section[T any](p *program, title string, columns []string, rows []T, cells func(T) []any) {
	if len(rows) == 0 {
		return
	}
	p.say("%s", title)
	t := p.table(columns...)
	for _, row := range rows {
		t.row(cells(row)...)
	}
	t.flush()
}

// printable keeps a text on its line and in its column; an empty one is a dash.
func printable(text string) string {
	if text == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// plural returns the number with its noun.
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// positive returns the number, or "" for 0.
func positive(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

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
