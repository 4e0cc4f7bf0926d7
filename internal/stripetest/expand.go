package stripetest

import (
	"fmt"
	"slices"
	"strings"
)

// expandable returns the reason why a name cannot be expanded, or "".
func (o *operation) expandable(name string) string {
	segments := strings.Split(name, ".")
	if len(segments) > expandSegments {
		return fmt.Sprintf("parameter expand %q is more than %d deep", name, expandSegments)
	}
	at := []*schema{o.answer}
	found := false
	for _, segment := range segments {
		var next []*schema
		found = false
		for _, one := range objects(at) {
			property := one.Properties[segment]
			if property == nil {
				continue
			}
			next = append(next, property)
			// A schema lists the fields on the way to an expandable one too. An optional
			// member, such as the sources of a customer, can be included in the same way,
			// unless it has a schema of its own: then it is on the way only.
			included := !slices.Contains(one.Required, segment) && property.Ref == "" && len(property.AnyOf) == 0
			if slices.Contains(one.Expandable, segment) && (property.expands() || included || documented[one.name] == segment) {
				found = true
			}
		}
		at = next
	}
	if !found {
		return fmt.Sprintf("parameter expand %q cannot be expanded", name)
	}
	return ""
}

// documented are the fields, by schema, that only Stripe's reference calls expandable: an
// invoice's confirmation_secret has a schema of its own and nothing in it to expand.
var documented = map[string]string{"invoice": "confirmation_secret"}

// expands reports whether the value is the id of an object, or a list of ids.
func (s *schema) expands() bool {
	return s.Expansion != nil || s.Items != nil && s.Items.Expansion != nil
}

// objects returns the objects of a value of these schemas, or of a list of them.
func objects(all []*schema) (found []*schema) {
	for _, one := range all {
		if one == nil {
			continue
		}
		one = one.is()
		found = append(found, objects(one.AnyOf)...)
		switch one.Type {
		case "object":
			found = append(found, one)
		case "array":
			found = append(found, objects([]*schema{one.Items})...)
		}
	}
	return found
}

// unlike compares the requested expansion with the answer: the fields that are objects or ids,
// without the numbers of lists.
func unlike(asked []string, whole, ids map[string]bool) (problems []string) {
	for name := range whole {
		ok := slices.ContainsFunc(asked, func(a string) bool { return a == name || strings.HasPrefix(a, name+".") })
		if !ok {
			problems = append(problems, fmt.Sprintf("field %s is an object, but nobody asked to expand it", name))
		}
	}
	for _, name := range asked {
		if ids[name] {
			problems = append(problems, fmt.Sprintf("field %s is an id, but was asked to be expanded", name))
		}
	}
	return problems
}
