package stripetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
)

// statuses are Stripe's documented ones.
var statuses = []int{200, 400, 401, 402, 403, 404, 409, 424, 429, 500, 502, 503, 504}

// checkResponse returns the problems of the answer to a request. Each names its field, as in
// data[].customer. The body of an error must be one of Stripe's. From status 500 on it may be
// without JSON, because Stripe's front door makes some of them. The first problem per field and
// kind stands for all elements of a list.
//
// It is stricter than the specification: it refuses unlisted fields, an error must have a message,
// and an event must have an object, as in CheckEvent. It also compares a success with what was
// asked to be expanded, unless that is nil.
func (s *Spec) checkResponse(method, path string, status int, body []byte, asked []string) []string {
	c := s.checker()
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

// basil is the day of 2025-03-31.basil: the specification has the shapes since then.
const basil = "2025-03-31"

// CheckEvent returns the problems of an event as a webhook carries it: the event itself, its type,
// and its object, by the schema of the object's name. Nothing in an event is expanded. An object
// of a version before 2025-03-31.basil is not checked.
func (s *Spec) CheckEvent(body []byte) []string {
	c := s.checker()
	if value, ok := c.decode(body); ok {
		c.check(value, s.schemas["event"], "")
	}
	return c.problems
}

// checkEvent checks the parts that the schema of an event leaves open.
func (c *checker) checkEvent(event map[string]any, at string) {
	if at != "" {
		at += "."
	}
	if kind, ok := event["type"].(string); ok && !c.spec.events[kind] {
		c.problem(at+"type", "is %q, which no webhook endpoint could ask for", kind)
	}
	data, _ := event["data"].(map[string]any)
	object, ok := data["object"].(map[string]any)
	if version, _ := event["api_version"].(string); version != "" && version < basil || !ok {
		return
	}
	at += "data."
	name, _ := object["object"].(string)
	candidates := c.spec.objects[name]
	if len(candidates) == 0 {
		c.problem(at+"object.object", "is %q, and Stripe has no such object", name)
		return
	}
	inner := c.spec.checker()
	inner.checkAny(object, &schema{AnyOf: candidates}, at+"object")
	for _, text := range append(inner.problems, unlike(nil, inner.whole, nil)...) {
		c.problem("", "%s", text)
	}
	previous, _ := data["previous_attributes"].(map[string]any)
	for _, attribute := range slices.Sorted(maps.Keys(previous)) {
		known := slices.ContainsFunc(candidates, func(s *schema) bool { return s.Properties[attribute] != nil })
		if !known {
			c.problem(at+"previous_attributes."+attribute, "is no field of a %s", name)
		}
	}
}

// findEvents keeps the types that a webhook endpoint can subscribe to: no schema lists them.
func (s *Spec) findEvents() error {
	op, _, problem := s.find("POST", "/v1/webhook_endpoints")
	if op == nil || op.form.Properties["enabled_events"] == nil || op.form.Properties["enabled_events"].Items == nil {
		return fmt.Errorf("it has no list of the events that a webhook endpoint can ask for (%s)", problem)
	}
	for _, value := range op.form.Properties["enabled_events"].Items.Enum {
		if name, ok := value.(string); ok && name != "*" {
			s.events[name] = true
		}
	}
	return nil
}
