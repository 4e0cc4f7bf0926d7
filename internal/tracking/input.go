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

// IsUUID reports whether the text is a UUID as RFC 9562 writes it.
func IsUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i, c := range []byte(text) {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') || !dash && !isHex(c) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

// maxID is the longest accepted id: twice Stripe's own limit.
const maxID = 512

// isID reports whether the text can be an id of Stripe's with this prefix: ids go into keys and
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

// checkText returns a FieldError unless the text has at most so many characters, all printable, and
// is neither a card number nor a secret: it will be stored.
func checkText(name, text string, most int) error {
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return field.Wrong(name, "must be printable characters")
	case utf8.RuneCountInString(text) > most:
		return field.Wrong(name, fmt.Sprintf("must have at most %d characters", most))
	case secret.Redact(text) != text:
		return field.Wrong(name, "this looks like a secret of Stripe's, which is never stored")
	case secret.HasCardNumber(text):
		return field.Wrong(name, "this looks like a card number, which is never stored")
	}
	return nil
}
