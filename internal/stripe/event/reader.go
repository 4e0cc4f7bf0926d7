package event

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"unicode/utf8"
)

// maxNesting is the deepest nesting of objects and lists. Stripe's is below 20.
const maxNesting = 500

// A jsonReader goes once through a JSON text, from value to value. A read of another type than the
// value's returns the zero value (into leaves what it was given), and the reader goes on behind the
// value. It checks the whole text, as encoding/json would.
//
// It exists for speed: encoding/json is slow at a few members of unknown order and type.
type jsonReader struct {
	text   []byte
	at     int
	within int  // nesting at this place
	broken bool // no JSON, or nested too deep: no more values follow
}

func (r *jsonReader) fail() {
	r.broken, r.at = true, len(r.text)
}

// peek skips white space and returns the next character; 0 at the end.
func (r *jsonReader) peek() byte {
	text, i := r.text, r.at
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	if r.at = i; i < len(text) {
		return text[i]
	}
	return 0
}

// is takes the character if it is the next one.
func (r *jsonReader) is(c byte) bool {
	if r.peek() != c || r.at == len(r.text) {
		return false
	}
	r.at++
	return true
}

// end reports whether the whole text was read and is JSON.
func (r *jsonReader) end() bool {
	r.peek()
	return !r.broken && r.at == len(r.text)
}

// members yields the names of the next value's members, if it is an object. The loop may take the
// member's value, or else members skips it. The loop must not end early. A name is valid until the
// next one.
func (r *jsonReader) members() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) { r.inside('{', '}', yield) }
}

// member yields for each member of the name, of which JSON allows several. The rules of members hold.
func (r *jsonReader) member(wanted string) func(func() bool) {
	return func(yield func() bool) {
		for name := range r.members() {
			if string(name) == wanted && !yield() {
				return
			}
		}
	}
}

// elements yields for each element of the next value, if it is a list. The rules of members hold.
func (r *jsonReader) elements() func(func() bool) {
	return func(yield func() bool) { r.inside('[', ']', func([]byte) bool { return yield() }) }
}

// inside lets look take each value in an object or list, or skips it. A list has no names.
func (r *jsonReader) inside(open, end byte, look func(name []byte) bool) {
	if r.peek() != open {
		r.skip()
		return
	}
	r.at++
	if r.within++; r.within > maxNesting {
		r.fail()
	}
	for more := !r.is(end); more && !r.broken; more = r.another(end) {
		var name []byte
		if open == '{' {
			if name = r.name(); !r.is(':') {
				r.fail()
				return
			}
		}
		r.peek()
		begin := r.at
		if look != nil && !look(name) {
			r.fail()
			return
		}
		if r.at == begin {
			r.skip()
		}
	}
	r.within--
}

// another reports whether one more member or element follows. If none does it takes the end.
func (r *jsonReader) another(end byte) bool {
	if r.is(',') {
		return true
	}
	if !r.is(end) {
		r.fail()
	}
	return false
}

func (r *jsonReader) skip() {
	switch c := r.peek(); c {
	case '{':
		r.inside('{', '}', nil) // without calls of a loop's body: most values are skipped
	case '[':
		r.inside('[', ']', nil)
	case '"':
		r.quoted()
	case 't':
		r.literal("true")
	case 'f':
		r.literal("false")
	case 'n':
		r.literal("null")
	default:
		r.digits()
	}
}

func (r *jsonReader) literal(word string) bool {
	if len(r.text)-r.at < len(word) || string(r.text[r.at:r.at+len(word)]) != word {
		r.fail()
		return false
	}
	r.at += len(word)
	return true
}

// null takes the next value if it is null.
func (r *jsonReader) null() bool { return r.peek() == 'n' && r.literal("null") }

// flag takes the next value if it is true or false, and then returns known as true.
func (r *jsonReader) flag() (is, known bool) {
	switch r.peek() {
	case 't':
		known = r.literal("true")
		return known, known
	case 'f':
		return false, r.literal("false")
	}
	return false, false
}

// str takes the next value if it is a text.
func (r *jsonReader) str() string {
	if r.peek() != '"' {
		return ""
	}
	begin := r.at
	inner := r.quoted()
	if utf8.Valid(inner) && bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	_ = json.Unmarshal(r.text[begin:r.at], &s) // quoted has checked it
	return s
}

// name takes a text. It copies a text with escapes alone.
func (r *jsonReader) name() []byte {
	if r.peek() != '"' {
		r.fail()
		return nil
	}
	begin := r.at
	inner := r.quoted()
	if bytes.IndexByte(inner, '\\') >= 0 {
		r.at = begin
		return []byte(r.str())
	}
	return inner
}

// number takes the next value if it is a number. It is 0 if the number is not written as a whole
// one or is larger than any amount.
func (r *jsonReader) number() int64 {
	if c := r.peek(); c != '-' && (c < '0' || c > '9') {
		return 0
	}
	n, err := strconv.ParseInt(string(r.digits()), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// quoted skips a text and returns what is between its quotes.
func (r *jsonReader) quoted() []byte {
	text, begin := r.text, r.at
	i, escaped := begin+1, false
	for ; i < len(text) && text[i] != '"' && text[i] >= ' '; i++ {
		if text[i] == '\\' {
			escaped = true
			i++ // a quote behind it is not the end
		}
	}
	if i >= len(text) || text[i] != '"' || escaped && !json.Valid(text[begin:i+1]) {
		r.fail()
		return nil
	}
	r.at = i + 1
	return text[begin+1 : i]
}

// digits skips a number and returns it.
func (r *jsonReader) digits() []byte {
	begin, plain := r.at, true
	for ; r.at < len(r.text); r.at++ {
		if c := r.text[r.at]; c >= '0' && c <= '9' {
			continue
		} else if c != '+' && c != '-' && c != '.' && c != 'e' && c != 'E' {
			break
		}
		plain = false
	}
	digits := r.text[begin:r.at]
	if plain = plain && len(digits) > 0 && (digits[0] != '0' || len(digits) == 1); !plain && !json.Valid(digits) {
		r.fail()
		return nil
	}
	return digits
}

// into takes the next value as encoding/json does, for rare parts, and leaves out misfits.
func (r *jsonReader) into(v any) {
	r.peek()
	begin := r.at
	if r.skip(); !r.broken {
		_ = json.Unmarshal(r.text[begin:r.at], v)
	}
}
