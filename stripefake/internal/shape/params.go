package shape

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Params are the parameters of a request, or those in the brackets of one. The zero value has none.
type Params struct {
	form Form
	name string            // of the parameter with the brackets; "": they are the request's own
	read func(name string) // hears the name of each parameter that is read; may be nil
}

// Reading returns the parameters of a request. read hears the names that are asked for.
func Reading(f Form, read func(name string)) Params { return Params{form: f, read: read} }

func (p Params) value(name string) (any, bool) {
	if p.read != nil {
		p.read(name)
	}
	v, ok := p.form[name]
	return v, ok
}

// Given reports whether there are any, if only an empty hash.
func (p Params) Given() bool            { return p.form != nil }
func (p Params) Has(name string) bool   { _, ok := p.value(name); return ok }
func (p Params) Str(name string) string { v, _ := p.value(name); s, _ := v.(string); return s }
func (p Params) Yes(name string) bool   { return p.Str(name) == "true" }
func (p Params) List(name string) []any { v, _ := p.value(name); l, _ := v.([]any); return l }

func (p Params) Sub(name string) Params {
	v, _ := p.value(name)
	f, _ := v.(Form)
	return Params{form: f, name: p.In(name)}
}

// Each returns the elements of a list. One that is no hash has no parameters.
func (p Params) Each(name string) []Params {
	list := make([]Params, len(p.List(name)))
	for i, v := range p.List(name) {
		f, _ := v.(Form)
		list[i] = Params{form: f, name: p.In(name) + "[" + strconv.Itoa(i) + "]"}
	}
	return list
}

// Names returns the names of the given ones, in alphabetical order.
func (p Params) Names() []string { return slices.Sorted(maps.Keys(p.form)) }

// Other returns the whole name of the first that is not among the known ones; "": there is none.
func (p Params) Other(known string) string {
	for _, name := range p.Names() {
		if !slices.Contains(strings.Fields(known), name) {
			return p.In(name)
		}
	}
	return ""
}

// In returns the whole name of one of them, as errors have it.
func (p Params) In(name string) string {
	if p.name == "" {
		return name
	}
	return p.name + "[" + name + "]"
}

// Whole is a whole number; 0 if it is absent or empty.
func (p Params) Whole(name string) (int64, error) { return WholeOf(p.Str(name), p.In(name)) }

// WholeOf reads a whole number; 0 if it is absent or empty.
func WholeOf(v any, param string) (int64, error) {
	s, _ := v.(string)
	if v == "" || v == nil {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || s[0] == '+' {
		return 0, Invalid("parameter_invalid_integer", param, "Invalid integer: "+Shown(v))
	}
	return n, nil
}

// OrNil returns a text; null if it is absent or empty.
func (p Params) OrNil(name string) any { return OrNil(p.Str(name)) }

// SetTexts sets the members whose parameters are given; empty is null.
func (p Params) SetTexts(o Object, names string) {
	for name := range strings.FieldsSeq(names) {
		if p.Has(name) {
			o[name] = p.OrNil(name)
		}
	}
}

// Invalid is a 400 about one of them.
func (p Params) Invalid(code, name, message string) error { return Invalid(code, p.In(name), message) }

// Require returns Stripe's error if the parameter is absent or empty.
func (p Params) Require(name string) error {
	if v, ok := p.value(name); !ok || v == "" {
		return Missed(p.In(name))
	}
	return nil
}

// Only returns the error of another value than the one that the fake knows.
func (p Params) Only(name, value string) error {
	if p.Has(name) && p.Str(name) != value {
		return p.Invalid("", name, "stripefake supports only the "+name+" "+value+".")
	}
	return nil
}

// Filled returns Stripe's error if one of them is empty: nothing is left of a filter without a value.
func (p Params) Filled() error {
	for _, name := range p.Names() {
		if p.form[name] == "" && name != "expand" {
			return p.Invalid("parameter_invalid_empty", name, "You passed an empty string for '"+p.In(name)+"'. We assume "+
				"empty values are an attempt to unset a field; however '"+p.In(name)+"' cannot be unset. You should remove '"+
				p.In(name)+"' from your request or supply a non-empty value.")
		}
		if err := p.Sub(name).Filled(); err != nil {
			return err
		}
	}
	return nil
}

// The limits of metadata, in keys and in characters.
const (
	metadataKeys  = 50
	metadataKey   = 40
	metadataValue = 500
)

// Metadata merges the parameter metadata into the object's: an empty value removes the key, and
// empty metadata remove all keys. The object is changed only if there is no error.
func (p Params) Metadata(o Object) error {
	v, given := p.value("metadata")
	param := p.In("metadata")
	if v == "" {
		o["metadata"] = Object{}
		return nil
	}
	f, ok := v.(Form)
	if given && !ok {
		return Invalid("", param, "Invalid hash: "+param+" must be a hash of strings")
	}
	m := Object{}
	maps.Copy(m, o.Sub("metadata"))
	for key, v := range f {
		value, ok := v.(string)
		name := param + "[" + key + "]"
		switch {
		case !ok:
			return Invalid("", name, "Invalid string: "+name+" must be a string")
		case key == "" || strings.ContainsAny(key, "[]"):
			return Invalid("parameter_invalid_empty", param, "Metadata keys must not be empty or contain brackets.")
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
