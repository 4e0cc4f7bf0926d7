package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/tracking"
)

// maxNesting is the deepest nesting of objects and lists. Stripe's is below 20.
const maxNesting = 500

// A jsonReader goes once through a valid JSON text, from value to value. A read of another type
// than the value's returns the zero value, and the reader goes on behind the value.
//
// It exists for speed: encoding/json checks a text fast, and is slow at a few members of unknown
// order and type.
type jsonReader struct {
	text []byte
	at   int
	deep bool // a skipped value is nested too deep
}

// read reads the value of a whole JSON text.
func read[T any](text []byte, value func(*jsonReader) T) (v T, err error) {
	r := &jsonReader{text: text}
	whole := json.Valid(text)
	if whole {
		v = value(r)
	}
	if !whole || r.deep {
		err = fmt.Errorf("%w: it is not whole, or no JSON, or nested too deep", tracking.ErrBody)
	}
	return v, err
}

// peek skips white space, and the commas and colons that a valid text has at the right places. It
// returns the next character; 0 at the end.
func (r *jsonReader) peek() byte {
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; c {
		case ' ', '\n', '\t', '\r', ',', ':':
		default:
			return c
		}
	}
	return 0
}

// members yields the names of the next value's members, if it is an object. The loop may take the
// member's value, or else members skips it. The loop must not end early. A name is valid until the
// next one.
func (r *jsonReader) members() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if r.peek() != '{' {
			r.skip()
			return
		}
		for r.at++; r.peek() != '}'; {
			name := r.quoted()
			if bytes.IndexByte(name, '\\') >= 0 {
				name = []byte(unquote(name))
			}
			r.peek()
			if begin := r.at; yield(name) && r.at == begin {
				r.skip()
			}
		}
		r.at++
	}
}

// pick takes the next value and returns the one member of it, if it is an object.
func pick[T any](r *jsonReader, name string, take func(*jsonReader) T) (v T) {
	for member := range r.members() {
		if string(member) == name {
			v = take(r)
		}
	}
	return v
}

// elements yields once for every element of the next value, if it is a list. The rules of members
// hold.
func (r *jsonReader) elements() func(func() bool) {
	return func(yield func() bool) {
		if r.peek() != '[' {
			r.skip()
			return
		}
		for r.at++; r.peek() != ']'; {
			if begin := r.at; yield() && r.at == begin {
				r.skip()
			}
		}
		r.at++
	}
}

// skip skips the next value.
func (r *jsonReader) skip() {
	for depth := 0; ; {
		switch r.peek() {
		case '{', '[':
			depth++
			r.at++
		case '}', ']':
			depth--
			r.at++
		case '"':
			r.quoted()
		default:
			r.bare()
		}
		if r.deep = r.deep || depth > maxNesting; depth == 0 {
			return
		}
	}
}

// quoted takes a text and returns it without its quotation marks, as it is written.
func (r *jsonReader) quoted() []byte {
	begin := r.at + 1
	for r.at = begin; r.text[r.at] != '"'; r.at++ {
		if r.text[r.at] == '\\' {
			r.at++
		}
	}
	r.at++
	return r.text[begin : r.at-1]
}

// bare takes a number, true, false or null.
func (r *jsonReader) bare() []byte {
	rest := r.text[r.at:]
	if end := bytes.IndexAny(rest, ",]} \n\t\r"); end >= 0 {
		rest = rest[:end]
	}
	r.at += len(rest)
	return rest
}

func unquote(inner []byte) (s string) {
	_ = json.Unmarshal(slices.Concat([]byte{'"'}, inner, []byte{'"'}), &s) // the text is valid
	return s
}

// flag takes the next value if it is true or false, and then returns known as true.
func (r *jsonReader) flag() (is, known bool) {
	if c := r.peek(); c != 't' && c != 'f' {
		return false, false
	}
	return len(r.bare()) == len("true"), true
}

// str takes the next value if it is a text.
func (r *jsonReader) str() string {
	if r.peek() != '"' {
		return ""
	}
	inner := r.quoted()
	if bytes.IndexByte(inner, '\\') >= 0 || !utf8.Valid(inner) {
		return unquote(inner)
	}
	return string(inner)
}

// number takes the next value if it is a number. It is 0 if the number is not written as a whole
// one or does not fit.
func (r *jsonReader) number() int64 {
	if c := r.peek(); c != '-' && (c < '0' || c > '9') {
		return 0
	}
	n, err := strconv.ParseInt(string(r.bare()), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
