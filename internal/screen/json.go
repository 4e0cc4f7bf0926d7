package screen

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/view"
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

// Text returns the object's named member as text for human readers. It returns "" if the object omits
// or does not have the member.
func Text(o view.Object, name string) string {
	if at := o.Place(name); at >= 0 {
		return Cell(o.Shown(at))
	}
	return ""
}

// WriteValue writes the value as JSON.
func WriteValue(out *bufio.Writer, v any) error {
	b, err := view.Append(out.AvailableBuffer(), v, true)
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
