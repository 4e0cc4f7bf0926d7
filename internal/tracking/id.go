package tracking

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/secret"
)

// checkUUID returns the UUID in lower case, or a FieldError.
func checkUUID(name, text string) (string, error) {
	if !IsUUID(text) {
		return "", field.Wrong(name, "must be a UUID, such as 0b6f9f4e-3d0c-4f4e-9a53-6f2a3c1d7e58")
	}
	return strings.ToLower(text), nil
}

// IsUUID reports whether the text is a UUID, in either case. An expression took ten times as long.
func IsUUID(text string) bool {
	for i := range len(text) {
		isDash := i == 8 || i == 13 || i == 18 || i == 23
		if isDash != (text[i] == '-') || !isDash && !strings.ContainsRune("0123456789abcdefABCDEF", rune(text[i])) {
			return false
		}
	}
	return len(text) == 36
}

// maxID is the longest accepted id: twice Stripe's own limit.
const maxID = 512

// isID reports whether the text can be an id of Stripe's, safe in keys and paths, with this prefix.
func isID(text, prefix string) bool {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok || rest == "" || len(text) > maxID {
		return false
	}
	return strings.IndexFunc(rest, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}) < 0
}

// IsPrice reports whether the text can be the id of a price or plan: ASCII without spaces and slashes,
// and not dots alone. Makers of plans choose such ids as gold.monthly. The id is escaped in a path.
func IsPrice(text string) bool {
	return text != "" && len(text) <= 255 && strings.Trim(text, ".") != "" &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' })
}

// checkText returns a FieldError unless the text is short, printable, and neither card nor secret.
func checkText(name, text string, most int) error {
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return field.Wrong(name, "must contain only printable characters")
	case utf8.RuneCountInString(text) > most:
		return field.Wrong(name, fmt.Sprintf("must have at most %d characters", most))
	case secret.Redact(text) != text:
		return field.Wrong(name, "looks like a Stripe secret, which Duesday never stores")
	case secret.HasCardNumber(text):
		return field.Wrong(name, "looks like a card number, which Duesday never accepts; send it only to Stripe")
	}
	return nil
}
