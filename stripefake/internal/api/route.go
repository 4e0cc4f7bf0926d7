package api

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// A Route is one method and path of the API.
type Route struct {
	Method string
	Path   string // with {names}, as in Stripe's spec: /v1/payment_intents/{intent}/confirm
	// Params are the parameters, separated by spaces, each with the type that it must have: name,
	// name:int, name:time (not negative), name:amount (not larger than an amount either), name:bool,
	// name:one|two, name:one|int. Names may have brackets. A name! is required, a name[part]! if name is
	// given. Describe sets a =name. A ~name is Stripe's, and this fake refuses it; of a name=value it
	// takes that value alone. A list has ListParams. Every route but a DELETE has expand as well.
	Params string
	Former string // parameters that versions before 2025-03-31.basil alone have
	Do     func(*Call) (object, error)

	parts  []string // of the path; the router's, as are the parsed parameters
	params []param
}

// A param is a parameter of a route.
type param struct {
	name, typ, only          string
	required, member, beyond bool
}

func parseParams(params string) (list []param) {
	for text := range strings.FieldsSeq(params) {
		var p param
		text, p.beyond = strings.CutPrefix(text, "~")
		text, p.member = strings.CutPrefix(text, "=")
		text, p.required = strings.CutSuffix(text, "!")
		text, p.only, _ = strings.Cut(text, "=")
		p.name, p.typ, _ = strings.Cut(text, ":")
		list = append(list, p)
	}
	return list
}

// param returns the parameter of the name, or one with brackets within it.
func (r *Route) param(name string) (p param, known bool) {
	for _, p := range r.params {
		if p.name == name || strings.HasPrefix(p.name, name+"[") {
			return p, true
		}
	}
	return p, name == "expand" || slices.Contains(strings.Fields(r.Former), name)
}

// isNumber reports whether the parameter has a whole number, if only among other values.
func (p param) isNumber() bool {
	return p.typ == "int" || p.typ == "time" || p.typ == "amount" || strings.HasSuffix(p.typ, "|int")
}

// check returns the error of a value that is not of the parameter's type.
func (p param) check(v any) error {
	switch p.typ {
	case "":
	case "bool":
		if v != "" && v != "true" && v != "false" {
			return shape.Invalid("", p.name, "Invalid boolean: "+shape.Shown(v))
		}
	case "int", "time", "amount":
		n, err := shape.WholeOf(v, p.name)
		switch {
		case err != nil:
			return err
		case p.typ != "int" && n < 0:
			return shape.Invalid("parameter_invalid_integer", p.name, "This value must be greater than or equal to 0.")
		case p.typ == "amount" && n > shape.MaxAmount:
			return shape.Invalid("amount_too_large", p.name, fmt.Sprintf("Amount must be no more than %d.", shape.MaxAmount))
		}
	default:
		of := strings.Split(strings.TrimSuffix(p.typ, "|int"), "|")
		s, ok := v.(string)
		switch {
		case ok && slices.Contains(of, s):
		case p.isNumber():
			_, err := shape.WholeOf(v, p.name)
			return err
		default:
			return shape.Invalid("", p.name, fmt.Sprintf("Invalid %s: must be one of %s", p.name, strings.Join(of, ", ")))
		}
	}
	return nil
}

func on(method, path, params string, do func(*Call) (object, error)) Route {
	return Route{Method: method, Path: path, Params: params, Do: do}
}

// A router finds routes by their method and number of parts. In a path a literal wins over a name:
// /v1/invoices/create_preview is no invoice.
type router map[string][]*Route

func newRouter(routes []Route) router {
	r := router{}
	for i := range routes {
		route := &routes[i]
		route.parts, route.params = strings.Split(route.Path, "/"), parseParams(route.Params)
		at := shapeOf(route.Method, len(route.parts))
		r[at] = append(r[at], route)
	}
	for _, list := range r {
		slices.SortStableFunc(list, func(a, b *Route) int { return strings.Count(a.Path, "{") - strings.Count(b.Path, "{") })
	}
	return r
}

// Endpoints lists all routes, by path.
func (f *Fake) Endpoints() []string {
	var list []string
	for _, routes := range f.router {
		for _, route := range routes {
			list = append(list, route.Endpoint())
		}
	}
	slices.SortFunc(list, ByPath)
	return list
}

// ByPath compares endpoints: METHOD /path.
func ByPath(a, b string) int {
	methodA, pathA, _ := strings.Cut(a, " ")
	methodB, pathB, _ := strings.Cut(b, " ")
	return cmp.Or(cmp.Compare(pathA, pathB), cmp.Compare(methodA, methodB))
}

func shapeOf(method string, parts int) string { return fmt.Sprint(method, " ", parts) }

// find returns the route, or nil, and the values of the names in its path, the last of them as id.
func (r router) find(method, path string) (route *Route, names map[string]string, id string) {
	parts := strings.Split(strings.TrimSuffix(path, "/"), "/")
	for _, candidate := range r[shapeOf(method, len(parts))] {
		if names, id, ok := candidate.match(parts); ok {
			return candidate, names, id
		}
	}
	return nil, nil, ""
}

func (r *Route) match(parts []string) (names map[string]string, id string, ok bool) {
	names = map[string]string{}
	for i, part := range r.parts {
		name, isName := strings.CutPrefix(part, "{")
		switch {
		case isName && parts[i] == "search": // Stripe has searches beside lists; there are none here
			return nil, "", false
		case isName && parts[i] != "":
			id = parts[i]
			names[strings.TrimSuffix(name, "}")] = id
		case part != parts[i]:
			return nil, "", false
		}
	}
	return names, id, true
}

// Endpoint names the route in counts, limits and logs.
func (r *Route) Endpoint() string { return r.Method + " " + r.Path }

// Know refuses a parameter that the route does not have in the version. A DELETE answers with a
// stub, which has nothing to expand, unless it only cancels; API v2 expands nothing.
func (r *Route) Know(f shape.Form, version string) error {
	known := r.Names()
	if version < shape.Basil {
		known = append(known, strings.Fields(r.Former)...)
	}
	for name := range f {
		if name == "payment_method_types" && version >= shape.Endive {
			return shape.Invalid("payment_method_types_no_longer_supported", name, "payment_method_types is no longer "+
				"supported. Use dynamic payment methods, excluded_payment_method_types or allowed_payment_method_types.")
		}
		if (name != "expand" || r.Method == http.MethodDelete || isV2(r.Path)) && !slices.Contains(known, name) {
			return shape.UnknownParam(name)
		}
	}
	return nil
}

// Names returns the names of the route's top-level parameters.
func (r *Route) Names() (names []string) {
	for _, p := range parseParams(r.Params) {
		name, _, _ := strings.Cut(p.name, "[")
		names = append(names, name)
	}
	return names
}

// ResultKind returns the kind of the route's answers, by the last of the collections in its path.
func (r *Route) ResultKind() string {
	for _, part := range slices.Backward(strings.Split(r.Path, "/")) {
		switch kindName := strings.TrimSuffix(part, "s"); {
		case part == "lines":
			return "line_item"
		case part == "sessions":
			return "checkout.session"
		case part == "test_clocks":
			return ClockKind
		case slices.Contains(slices.Collect(maps.Values(idKinds)), kindName):
			return kindName
		}
	}
	return ""
}

func unrecognized(r *http.Request) error {
	return shape.Refused(http.StatusNotFound, "", "", fmt.Sprintf("Unrecognized request URL (%s: %s). Please see "+
		"https://stripe.com/docs or we can help at https://support.stripe.com/. (This is a fake, which has less than "+
		"Stripe: GET /_fake/ lists what it has.)", r.Method, shape.Shown(r.URL.Path)))
}
