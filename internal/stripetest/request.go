package stripetest

import (
	"fmt"
	"maps"
	"net/url"
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

// Documented limits, which the specification leaves out.
const (
	metadataKeys   = 50
	metadataKey    = 40  // characters
	metadataValue  = 500 // characters
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
		all := maps.Clone(form)
		if all == nil {
			all = url.Values{}
		}
		own := url.Values{}
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
		problems = op.check(op.query, query)
	}
	problems = append(problems, op.check(op.form, form)...)
	if text := query.Get("limit"); op.query.Properties["starting_after"] != nil && integer.MatchString(text) {
		if n, err := strconv.Atoi(text); err != nil || n < 1 || n > pageLimit {
			problems = append(problems, fmt.Sprintf("parameter limit: %s is not from 1 to %d", text, pageLimit))
		}
	}
	for _, name := range expand(query, form) {
		problems = append(problems, op.expandable(name)...)
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

func (o *operation) check(want *schema, values url.Values) []string {
	all, problems := params(values)
	return append(problems, all.check(want, "")...)
}

// check returns the problems of a parameter and of its fields.
func (p *param) check(want *schema, at string) []string {
	want = want.is()
	switch {
	case len(want.AnyOf) > 0:
		return p.checkAny(want, at)
	case want.Type == "object":
		return p.checkObject(want, at)
	case want.Type == "array":
		numbers, ok := p.list()
		if !ok {
			return problem(at, "is not a list (%s[0]=..., or %[1]s[]=...)", at)
		}
		var problems []string
		for _, n := range numbers {
			problems = append(problems, p.fields[strconv.Itoa(n)].check(want.Items, fmt.Sprintf("%s[%d]", at, n))...)
		}
		return problems
	case p.fields != nil:
		return problem(at, "is a list or has fields; it must be one %s", want.Type)
	}
	return p.checkText(want, at)
}

// checkAny accepts one of the alternatives. Otherwise it returns the problems of the nearest one.
func (p *param) checkAny(want *schema, at string) (best []string) {
	distance := 0
	for i, one := range want.AnyOf {
		problems := p.check(one, at)
		if len(problems) == 0 {
			return nil
		}
		far := len(problems)
		if _, list := p.list(); (p.fields == nil) != (one.Type != "object" && one.Type != "array") ||
			list != (one.Type == "array") && p.fields != nil {
			far += 1000 // of another kind
		}
		if i == 0 || far <= distance {
			best, distance = problems, far
		}
	}
	return best
}

func (p *param) checkObject(want *schema, at string) (problems []string) {
	if p.fields == nil {
		if p.text == "" && len(want.Properties) == 0 {
			return nil // the only way to say {}
		}
		return problem(at, "is a text; it must have fields (%s[...]=...)", at)
	}
	inside := func(name string) string {
		if at == "" {
			return name
		}
		return at + "[" + name + "]"
	}
	for _, name := range slices.Sorted(maps.Keys(p.fields)) {
		field, known := p.fields[name], want.Properties[name]
		switch {
		case known != nil:
			problems = append(problems, field.check(known, inside(name))...)
		case want.Additional.of != nil && want.Additional.of.Type == "string" && len(want.Additional.of.AnyOf) == 0:
			problems = append(problems, field.checkMetadata(name, inside(name))...)
		case want.Additional.of != nil:
			problems = append(problems, field.check(want.Additional.of, inside(name))...)
		case !want.Additional.any:
			problems = append(problems, problem(inside(name), "is unknown to Stripe")...)
		}
	}
	if want.Additional.of != nil && len(p.fields) > metadataKeys {
		problems = append(problems, problem(at, "has %d keys, more than %d", len(p.fields), metadataKeys)...)
	}
	for _, name := range want.Required {
		if p.fields[name] == nil {
			problems = append(problems, problem(inside(name), "is missing")...)
		}
	}
	return problems
}

// checkMetadata: an empty text removes the key.
func (p *param) checkMetadata(name, at string) []string {
	switch {
	case p.fields != nil:
		return problem(at, "has fields; metadata is flat")
	case utf8.RuneCountInString(name) > metadataKey:
		return problem(at, "has a key of more than %d characters", metadataKey)
	case utf8.RuneCountInString(p.text) > metadataValue:
		return problem(at, "has more than %d characters", metadataValue)
	}
	return nil
}

func (p *param) checkText(want *schema, at string) []string {
	if len(want.Enum) > 0 {
		if !slices.Contains(want.Enum, any(p.text)) {
			return problem(at, "is %q, not one of %s", p.text, want.enum())
		}
		return nil
	}
	switch {
	case want.Type == "boolean" && p.text != "true" && p.text != "false":
		return problem(at, "is %q, not true or false", p.text)
	case want.Type == "integer" && !integer.MatchString(p.text):
		return problem(at, "is %q, no integer", p.text)
	case want.Type == "number" && !number.MatchString(p.text):
		return problem(at, "is %q, no number", p.text)
	case want.Type == "string" && p.text == "":
		return problem(at, "is empty, and nothing that can be unset: leave it out")
	case want.Format == "decimal" && !decimal.MatchString(p.text):
		return problem(at, "is %q, no decimal number", p.text)
	case want.Format == "currency" && !currency.MatchString(p.text):
		return problem(at, "is %q, no currency in lower case", p.text)
	case want.MaxLength > 0 && utf8.RuneCountInString(p.text) > want.MaxLength:
		return problem(at, "has %d characters, more than %d", utf8.RuneCountInString(p.text), want.MaxLength)
	}
	return nil
}

func problem(at, format string, args ...any) []string {
	return []string{"parameter " + at + " " + fmt.Sprintf(format, args...)}
}
