package book

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"strings"
)

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
