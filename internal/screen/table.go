package screen

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/view"
)

// A Table prints a header and rows as aligned text for human readers.
type Table struct {
	w      *tabwriter.Writer
	Rows   int // number of rows so far
	screen *Screen
	states []int // indexes of the columns that contain states
}

// Flush writes the buffered rows. It returns the writer's error.
func (t *Table) Flush() error { return t.w.Flush() }

func (t *Table) line(cells []string) {
	for i, c := range cells {
		cells[i] = Printable(c)
	}
	for _, i := range t.states {
		if i < len(cells) {
			cells[i] = t.screen.paintedState(cells[i])
		}
	}
	io.WriteString(t.w, strings.Join(cells, "\t")+"\n")
}

// Row adds a row with one value for each column.
func (t *Table) Row(values ...any) {
	cells := make([]string, len(values))
	for i, v := range values {
		cells[i] = Cell(v)
	}
	t.line(cells)
	if t.Rows++; t.Rows%1000 == 0 {
		t.w.Flush() // so that an endless list does not stay in memory
	}
}

// Table starts a table for human readers and prints its header.
func (s *Screen) Table(columns ...string) *Table {
	var out io.Writer = s.Out
	if s.AsJSON {
		out = io.Discard
	}
	t := &Table{w: tabwriter.NewWriter(out, 0, 8, 2, ' ', 0), screen: s}
	for i, name := range columns {
		switch name {
		case "STATE", "OUTCOME", "ENDING":
			t.states = append(t.states, i)
		case "STATUS":
			if !slices.Contains(columns, "KIND") { // refunds and disputes use these words in another sense
				t.states = append(t.states, i)
			}
		}
	}
	if len(columns) > 0 {
		t.line(slices.Clone(columns))
	}
	return t
}

// Section prints the rows as a table under a title. It prints nothing if there are no rows.
func Section[T any](s *Screen, title string, columns []string, rows []T, cells func(T) []any) {
	if len(rows) == 0 {
		return
	}
	s.Say("%s", title)
	t := s.Table(columns...)
	for _, row := range rows {
		t.Row(cells(row)...)
	}
	t.Flush()
}

// Cell returns a value as the text of a table cell.
func Cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case time.Time:
		return view.Stamp(v)
	case civil.Date:
		return view.Date(v)
	case money.Amount:
		if v.Currency().IsZero() { // the row could not be read
			return ""
		}
		return v.Format()
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case view.Object:
		var parts []string
		for i := 0; i+1 < len(v); i += 2 {
			if text := Cell(v.Shown(i + 1)); text != "" {
				parts = append(parts, strings.TrimSuffix(v[i].(string), "?")+" "+text)
			}
		}
		return strings.Join(parts, ", ")
	case *int: // nil if unknown
		if v == nil {
			return ""
		}
		return strconv.Itoa(*v)
	}
	return fmt.Sprint(v)
}

// Printable returns the text on one line and without characters that could harm the terminal or the
// table. It returns a dash for an empty text.
func Printable(text string) string { return cmp.Or(secret.Line(text), "-") }

// Plural returns the number and its noun, with a plural s unless the number is 1.
func Plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// Positive returns the number as text, or "" for 0.
func Positive(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// Prefixed returns the prefix and the text, or "" if the text is empty.
func Prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// Elapsed formats a duration in milliseconds or, from ten seconds, in seconds.
func Elapsed(d time.Duration) string {
	if ms := d.Milliseconds(); ms < 10_000 {
		return fmt.Sprintf("%d ms", ms)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
