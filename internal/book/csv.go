package book

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/schema"
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

// readCSV reads a book or, into the model, the CSV of NoSQL Workbench's sample data: a column for
// each attribute, including the keys, and a row for each item. An empty cell is an absent
// attribute. A cell is text without a type, and that of PaymentDetails a map in DynamoDB JSON.
func (s *session) readCSV(src *source, items *model) {
	t := table{session: s, src: src, items: items, csv: csv.NewReader(bufio.NewReaderSize(src, chunk))}
	t.csv.FieldsPerRecord = -1 // counted here, with a better reason
	t.csv.ReuseRecord = true
	head, _ := src.r.Peek(chunk) // an error of reading shows again
	s.header.separator = separatorOf(string(head))
	if m := named.FindSubmatch(head); m != nil && items == nil {
		s.header.separator = rune(m[2][0])
		src.r.Discard(len(m[1])) // cannot fail: it has been peeked at
	}
	t.csv.Comma = s.header.separator
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
		t.rejectFile(perr.StartLine, problem{"", quoteReason(perr)})
		return false
	}
	if err == io.EOF {
		err = errEmpty
	}
	if err != nil {
		t.rejectFile(1, problem{"", err.Error()})
		return false
	}
	line, _ := t.csv.FieldPos(0)
	problems := t.readNames(names)
	t.rejectFile(line, problems...)
	t.session.header.text = secret.MaskCards(t.raw())
	t.src.advance(t.csv.InputOffset())
	return len(problems) == 0
}

// readNames reads the names of a header. Sample data may have any, but must have the keys.
func (t *table) readNames(names []string) (problems []problem) {
	book, want := t.items == nil, []string{schema.PK, schema.SK}
	if book {
		want = columnNames[:required]
	}
	if t.prices != nil {
		want = []string{columnNames[sku], columnNames[amount]}
	}
	seen, listed := map[string]bool{}, false
	for i, name := range names {
		name = strings.TrimSpace(name)
		col, ok := t.session.column(name)
		key := name
		if book && ok && col != ignored {
			key = columnNames[col]
		}
		found := nameProblem(i, name, seen[key] && (!book || ok && col != ignored))
		if book && !ok && found == nil {
			found = []problem{unknownColumn(name)}
			if listed {
				found[0].reason = strings.Replace(found[0].reason, allColumns, "", 1)
			}
			listed = listed || strings.Contains(found[0].reason, allColumns)
		}
		problems = append(problems, found...)
		seen[key] = true
		t.header, t.column = append(t.header, strings.Clone(name)), append(t.column, col)
	}
	if book && len(names) == 1 && len(problems) > 0 && problems[0].column == names[0] {
		return []problem{{"", "the header is a single column: it contains no " + strconv.QuoteRune(t.csv.Comma) +
			", and no ; tab or | between known names; the file's first line must have the column names"}}
	}
	for _, name := range want {
		if !seen[name] {
			problems = append(problems, problem{name, "is missing from the header"})
		}
	}
	return problems
}

// raw is the text of the row at hand, without the line break.
func (t *table) raw() string {
	return strings.Trim(string(t.src.upTo(t.csv.InputOffset())), "\r\n")
}

// AsCell returns a text as a CSV cell that no spreadsheet evaluates as a formula. It puts a '
// before a text that begins like a formula, or that already begins with ' before such a text. A
// plain number, even a negative one, stays unchanged. Read removes the ' again, so every text
// survives a round trip.
func AsCell(text string) string {
	if isFormula(text) {
		return "'" + text
	}
	return text
}

func ofCell(cell string) string {
	if text, ok := strings.CutPrefix(cell, "'"); ok && isFormula(text) {
		return text
	}
	return cell
}

// plainNumber is what no spreadsheet takes for a formula, whatever its sign.
var plainNumber = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?$`)

// isFormula reports whether the text begins like a formula, behind any number of '.
func isFormula(text string) bool {
	text = strings.TrimLeft(text, "'")
	first, _ := utf8.DecodeRuneInString(text)
	return text != "" && strings.ContainsRune("=+-@\t\r＝＋－＠", first) && !plainNumber.MatchString(text)
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
		t.rejectFile(t.src.line, problem{"", err.Error()})
		return false
	}
	if !slices.ContainsFunc(fields, func(f string) bool { return strings.TrimSpace(f) != "" }) {
		return true // commas and spaces alone, which spreadsheets write
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
			if row[col] = ofCell(fields[i]); col != address { // whose every text survives an export
				row[col] = trimmed(row[col])
			}
		}
	}
	if t.prices != nil {
		p := t.price(line, &row)
		if len(t.problems) > 0 {
			return t.rejectRow(line, t.raw(), t.problems)
		}
		return t.yield(Record{Line: line, Price: p}, nil)
	}
	n := t.subscription(line, &row)
	if problems := t.checked(t.problems, n); len(problems) > 0 {
		raw := t.raw()
		if method := row[paymentMethod]; secret.HasCardInMethod(method) {
			raw = strings.ReplaceAll(secret.MaskMethod(raw), method, secret.MaskMethod(method))
		}
		return t.rejectRow(line, raw, problems)
	}
	return t.yield(Record{Line: line, Subscription: n}, nil)
}

func (t *table) miscount(fields int) problem {
	p := problem{"", "has " + strconv.Itoa(fields) + " fields, but the header has " + strconv.Itoa(len(t.header))}
	if fields < len(t.header) {
		p.column = t.header[fields]
	} else {
		p.reason += "; put a field that contains the separator " + strconv.QuoteRune(t.csv.Comma) + " in quotes"
	}
	return p
}

func quoteReason(err *csv.ParseError) string {
	at := "at byte " + strconv.Itoa(err.Column)
	if err.Line != err.StartLine {
		at += " of line " + strconv.Itoa(err.Line)
	}
	if err.Err == csv.ErrBareQuote {
		return `a " ` + at + ` is in a field without quotes; put the field in quotes and double the quotes inside it`
	}
	return `a quoted field does not end correctly ` + at +
		`; double the quotes inside it, and put the separator or the end of the line after the closing quote`
}

// named is the line with which Excel names the separator, which leaves the csv.Reader an empty line.
var named = regexp.MustCompile(`^("?sep=([,;\t|])"?)\r?\n`)

// trimmed returns the text without the spaces, and the marks without a width, around it.
func trimmed(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '\u200b' || r == '\ufeff' })
}

// separators are the separators of columns that are detected.
const separators = ",;\t|"

// separatorOf returns the separator that gives a header the most known names; a comma if none does.
func separatorOf(head string) rune {
	best, most := ',', 0
	for _, separator := range separators {
		known := 0
		for _, name := range headerNames(head, string(separator)) {
			if _, ok := columnNamed(name); ok {
				known++
			}
		}
		if known > most {
			best, most = separator, known
		}
	}
	return best
}

func headerNames(head, separator string) (names []string) {
	first, _, _ := strings.Cut(strings.TrimLeft(head, "\r\n"), "\n")
	for name := range strings.SplitSeq(first, separator) {
		names = append(names, strings.Trim(name, "\" \t\r"))
	}
	return names
}

// isSampleHeader reports whether the first line names the recurring-payments table's keys.
func isSampleHeader(text []byte) bool {
	names := headerNames(string(text), ",")
	return slices.Contains(names, schema.PK) && slices.Contains(names, schema.SK)
}

// nameProblem returns the problem of a name in any header, if there is one.
func nameProblem(i int, name string, twice bool) []problem {
	switch {
	case name == "":
		return []problem{{"", "column " + strconv.Itoa(i+1) + " of the header has no name"}}
	case secret.HasCardNumber(name):
		return []problem{{name, cardReason(name)}}
	case twice:
		return []problem{{name, "appears twice in the header"}}
	}
	return nil
}

// sample reads one row as an item, and yields its record.
func (t *table) sample(line int, fields []string) bool {
	shown := map[string]any{}
	attributes := map[string]attribute{}
	reason := ""
	for i, text := range fields {
		if text == "" {
			continue
		}
		text = strings.Clone(text) // a part of the row would keep the whole row in memory
		name := t.header[i]
		a := attribute{S: &text}
		shown[name] = text
		if name == schema.PaymentDetails {
			a.S = nil
			if err := json.Unmarshal([]byte(text), &a.M); err != nil {
				reason = `must be a map in DynamoDB JSON, such as {"PaymentMethod": {"S": "pm_1"}}`
			}
			if v, ok := decoded(text); ok {
				shown[name] = v // in which a default-card can be dropped
			}
		}
		attributes[name] = a
	}
	text := string(appendJSON(nil, maskValue(shown, maskText)))
	if reason != "" {
		return t.rejectRow(line, text, []problem{{schema.PaymentDetails, reason}})
	}
	return t.items.yieldItem(line, newItem(attributes), text)
}
