package stripefake

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The limits of metadata, in keys and in characters.
const (
	metadataKeys  = 50
	metadataKey   = 40
	metadataValue = 500
)

// maxAmount is the largest amount, of eight digits as for nearly every currency.
const maxAmount = 99_999_999

// require returns Stripe's error if one of the parameters is not there or is empty. Their
// names may have brackets.
func (c *call) require(params ...string) error {
	for _, name := range params {
		if v, ok := c.form.at(name); !ok || v == "" {
			return invalid("parameter_missing", name, "Missing required param: "+name+".")
		}
	}
	return nil
}

// num returns the whole number that the parameter is; 0 if it is not there.
func (c *call) num(param string) (int64, error) {
	v, ok := c.form.at(param)
	if !ok || v == "" {
		return 0, nil
	}
	s, _ := v.(string)
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strings.HasPrefix(s, "+") {
		return 0, invalid("parameter_invalid_integer", param, "Invalid integer: "+shown(v))
	}
	return n, nil
}

// amount returns the amount that the parameter is, which is not negative; 0 if it is not
// there.
func (c *call) amount(param string) (int64, error) {
	n, err := c.num(param)
	switch {
	case err != nil:
		return 0, err
	case n < 0:
		return 0, invalid("parameter_invalid_integer", param, "This value must be greater than or equal to 0.")
	case n > maxAmount:
		return 0, invalid("amount_too_large", param, fmt.Sprintf("Amount must be no more than %d.", maxAmount))
	}
	return n, nil
}

// flag returns whether the parameter is true; false if it is not there.
func (c *call) flag(param string) (bool, error) {
	v, ok := c.form.at(param)
	switch {
	case !ok, v == "false", v == "":
		return false, nil
	case v == "true":
		return true, nil
	}
	return false, invalid("", param, "Invalid boolean: "+shown(v))
}

// choice returns the text that the parameter is, which is one of those, or "" if it is not
// there.
func (c *call) choice(param string, of ...string) (string, error) {
	v, ok := c.form.at(param)
	if !ok {
		return "", nil
	}
	s, text := v.(string)
	if !text || !slices.Contains(of, s) {
		return "", invalid("", param, fmt.Sprintf("Invalid %s: must be one of %s", param, strings.Join(of, ", ")))
	}
	return s, nil
}

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

// metadata merges the parameter metadata into that of the object: an empty value takes the
// key away, and empty metadata take all.
func (c *call) metadata(o object) error {
	v, ok := c.form["metadata"]
	if !ok {
		v = form{}
	}
	return mergeMetadata(o, v, "metadata")
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
