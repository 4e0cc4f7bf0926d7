package secret

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"unicode"
)

// forms are the forms of Stripe's secrets and of our own keys, each with its replacement, and in lower
// case a part that it always has. The replacement still shows the kind of secret. A publishable key
// (pk_…) is public.
var forms = [...]struct {
	part string
	is   *regexp.Regexp
	left string
}{
	// Bearer first: it hides the whole next word.
	{"bearer", regexp.MustCompile(`(?i)\b(bearer)[ \t]+[^\s,;"']+`), "${1} " + Mask},
	{"k_", regexp.MustCompile(`((?:sk|rk)_(?:live|test|org)_)[A-Za-z0-9*_]+`), "${1}" + Mask},
	{"dd_", regexp.MustCompile(`\b(dd_[a-z2-7]{10}_)[0-9a-f]{16,}`), "${1}" + Mask}, // a key of our own API
	{"whsec_", regexp.MustCompile(`(whsec_)[A-Za-z0-9+/=_*-]+`), "${1}" + Mask},
	// pi_…_secret_…, seti_…_secret_…
	{"_secret_", regexp.MustCompile(`(_secret_)[A-Za-z0-9_*-]+`), "${1}" + Mask},
}

// Redact returns the text without API keys, webhook and client secrets, and bearer tokens.
func Redact(text string) string {
	// Few texts have a part: without this look the expressions took a quarter of an import.
	low := strings.ToLower(text)
	for _, f := range forms {
		if strings.Contains(low, f.part) {
			text = f.is.ReplaceAllString(text, f.left)
		}
	}
	return text
}

// Handler returns a slog.Handler that takes secrets and card numbers out of the messages and
// values of records, in nested groups as well, and makes them Visible, before it gives them to h.
func Handler(h slog.Handler) slog.Handler { return handler{h} }

type handler struct{ next slog.Handler }

func (h handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, Visible(Clean(r.Message)), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(redacted(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.next.WithAttrs(redactedAll(attrs))}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.next.WithGroup(name)} }

func redactedAll(attrs []slog.Attr) []slog.Attr {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = redacted(a)
	}
	return clean
}

func redacted(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		v = slog.StringValue(Visible(Clean(v.String())))
	case slog.KindGroup:
		v = slog.GroupValue(redactedAll(v.Group())...)
	case slog.KindAny:
		// As a text only if there is something to hide: a handler may write the value better.
		text := fmt.Sprintf("%+v", v.Any())
		if clean := Visible(Clean(text)); clean != text {
			v = slog.StringValue(clean)
		}
	}
	return slog.Attr{Key: a.Key, Value: v}
}

// Visible returns the text with \u202e, in this form, for each control character and each character
// that changes the direction of what follows: a terminal would obey them. New lines and tabs stay.
// The text may be JSON: it keeps its meaning.
func Visible(text string) string { return visible(text, "\n\t") }

// Line is Visible for text within one line. It also replaces new lines and tabs.
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
