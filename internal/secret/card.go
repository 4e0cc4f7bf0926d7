package secret

// The lengths of a card number, in digits. A bare number of 13 digits is more often a
// telephone number or a timestamp than one of Visa's old cards, so only payment-method fields
// are searched for it.
const (
	minDigits       = 14
	minMethodDigits = 13
	maxDigits       = 19
)

// HasCardNumber reports whether the text contains a card number. A card number has the length,
// the prefix and the grouping of a card network, and a valid check digit. It is a whole word:
// digits inside an id, a UUID, a hexadecimal or decimal number, or a telephone number that
// begins with + are none. Digits may be full-width.
func HasCardNumber(text string) bool { return len(find(text, minDigits)) > 0 }

// HasCardInMethod is HasCardNumber for a payment-method field. There it also finds 13 digits
// of Visa, and any field made of 13 to 19 digits: no processor's token is a bare number, but a
// mistyped card number is.
func HasCardInMethod(text string) bool {
	return isLongNumber(text) || len(find(text, minMethodDigits)) > 0
}

// MaskCards replaces the digits of every card number in the text by stars, except the last
// four. Typed texts go through it before they are shown, logged or stored. The returned text
// has no card number.
func MaskCards(text string) string { return maskAll(text, minDigits) }

// MaskMethod is MaskCards for a payment-method field. It masks all that HasCardInMethod finds.
func MaskMethod(text string) string {
	if isLongNumber(text) {
		return mask(text, []span{{0, len(text)}})
	}
	return maskAll(text, minMethodDigits)
}

// Clean returns the text without secrets and card numbers, as Redact and MaskCards do.
func Clean(text string) string { return MaskCards(Redact(text)) }

// maskAll masks until no number is left: numbers can overlap, and share the digits that the
// mask of one of them leaves.
func maskAll(text string, shortest int) string {
	for spans := find(text, shortest); len(spans) > 0; spans = find(text, shortest) {
		text = mask(text, spans)
	}
	return text
}

// mask returns the text with stars for the digits of the spans, except each span's last four.
// A digit that two spans share is masked if one of them says so.
func mask(text string, spans []span) string {
	hidden := map[int]bool{}
	for _, s := range spans {
		var at []int
		for i, r := range text[s.from:s.to] {
			if class, _ := classOf(r); class == digit {
				at = append(at, s.from+i)
			}
		}
		for _, i := range at[:max(0, len(at)-4)] {
			hidden[i] = true
		}
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		_, _, size := read(text[i:])
		if hidden[i] {
			out = append(out, '*')
		} else {
			out = append(out, text[i:i+size]...)
		}
		i += size
	}
	return string(out)
}

// isLongNumber reports whether the text is 13 to 19 digits and separators, and nothing else.
func isLongNumber(text string) bool {
	digits := 0
	for _, r := range text {
		switch class, _ := classOf(r); class {
		case digit:
			digits++
		case letter, other:
			return false
		}
	}
	return digits >= minMethodDigits && digits <= maxDigits
}
