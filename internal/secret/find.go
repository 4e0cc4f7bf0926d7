package secret

import (
	"regexp"
	"strings"
)

// The classes of characters around a card number.
const (
	digit  = `0-9０-９`                                  // ASCII or full-width
	letter = `A-Za-z_`                                 // makes a word an id
	space  = ` \x{a0}\x{2007}\x{2009}\x{202f}\x{3000}` // separates groups of digits, and ends a word
	hyphen = `\-\x{2010}-\x{2013}\x{2212}－`            // separates groups, and joins the parts of an id or a UUID
	point  = `.．`                                      // separates groups, and joins the parts of a decimal number

	separator = `[` + space + hyphen + point + `]`
)

var (
	oneDigit = regexp.MustCompile(`[` + digit + `]`)  // one digit
	group    = regexp.MustCompile(`[` + digit + `]+`) // an unbroken run of digits
	// sequence is groups with one separator between neighbours.
	sequence = regexp.MustCompile(`[` + digit + `]+(?:` + separator + `[` + digit + `]+)*`)
	// longNumber is 13 to 19 digits and separators, and nothing else.
	longNumber = regexp.MustCompile(`^` + separator + `*(?:[` + digit + `]` + separator + `*){13,19}$`)
	// plus is the sign before an international telephone number.
	plus = regexp.MustCompile(`(?:^|[^` + digit + letter + `])\+$`)
	// joinedBefore is a neighbour of digits that makes them a part of a longer word: a letter, a hyphen
	// with a letter or a digit beyond it, a point with a digit beyond it. A letter behind a backslash is
	// an escape: \n and \t, as %q and JSON write white space.
	joinedBefore = regexp.MustCompile(`(?:(?:^|[^\\])[` + letter + `]|[` + letter + digit + `][` + hyphen + `]|` +
		`[` + digit + `][` + point + `])$`)
	// joinedAfter is the same after them, where nothing is an escape.
	joinedAfter = regexp.MustCompile(`^(?:[` + letter + `]|[` + hyphen + `][` + letter + digit + `]|` +
		`[` + point + `][` + digit + `])`)
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
				if len(number) >= shortest && isGrouped(of) && isIssued(number) && luhn(number) && isWord(text, whole) {
					spans = append(spans, whole)
				}
			}
		}
	}
	return spans
}

// narrow returns the ASCII digit of a full-width one, and any other character as it is.
func narrow(r rune) rune {
	if r >= '０' && r <= '９' {
		return r - '０' + '0'
	}
	return r
}

// isWord reports whether the span is a whole word.
func isWord(text string, s span) bool {
	return !joinedBefore.MatchString(text[max(0, s.from-neighbours):s.from]) && !joinedAfter.MatchString(text[s.to:])
}
