package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
)

// object prints one value as the command's JSON.
func (p *program) object(v any) error {
	enc := json.NewEncoder(p.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// list prints a sequence as a JSON array, or as a table with the columns, and returns the number
// of rows. Its memory does not grow with that number.
func list[T, V any](p *program, seq iter.Seq2[T, error], view func(T) V, columns []string,
	cells func(T) []string) (int, error) {
	n := 0
	if !p.cfg.JSON {
		t := newTable(p.stdout, columns...)
		for v, err := range seq {
			if err != nil {
				return n, err
			}
			t.row(cells(v)...)
			n++
		}
		return n, t.flush()
	}
	a := arrayWriter{out: p.stdout}
	for v, err := range seq {
		if err != nil {
			return n, err
		}
		if err := a.add(view(v)); err != nil {
			return n, err
		}
		n++
	}
	a.end()
	_, err := io.WriteString(p.stdout, "\n")
	return n, err
}

// An arrayWriter writes a JSON array, one element a line, [] when there are none.
type arrayWriter struct {
	out    *bufio.Writer
	indent string // before its end; elements stand two further in
	n      int
}

func (a *arrayWriter) add(v any) error {
	if a.n++; a.n == 1 {
		a.out.WriteString("[\n  " + a.indent)
	} else {
		a.out.WriteString(",\n  " + a.indent)
	}
	return writeValue(a.out, v)
}

func (a *arrayWriter) end() {
	switch a.n {
	case 0:
		a.out.WriteString("[]")
	default:
		a.out.WriteString("\n" + a.indent + "]")
	}
}

func writeValue(out *bufio.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = out.Write(b)
	return err
}

// An objectWriter writes a JSON object whose first member is a list of any length, element by
// element. Its errors are those of out, which keeps them.
type objectWriter struct {
	out  *bufio.Writer
	name string // of the list
	list arrayWriter
	open bool
}

func newObjectWriter(out *bufio.Writer, list string) *objectWriter {
	return &objectWriter{out: out, name: list, list: arrayWriter{out: out, indent: "  "}}
}

func (o *objectWriter) begin() {
	if !o.open {
		o.open = true
		fmt.Fprintf(o.out, "{\n  %q: ", o.name)
	}
}

// add writes one element of the list.
func (o *objectWriter) add(v any) error {
	o.begin()
	return o.list.add(v)
}

// end closes the list and adds the members of rest, which must encode as an object.
func (o *objectWriter) end(rest any) error {
	o.begin()
	o.list.end()
	b, err := json.MarshalIndent(rest, "", "  ")
	if err != nil {
		return err
	}
	if len(b) > 2 { // more than {}
		o.out.WriteString(",")
		_, err = o.out.Write(append(b[1:], '\n'))
		return err
	}
	_, err = o.out.WriteString("\n}\n")
	return err
}

// say prints a line for people, and nothing with --json.
func (p *program) say(format string, args ...any) {
	if !p.cfg.JSON {
		fmt.Fprintf(p.stdout, format+"\n", args...)
	}
}

// plural returns the number with its noun.
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}
