package book

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/secret"
)

// A Record is a good row or item. Exactly one of its pointers is set, and belongs to the caller.
type Record struct {
	Line int // in the file, from 1
	// passes Check, has an Email, an Interval and ReminderDays; TimeZone and dates may be billing's
	Subscription *billing.NewSubscription
	// A payment from before the data came to Duesday, and an account: from a Workbench model or its
	// sample data alone. The receipt's ID is "" in the published model, which names only the SKU.
	Receipt *billing.Receipt
	Account *billing.Account // with ID, Email and TimeZone ("": UTC)
	Price   *Price           // of Prices alone
}

// A Rejection is the problem with one column of a row. Its texts contain no card number.
type Rejection struct {
	Line   int    `json:"line"`   // where the row begins, from 1; a CSV header is line 1
	Column string `json:"column"` // or attribute; "" when it is the row as a whole
	Reason string `json:"reason"`
	Raw    string `json:"-"` // the row's text, for FILE.rejected
	// Fatal: the problem is of the file, and ended the reading. Skipping bad rows does not help.
	Fatal bool `json:"-"`

	Row    int `json:"-"` // number of the bad row, from 1, and not its line: a model may have a single line
	header *csvHeader
}

// A csvHeader is the header of a CSV.
type csvHeader struct {
	text      string // masked
	separator rune
}

// Options configure Read, and supply values that a Workbench model and its samples do not contain.
type Options struct {
	PaymentMethod string   // of subscriptions without one; the model's default-card is always dropped
	Currency      string   // of amounts without one; "": USD
	IgnoreColumns []string // names, in any case, of columns and members that are left out
	Check         Check    // nil: nothing more is checked
}

// A Check returns the problem of an otherwise good subscription, such as one that does not fit the
// store, or nil. given reports whether the row has the column. Read calls it once for each subscription
// that Read would yield without a Check, in the same order.
type Check func(n billing.NewSubscription, given func(column string) bool) *billing.FieldError

// Read yields the good rows and, for each bad one, a Rejection for every bad column; one of the two
// is set. It holds one row at a time, reads to the end of the file unless a Rejection is Fatal, and
// can be ranged over once. A failure of r is a Fatal Rejection.
//
// Of two contradicting rows the later one is rejected, even if the earlier one is bad elsewhere.
func Read(r io.Reader, f Format, o Options) iter.Seq2[Record, *Rejection] {
	return func(yield func(Record, *Rejection) bool) {
		s := &session{checker: newChecker(o.Check), options: o, yield: yield}
		src, err := newSource(r)
		if err != nil {
			s.rejectFile(1, problem{"", err.Error()})
			return
		}
		switch f {
		case CSV:
			s.readCSV(src, nil)
		case Prices:
			s.prices = map[string]int{}
			s.readCSV(src, nil)
		case JSONLines:
			s.readJSONLines(src)
		case Workbench:
			s.readModel(src)
		case Samples:
			s.readCSV(src, &model{session: s, src: src, items: map[uint64]seenItem{}})
		default:
			s.rejectFile(1, problem{"", "unknown format"})
		}
	}
}

// A session is one pass over one file. Its methods return false if the caller has stopped ranging.
type session struct {
	checker
	options Options
	yield   func(Record, *Rejection) bool
	header  csvHeader
	badRows int
	prices  map[string]int // of Prices: the lines of SKU and currency
}

// rejectRow yields a Rejection for each of the problems, and masks raw.
func (s *session) rejectRow(line int, raw string, problems []problem) bool {
	s.badRows++
	masked := secret.MaskCards(raw)
	for _, p := range problems {
		r := p.rejection(line)
		r.Raw, r.Row, r.header = masked, s.badRows, &s.header
		if !s.yield(Record{}, r) {
			return false
		}
	}
	return true
}

// rejectFile yields the problems of the whole file, which end its reading.
func (s *session) rejectFile(line int, problems ...problem) {
	for _, p := range problems {
		r := p.rejection(line)
		r.Fatal = true
		if !s.yield(Record{}, r) {
			return
		}
	}
}

// maxReason is the longest reason. Some quote the field, which may be as long as a row.
const maxReason = 400

func (p problem) rejection(line int) *Rejection {
	return &Rejection{Line: line, Column: mask(p.column), Reason: mask(p.reason)}
}

// mask masks before the cut, so that no part of a card number is left at it, and after the cut,
// which can make a longer number look like one.
func mask(text string) string {
	text = maskText(text)
	if len(text) > maxReason {
		text = secret.MaskCards(strings.ToValidUTF8(text[:maxReason], "") + "…")
	}
	return text
}

// A RejectedWriter writes bad rows to FILE.rejected: each row once, with card numbers masked, and
// its line, columns and reasons before it. These are in the columns rejected_line, rejected_column
// and rejected_reason, which Read skips: the file can be corrected in place and imported. They come
// first, because a row with the wrong number of fields is readable only behind them.
//
// The items of a Workbench model and its samples are written as JSON lines for people, no book.
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

// Write writes a Rejection. The caller passes Rejections in the order of Read. Write omits a Fatal
// one, which has no row.
func (w *RejectedWriter) Write(r *Rejection) error {
	if r.Fatal {
		return nil
	}
	if len(w.pending) > 0 && w.pending[0].Row != r.Row {
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
		reason := r.Reason
		if len(w.pending) > 1 && r.Column != "" {
			reason = r.Column + ": " + reason
		}
		reasons = append(reasons, reason)
	}
	r := w.pending[0]
	w.pending = w.pending[:0]
	line, column, reason := strconv.Itoa(r.Line), strings.Join(names, "; "), strings.Join(reasons, "; ")
	if w.format == CSV {
		return w.writeCSV(r, []string{line, column, reason})
	}
	return w.writeJSON(r, line, column, reason)
}

func (w *RejectedWriter) writeCSV(r *Rejection, fields []string) error {
	separator := string(r.header.separator)
	if !w.begun {
		w.begun = true
		w.out.WriteString(strings.Join([]string{rejectedLine, rejectedColumn, rejectedReason, r.header.text}, separator) + "\n")
	}
	var prefix strings.Builder
	cw := csv.NewWriter(&prefix)
	cw.Comma = r.header.separator
	if err := cw.Write(fields); err != nil {
		return err
	}
	cw.Flush()
	_, err := w.out.WriteString(strings.TrimSuffix(prefix.String(), "\n") + separator + r.Raw + "\n")
	return err
}

// writeJSON puts the three columns before the row's members, or its quote if it is no object.
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
