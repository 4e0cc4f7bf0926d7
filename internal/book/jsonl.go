package book

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"

	"github.com/duesday/duesday/internal/secret"
)

func (s *session) readJSONLines(src *source) {
	br := bufio.NewReaderSize(src.r, maxRow) // the source's own bookkeeping is not needed
	for line := 1; ; line++ {
		b, err := br.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			err = errTooLong
		}
		if err != nil && err != io.EOF {
			s.rejectFile(line, err.Error())
			return
		}
		b = bytes.Trim(b, jsonSpace)
		if line == 1 && len(b) > 0 && b[0] == '[' {
			s.rejectFile(line, "the file is a JSON array: want one object a line, without brackets and commas around them")
			return
		}
		if len(b) > 0 && !s.jsonLine(line, b) || err == io.EOF {
			return
		}
	}
}

// jsonLine yields the row of a line.
func (s *session) jsonLine(line int, b []byte) bool {
	text := string(b)
	if b[0] != '{' || !json.Valid(b) {
		return s.rejectRow(line, secret.MaskMethod(unescaped(text)), []problem{{"", syntaxReason(b)}})
	}
	var row texts
	var seen columnSet
	var problems []problem
	for name, value := range members(text) {
		col, ok := columnNamed(name)
		switch {
		case col == ignored:
		case !ok:
			problems = append(problems, strange(name, value))
		case seen.has(col):
			problems = append(problems, problem{name, "is twice in the line"})
		default:
			seen.add(col)
			var reason string
			if row[col], reason = fieldText(value); reason != "" {
				problems = append(problems, problem{name, reason})
			}
		}
	}
	n := s.subscription(line, &row)
	if problems = merge(problems, s.problems); len(problems) > 0 {
		return s.rejectRow(line, maskObject(text), problems)
	}
	return s.yield(Record{Line: line, Subscription: n}, nil)
}

// strange is the problem of an unknown member. A card number in it is the worse problem, and told
// instead.
func strange(name, value string) problem {
	value = unescaped(value)
	for _, text := range [...]string{name, value} {
		if secret.HasCardNumber(text) {
			return problem{name, cardReason(text)}
		}
	}
	return unknownColumn(name)
}

// fieldText returns a JSON value as the text of a CSV field, or the reason why it has none. Numbers
// keep every written digit.
func fieldText(value string) (text, reason string) {
	switch value[0] {
	case '"':
		return stringText(value), ""
	case 'n':
		return "", ""
	case '{', '[', 't', 'f':
		if value = unescaped(value); secret.HasCardNumber(value) {
			return "", cardReason(value)
		}
		return "", "want a string or a number"
	default:
		return value, ""
	}
}

// merge returns the problems of both lists, the first of each column.
func merge(first, more []problem) []problem {
	if len(first) == 0 {
		return more
	}
	named := make(map[string]bool, len(first))
	for _, p := range first {
		named[p.column] = true
	}
	for _, p := range more {
		if !named[p.column] {
			first = append(first, p)
		}
	}
	return first
}

func syntaxReason(b []byte) string {
	var any json.RawMessage
	if err := json.Unmarshal(b, &any); err != nil {
		return "want one JSON object a line: " + err.Error()
	}
	return "want one JSON object a line, not another value"
}
