package event

import (
	"encoding/json"
	"iter"
	"unicode/utf8"
)

// maxNesting is the deepest nesting of objects and lists. Stripe's is below 20.
const maxNesting = 500

// A jsonReader goes once through a JSON text, from value to value. A read of another type than the
// value's returns the zero value, and the reader goes on behind the value. It checks the whole
// text, as encoding/json would.
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
	return func(yield func([]byte) bool) {
		if r.peek() != '{' {
			r.skip()
			return
		}
		r.enter()
		for more := !r.is('}'); more && !r.broken; more = r.another('}') {
			if r.peek() != '"' {
				r.fail()
				return
			}
			name := r.name()
			if !r.is(':') {
				r.fail()
				return
			}
			if !r.each(func() bool { return yield(name) }) {
				return
			}
		}
		r.within--
	}
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

// elements yields once for every element of the next value, if it is a list. The rules of members
// hold.
func (r *jsonReader) elements() func(func() bool) {
	return func(yield func() bool) {
		if r.peek() != '[' {
			r.skip()
			return
		}
		r.enter()
		for more := !r.is(']'); more && !r.broken; more = r.another(']') {
			if !r.each(yield) {
				return
			}
		}
		r.within--
	}
}

// enter takes the opening bracket of an object or a list.
func (r *jsonReader) enter() {
	r.at++
	if r.within++; r.within > maxNesting {
		r.fail()
	}
}

// each lets look take the value, or else skips it.
func (r *jsonReader) each(look func() bool) bool {
	r.peek()
	begin := r.at
	if !look() {
		r.fail()
		return false
	}
	if r.at == begin {
		r.skip()
	}
	return !r.broken
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

// skip skips the next value.
func (r *jsonReader) skip() {
	switch c := r.peek(); c {
	case '{':
		for range r.members() {
		}
	case '[':
		for range r.elements() {
		}
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
	plain := r.quoted()
	if r.broken {
		return ""
	}
	if inner := r.text[begin+1 : r.at-1]; plain && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	if json.Unmarshal(r.text[begin:r.at], &s) != nil {
		r.fail() // unreachable: quoted accepts the same texts as encoding/json
	}
	return s
}

// name takes a text. It copies a text with escapes alone.
func (r *jsonReader) name() []byte {
	begin := r.at
	if plain := r.quoted(); !plain && !r.broken {
		r.at = begin
		return []byte(r.str())
	}
	if r.broken {
		return nil
	}
	return r.text[begin+1 : r.at-1]
}

// number takes the next value if it is a number. It is 0 if the number is not written as a whole
// one or is larger than any amount.
func (r *jsonReader) number() int64 {
	if c := r.peek(); c != '-' && (c < '0' || c > '9') {
		return 0
	}
	begin := r.at
	r.digits()
	if r.broken {
		return 0
	}
	return whole(r.text[begin:r.at])
}
