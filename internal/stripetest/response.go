package stripetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// statuses are Stripe's documented ones.
var statuses = []int{200, 400, 401, 402, 403, 404, 409, 424, 429, 500, 502, 503, 504}

// CheckResponse returns the problems of the answer to a request. Each names its field, as in
// data[].customer. The body of an error must be one of Stripe's. From status 500 on it may be
// without JSON, because Stripe's front door makes some of them. The first problem per field and
// kind stands for all elements of a list.
//
// It is stricter than the specification: it refuses unlisted fields, an error must have a message,
// and an event must have an object, as in CheckEvent.
func (s *Spec) CheckResponse(method, path string, status int, body []byte) []string {
	return s.checkResponse(method, path, status, body, nil)
}

// checkResponse also compares a success with what was asked to be expanded, unless that is
// nil.
func (s *Spec) checkResponse(method, path string, status int, body []byte, asked []string) []string {
	c := &checker{spec: s, whole: map[string]bool{}, ids: map[string]bool{}}
	op, _, unknown := s.find(method, path)
	switch {
	case !slices.Contains(statuses, status):
		return []string{fmt.Sprintf("status %d is none that Stripe documents", status)}
	case status >= 500 && !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")):
		return nil
	case status != http.StatusOK:
		c.checkError(body)
		return c.problems
	case op == nil:
		return []string{"status 200, and " + unknown}
	case op.answer == nil:
		return nil // no JSON
	}
	if value, ok := c.decode(body); ok {
		c.check(value, op.answer, "")
	}
	if asked != nil {
		for _, problem := range unlike(asked, c.whole, c.ids) {
			c.problem("", "%s", problem)
		}
	}
	return c.problems
}

// A checker collects the problems of one body.
type checker struct {
	spec       *Spec
	problems   []string
	whole, ids map[string]bool // expandable fields as objects, and as ids
}

func (c *checker) problem(at, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if at != "" {
		text = "field " + at + " " + text
	}
	if !slices.Contains(c.problems, text) {
		c.problems = append(c.problems, text)
	}
}

// decode leaves numbers as they are written.
func (c *checker) decode(body []byte) (value any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		c.problem("", "the body is no JSON: %v", err)
		return nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		c.problem("", "the body goes on after its JSON")
	}
	return value, true
}

func (c *checker) checkError(body []byte) {
	value, ok := c.decode(body)
	if !ok {
		return
	}
	c.check(value, c.spec.schemas["error"], "")
	if page, ok := value.(map[string]any); ok {
		if inner, ok := page["error"].(map[string]any); ok {
			if message, _ := inner["message"].(string); message == "" {
				c.problem("error.message", "is missing")
			}
		}
	}
}

// check collects the problems of a value and of its members.
func (c *checker) check(value any, want *schema, at string) {
	if value == nil {
		if !want.is().Nullable {
			c.problem(at, "is null, and must not be")
		}
		return
	}
	want = want.is()
	if want.Expansion != nil {
		c.note(value, at)
	}
	if len(want.AnyOf) > 0 {
		c.checkAny(value, want, at)
		return
	}
	switch want.Type {
	case "object":
		if object, ok := value.(map[string]any); ok {
			c.checkObject(object, want, at)
			return
		}
	case "array":
		if list, ok := value.([]any); ok {
			for _, element := range list {
				c.check(element, want.Items, at+"[]")
			}
			return
		}
	case "string":
		if text, ok := value.(string); ok {
			c.checkText(text, want, at)
			return
		}
	case "boolean":
		if b, ok := value.(bool); ok {
			if len(want.Enum) > 0 && !slices.Contains(want.Enum, any(b)) {
				c.problem(at, "is %t, not one of %s", b, want.enum())
			}
			return
		}
	case "integer", "number":
		if n, ok := value.(json.Number); ok {
			if want.Type == "integer" && !integer.MatchString(n.String()) {
				c.problem(at, "is %s, no integer", n)
			}
			return
		}
	}
	c.problem(at, "is %s; it must be one %s", kind(value), want.Type)
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
// the same object, if there is one, else with the fewest problems.
func (c *checker) checkAny(value any, want *schema, at string) {
	object, _ := value.(map[string]any)
	var best *checker
	distance := 0
	for _, one := range want.AnyOf {
		try := &checker{spec: c.spec, whole: map[string]bool{}, ids: map[string]bool{}}
		try.check(value, one, at)
		far := len(try.problems)
		if far > 0 {
			far += 1000 * strangeness(object, one.is())
		}
		if best == nil || far < distance {
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

// strangeness is the distance of an object from a schema: 0 for the same name and the same value
// of deleted.
func strangeness(object map[string]any, want *schema) (strange int) {
	if (object != nil) != (want.Type == "object") {
		return 3
	}
	if name := want.Properties["object"]; name != nil && !slices.Contains(name.Enum, object["object"]) {
		strange += 2
	}
	if (object["deleted"] == true) != slices.Contains(want.Required, "deleted") {
		strange++
	}
	return strange
}

func (c *checker) checkObject(object map[string]any, want *schema, at string) {
	inside := func(name string) string {
		if at == "" {
			return name
		}
		return at + "." + name
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		switch known := want.Properties[name]; {
		case known != nil:
			c.check(object[name], known, inside(name))
		case want.Additional.of != nil:
			c.check(object[name], want.Additional.of, inside(name))
		case !want.Additional.any:
			c.problem(inside(name), "is unknown to Stripe")
		}
	}
	for _, name := range want.Required {
		if _, there := object[name]; !there {
			c.problem(inside(name), "is missing")
		}
	}
	if want.name == "event" {
		c.checkEvent(object, at)
	}
}

func (c *checker) checkText(text string, want *schema, at string) {
	switch {
	case len(want.Enum) > 0 && !slices.Contains(want.Enum, any(text)):
		c.problem(at, "is %q, not one of %s", text, want.enum())
	case want.Format == "decimal" && !decimal.MatchString(text):
		c.problem(at, "is %q, no decimal number", text)
	case want.Format == "currency" && !currency.MatchString(text):
		c.problem(at, "is %q, no currency in lower case", text)
	case want.MaxLength > 0 && utf8.RuneCountInString(text) > want.MaxLength:
		c.problem(at, "has more than %d characters", want.MaxLength)
	case want.matches != nil && !want.matches.MatchString(text):
		c.problem(at, "is %q, which does not match %s", text, want.Pattern)
	}
}

// kind names the kind of a JSON value.
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
