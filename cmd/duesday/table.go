package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// A table is aligned text for people: a header and rows.
type table struct {
	w       *tabwriter.Writer
	columns int
	rows    int
}

// tableChunk is how many rows are aligned with each other: an endless list must not be
// held in memory for its width.
const tableChunk = 1000

// newTable begins a table with a header.
func newTable(out io.Writer, columns ...string) *table {
	t := &table{w: tabwriter.NewWriter(out, 0, 8, 2, ' ', 0), columns: len(columns)}
	if len(columns) > 0 {
		t.line(columns)
	}
	return t
}

func (t *table) line(cells []string) {
	for i, c := range cells {
		if i > 0 {
			io.WriteString(t.w, "\t")
		}
		io.WriteString(t.w, printable(c))
	}
	io.WriteString(t.w, "\n")
}

func (t *table) row(cells ...string) {
	t.line(cells)
	if t.rows++; t.rows%tableChunk == 0 {
		t.w.Flush()
	}
}

// flush writes the rows held back; the error is the writer's.
func (t *table) flush() error { return t.w.Flush() }

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

// fields prints names and values, one a line, without the empty ones.
func fields(out io.Writer, pairs ...string) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(w, "%s\t%s\n", pairs[i], printable(pairs[i+1]))
		}
	}
	w.Flush()
}
