// Package secret redacts API keys and card numbers in output. A Text is a secret that prints as ***.
// Redact removes secrets from text and log records, and MaskCards masks card numbers.
//
// It does not encrypt, and does not read the environment. Redact recognizes Stripe's secrets by their
// format, not by their value. The package does not protect secrets from a debugger.
package secret

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
)

// Mask is shown instead of a secret.
const Mask = "***"

// A Text is a secret that always appears as Mask when it is printed, encoded or logged. The zero
// Text holds no secret. A Text cannot be decoded from JSON or text, so a data file cannot set a
// secret.
type Text struct {
	// A pointer: fmt prints unexported fields without asking methods, and shows an address.
	p *string
}

// New returns a Text that holds s. If s is empty, the Text holds no secret.
func New(s string) Text {
	if s == "" {
		return Text{}
	}
	return Text{&s}
}

// Reveal returns the secret itself, or "" if there is none. Call it only where the secret is used.
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

// Format implements fmt.Formatter, for every verb.
func (t Text) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Mask) }

// MarshalText implements encoding.TextMarshaler, for JSON too.
func (t Text) MarshalText() ([]byte, error) { return []byte(Mask), nil }

// LogValue implements slog.LogValuer.
func (t Text) LogValue() slog.Value { return slog.StringValue(Mask) }

// maxFile is the most bytes of a secret's file: a longer one was given by mistake.
const maxFile = 4096

// FromFile reads the secret in a file, without the white space around it. In addition to the rules
// of ReadFile, the secret must be on one line and not empty. No error contains a part of it.
func FromFile(path string) (Text, error) {
	text, err := ReadFile(path)
	if err != nil {
		return Text{}, err
	}
	s := strings.TrimSpace(text)
	switch {
	case s == "":
		return Text{}, fmt.Errorf("secret file %s is empty; it must contain the secret on one line", path)
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return Text{}, fmt.Errorf("secret file %s must contain only the secret, on one line and without spaces",
			path)
	}
	return New(s), nil
}

// ReadFile returns the text of a file that contains secrets. The file must be a regular file of at
// most 4096 bytes that only its owner can access.
func ReadFile(path string) (string, error) {
	info, err := os.Stat(path) // before it is opened: opening a pipe would wait for its writer
	if err != nil {
		return "", fmt.Errorf("secret file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("secret file %s must be a regular file (got a %s)", path, kind(info.Mode()))
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("secret file: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err = f.Stat(); err != nil {
		return "", fmt.Errorf("secret file: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return "", fmt.Errorf("secret file %s must be accessible only to its owner (got mode %#o); run: chmod 600 %s", path, mode, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("secret file: %w", err)
	case len(text) > maxFile:
		return "", fmt.Errorf("secret file %s must have at most %d bytes, and contain only the secret", path, maxFile)
	}
	return string(text), nil
}

func kind(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "folder"
	case m&os.ModeNamedPipe != 0:
		return "pipe"
	}
	return "device"
}
