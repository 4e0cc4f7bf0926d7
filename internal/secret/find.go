package secret

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
