package secret

import (
	"strings"
	"unicode/utf8"
)

// A span is the part text[from:to] of a text.
type span struct{ from, to int }

// A group is an unbroken run of digits.
type group struct {
	span
	first, n int // its digits, in its sequence's
}

// A sequence is a list of groups with one separator between neighbours.
type sequence struct {
	groups []group
	digits []byte // values
}

// find returns the spans of the card numbers of the text that have at least shortest digits.
func find(text string, shortest int) (spans []span) {
	if len(text) < shortest {
		return nil
	}
	var groups [8]group
	var digits [2 * maxDigits]byte
	s := sequence{groups[:0], digits[:0]}
	for i := 0; i < len(text); {
		class, _, size := read(text[i:])
		if class != digit {
			i += size
			continue
		}
		from := i
		i = s.read(text, i)
		if len(s.digits) < shortest || isTelephone(text[:from], len(s.digits)) {
			continue
		}
		spans = s.cards(spans, text, shortest)
	}
	return spans
}

// read takes the sequence that begins at text[i], and returns the end of its last group.
func (s *sequence) read(text string, i int) (end int) {
	s.groups, s.digits = s.groups[:0], s.digits[:0]
	for i < len(text) {
		g := group{span: span{i, i}, first: len(s.digits)}
		for i < len(text) {
			class, value, size := read(text[i:])
			if class != digit {
				break
			}
			s.digits = append(s.digits, value)
			i += size
		}
		if g.to, g.n = i, len(s.digits)-g.first; g.n == 0 {
			break
		}
		s.groups, end = append(s.groups, g), i
		if i == len(text) {
			break
		}
		class, _, size := read(text[i:])
		if class != space && class != hyphen && class != point {
			break
		}
		i += size
	}
	return end
}

// maxTelephone is the most digits of an international telephone number (ITU-T E.164).
const maxTelephone = 15

// isTelephone reports whether so many digits after the text are a telephone number with a +.
func isTelephone(text string, digits int) bool {
	n := len(text) - 1
	if n < 0 || text[n] != '+' || digits > maxTelephone {
		return false
	}
	c, _ := before(text[:n])
	return c != digit && c != letter
}

// cards appends the spans of the card numbers, which are made of whole groups.
func (s *sequence) cards(spans []span, text string, shortest int) []span {
	for i, first := range s.groups {
		n := 0
		for j, last := range s.groups[i:] {
			if n += last.n; n > maxDigits {
				break
			}
			digits, at := s.digits[first.first:first.first+n], span{first.from, last.to}
			if n >= shortest && isGrouped(s.groups[i:i+j+1]) && isIssued(digits) && luhn(digits) && isWord(text, at) {
				spans = append(spans, at)
			}
		}
	}
	return spans
}

// A class is the part of a character in a card number's word.
type class byte

const (
	other  class = iota // ends a word
	digit               // ASCII or full-width
	letter              // makes a word an id: ASCII letters and the underscore
	space               // separates groups of digits, and ends a word
	hyphen              // separates groups, and joins the parts of an id or a UUID
	point               // separates groups, and joins the parts of a decimal number
)

// read returns the class of the text's first character, its value if it is a digit, and its size in
// bytes; other if the text is empty.
func read(text string) (c class, value byte, size int) {
	r, size := utf8.DecodeRuneInString(text)
	c, value = classOf(r)
	return c, value, size
}

func classOf(r rune) (c class, value byte) {
	switch {
	case r >= '0' && r <= '9':
		return digit, byte(r - '0')
	case r >= '０' && r <= '９':
		return digit, byte(r - '０')
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '_':
		return letter, 0
	}
	switch r {
	case ' ', '\u00a0', '\u2007', '\u2009', '\u202f', '\u3000':
		return space, 0
	case '-', '\u2010', '\u2011', '\u2012', '\u2013', '\u2212', '－':
		return hyphen, 0
	case '.', '．':
		return point, 0
	}
	return other, 0
}

// before returns the class of the last character of the text; other if the text is empty.
func before(text string) (c class, rest string) {
	r, size := utf8.DecodeLastRuneInString(text)
	c, _ = classOf(r)
	return c, text[:len(text)-size]
}

// after returns the class of the first character of the text; other if the text is empty.
func after(text string) (c class, rest string) {
	c, _, size := read(text)
	return c, text[size:]
}

// isWord reports whether text[from:to] is a whole word: no letter touches it, no hyphen joins
// it to a letter or a digit, and no point joins it to a digit.
func isWord(text string, at span) bool {
	left, rest := before(text[:at.from])
	beyond, _ := before(rest)
	if left == letter && strings.HasSuffix(rest, `\`) {
		left = other // an escape: \n and \t, as %q and JSON write white space
	}
	right, rest := after(text[at.to:])
	next, _ := after(rest)
	return !joins(left, beyond) && !joins(right, next)
}

// joins reports whether a neighbour of digits, with the character beyond it, makes them a part
// of a longer word.
func joins(neighbour, beyond class) bool {
	switch neighbour {
	case letter:
		return true
	case hyphen:
		return beyond == digit || beyond == letter
	case point:
		return beyond == digit
	}
	return false
}
