package stripetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The forms of texts that stand for other values.
var (
	integer  = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)
	decimal  = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)
	number   = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	currency = regexp.MustCompile(`^[a-z]{3}$`)
)

// Documented limits of metadata, which the specification leaves out.
const (
	metadataKeys  = 50
	metadataKey   = 40  // characters
	metadataValue = 500 // characters
)

// A checker collects the problems of one value: of the JSON of a body, or of a form. In a form
// each value is a text or has fields, and a list has numbers for the names of its fields.
type checker struct {
	spec       *Spec
	form       bool
	problems   []string
	whole, ids map[string]bool // expandable fields as objects, and as ids
}

func (s *Spec) checker() *checker {
	return &checker{spec: s, whole: map[string]bool{}, ids: map[string]bool{}}
}

func (c *checker) problem(at, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	switch {
	case at != "" && c.form:
		text = "parameter " + at + " " + text
	case at != "":
		text = "field " + at + " " + text
	}
	if !slices.Contains(c.problems, text) {
		c.problems = append(c.problems, text)
	}
}

func (c *checker) inside(at, name string) string {
	switch {
	case at == "":
		return name
	case c.form:
		return at + "[" + name + "]"
	}
	return at + "." + name
}

func (c *checker) check(value any, want *schema, at string) {
	want = want.is()
	if value == nil {
		if !want.Nullable {
			c.problem(at, "is null, and must not be")
		}
		return
	}
	if want.Expansion != nil {
		c.note(value, at)
	}
	if len(want.AnyOf) > 0 {
		c.checkAny(value, want, at)
		return
	}
	fits := false
	switch want.Type {
	case "object":
		fits = c.checkObject(value, want, at)
	case "array":
		fits = c.checkList(value, want, at)
	default:
		fits = c.checkPlain(value, want, at)
	}
	if !fits {
		c.problem(at, "is %s; it must be one %s", kind(value), want.Type)
	}
}

// note keeps whether an expandable field was expanded.
func (c *checker) note(value any, at string) {
	name := strings.ReplaceAll(at, "[]", "")
	switch value.(type) {
	case map[string]any:
		c.whole[name] = true
	case string:
		c.ids[name] = true
	}
}

// checkAny accepts one of the alternatives. Otherwise it returns the problems of the nearest: of
// the same kind or object, if there is one, else with the fewest problems.
func (c *checker) checkAny(value any, want *schema, at string) {
	var best *checker
	distance := 0
	for _, one := range want.AnyOf {
		try := c.spec.checker()
		try.form = c.form
		try.check(value, one, at)
		far := len(try.problems)
		if far > 0 {
			far += 1000 * c.strangeness(value, one.is())
		}
		if best == nil || far < distance || c.form && far == distance { // in forms the first may be a text that unsets
			best, distance = try, far
		}
		if far == 0 {
			break
		}
	}
	for _, text := range best.problems {
		c.problem("", "%s", text)
	}
	maps.Copy(c.whole, best.whole)
	maps.Copy(c.ids, best.ids)
}

// strangeness is the distance of a value from a schema: by kind, name of the object, and deleted.
func (c *checker) strangeness(value any, want *schema) (strange int) {
	object, ok := value.(map[string]any)
	if _, list := numbered(value); c.form && ok && list != (want.Type == "array") {
		return 3
	}
	if ok != (want.Type == "object" || c.form && want.Type == "array") {
		return 3
	}
	if c.form {
		return 0
	}
	if name := want.Properties["object"]; name != nil && !slices.Contains(name.Enum, object["object"]) {
		strange += 2
	}
	if (object["deleted"] == true) != slices.Contains(want.Required, "deleted") {
		strange++
	}
	return strange
}

func (c *checker) checkObject(value any, want *schema, at string) (fits bool) {
	object, ok := value.(map[string]any)
	if !ok {
		return c.form && value == "" && len(want.Properties) == 0 // a form has no other way to send {}
	}
	of := want.Additional.of
	for _, name := range slices.Sorted(maps.Keys(object)) {
		switch known := want.Properties[name]; {
		case known != nil:
			c.check(object[name], known, c.inside(at, name))
		case of != nil && c.form && of.Type == "string" && len(of.AnyOf) == 0:
			c.checkMetadata(object[name], name, c.inside(at, name))
		case of != nil:
			c.check(object[name], of, c.inside(at, name))
		case !want.Additional.any:
			c.problem(c.inside(at, name), "is unknown to Stripe")
		}
	}
	if c.form && of != nil && len(object) > metadataKeys {
		c.problem(at, "has %d keys, more than %d", len(object), metadataKeys)
	}
	for _, name := range want.Required {
		if _, there := object[name]; !there {
			c.problem(c.inside(at, name), "is missing")
		}
	}
	if want.name == "event" {
		c.checkEvent(object, at)
	}
	return true
}

func (c *checker) checkList(value any, want *schema, at string) (fits bool) {
	if c.form {
		numbers, ok := numbered(value)
		if !ok {
			c.problem(at, "is not a list (%s[0]=..., or %[1]s[]=...)", at)
		}
		for _, n := range numbers {
			name := strconv.Itoa(n)
			c.check(value.(map[string]any)[name], want.Items, c.inside(at, name))
		}
		return true
	}
	list, ok := value.([]any)
	for _, element := range list {
		c.check(element, want.Items, at+"[]")
	}
	return ok
}

// checkMetadata: an empty text removes the key.
func (c *checker) checkMetadata(value any, name, at string) {
	text, ok := value.(string)
	switch {
	case !ok:
		c.problem(at, "has fields; metadata is flat")
	case utf8.RuneCountInString(name) > metadataKey:
		c.problem(at, "has a key of more than %d characters", metadataKey)
	case utf8.RuneCountInString(text) > metadataValue:
		c.problem(at, "has more than %d characters", metadataValue)
	}
}

func (c *checker) checkPlain(value any, want *schema, at string) (fits bool) {
	switch v := value.(type) {
	case string:
		c.checkText(v, want, at)
		return c.form || want.Type == "string"
	case bool:
		if want.Type == "boolean" && len(want.Enum) > 0 && !slices.Contains(want.Enum, value) {
			c.problem(at, "is %t, not one of %s", v, want.enum())
		}
		return want.Type == "boolean"
	case json.Number:
		if want.Type == "integer" && !integer.MatchString(v.String()) {
			c.problem(at, "is %s, no integer", v)
		}
		return want.Type == "integer" || want.Type == "number"
	}
	return false
}

// checkText checks a text, which in a form stands for a value of any type.
func (c *checker) checkText(text string, want *schema, at string) {
	characters := utf8.RuneCountInString(text)
	switch {
	case !c.form && want.Type != "string":
	case len(want.Enum) > 0:
		if !slices.Contains(want.Enum, any(text)) {
			c.problem(at, "is %q, not one of %s", text, want.enum())
		}
	case want.Type == "boolean" && text != "true" && text != "false":
		c.problem(at, "is %q, not true or false", text)
	case want.Type == "integer" && !integer.MatchString(text):
		c.problem(at, "is %q, no integer", text)
	case want.Type == "number" && !number.MatchString(text):
		c.problem(at, "is %q, no number", text)
	case want.Type == "string" && text == "" && c.form:
		c.problem(at, "is empty, and nothing that can be unset: leave it out")
	case want.Format == "decimal" && !decimal.MatchString(text):
		c.problem(at, "is %q, no decimal number", text)
	case want.Format == "currency" && !currency.MatchString(text):
		c.problem(at, "is %q, no currency in lower case", text)
	case want.MaxLength > 0 && characters > want.MaxLength:
		c.problem(at, "has %d characters, more than %d", characters, want.MaxLength)
	case want.matches != nil && !want.matches.MatchString(text):
		c.problem(at, "is %q, which does not match %s", text, want.Pattern)
	}
}

func kind(value any) string {
	switch value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a text"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	}
	return "null"
}
