package billing

import "strings"

// HasCardNumber reports whether the text contains what looks like a card number: 13 to
// 19 digits, possibly grouped by single spaces or hyphens, that pass the Luhn check, or
// sixteen digits in a row, which are refused whether they pass or not: a field with them
// is meant as a card number.
func HasCardNumber(text string) bool { return MaskCards(text) != text }

// MaskCards replaces the digits of everything that looks like a card number by stars,
// but for the last four. Texts that a person typed go through it before they are shown,
// logged or written anywhere.
func MaskCards(text string) string {
	var out []byte
	for i := 0; i < len(text); {
		end, digits := digitRun(text, i)
		if digits == nil {
			i++
			continue
		}
		if cardLike(digits) {
			if out == nil {
				out = []byte(text)
			}
			mask(out[i:end], len(digits)-4)
		}
		i = end
	}
	if out == nil {
		return text
	}
	return string(out)
}

// digitRun returns the end of the longest run of digits, grouped by single spaces or
// hyphens, that begins at i, and its digits; nil when no digit stands at i.
func digitRun(text string, i int) (int, []byte) {
	var digits []byte
	end := i
	for j := i; j < len(text); j++ {
		switch c := text[j]; {
		case c >= '0' && c <= '9':
			digits = append(digits, c)
			end = j + 1
		case (c == ' ' || c == '-') && j > i && text[j-1] >= '0' && text[j-1] <= '9':
		default:
			return end, digits
		}
	}
	return end, digits
}

func cardLike(digits []byte) bool {
	if len(digits) < 13 || len(digits) > 19 {
		return false
	}
	if len(digits) == 16 {
		return true
	}
	sum := 0
	for i, c := range digits {
		d := int(c - '0')
		if (len(digits)-i)%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

func mask(text []byte, digits int) {
	for i := range text {
		if digits > 0 && text[i] >= '0' && text[i] <= '9' {
			text[i] = '*'
			digits--
		}
	}
}

// FieldError says which field of an input is wrong, and what would be right.
type FieldError struct {
	Field  string // by its name in files and JSON: payment_day
	Reason string // without any digits of a card number
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

func fieldError(field, reason string) error {
	return &FieldError{Field: field, Reason: MaskCards(reason)}
}

// CheckText returns why the text cannot be stored in the named field, or nil: control
// characters, invalid UTF-8, more than limit bytes, or a card number.
func CheckText(field, text string, limit int) error {
	switch {
	case len(text) > limit:
		return fieldError(field, "too long: at most "+itoa(limit)+" bytes")
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }):
		return fieldError(field, "control characters or invalid UTF-8")
	case HasCardNumber(text):
		return fieldError(field, "looks like a card number ("+MaskCards(text)+"): Duesday never takes one; give the processor's token")
	}
	return nil
}
