package screen

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/secret"
)

// JSON prints the value for programs.
func (s *Screen) JSON(v any) error {
	if !s.AsJSON {
		return nil
	}
	return s.PrintJSON(v)
}

// PrintJSON prints the value, also for people.
func (s *Screen) PrintJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := s.Out.WriteString(secret.Visible(b.String()))
	return err
}

// Served prints the view as a line of JSON, by which a program finds the server, if JSON is
// wanted, and flushes the output: the starter of the server waits for it.
func (s *Screen) Served(view any) error {
	if s.AsJSON {
		if err := WriteValue(s.Out, view); err != nil {
			return err
		}
		s.Out.WriteString("\n")
	}
	return s.Out.Flush()
}

// An Object is the JSON form of a noun: names and values in turn. A name with ? at its end is left
// Out if its value is empty. Ids are bare, dates are 2026-01-31, timestamps are UTC with
// milliseconds, and amounts are decimal strings at the currency's exponent.
type Object []any

// MarshalJSON implements json.Marshaler. PrintJSON's encoder escapes HTML if it is to.
func (o Object) MarshalJSON() ([]byte, error) { return o.append(make([]byte, 0, 512), false) }

func (o Object) append(b []byte, escapeHTML bool) (_ []byte, err error) {
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

// leavesOut reports whether the value at the place is empty, and its name optional.
func (o Object) leavesOut(at int) bool {
	v := reflect.ValueOf(o[at])
	return strings.HasSuffix(o[at-1].(string), "?") && (!v.IsValid() || v.IsZero())
}

// Place returns where the object has the value of the name; -1 if it has none.
func (o Object) Place(name string) int {
	for i := 0; i+1 < len(o); i += 2 {
		if strings.TrimSuffix(o[i].(string), "?") == name {
			return i + 1
		}
	}
	return -1
}

// Shown returns the value at the place; nil if the object leaves it out.
func (o Object) Shown(at int) any {
	if o.leavesOut(at) {
		return nil
	}
	return o[at]
}

// Text returns the value of the name for people; "" if the object has none, or leaves it out.
func (o Object) Text(name string) string {
	at := o.Place(name)
	if at < 0 || o.leavesOut(at) {
		return ""
	}
	return Cell(o[at])
}

// appendJSON writes the usual values itself: an encoder for each took three times as long.
func appendJSON(b []byte, v any, escapeHTML bool) ([]byte, error) {
	switch t := v.(type) {
	case time.Time:
		return append(append(append(b, '"'), Stamp(t)...), '"'), nil
	case civil.Date:
		return append(append(append(b, '"'), Date(t)...), '"'), nil
	case string:
		if !strings.ContainsFunc(t, isEscaped) {
			return append(append(append(b, '"'), t...), '"'), nil
		}
	case int:
		return strconv.AppendInt(b, int64(t), 10), nil
	case bool:
		return strconv.AppendBool(b, t), nil
	case Object:
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

// StampLayout is the form of every timestamp.
const StampLayout = "2006-01-02T15:04:05.000Z"

// Stamp returns the time as a timestamp, or "" for the zero time.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(StampLayout)
}

// Date returns the date, or "" for the zero date.
func Date(d civil.Date) string {
	if d.IsZero() {
		return ""
	}
	return d.String()
}

// Views returns the view of each element. It returns an empty list, not nil, if there are none.
func Views[T any](all []T, view func(T) Object) []Object {
	list := make([]Object, len(all))
	for i, v := range all {
		list[i] = view(v)
	}
	return list
}

// WriteValue writes the value as JSON.
func WriteValue(out *bufio.Writer, v any) error {
	b, err := appendJSON(out.AvailableBuffer(), v, true)
	if err == nil {
		_, err = out.Write(b)
	}
	return err
}

// A ListWriter writes a JSON array of any length, one element a line: alone, or under a name as the
// first member of an object. Its errors are those of out, which keeps them.
type ListWriter struct {
	Out  *bufio.Writer
	Name string // ""; alone
	n    int
}

// Add writes an element.
func (l *ListWriter) Add(v any) error {
	begin, indent := l.begin()
	if l.n++; l.n > 1 {
		begin = ","
	}
	l.Out.WriteString(begin + "\n  " + indent)
	return WriteValue(l.Out, v)
}

// begin returns the beginning, and the indentation of the end.
func (l *ListWriter) begin() (begin, indent string) {
	if l.Name == "" {
		return "[", ""
	}
	return fmt.Sprintf("{\n  %q: [", l.Name), "  "
}

// End closes the array and, under a name, adds the members of rest, which must encode as an object.
func (l *ListWriter) End(rest any) error {
	text, indent := l.begin()
	if l.n > 0 {
		text = "\n" + indent
	}
	text += "]"
	if l.Name != "" {
		b, err := json.MarshalIndent(rest, "", "  ")
		if err != nil {
			return err
		}
		text += "," + secret.Visible(string(b[1:]))
	}
	_, err := l.Out.WriteString(text + "\n")
	return err
}
