package tracking

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkUUID returns the UUID in lower case, or a FieldError.
func checkUUID(field, text string) (string, error) {
	if !isUUID(text) {
		return "", &FieldError{field, "want a UUID, such as 0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58"}
	}
	return strings.ToLower(text), nil
}

func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i := range len(text) {
		switch c := text[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F':
		default:
			return false
		}
	}
	return true
}

// maxID is how long an id of Stripe's is at most: twice what Stripe says.
const maxID = 512

// isID reports whether the text can be an id of Stripe's that begins so: it goes into keys and
// paths.
func isID(text, prefix string) bool {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok || rest == "" || len(text) > maxID {
		return false
	}
	return strings.IndexFunc(rest, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}) < 0
}

// checkText returns a FieldError unless the text is at most that many characters that can be
// printed, and no card number: it will be stored.
func checkText(field, text string, most int) error {
	if err := checkPrintable(field, text, most); err != nil {
		return err
	}
	if hasCardNumber(text) {
		return &FieldError{field, "this looks like a card number, which is never stored"}
	}
	return nil
}

func checkPrintable(field, text string, most int) error {
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return &FieldError{field, "want printable characters"}
	case utf8.RuneCountInString(text) > most:
		return &FieldError{field, fmt.Sprintf("want at most %d characters", most)}
	}
	return nil
}

// hasCardNumber reports whether the text has 13 to 19 digits, with spaces and hyphens between
// them at most, of which the check digit is right.
func hasCardNumber(text string) bool {
	var digits []byte
	for i := 0; i <= len(text); i++ {
		switch {
		case i < len(text) && text[i] >= '0' && text[i] <= '9':
			digits = append(digits, text[i]-'0')
		case i < len(text) && len(digits) > 0 && (text[i] == ' ' || text[i] == '-'):
		default:
			digits = digits[:0]
		}
		for n := 13; n <= min(19, len(digits)); n++ {
			if luhn(digits[len(digits)-n:]) {
				return true
			}
		}
	}
	return false
}

func luhn(digits []byte) bool {
	sum := 0
	for i := range digits {
		d := int(digits[len(digits)-1-i])
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}
