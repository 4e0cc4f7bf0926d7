package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/secret"
)

// A command prints its result twice: say, fields and table print for people, json prints for
// programs. Each prints nothing in the other's mode.

func (p *program) json(v any) error {
	if !p.cfg.JSON {
		return nil
	}
	return p.printJSON(v)
}

// printJSON prints one value, also for people.
func (p *program) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := p.stdout.WriteString(secret.Visible(b.String()))
	return err
}

// An object is the JSON form of a noun: names and values in turn. A name with ? at its end is left
// out if its value is empty. Ids are bare, dates are 2026-01-31, timestamps are UTC with
// milliseconds, and amounts are decimal strings at the currency's exponent.
type object []any

// MarshalJSON implements json.Marshaler. The encoder above escapes HTML if it is to.
func (o object) MarshalJSON() ([]byte, error) { return o.append(make([]byte, 0, 512), false) }

func (o object) append(b []byte, escapeHTML bool) (_ []byte, err error) {
	separator := byte('{')
	for i := 0; i+1 < len(o) && err == nil; i += 2 {
		if !o.leavesOut(i + 1) {
			b = append(append(append(b, separator, '"'), strings.TrimSuffix(o[i].(string), "?")...), '"', ':')
			b, err = appendJSON(b, o[i+1], escapeHTML)
			separator = ','
		}
	}
	if separator == '{' {
		b = append(b, separator)
	}
	return append(b, '}'), err
}

// appendJSON writes the usual values itself: an encoder for each took three times as long.
func appendJSON(b []byte, v any, escapeHTML bool) ([]byte, error) {
	switch t := v.(type) {
	case time.Time:
		return append(append(append(b, '"'), stamp(t)...), '"'), nil
	case civil.Date:
		return append(append(append(b, '"'), date(t)...), '"'), nil
	case string:
		if !strings.ContainsFunc(t, isEscaped) {
			return append(append(append(b, '"'), t...), '"'), nil
		}
	case int:
		return strconv.AppendInt(b, int64(t), 10), nil
	case bool:
		return strconv.AppendBool(b, t), nil
	case object:
		return t.append(b, escapeHTML)
	}
	out := bytes.NewBuffer(b)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(escapeHTML)
	err := enc.Encode(v)
	text := bytes.TrimSuffix(out.Bytes()[len(b):], []byte("\n"))
	return append(b, secret.Visible(string(text))...), err
}

// isEscaped reports whether JSON, or JSON in HTML, may have another form of the character.
func isEscaped(r rune) bool {
	return r < ' ' || r > '~' || r == '"' || r == '\\' || r == '<' || r == '>' || r == '&'
}

// place returns where the object has the value of the name; -1 if it has none.
func (o object) place(name string) int {
	for i := 0; i+1 < len(o); i += 2 {
		if strings.TrimSuffix(o[i].(string), "?") == name {
			return i + 1
		}
	}
	return -1
}

// text returns the value of the name for people; "" if the object has none, or leaves it out.
func (o object) text(name string) string {
	at := o.place(name)
	if at < 0 || o.leavesOut(at) {
		return ""
	}
	return cell(o[at])
}

// shown returns the value at the place; nil if the object leaves it out.
func (o object) shown(at int) any {
	if o.leavesOut(at) {
		return nil
	}
	return o[at]
}

// leavesOut reports whether the value at the place is empty, and its name optional.
func (o object) leavesOut(at int) bool {
	v := reflect.ValueOf(o[at])
	return strings.HasSuffix(o[at-1].(string), "?") && (!v.IsValid() || v.IsZero())
}

const stampLayout = "2006-01-02T15:04:05.000Z"

// stamp returns the timestamp, or "" for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(stampLayout)
}

// date returns the date, or "" for the zero date.
func date(d civil.Date) string {
	if d.IsZero() {
		return ""
	}
	return d.String()
}

// readable yields what can be read. It names each unreadable item in a warning; the command then exits
// with exitPerson.
func readable[T any](p *program, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range seq {
			if _, bad := errors.AsType[*billing.ItemError](err); bad {
				p.warn("left out: %v; correct the item with the tool that wrote it", err)
				p.code = exitPerson
			} else if !yield(v, err) {
				return
			}
		}
	}
}

// list prints a sequence as a JSON array, or as a table with the columns, and returns the number
// of rows. Its memory does not grow with that number.
func list[T, V any](p *program, seq iter.Seq2[T, error], view func(T) V, columns []string,
	cells func(T) []any) (n int, err error) {
	t, a := p.table(columns...), listWriter{out: p.stdout}
	for v, err := range readable(p, seq) {
		if err == nil && p.cfg.JSON {
			err = a.add(view(v))
		} else if err == nil {
			t.row(cells(v)...)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	if p.cfg.JSON {
		return n, a.end(nil)
	}
	return n, t.flush()
}

// listAll is list with the number of rows at its end, for people.
func listAll[T, V any](p *program, noun string, seq iter.Seq2[T, error], view func(T) V, columns []string,
	cells func(T) []any) error {
	n, err := list(p, seq, view, columns, cells)
	if err == nil {
		p.say("\n%s", plural(n, noun))
	}
	return err
}

// each yields the elements.
func each[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
	}
}

func filtered[T any](seq iter.Seq2[T, error], keep func(T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range seq {
			if (err != nil || keep(v)) && !yield(v, err) {
				return
			}
		}
	}
}

// A listWriter writes a JSON array of any length, one element a line: alone, or under a name as the
// first member of an object. Its errors are those of out, which keeps them.
type listWriter struct {
	out  *bufio.Writer
	name string // ""; alone
	n    int
}

// begin returns the beginning, and the indentation of the end.
func (l *listWriter) begin() (begin, indent string) {
	if l.name == "" {
		return "[", ""
	}
	return fmt.Sprintf("{\n  %q: [", l.name), "  "
}

func (l *listWriter) add(v any) error {
	begin, indent := l.begin()
	if l.n++; l.n > 1 {
		begin = ","
	}
	l.out.WriteString(begin + "\n  " + indent)
	return writeValue(l.out, v)
}

// end closes the array and, under a name, adds the members of rest, which must encode as an object.
func (l *listWriter) end(rest any) error {
	text, indent := l.begin()
	if l.n > 0 {
		text = "\n" + indent
	}
	text += "]"
	if l.name != "" {
		b, err := json.MarshalIndent(rest, "", "  ")
		if err != nil {
			return err
		}
		text += "," + secret.Visible(string(b[1:]))
	}
	_, err := l.out.WriteString(text + "\n")
	return err
}

func writeValue(out *bufio.Writer, v any) error {
	b, err := appendJSON(out.AvailableBuffer(), v, true)
	if err == nil {
		_, err = out.Write(b)
	}
	return err
}
