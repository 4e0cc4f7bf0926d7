package book

import (
	"encoding/json"
	"iter"
	"strings"
)

const jsonSpace = " \t\r\n"

// members yields the name and the raw value of each member of a JSON object, in order and
// with repetitions. The text must be a valid JSON value; nothing is yielded when it is no
// object.
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

// valueEnd returns the length of the JSON value that the text begins with.
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

// stringText returns what a JSON string says.
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

// plainDigits writes digits, spaces and hyphens that are escaped in JSON strings (\u0034)
// as themselves, so that a card number cannot hide from the mask. The text means the same.
func plainDigits(text string) string {
	const escape = `\u00`
	if !strings.Contains(text, escape) {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		if strings.HasPrefix(text[i:], escape) && i+6 <= len(text) {
			switch hi, lo := text[i+4], text[i+5]|0x20; {
			case hi == '3' && text[i+5] >= '0' && text[i+5] <= '9':
				out = append(out, text[i+5])
				i += 5
				continue
			case hi == '2' && lo == 'd', hi == '2' && text[i+5] == '0':
				out = append(out, map[byte]byte{'d': '-', '0' | 0x20: ' '}[lo])
				i += 5
				continue
			}
		}
		out = append(out, text[i], text[i+1])
		i++
	}
	return string(out)
}
