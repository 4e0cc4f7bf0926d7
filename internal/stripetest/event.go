package stripetest

import (
	"fmt"
	"maps"
	"slices"
)

// basil is the day of 2025-03-31.basil, which moved fields of invoices and subscriptions: the
// specification has the shapes since then.
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

// findEvents keeps the types that a webhook endpoint can subscribe to; the schema of an event does
// not list them.
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
