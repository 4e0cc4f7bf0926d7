package book

import (
	"bufio"
	"encoding/csv"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/secret"
)

// A table reads the rows of one CSV.
type table struct {
	*session
	csv    *csv.Reader
	src    *source
	header []string // as it stands in the file, without spaces around the names
	column []column // by place in the header, of a book
	items  *model   // of sample data; nil for a book
}

func (s *session) readCSV(src *source, items *model) {
	t := table{session: s, src: src, items: items, csv: csv.NewReader(bufio.NewReaderSize(src, chunk))}
	t.csv.FieldsPerRecord = -1 // counted here, with a better reason
	t.csv.ReuseRecord = true
	if !t.readHeader() {
		return
	}
	for t.next() {
		src.advance(t.csv.InputOffset())
	}
}

// readHeader returns false if the file cannot be read, after it has yielded every reason.
func (t *table) readHeader() bool {
	names, err := t.csv.Read()
	if perr, ok := errors.AsType[*csv.ParseError](err); ok {
		t.rejectFile(perr.StartLine, quoteReason(perr))
		return false
	}
	if err == io.EOF {
		err = errEmpty
	}
	if err != nil {
		t.rejectFile(1, err.Error())
		return false
	}
	line, _ := t.csv.FieldPos(0)
	var problems []problem
	if t.items == nil {
		problems = t.bookHeader(names)
	} else {
		problems = t.sampleHeader(names)
	}
	t.rejectHeader(line, problems...)
	t.session.header = secret.MaskCards(t.raw())
	t.src.advance(t.csv.InputOffset())
	return len(problems) == 0
}

func (t *table) bookHeader(names []string) (problems []problem) {
	var seen columnSet
	for i, name := range names {
		name = strings.TrimSpace(name)
		col, ok := columnNamed(name)
		switch {
		case name == "":
			problems = append(problems, problem{"", "column " + strconv.Itoa(i+1) + " of the header has no name"})
		case !ok && secret.HasCardNumber(name):
			problems = append(problems, problem{name, cardReason(name)})
		case !ok:
			problems = append(problems, unknownColumn(name))
		case seen.has(col) && col != ignored:
			problems = append(problems, problem{name, "is twice in the header"})
		}
		seen.add(col)
		t.header, t.column = append(t.header, strings.Clone(name)), append(t.column, col)
	}
	if len(names) == 1 && strings.ContainsAny(names[0], ";\t|") {
		problems = []problem{{"", "the header is a single column: want commas between the columns"}}
		seen = ^columnSet(0)
	}
	for col := range required {
		if !seen.has(col) {
			problems = append(problems, problem{columnNames[col], "is missing from the header"})
		}
	}
	return problems
}

// raw is the text of the row at hand, without the line break.
func (t *table) raw() string {
	return strings.Trim(string(t.src.upTo(t.csv.InputOffset())), "\r\n")
}

// next reads one row and yields it. It returns false at the end.
func (t *table) next() bool {
	fields, err := t.csv.Read()
	if perr, ok := errors.AsType[*csv.ParseError](err); ok {
		name := ""
		if i := len(fields); i < len(t.header) {
			name = t.header[i]
		}
		return t.rejectRow(perr.StartLine, secret.MaskMethod(t.raw()), []problem{{name, quoteReason(perr)}})
	}
	if err == io.EOF {
		return false
	}
	if err == nil && t.csv.InputOffset()-t.src.start > maxRow {
		err = errTooLong
	}
	if err != nil {
		t.rejectFile(t.src.line, err.Error())
		return false
	}
	if isBlank(fields) {
		return true
	}
	line, _ := t.csv.FieldPos(0)
	if len(fields) != len(t.header) {
		return t.rejectRow(line, secret.MaskMethod(t.raw()), []problem{t.miscount(len(fields))})
	}
	if t.items != nil {
		return t.sample(line, fields)
	}
	var row texts
	for i, col := range t.column {
		if col != ignored {
			row[col] = fields[i]
		}
	}
	n := t.subscription(line, &row)
	if len(t.problems) > 0 {
		raw := t.raw()
		if method := row[paymentMethod]; secret.HasCardInMethod(method) {
			raw = strings.ReplaceAll(secret.MaskMethod(raw), method, secret.MaskMethod(method))
		}
		return t.rejectRow(line, raw, t.problems)
	}
	return t.yield(Record{Line: line, Subscription: n}, nil)
}

// isBlank reports a row of only commas and spaces, which spreadsheets write.
func isBlank(fields []string) bool {
	for _, f := range fields {
		if strings.TrimSpace(f) != "" {
			return false
		}
	}
	return true
}

func (t *table) miscount(fields int) problem {
	p := problem{"", "has " + strconv.Itoa(fields) + " fields, the header has " + strconv.Itoa(len(t.header))}
	if fields < len(t.header) {
		p.column = t.header[fields]
	} else {
		p.reason += ": a field with a comma in it goes into quotes"
	}
	return p
}

func quoteReason(err *csv.ParseError) string {
	at := "at byte " + strconv.Itoa(err.Column)
	if err.Line != err.StartLine {
		at += " of line " + strconv.Itoa(err.Line)
	}
	if err.Err == csv.ErrBareQuote {
		return `a " ` + at + ` in a field without quotes: put the field into quotes and double those in it`
	}
	return `a field in quotes does not end well ` + at +
		`: quotes in it are doubled, and a comma or the line's end follows the closing one`
}
