package stripetest

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Documented limits, which the specification leaves out.
const (
	pageLimit      = 100
	expandSegments = 4
)

// CheckRequest returns the problems of a request. Each names its parameter, as in items[0][price].
// The path is the path of the URL, "/v1/payment_intents/pi_1/confirm"; query and form are the
// parameters of the URL and of the body.
//
// It is stricter than the specification, by Stripe's documentation: the limits of metadata, of the
// length of a page and of the depth of expand; an empty text means "unset" and must be in the
// specification; and expansions must be expandable.
func (s *Spec) CheckRequest(method, path string, query, form url.Values) []string {
	op, _, problem := s.find(method, path)
	if op == nil {
		return []string{problem}
	}
	if method == "DELETE" { // Stripe takes the parameters from either
		all, own := url.Values{}, url.Values{}
		maps.Copy(all, form)
		for key, values := range query {
			name, _, _ := strings.Cut(key, "[")
			if op.query.Properties[name] != nil {
				own[key] = values
			} else {
				all[key] = append(slices.Clone(all[key]), values...)
			}
		}
		query, form = own, all
	}
	var problems []string
	if method == "POST" && len(query) > 0 {
		problems = append(problems, "parameters of a POST belong into its body")
	} else {
		problems = s.checkForm(op.query, query)
	}
	problems = append(problems, s.checkForm(op.form, form)...)
	if text := query.Get("limit"); op.query.Properties["starting_after"] != nil && integer.MatchString(text) {
		if n, err := strconv.Atoi(text); err != nil || n < 1 || n > pageLimit {
			problems = append(problems, fmt.Sprintf("parameter limit: %s is not from 1 to %d", text, pageLimit))
		}
	}
	for _, name := range expand(query, form) {
		if problem := op.expandable(name); problem != "" {
			problems = append(problems, problem)
		}
	}
	return problems
}

// expand returns the names in the parameter expand, in no order.
func expand(all ...url.Values) (names []string) {
	for _, values := range all {
		for key, list := range values {
			if strings.HasPrefix(key, "expand[") {
				names = append(names, list...)
			}
		}
	}
	return names
}

func (s *Spec) checkForm(want *schema, values url.Values) []string {
	all, problems := params(values)
	c := s.checker()
	c.form = true
	c.check(all, want, "")
	return append(problems, c.problems...)
}

// numbered returns the numbers of a list's elements in their order, if the value is a list: the
// names of all its fields are numbers.
func numbered(value any) (numbers []int, ok bool) {
	fields, ok := value.(map[string]any)
	for name := range fields {
		n, err := strconv.Atoi(name)
		if err != nil || strconv.Itoa(n) != name || n < 0 {
			return nil, false
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers, ok
}

// params reads Stripe's encoding: a[b]=x for a field, a[]=x&a[]=y or a[0]=x&a[1]=y for a list. It
// returns an object of texts and further objects, and the names it could not read.
func params(values url.Values) (all map[string]any, problems []string) {
	all = map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		segments, ok := split(key)
		if !ok {
			problems = append(problems, fmt.Sprintf("parameter %s: its brackets do not match", key))
			continue
		}
		at := slices.Index(segments, "")
		for i, value := range values[key] {
			if at < 0 && i > 0 {
				problems = append(problems, fmt.Sprintf("parameter %s: given %d times", key, len(values[key])))
				break
			}
			path := slices.Clone(segments)
			for s := range path {
				switch {
				case s == at:
					path[s] = strconv.Itoa(i)
				case path[s] == "":
					path[s] = "0"
				}
			}
			if !set(all, path, value) {
				problems = append(problems, fmt.Sprintf("parameter %s: given in two ways", key))
			}
		}
	}
	return all, problems
}

// split takes "a[b][]" apart: "a", "b", "".
func split(key string) (segments []string, ok bool) {
	first, rest, nested := strings.Cut(key, "[")
	if first == "" || strings.Contains(first, "]") {
		return nil, false
	}
	segments = []string{first}
	if !nested {
		return segments, true
	}
	rest, ok = strings.CutSuffix(rest, "]")
	for segment := range strings.SplitSeq(rest, "][") {
		ok = ok && !strings.ContainsAny(segment, "[]")
		segments = append(segments, segment)
	}
	return segments, ok
}

// set puts a text at a path, unless the path has a value.
func set(object map[string]any, path []string, text string) bool {
	name, rest := path[0], path[1:]
	if len(rest) == 0 {
		_, there := object[name]
		if !there {
			object[name] = text
		}
		return !there
	}
	if object[name] == nil {
		object[name] = map[string]any{}
	}
	inner, ok := object[name].(map[string]any)
	return ok && set(inner, rest, text)
}

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
			isID := property.Expansion != nil || property.Items != nil && property.Items.Expansion != nil // or a list of ids
			found = found || slices.Contains(one.Expandable, segment) && (isID || included || documented[one.name] == segment)
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

// unlike compares the requested expansion with the fields of the answer that are objects or ids.
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
