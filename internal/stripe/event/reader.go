package event

import (
	"encoding/json"
	"iter"
	"unicode/utf8"
)

// maxNesting is how deep objects and lists may be in one another. Stripe's are below 20.
const maxNesting = 500

// A jsonReader goes once through a JSON text, from value to value. Whoever asks for a value
// of another type than is there gets the zero value, and the reader goes on behind it. All of
// the text is checked on the way, as encoding/json would.
//
// It is there for speed, which encoding/json has not when it has to look for a few members of
// which it does not know in what order they come and of what type they are.
type jsonReader struct {
	text   []byte
	at     int
	within int  // objects and lists
	broken bool // it is no JSON, or nested too deep: there are no more values
}

func (r *jsonReader) fail() {
	r.broken, r.at = true, len(r.text)
}

// peek goes to the next character that is no white space, and returns it; 0 at the end.
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

// Is takes the character if it is the next one.
func (r *jsonReader) is(c byte) bool {
	if r.peek() != c || r.at == len(r.text) {
		return false
	}
	r.at++
	return true
}

// end reports whether the text was JSON, and nothing is left of it.
func (r *jsonReader) end() bool {
	r.peek()
	return !r.broken && r.at == len(r.text)
}

// members yields the names of the next value's members, if it is an object. The loop may take
// the member's value; what it does not take is passed over. It must not be left early. A name
// Is good until the next one.
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

// elements yields once for every element of the next value, if it is a list; as members does.
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

// enter takes the bracket that begins an object or a list.
func (r *jsonReader) enter() {
	r.at++
	if r.within++; r.within > maxNesting {
		r.fail()
	}
}

// each has the value looked at, and passes over it where that did not.
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

// another reports whether one more member or element follows, or else takes the end.
func (r *jsonReader) another(end byte) bool {
	if r.is(',') {
		return true
	}
	if !r.is(end) {
		r.fail()
	}
	return false
}

// skip passes over the next value.
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

// flag takes the next value if it is true or false; known says whether it was.
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
		r.fail() // unreachable: quoted lets through what encoding/json does
	}
	return s
}

// name takes a text, and copies it only if it has to.
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

// number takes the next value if it is a number: 0 where it is not written as a whole one, or
// Is larger than any amount could be.
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
