package secret

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The classes of characters around a card number.
const (
	digit  = `\p{Nd}` // a decimal digit of any script
	letter = `A-Za-z` // makes a word an id
	// space separates groups of digits, and ends a word. The invisible ones are among them.
	space  = ` \x{a0}\x{ad}\x{2000}-\x{200f}\x{202a}-\x{202f}\x{205f}\x{2060}\x{2066}-\x{2069}\x{3000}\x{feff}`
	hyphen = `\-\x{2010}-\x{2015}\x{2212}－_＿` // separates groups, and joins the parts of an id or a UUID
	point  = `.．\x{b7}\x{2022}`               // separates groups, and joins the parts of a decimal number
	slash  = `/／\x{2044}\x{2215}`             // separates groups, and ends a word
	weak   = `_＿` + slash                     // separates no two long groups: ids, names and dates do that

	separator = `(?: [` + hyphen + slash + `] |[` + space + hyphen + point + slash + `])`
)

var (
	oneDigit = regexp.MustCompile(digit)            // one digit
	group    = regexp.MustCompile(digit + `+`)      // an unbroken run of digits
	isWeak   = regexp.MustCompile(`[` + weak + `]`) // with weak separators
	// sequence is groups with one separator between neighbours.
	sequence = regexp.MustCompile(digit + `+(?:` + separator + digit + `+)*`)
	// longNumber is 13 to 19 digits and separators, and nothing else.
	longNumber = regexp.MustCompile(`^` + separator + `*(?:` + digit + separator + `*){13,19}$`)
	// plus is the sign before an international telephone number.
	plus = regexp.MustCompile(`(?:^|[^` + digit + letter + `_])\+$`)
	// joinedBefore is a neighbour of digits that makes them a part of a longer word: a letter, a hyphen
	// with a letter or a digit beyond it, a point with a digit beyond it. A letter behind a backslash is
	// an escape: \n and \t, as %q and JSON write white space.
	joinedBefore = regexp.MustCompile(`(?:(?:^|[^\\])[` + letter + `]|[` + letter + digit + `][` + hyphen + `]|` +
		digit + `[` + point + `])$`)
	// joinedAfter is the same after them, where nothing is an escape.
	joinedAfter = regexp.MustCompile(`^(?:[` + letter + `]|[` + hyphen + `][` + letter + digit + `]|` +
		`[` + point + `]` + digit + `)`)
)

// neighbours is enough bytes of a text for the last two characters.
const neighbours = 8

// maxTelephone is the most digits of an international telephone number (ITU-T E.164).
const maxTelephone = 15

// A span is the part text[from:to] of a text.
type span struct{ from, to int }

// find returns the spans of the card numbers of the text that have at least shortest digits. A card
// number is made of whole groups of a sequence, and is a whole word.
func find(text string, shortest int) (spans []span) {
	digits := 0
	for _, r := range text {
		if r = narrow(r); r >= '0' && r <= '9' {
			digits++
		}
	}
	if digits < shortest { // as most texts
		return nil
	}
	for _, at := range sequence.FindAllStringIndex(text, -1) {
		if at[1]-at[0] < shortest {
			continue
		}
		var groups []string
		var places []span
		digits = 0
		for _, g := range group.FindAllStringIndex(text[at[0]:at[1]], -1) {
			place := span{at[0] + g[0], at[0] + g[1]}
			places, groups = append(places, place), append(groups, strings.Map(narrow, text[place.from:place.to]))
			digits += len(groups[len(groups)-1])
		}
		if digits <= maxTelephone && plus.MatchString(text[max(0, at[0]-neighbours):at[0]]) {
			continue
		}
		for i, first := range places {
			for j, last := range places[i:] {
				of := groups[i : i+j+1]
				number, whole := strings.Join(of, ""), span{first.from, last.to}
				if len(number) > maxDigits {
					break
				}
				if len(number) >= shortest && isGrouped(of) && isIssued(number) && luhn(number) && isWord(text, whole) &&
					(len(of) != 2 || !isWeak.MatchString(text[whole.from:whole.to])) {
					spans = append(spans, whole)
				}
			}
		}
	}
	return spans
}

// narrow returns the ASCII digit of a decimal digit of any script, and any other character as it is.
func narrow(r rune) rune {
	if r < utf8.RuneSelf || !unicode.Is(unicode.Nd, r) {
		return r
	}
	zero := r // Unicode has the ten digits of a script in a row, and may have rows one after another
	for unicode.Is(unicode.Nd, zero-1) {
		zero--
	}
	return '0' + (r-zero)%10
}

// isWord reports whether the span is a whole word.
func isWord(text string, s span) bool {
	return !joinedBefore.MatchString(text[max(0, s.from-neighbours):s.from]) && !joinedAfter.MatchString(text[s.to:])
}
