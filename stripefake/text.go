package stripefake

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

// shown is a parameter as an error shows it: what is long, or no text, is cut, and what may
// be the number of a card is hidden.
func shown(v any) string {
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

// mergeMetadata is metadata for any parameter, such as subscription_data[metadata], whose
// value is a form or an empty text. The object is changed only if there is no error.
func mergeMetadata(o object, v any, param string) error {
	if v == "" {
		o["metadata"] = object{}
		return nil
	}
	f, ok := v.(form)
	if !ok {
		return invalid("", param, "Invalid hash: "+param+" has to be a hash of texts")
	}
	m := maps.Clone(o.sub("metadata"))
	if m == nil {
		m = object{}
	}
	for key, v := range f {
		value, ok := v.(string)
		name := param + "[" + key + "]"
		switch {
		case !ok:
			return invalid("", name, "Invalid string: "+name+" has to be a text")
		case key == "" || strings.ContainsAny(key, "[]"):
			return invalid("parameter_invalid_empty", param, "Metadata keys must not be empty or have brackets.")
		case utf8.RuneCountInString(key) > metadataKey:
			return invalid("parameter_invalid_string_blank", param, fmt.Sprintf("Metadata keys can have at most %d characters.", metadataKey))
		case utf8.RuneCountInString(value) > metadataValue:
			return invalid("parameter_invalid_string_blank", name, fmt.Sprintf("Metadata values can have at most %d characters.", metadataValue))
		case value == "":
			delete(m, key)
		default:
			m[key] = value
		}
	}
	if len(m) > metadataKeys {
		return invalid("", param, fmt.Sprintf("Metadata can have at most %d keys.", metadataKeys))
	}
	o["metadata"] = m
	return nil
}

// maxAmount is the largest amount, of eight digits as for nearly every currency.
const maxAmount = 99_999_999

// The limits of metadata, in keys and in characters.
const (
	metadataKeys  = 50
	metadataKey   = 40
	metadataValue = 500
)

// inside is the name of a parameter that is within another, or stands alone.
func inside(param, name string) string {
	if param == "" {
		return name
	}
	first, rest, more := strings.Cut(name, "[")
	if more {
		return param + "[" + first + "][" + rest
	}
	return param + "[" + name + "]"
}

// whole is a whole number within a form; 0 if it is not there.
func whole(f form, name, param string) (int64, error) {
	s := f.str(name)
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || s[0] == '+' {
		return 0, invalid("parameter_invalid_integer", param, "Invalid integer: "+shown(s))
	}
	return n, nil
}

// textOrNil is a parameter that is null where it is not there or empty.
func textOrNil(f form, name string) any {
	if s := f.str(name); s != "" {
		return s
	}
	return nil
}

func flagOrNil(f form, name string) any {
	if f.has(name) {
		return f.yes(name)
	}
	return nil
}

// texts are the texts of a list; never nil.
func texts(list []any) []any {
	out := []any{}
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func has(list []any, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// setText sets the member of that name where the parameters have it; empty is null.
func setText(o object, f form, name string) {
	if f.has(name) {
		o[name] = orNil(f.str(name))
	}
}

// orNil is the text, or null where there is none.
func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}
