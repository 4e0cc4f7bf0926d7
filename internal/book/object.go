package book

import (
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
)

const jsonSpace = " \t\r\n"

// members yields the name and the raw value of each member of a JSON object, in order and with
// repetitions. The text must be valid JSON; members yields nothing of another value.
func members(object string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		rest, ok := strings.CutPrefix(strings.TrimLeft(object, jsonSpace), "{")
		for ok {
			rest = strings.TrimLeft(rest, jsonSpace+",")
			if rest == "" || rest[0] != '"' {
				return
			}
			end := valueEnd(rest)
			name := stringText(rest[:end])
			rest = strings.TrimLeft(rest[end:], jsonSpace+":")
			end = valueEnd(rest)
			if !yield(name, rest[:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}

// valueEnd returns the length of the JSON value at the beginning of the text.
func valueEnd(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return min(i+1, len(text))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// stringText returns the text of a JSON string.
func stringText(quoted string) string {
	if !strings.Contains(quoted, `\`) {
		return quoted[1 : len(quoted)-1]
	}
	var text string
	if json.Unmarshal([]byte(quoted), &text) != nil {
		return "\uFFFD" // unreachable: the value is valid
	}
	return text
}

// unescaped replaces the \uXXXX of a JSON text by their characters. A card number can then neither
// hide in them nor run together with their digits. The result is for people, and may not be JSON.
func unescaped(text string) string {
	const length = len(`\u0000`)
	if !strings.Contains(text, `\u`) {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		if text[i+1] == 'u' && i+length <= len(text) {
			if r, err := strconv.ParseUint(text[i+2:i+length], 16, 16); err == nil {
				out = utf8.AppendRune(out, rune(r)) // half of a pair becomes U+FFFD
				i += length - 1
				continue
			}
		}
		out = append(out, text[i], text[i+1])
		i++
	}
	return string(out)
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
		var v any
		dec := json.NewDecoder(strings.NewReader(value))
		dec.UseNumber()
		if dec.Decode(&v) != nil {
			v = nil // unreachable: the value is valid
		}
		b = appendJSON(b, maskValue(v, maskFor(name, maskText)))
	}
	return string(append(b, '}'))
}

// maskValue masks every text in a JSON value. It drops every default-card, which is not shown even
// masked.
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
	if name == columnNames[paymentMethod] || name == schema.PaymentMethod {
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
