package book

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
)

// A Writer writes rows as CSV with a header, or as JSON lines of strings. Read can read rows under
// the names of Columns again.
//
// Values are written as they are. An id, address or text of a person that begins with = + - or @ is
// a formula to a spreadsheet. It stays unchanged: a negative amount begins so too, and a file must
// read back the same. An export of untrusted ids must be opened in a spreadsheet as text.
type Writer struct {
	columns []string
	csv     *csv.Writer // nil for JSON lines
	out     *bufio.Writer
	begun   bool
	line    []byte
	prefix  []string // of each column, in JSON: its quoted name with the colon
}

// NewWriter returns a Writer of rows with the columns. The format must be CSV or JSONLines.
func NewWriter(w io.Writer, f Format, columns []string) (*Writer, error) {
	wr := &Writer{columns: columns, out: bufio.NewWriterSize(w, chunk)}
	switch f {
	case CSV:
		wr.csv = csv.NewWriter(wr.out)
	case JSONLines:
		for _, name := range columns {
			wr.prefix = append(wr.prefix, string(appendJSON(nil, name))+":")
		}
	default:
		return nil, fmt.Errorf("a book is written as CSV or JSON lines, not as a %s", f)
	}
	return wr, nil
}

// Write writes one row: a value for each column, in order.
func (w *Writer) Write(values []string) error {
	if len(values) != len(w.columns) {
		return fmt.Errorf("%d values for %d columns", len(values), len(w.columns))
	}
	if w.csv != nil {
		if err := w.writeHeader(); err != nil {
			return err
		}
		return w.csv.Write(values)
	}
	w.line = append(w.line[:0], '{')
	for i, v := range values {
		if i > 0 {
			w.line = append(w.line, ',')
		}
		w.line = appendJSON(append(w.line, w.prefix[i]...), v)
	}
	_, err := w.out.Write(append(w.line, '}', '\n'))
	return err
}

func (w *Writer) writeHeader() error {
	if w.begun {
		return nil
	}
	w.begun = true
	return w.csv.Write(w.columns)
}

// Flush writes the pending rows; a CSV without rows gets its header. It returns the first error of
// any write.
func (w *Writer) Flush() error {
	if w.csv != nil {
		if err := w.writeHeader(); err != nil {
			return err
		}
		w.csv.Flush()
		if err := w.csv.Error(); err != nil {
			return err
		}
	}
	return w.out.Flush()
}
