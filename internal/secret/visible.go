package secret

import (
	"fmt"
	"strings"
	"unicode"
)

// Visible returns the text with \u202e, in this form, for each control character and each character
// that changes the direction of what follows: a terminal would obey them. New lines and tabs stay.
// The text may be JSON: it keeps its meaning.
func Visible(text string) string { return visible(text, "\n\t") }

// Line is Visible for a text within a line, without new lines and tabs.
func Line(text string) string { return visible(text, "") }

func visible(text, stays string) string {
	isHidden := func(r rune) bool {
		return unicode.IsControl(r) && !strings.ContainsRune(stays, r) || unicode.Is(unicode.Bidi_Control, r) ||
			r == '\u2028' || r == '\u2029'
	}
	text = strings.ToValidUTF8(text, "\uFFFD") // a byte of its own may be a control character
	if !strings.ContainsFunc(text, isHidden) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if isHidden(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}
