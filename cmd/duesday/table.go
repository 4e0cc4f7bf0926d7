package main

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/secret"
)

// say prints a line for people.
func (p *program) say(format string, args ...any) {
	if !p.cfg.JSON {
		p.stdout.WriteString(secret.Visible(fmt.Sprintf(format+"\n", args...)))
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
	case object:
		var parts []string
		for i := 0; i+1 < len(v); i += 2 {
			if text := cell(v.shown(i + 1)); text != "" {
				parts = append(parts, strings.TrimSuffix(v[i].(string), "?")+" "+text)
			}
		}
		return strings.Join(parts, ", ")
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
	if t.rows++; t.rows%1000 == 0 {
		t.w.Flush() // the rows so far are aligned: an endless list is not held in memory
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

// printable keeps a text on its line, in its column and harmless; an empty one is a dash.
func printable(text string) string { return cmp.Or(secret.Line(text), "-") }

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

// A progress is a bar on a terminal. The zero one shows nothing. Its counts may be set from any
// goroutine.
type progress struct {
	out   io.Writer // nil: no terminal
	what  string    // the noun: "rows"
	begun time.Time
	done  atomic.Int64
	total atomic.Int64 // 0: not known
	stop  chan struct{}
	ended sync.WaitGroup
}

const (
	progressAfter = time.Second // a shorter task needs no bar
	progressEvery = 200 * time.Millisecond
	progressWidth = 30
)

// progress begins a bar on standard error if that is a terminal. The count function, if any,
// counts the rest until stop; it is called when the bar appears.
func (p *program) progress(what string, total int64, count func(stop <-chan struct{}) int64) *progress {
	if !isTerminal(p.stderr) {
		return new(progress)
	}
	b := &progress{out: p.stderr, what: what, begun: time.Now(), stop: make(chan struct{})}
	b.total.Store(total)
	b.ended.Go(func() { b.show(count) })
	return b
}

// end wipes the bar away.
func (b *progress) end() {
	if b.out != nil {
		close(b.stop)
		b.ended.Wait()
	}
}

func (b *progress) show(count func(<-chan struct{}) int64) {
	select {
	case <-b.stop:
		return
	case <-time.After(progressAfter):
	}
	if count != nil {
		b.ended.Go(func() {
			done := b.done.Load() // the count is of the rest
			if left := count(b.stop); left > 0 {
				b.total.Store(done + left)
			}
		})
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		fmt.Fprintf(b.out, "\r\x1b[K%s", b.line(time.Since(b.begun)))
		select {
		case <-b.stop:
			fmt.Fprint(b.out, "\r\x1b[K")
			return
		case <-tick.C:
		}
	}
}

// countUntil counts a sequence for a bar; 0 if it fails, or is told to stop.
func countUntil[T any](seq iter.Seq2[T, error], stop <-chan struct{}) int64 {
	n := int64(0)
	for _, err := range seq {
		select {
		case <-stop:
			return 0
		default:
		}
		if err != nil {
			return 0
		}
		n++
	}
	return n
}

// line is the bar after so much time.
func (b *progress) line(elapsed time.Duration) string {
	done, total := b.done.Load(), b.total.Load()
	rate := float64(done) / elapsed.Seconds()
	text := fmt.Sprintf("%d %s, %.0f/s", done, b.what, rate)
	if total <= 0 || done <= 0 {
		return text
	}
	share := min(1, float64(done)/float64(total))
	full := int(share * progressWidth)
	left := time.Duration(float64(max(0, total-done)) / rate * float64(time.Second))
	return fmt.Sprintf("[%s%s] %3.0f%%  %s, %s left", strings.Repeat("#", full), strings.Repeat(".", progressWidth-full),
		share*100, text, left.Round(time.Second))
}
