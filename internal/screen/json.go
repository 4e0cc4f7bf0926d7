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

// JSON prints the value as JSON if the output is for programs.
func (s *Screen) JSON(v any) error {
	if !s.AsJSON {
		return nil
	}
	return s.PrintJSON(v)
}

// PrintJSON prints the value as JSON, even if the output is for human readers.
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

// Served flushes the output, because the program that started the server waits for it. In JSON
// mode, it first prints the view as one line, from which that program learns the server's address.
func (s *Screen) Served(view any) error {
	if s.AsJSON {
		if err := WriteValue(s.Out, view); err != nil {
			return err
		}
		s.Out.WriteString("\n")
	}
	return s.Out.Flush()
}

// An Object is the JSON form of a noun, as alternating names and values. A member whose name ends
// with ? is omitted if its value is empty. IDs have no key prefix, dates are formatted as
// 2026-01-31, timestamps are in UTC with milliseconds, and amounts are decimal strings at the
// currency's exponent.
type Object []any

// MarshalJSON implements json.Marshaler. It does not escape HTML, because PrintJSON's encoder does
// so if needed.
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

// leavesOut reports whether the member with the value at this index is optional and empty.
func (o Object) leavesOut(at int) bool {
	v := reflect.ValueOf(o[at])
	return strings.HasSuffix(o[at-1].(string), "?") && (!v.IsValid() || v.IsZero())
}

// Place returns the index of the named member's value, or -1 if there is no such member.
func (o Object) Place(name string) int {
	for i := 0; i+1 < len(o); i += 2 {
		if strings.TrimSuffix(o[i].(string), "?") == name {
			return i + 1
		}
	}
	return -1
}

// Shown returns the value at the index, or nil if the object omits it.
func (o Object) Shown(at int) any {
	if o.leavesOut(at) {
		return nil
	}
	return o[at]
}

// Text returns the named member's value as text for human readers. It returns "" if the object
// omits or does not have the member.
func (o Object) Text(name string) string {
	at := o.Place(name)
	if at < 0 || o.leavesOut(at) {
		return ""
	}
	return Cell(o[at])
}

// appendJSON encodes the usual types itself, because a new encoder for each value takes three times
// as long.
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

// isEscaped reports whether JSON, or JSON embedded in HTML, may escape the character.
func isEscaped(r rune) bool {
	return r < ' ' || r > '~' || r == '"' || r == '\\' || r == '<' || r == '>' || r == '&'
}

// StampLayout is the time layout of every timestamp.
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

// Views returns the view of each element. For no elements, it returns an empty list and not nil.
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

// A ListWriter writes a JSON array of any length, with one element per line. If Name is set, the
// array is the first member of an object. Out keeps the first write error.
type ListWriter struct {
	Out  *bufio.Writer
	Name string // member name of the array; "" for a plain array
	n    int
}

// Add writes one element.
func (l *ListWriter) Add(v any) error {
	begin, indent := l.begin()
	if l.n++; l.n > 1 {
		begin = ","
	}
	l.Out.WriteString(begin + "\n  " + indent)
	return WriteValue(l.Out, v)
}

// begin returns the text before the first element, and the indentation of the array.
func (l *ListWriter) begin() (begin, indent string) {
	if l.Name == "" {
		return "[", ""
	}
	return fmt.Sprintf("{\n  %q: [", l.Name), "  "
}

// End closes the array. If Name is set, it also writes the members of rest, which must encode as an
// object.
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
