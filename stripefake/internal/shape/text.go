package shape

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// longDigits may be the number of a card.
var longDigits = regexp.MustCompile(`[0-9](?:[ -]?[0-9]){11,}`)

// Shown returns a parameter as errors show it: cut if it is long, and without digits that may be a
// card number.
func Shown(v any) string {
	s, ok := v.(string)
	s = longDigits.ReplaceAllString(s, "************")
	switch {
	case !ok:
		return "a value with brackets"
	case len(s) > 40:
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

// MergeMetadata is metadata for any parameter, such as subscription_data[metadata], whose
// value is a form or an empty text. The object is changed only if there is no error.
func MergeMetadata(o Object, v any, param string) error {
	if v == "" {
		o["metadata"] = Object{}
		return nil
	}
	f, ok := v.(Form)
	if !ok {
		return Invalid("", param, "Invalid hash: "+param+" has to be a hash of texts")
	}
	m := maps.Clone(o.Sub("metadata"))
	if m == nil {
		m = Object{}
	}
	for key, v := range f {
		value, ok := v.(string)
		name := param + "[" + key + "]"
		switch {
		case !ok:
			return Invalid("", name, "Invalid string: "+name+" has to be a text")
		case key == "" || strings.ContainsAny(key, "[]"):
			return Invalid("parameter_invalid_empty", param, "Metadata keys must not be empty or have brackets.")
		case utf8.RuneCountInString(key) > metadataKey:
			return Invalid("parameter_invalid_string_blank", param,
				fmt.Sprintf("Metadata keys can have at most %d characters.", metadataKey))
		case utf8.RuneCountInString(value) > metadataValue:
			return Invalid("parameter_invalid_string_blank", name,
				fmt.Sprintf("Metadata values can have at most %d characters.", metadataValue))
		case value == "":
			delete(m, key)
		default:
			m[key] = value
		}
	}
	if len(m) > metadataKeys {
		return Invalid("", param, fmt.Sprintf("Metadata can have at most %d keys.", metadataKeys))
	}
	o["metadata"] = m
	return nil
}

// MaxAmount is the largest amount, of eight digits as for nearly every currency.
const MaxAmount = 99_999_999

// The limits of metadata, in keys and in characters.
const (
	metadataKeys  = 50
	metadataKey   = 40
	metadataValue = 500
)

// Inside returns the name of a parameter within another; "": alone.
func Inside(param, name string) string {
	if param == "" {
		return name
	}
	first, rest, more := strings.Cut(name, "[")
	if more {
		return param + "[" + first + "][" + rest
	}
	return param + "[" + name + "]"
}

// Whole is a whole number within a form; 0 if it is not there.
func Whole(f Form, name, param string) (int64, error) {
	s := f.Str(name)
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || s[0] == '+' {
		return 0, Invalid("parameter_invalid_integer", param, "Invalid integer: "+Shown(s))
	}
	return n, nil
}

// TextOrNil returns a parameter; null if it is absent or empty.
func TextOrNil(f Form, name string) any {
	if s := f.Str(name); s != "" {
		return s
	}
	return nil
}

func FlagOrNil(f Form, name string) any {
	if f.Has(name) {
		return f.Yes(name)
	}
	return nil
}

// Texts are the texts of a list; never nil.
func Texts(list []any) []any {
	out := []any{}
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// SetText sets the member if the parameter is given; empty is null.
func SetText(o Object, f Form, name string) {
	if f.Has(name) {
		o[name] = OrNil(f.Str(name))
	}
}

// OrNil returns the text; null if it is empty.
func OrNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}
