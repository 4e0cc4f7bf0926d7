package secret

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The lengths of a card number, in digits. A bare number of 13 digits is more often a telephone number
// or a timestamp than one of Visa's old cards, so only payment-method fields are searched for it.
const (
	minDigits       = 14
	minMethodDigits = 13
	maxDigits       = 19
)

// HasCardNumber reports whether the text contains a card number. A card number has the length,
// the prefix and the grouping of a card network, and a valid check digit. It is a whole word:
// digits inside an id, a UUID, a hexadecimal or decimal number, or a telephone number that
// begins with + are none. Digits may be of any script.
func HasCardNumber(text string) bool { return len(find(text, minDigits)) > 0 }

// HasCardInMethod is HasCardNumber for a payment-method field. There it also finds 13 digits
// of Visa, and any field made of 13 to 19 digits: no processor's token is a bare number, but a
// mistyped card number is.
func HasCardInMethod(text string) bool {
	return longNumber.MatchString(text) || len(find(text, minMethodDigits)) > 0
}

// MaskCards replaces the digits of every card number in the text with stars, except the last four.
// Callers use it for typed text before they show, log or store it. The result contains no card number.
func MaskCards(text string) string { return maskAll(text, minDigits) }

// MaskMethod is MaskCards for a payment-method field. It masks everything that HasCardInMethod
// finds.
func MaskMethod(text string) string {
	if longNumber.MatchString(text) {
		return mask(text, []span{{0, len(text)}})
	}
	return maskAll(text, minMethodDigits)
}

// Clean returns the text after Redact and MaskCards.
func Clean(text string) string { return MaskCards(Redact(text)) }

const maxShort = 300 // bytes

// Short is Clean for a text from elsewhere, such as an error. It truncates a long text.
func Short(text string) string {
	if text = Clean(text); len(text) > maxShort {
		text = MaskCards(strings.ToValidUTF8(text[:maxShort], "") + "…") // a cut number may look like a card's
	}
	return text
}

// maskAll masks until no number is left: overlapping numbers share the digits that a mask leaves.
func maskAll(text string, shortest int) string {
	for spans := find(text, shortest); len(spans) > 0; spans = find(text, shortest) {
		text = mask(text, spans)
	}
	return text
}

// mask returns the text with stars for the digits of the spans, except the last four of each.
func mask(text string, spans []span) string {
	ends := map[int]int{} // of hidden digits, by where they begin
	for _, s := range spans {
		digits := oneDigit.FindAllStringIndex(text[s.from:s.to], -1)
		for _, at := range digits[:max(0, len(digits)-4)] {
			ends[s.from+at[0]] = s.from + at[1]
		}
	}
	var out strings.Builder
	last := 0
	for _, at := range slices.Sorted(maps.Keys(ends)) {
		out.WriteString(text[last:at] + "*")
		last = ends[at]
	}
	return out.String() + text[last:]
}

// A network is the ranges of a card network that have the same lengths.
type network struct {
	lengths []int
	ranges  [][2]string
}

// networks are the ranges of the card networks: the first four digits, and the numbers of
// digits. Sources: the networks' own pages, ISO/IEC 7812 and the test cards of processors.
var networks = [...]network{
	{[]int{13, 16, 19}, [][2]string{{"4000", "4999"}}},           // Visa
	{[]int{16}, [][2]string{{"5100", "5599"}, {"2221", "2720"}}}, // Mastercard
	{[]int{15}, [][2]string{{"3400", "3499"}, {"3700", "3799"}}}, // American Express
	{[]int{16, 17, 18, 19}, [][2]string{{"6011", "6011"}, {"6440", "6599"}, // Discover
		{"3528", "3589"}, {"6200", "6299"}, {"8100", "8171"}}}, // JCB, UnionPay
	{[]int{14, 15, 16, 17, 18, 19}, [][2]string{{"3000", "3059"}, {"3095", "3095"}, // Diners Club
		{"3600", "3699"}, {"3800", "3999"}}},
	{[]int{13, 14, 15, 16, 17, 18, 19}, [][2]string{{"5000", "5099"}, {"5600", "5899"}, {"6700", "6799"}}}, // Maestro
	{[]int{16, 19}, [][2]string{{"6300", "6399"}}},                                                         // Maestro; of 18 digits they are .NET's timestamps
}

// isIssued reports whether a network issues such cards. There must be at least four digits.
func isIssued(digits string) bool {
	return slices.ContainsFunc(networks[:], func(n network) bool {
		return slices.Contains(n.lengths, len(digits)) && slices.ContainsFunc(n.ranges, func(r [2]string) bool {
			return digits[:4] >= r[0] && digits[:4] <= r[1]
		})
	})
}

// groupings are the usual ones, by digits in each group, beside fours and one unbroken run.
var groupings = [...][]int{
	{4, 6, 5},    // American Express
	{4, 6, 4},    // Diners Club
	{6, 10},      // UnionPay
	{6, 13},      // UnionPay
	{8, 8},       // Maestro
	{4, 4, 5},    // Maestro of 13 digits
	{4, 3, 3, 3}, // Visa of 13 digits
}

// isGrouped reports whether the groups are a usual grouping of a card number.
func isGrouped(groups []string) bool {
	last := len(groups) - 1
	odd := slices.IndexFunc(groups, func(g string) bool { return len(g) != 4 }) // fours, and fewer in the last
	if last == 0 || odd < 0 || odd == last && len(groups[last]) < 4 {
		return true
	}
	return slices.ContainsFunc(groupings[:], func(sizes []int) bool {
		return slices.EqualFunc(groups, sizes, func(g string, size int) bool { return len(g) == size })
	})
}

// luhn reports whether the last digit is the check digit of those before it (ISO/IEC 7812).
func luhn(digits string) bool {
	sum := 0
	for i := range len(digits) {
		d := int(digits[i] - '0')
		if (len(digits)-i)%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

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

const (
	neighbours   = 8  // bytes, enough of a text for the last two characters
	maxTelephone = 15 // digits of an international telephone number (ITU-T E.164)
)

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
