// Package secret keeps API keys and card numbers out of output. A Text is a secret that prints
// as ***. Redact removes secrets from texts and log records; MaskCards masks card numbers.
//
// It does not encrypt, does not read the environment, and knows no secret by its value:
// Redact knows the forms that Stripe's secrets have. It is no defence against a debugger.
package secret

import (
	"fmt"
	"io"
	"log/slog"
)

// Mask stands in place of a secret.
const Mask = "***"

// A Text is a secret: however it is printed, encoded or logged, it shows as Mask. The zero
// Text is none. It cannot be decoded from JSON or text, so a file of data cannot set a secret.
type Text struct {
	// A pointer, since fmt prints the unexported fields of others' structs without asking
	// their methods: it shows an address.
	p *string
}

// New returns a Text that holds s, or none for "".
func New(s string) Text {
	if s == "" {
		return Text{}
	}
	return Text{&s}
}

// Reveal returns the secret itself, or "" of none. Call it where the secret is used, and
// nowhere before.
func (t Text) Reveal() string {
	if t.p == nil {
		return ""
	}
	return *t.p
}

// IsZero reports whether there is no secret.
func (t Text) IsZero() bool { return t.p == nil }

// String implements fmt.Stringer.
func (t Text) String() string { return Mask }

// GoString implements fmt.GoStringer.
func (t Text) GoString() string { return Mask }

// Format implements fmt.Formatter, for every verb.
func (t Text) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Mask) }

// MarshalText implements encoding.TextMarshaler.
func (t Text) MarshalText() ([]byte, error) { return []byte(Mask), nil }

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) { return []byte(`"` + Mask + `"`), nil }

// LogValue implements slog.LogValuer.
func (t Text) LogValue() slog.Value { return slog.StringValue(Mask) }
