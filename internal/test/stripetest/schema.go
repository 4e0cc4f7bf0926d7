package stripetest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Spec is Stripe's OpenAPI specification. It never changes, and is safe for concurrent use.
type Spec struct {
	version string // of the API: "2026-08-26.dahlia"
	schemas map[string]*schema
	objects map[string][]*schema // by the value of the field "object"
	routes  map[int][]*route     // by the number of slashes, those with the fewest names first
	events  map[string]bool      // the types of events
}

// A route is a path with names in braces, and its operations by method.
type route struct {
	template   string
	pattern    string // for path.Match
	operations map[string]*operation
}

type operation struct {
	Parameters []struct {
		Name     string  `json:"name"`
		In       string  `json:"in"`
		Required bool    `json:"required"`
		Schema   *schema `json:"schema"`
	} `json:"parameters"`
	RequestBody struct {
		Content map[string]content `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]content `json:"content"`
	} `json:"responses"`

	query, form *schema // objects
	contentType string  // of the form
	answer      *schema // of status 200; nil without JSON
}

type content struct {
	Schema *schema `json:"schema"`
}

// close brings an operation into the form in which it is asked.
func (o *operation) close() {
	o.query = &schema{Type: "object", Properties: map[string]*schema{}}
	for _, p := range o.Parameters {
		if p.In != "query" {
			continue
		}
		o.query.Properties[p.Name] = p.Schema
		if p.Required {
			o.query.Required = append(o.query.Required, p.Name)
		}
	}
	o.form = &schema{Type: "object"}
	for kind, c := range o.RequestBody.Content {
		o.contentType, o.form = kind, c.Schema
	}
	o.answer = o.Responses["200"].Content["application/json"].Schema
}

// A schema is the specification of a value.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       string             `json:"type"`
	Format     string             `json:"format"`
	Enum       []any              `json:"enum"`
	Nullable   bool               `json:"nullable"`
	MaxLength  int                `json:"maxLength"`
	Pattern    string             `json:"pattern"`
	Required   []string           `json:"required"`
	Properties map[string]*schema `json:"properties"`
	Additional additional         `json:"additionalProperties"`
	AnyOf      []*schema          `json:"anyOf"`
	Items      *schema            `json:"items"`
	Expandable []string           `json:"x-expandableFields"`
	Expansion  *struct{}          `json:"x-expansionResources"`
	name       string             // among the components; "": none
	referred   *schema            // Ref, resolved
	matches    *regexp.Regexp     // Pattern, compiled
}

// additional is the schema of an object's other members: nothing, anything, or of.
type additional struct {
	any bool
	of  *schema
}

func (a *additional) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(text, []byte("{")) {
		return json.Unmarshal(text, &a.any)
	}
	return json.Unmarshal(text, &a.of)
}

// is returns the schema behind a reference, or itself.
func (s *schema) is() *schema {
	for s.referred != nil {
		s = s.referred
	}
	return s
}

// enum lists the allowed values, for people.
func (s *schema) enum() string {
	const most = 12
	var list []string
	for _, value := range s.Enum[:min(most, len(s.Enum))] {
		list = append(list, fmt.Sprintf("%#v", value))
	}
	if len(s.Enum) > most {
		list = append(list, fmt.Sprintf("and %d more", len(s.Enum)-most))
	}
	return strings.Join(list, ", ")
}

// resolve resolves the references. It refuses a document with a rule that this package does not
// know, because it would accept everything that the rule forbids.
func (s *Spec) resolve() error {
	for _, name := range slices.Sorted(maps.Keys(s.schemas)) {
		if err := s.resolveIn(s.schemas[name], name); err != nil {
			return err
		}
	}
	for _, r := range slices.Concat(slices.Collect(maps.Values(s.routes))...) {
		for method, op := range r.operations {
			for _, one := range []*schema{op.query, op.form, cmp.Or(op.answer, op.query)} {
				if err := s.resolveIn(one, method+" "+r.template); err != nil {
					return err
				}
			}
		}
	}
	for _, name := range []string{"error", "event"} {
		if s.schemas[name] == nil {
			return fmt.Errorf("it has no schema %s", name)
		}
	}
	return s.findEvents()
}

func (s *Spec) resolveIn(one *schema, at string) error {
	if one == nil {
		return fmt.Errorf("%s: a schema is missing", at)
	}
	if one.Ref != "" {
		name, ok := strings.CutPrefix(one.Ref, "#/components/schemas/")
		if one.referred = s.schemas[name]; !ok || one.referred == nil {
			return fmt.Errorf("%s: nothing is at %s", at, one.Ref)
		}
		return nil
	}
	if one.Pattern != "" {
		var err error
		if one.matches, err = regexp.Compile(one.Pattern); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	known := []string{"object", "array", "string", "boolean", "integer", "number"}
	if len(one.AnyOf) == 0 && !slices.Contains(known, one.Type) {
		return fmt.Errorf("%s: type %q is not one that is understood", at, one.Type)
	}
	for name, property := range one.Properties {
		if err := s.resolveIn(property, at+"."+name); err != nil {
			return err
		}
	}
	inner := slices.Clone(one.AnyOf)
	if one.Type == "array" {
		inner = append(inner, one.Items)
	}
	if one.Additional.of != nil {
		inner = append(inner, one.Additional.of)
	}
	for _, i := range inner {
		if err := s.resolveIn(i, at); err != nil {
			return err
		}
	}
	return nil
}

// find returns the operation of a method at a path, and the path's template. Fixed segments go
// before names: /v1/customers/search is not the customer "search".
func (s *Spec) find(method, at string) (op *operation, template, problem string) {
	const unknown = "Stripe knows no such path"
	template, problem = at, unknown
	for _, r := range s.routes[strings.Count(at, "/")] {
		fits, _ := path.Match(r.pattern, at)
		if fits && r.operations[method] != nil {
			return r.operations[method], r.template, ""
		}
		if fits && problem == unknown {
			template, problem = r.template, "Stripe knows the path, but not with this method"
		}
	}
	return nil, template, problem
}
