package book

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/schema"
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
			s.rejectFile(line, problem{"", err.Error()})
			return
		}
		b = bytes.Trim(b, jsonSpace)
		if line == 1 && len(b) > 0 && b[0] == '[' {
			s.rejectFile(line, problem{"",
				"the file is a JSON array; write one object per line, without brackets and commas around them"})
			return
		}
		if len(b) > 0 && !s.jsonLine(line, b) || err == io.EOF {
			return
		}
	}
}

func (s *session) jsonLine(line int, b []byte) bool {
	text := string(b)
	if b[0] != '{' || !json.Valid(b) {
		return s.rejectRow(line, secret.MaskMethod(unescaped(text)), []problem{{"", syntaxReason(b)}})
	}
	var row texts
	var seen columnSet
	var problems []problem
	for name, value := range members(text) {
		col, ok := s.column(name)
		switch {
		case col == ignored:
		case !ok:
			problems = append(problems, strange(name, value))
		case seen[col]:
			problems = append(problems, problem{name, "appears twice in the line"})
		default:
			seen[col] = true
			var reason string
			if row[col], reason = fieldText(value); reason != "" {
				problems = append(problems, problem{name, reason})
			}
		}
	}
	n := s.subscription(line, &row)
	if problems = s.checked(merge(problems, s.problems), n); len(problems) > 0 {
		return s.rejectRow(line, maskObject(text), problems)
	}
	return s.yield(Record{Line: line, Subscription: n}, nil)
}

// strange is the problem of an unknown member, or of a card number in it.
func strange(name, value string) problem {
	value = unescaped(value)
	for _, text := range [...]string{name, value} {
		if secret.HasCardNumber(text) {
			return problem{name, cardReason(text)}
		}
	}
	return unknownColumn(name)
}

// fieldText returns a JSON value as a CSV field's text, numbers as written, or why it has none.
func fieldText(value string) (text, reason string) {
	switch value[0] {
	case '"':
		if json.Unmarshal([]byte(value), &text) != nil {
			text = "\uFFFD" // unreachable: the value is valid
		}
		return text, ""
	case 'n':
		return "", ""
	case '{', '[', 't', 'f':
		if value = unescaped(value); secret.HasCardNumber(value) {
			return "", cardReason(value)
		}
		return "", "must be a string or a number"
	default:
		return value, ""
	}
}

// merge returns the problems of both lists, the first of each column.
func merge(first, more []problem) []problem {
	n := len(first)
	for _, p := range more {
		if !slices.ContainsFunc(first[:n], func(q problem) bool { return q.column == p.column }) {
			first = append(first, p)
		}
	}
	return first
}

func syntaxReason(b []byte) string {
	var any json.RawMessage
	if err := json.Unmarshal(b, &any); err != nil {
		return "must be one JSON object per line: " + err.Error()
	}
	return "must be one JSON object per line, not another value"
}

const jsonSpace = " \t\r\n"

// members yields the name and the raw value of each member of a JSON object, in order and with
// repetitions. The text must be valid JSON; members yields nothing of another value.
func members(object string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		dec := json.NewDecoder(strings.NewReader(object))
		if open, err := dec.Token(); err != nil || open != json.Delim('{') {
			return
		}
		for dec.More() {
			name, err := dec.Token()
			var value json.RawMessage
			if err != nil || dec.Decode(&value) != nil || !yield(name.(string), string(value)) {
				return
			}
		}
	}
}

// escape is an escape of a JSON text, with the digits of a \u in its group.
var escape = regexp.MustCompile(`(?s)\\(u[0-9a-fA-F]{4}|.)`)

// unescaped replaces the \uXXXX of a JSON text by their characters. A card number can then neither
// hide in them nor run together with their digits. The result is for people, and may not be JSON.
func unescaped(text string) string {
	return escape.ReplaceAllStringFunc(text, func(escaped string) string {
		if r, err := strconv.ParseUint(escaped[2:], 16, 16); err == nil {
			return string(rune(r)) // half of a pair becomes U+FFFD
		}
		return escaped
	})
}

// maskObject returns a valid JSON object with every text in it masked. Members keep their order and
// repetitions; a masked number becomes a string.
func maskObject(object string) string {
	b := []byte{'{'}
	for name, value := range members(object) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(appendJSON(b, maskText(name)), ':')
		v, _ := decoded(value)
		b = appendJSON(b, maskValue(v, maskFor(name, maskText)))
	}
	return string(append(b, '}'))
}

// decoded returns a JSON value, if it is one, with numbers as written: a card number stays one.
func decoded(text string) (v any, ok bool) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	err := dec.Decode(&v)
	return v, err == nil && !dec.More()
}

// maskValue masks every text in a JSON value, and drops every default-card.
func maskValue(value any, mask func(string) string) any {
	switch v := value.(type) {
	case string:
		return mask(v)
	case json.Number:
		if masked := mask(v.String()); masked != v.String() {
			return masked
		}
	case []any:
		for i := range v {
			v[i] = maskValue(v[i], mask)
		}
	case map[string]any:
		masked := make(map[string]any, len(v))
		for name, inner := range v {
			if !isDefaultCard(name) {
				masked[maskText(name)] = maskValue(inner, maskFor(name, mask))
			}
		}
		return masked
	}
	return value
}

// maskFor returns the mask of a member, for the name and the mask of its object.
func maskFor(name string, mask func(string) string) func(string) string {
	if col, ok := columnNamed(name); ok && col == paymentMethod || name == schema.PaymentMethod {
		return func(text string) string { return secret.MaskMethod(maskText(text)) }
	}
	return mask
}

// maskText also replaces characters whose escape in JSON ends in digits.
func maskText(text string) string {
	return secret.MaskCards(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' {
			return '\uFFFD'
		}
		return r
	}, text))
}

// appendJSON appends a value in JSON, with & < and > as they are.
func appendJSON(b []byte, value any) []byte {
	var s strings.Builder
	enc := json.NewEncoder(&s)
	enc.SetEscapeHTML(false)
	if enc.Encode(value) != nil {
		return append(b, "null"...) // unreachable: it came from JSON, or is a string
	}
	return append(b, strings.TrimSuffix(s.String(), "\n")...)
}
