package book

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
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

// A RejectedWriter writes bad rows to FILE.rejected: each row once, with card numbers masked, and
// its line, columns and reasons before it. These are in the columns rejected_line, rejected_column
// and rejected_reason, which Read skips: the file can be corrected in place and imported. They come
// first, because a row with the wrong number of fields is readable only behind them.
//
// The items of a Workbench model, and of its sample data, are written as JSON lines for people:
// they are no book.
type RejectedWriter struct {
	out     *bufio.Writer
	format  Format
	pending []*Rejection // of one row
	begun   bool
}

// NewRejectedWriter returns a RejectedWriter for the rejections of a Read of the format.
func NewRejectedWriter(w io.Writer, f Format) *RejectedWriter {
	return &RejectedWriter{out: bufio.NewWriterSize(w, chunk), format: f}
}

// Write takes a Rejection, in the order of Read. It leaves out a Fatal one, which has no row.
func (w *RejectedWriter) Write(r *Rejection) error {
	if r.Fatal {
		return nil
	}
	if len(w.pending) > 0 && w.pending[0].row != r.row {
		if err := w.writeRow(); err != nil {
			return err
		}
	}
	w.pending = append(w.pending, r)
	return nil
}

// Flush writes the pending rows.
func (w *RejectedWriter) Flush() error {
	if err := w.writeRow(); err != nil {
		return err
	}
	return w.out.Flush()
}

func (w *RejectedWriter) writeRow() error {
	if len(w.pending) == 0 {
		return nil
	}
	var names, reasons []string
	for _, r := range w.pending {
		names = append(names, r.Column)
		if len(w.pending) > 1 && r.Column != "" {
			reasons = append(reasons, r.Column+": "+r.Reason)
		} else {
			reasons = append(reasons, r.Reason)
		}
	}
	r := w.pending[0]
	w.pending = w.pending[:0]
	line, column, reason := strconv.Itoa(r.Line), strings.Join(names, "; "), strings.Join(reasons, "; ")
	if w.format == CSV {
		return w.writeCSV(r, line, column, reason)
	}
	return w.writeJSON(r, line, column, reason)
}

func (w *RejectedWriter) writeCSV(r *Rejection, fields ...string) error {
	if !w.begun {
		w.begun = true
		w.out.WriteString(rejectedLine + "," + rejectedColumn + "," + rejectedReason + "," + *r.header + "\n")
	}
	var prefix strings.Builder
	cw := csv.NewWriter(&prefix)
	if err := cw.Write(fields); err != nil {
		return err
	}
	cw.Flush()
	_, err := w.out.WriteString(strings.TrimSuffix(prefix.String(), "\n") + "," + r.Raw + "\n")
	return err
}

// writeJSON puts the three columns before the row's own members. A row in another form than an
// object is quoted as a whole.
func (w *RejectedWriter) writeJSON(r *Rejection, line, column, reason string) error {
	b := append([]byte(`{"`+rejectedLine+`":`), line...)
	b = appendJSON(append(b, `,"`+rejectedColumn+`":`...), maskText(column))
	b = appendJSON(append(b, `,"`+rejectedReason+`":`...), maskText(reason))
	rest, isObject := strings.CutPrefix(r.Raw, "{")
	switch {
	case !isObject || !json.Valid([]byte(r.Raw)):
		b = append(appendJSON(append(b, `,"rejected_row":`...), maskText(r.Raw)), '}')
	case strings.TrimLeft(rest, jsonSpace)[0] == '}':
		b = append(b, '}')
	default:
		b = append(append(b, ','), rest...)
	}
	_, err := w.out.Write(append(b, '\n'))
	return err
}
