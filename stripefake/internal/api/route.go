package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// A router finds routes. In a path a literal wins over a name: /v1/invoices/create_preview is no
// invoice.
type router struct {
	byShape map[string][]*Route // by method and number of parts
}

func newRouter(routes []Route) *router {
	r := &router{byShape: map[string][]*Route{}}
	for i := range routes {
		routes[i].parts = strings.Split(routes[i].Path, "/")
		at := shapeOf(routes[i].Method, len(routes[i].parts))
		r.byShape[at] = append(r.byShape[at], &routes[i])
	}
	for _, list := range r.byShape {
		slices.SortStableFunc(list, func(a, b *Route) int { return strings.Count(a.Path, "{") - strings.Count(b.Path, "{") })
	}
	return r
}

// Endpoints lists all routes, by path.
func (f *Fake) Endpoints() []string {
	var list []string
	for _, routes := range f.router.byShape {
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

// find returns the route of the request and the values of the names in its path, or nil.
func (r *router) find(method, path string) (*Route, map[string]string) {
	parts := strings.Split(strings.TrimSuffix(path, "/"), "/")
	for _, candidate := range r.byShape[shapeOf(method, len(parts))] {
		if names, ok := candidate.match(parts); ok {
			return candidate, names
		}
	}
	return nil, nil
}

func (r *Route) match(parts []string) (map[string]string, bool) {
	names := map[string]string{}
	for i, part := range r.parts {
		name, isName := strings.CutPrefix(part, "{")
		switch {
		case isName && parts[i] == "search": // Stripe has searches beside lists; there are none here
			return nil, false
		case isName && parts[i] != "":
			names[strings.TrimSuffix(name, "}")] = parts[i]
		case part != parts[i]:
			return nil, false
		}
	}
	return names, true
}

// Endpoint names the route in counts, limits and logs.
func (r *Route) Endpoint() string { return r.Method + " " + r.Path }

// Know refuses a parameter that the route does not have in the version. A DELETE answers with a
// stub, which has nothing to expand, unless it only cancels.
func (r *Route) Know(f form, version string) error {
	known := r.Names()
	if version < shape.Basil {
		known = append(known, strings.Fields(r.Former)...)
	}
	for name := range f {
		if (name != "expand" || r.Method == http.MethodDelete) && !slices.Contains(known, name) {
			return shape.UnknownParam(name)
		}
	}
	return nil
}

// Names returns the names of the route's top-level parameters.
func (r *Route) Names() (names []string) {
	for name := range strings.FieldsSeq(r.Params) {
		name, _, _ = strings.Cut(name, ":")
		name, _, _ = strings.Cut(name, "[")
		names = append(names, name)
	}
	return names
}

// ResultKind returns the kind of the route's answers, by its resource.
func (r *Route) ResultKind() string {
	parts := strings.Split(r.Path, "/")
	for i, part := range slices.Backward(parts) {
		if kind := cmp.Or(resources[part], resources[strings.Join(parts[max(0, i-1):i+1], "/")]); kind != "" {
			return kind
		}
	}
	return ""
}

// resources has the kind of each collection in a path.
var resources = map[string]string{
	"accounts": "account", "account": "account", "charges": "charge", "checkout/sessions": "checkout.session",
	"customers": "customer", "disputes": "dispute",
	"events": "event", "invoice_payments": "invoice_payment", "invoiceitems": "invoiceitem", "invoices": "invoice",
	"lines":           "line_item",
	"payment_intents": "payment_intent", "payment_methods": "payment_method", "prices": "price", "products": "product",
	"refunds":       "refund",
	"setup_intents": "setup_intent", "subscription_items": "subscription_item",
	"subscription_schedules": "subscription_schedule",
	"subscriptions":          "subscription", "test_helpers/test_clocks": "test_helpers.test_clock",
	"webhook_endpoints":    "webhook_endpoint",
	"balance_transactions": "balance_transaction",
}

func unrecognized(r *http.Request) error {
	return &shape.Error{Status: http.StatusNotFound, Kind: "invalid_request_error",
		Message: fmt.Sprintf("Unrecognized request URL (%s: %s). Please see https://stripe.com/docs or we can help at "+
			"https://support.stripe.com/. "+
			"(This is a fake, which has less than Stripe: GET /_fake/ lists what it has.)", r.Method, shape.Shown(r.URL.Path))}
}
