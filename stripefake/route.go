package stripefake

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// A router finds routes. Where a part of a path can be a literal or a name, the literal
// wins: /v1/invoices/create_preview is no invoice.
type router struct {
	byShape map[string][]*route // by method and number of parts
}

func newRouter(routes []route) *router {
	r := &router{byShape: map[string][]*route{}}
	for i := range routes {
		routes[i].parts = strings.Split(routes[i].path, "/")
		at := shapeOf(routes[i].method, len(routes[i].parts))
		r.byShape[at] = append(r.byShape[at], &routes[i])
	}
	for _, list := range r.byShape {
		slices.SortStableFunc(list, func(a, b *route) int { return strings.Count(a.path, "{") - strings.Count(b.path, "{") })
	}
	return r
}

// endpoints names all routes, by path.
func (r *router) endpoints() []string {
	var list []string
	for _, routes := range r.byShape {
		for _, route := range routes {
			list = append(list, route.endpoint())
		}
	}
	slices.SortFunc(list, byPath)
	return list
}

// byPath compares endpoints: METHOD /path.
func byPath(a, b string) int {
	methodA, pathA, _ := strings.Cut(a, " ")
	methodB, pathB, _ := strings.Cut(b, " ")
	return cmp.Or(cmp.Compare(pathA, pathB), cmp.Compare(methodA, methodB))
}

func shapeOf(method string, parts int) string { return fmt.Sprint(method, " ", parts) }

// find returns the route of the request and what stands for the names in its path, or nil.
func (r *router) find(method, path string) (*route, map[string]string) {
	parts := strings.Split(strings.TrimSuffix(path, "/"), "/")
	for _, candidate := range r.byShape[shapeOf(method, len(parts))] {
		if names, ok := candidate.match(parts); ok {
			return candidate, names
		}
	}
	return nil, nil
}

func (r *route) match(parts []string) (map[string]string, bool) {
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

// endpoint names the route in counts, limits and logs.
func (r *route) endpoint() string { return r.method + " " + r.path }

// know refuses parameters that the route does not know in the version. A DELETE answers with
// what is no more, which has nothing to expand, unless it only cancels.
func (r *route) know(f form, version string) error {
	known := strings.Fields(r.params)
	if version < basil {
		known = append(known, strings.Fields(r.former)...)
	}
	for name := range f {
		if (name != "expand" || r.method == http.MethodDelete) && !slices.Contains(known, name) {
			return unknownParam(name)
		}
	}
	return nil
}

// resultKind is the kind of the objects that the route answers with: that of its resource.
func (c *call) resultKind() string {
	for i, part := range slices.Backward(c.route.parts) {
		if kind := resources[part]; kind != "" {
			return kind
		}
		if kind := resources[strings.Join(c.route.parts[max(0, i-1):i+1], "/")]; kind != "" {
			return kind
		}
	}
	return ""
}

// resources are the kinds of the collections in paths.
var resources = map[string]string{
	"accounts": "account", "account": "account", "charges": "charge", "checkout/sessions": "checkout.session", "customers": "customer", "disputes": "dispute",
	"events": "event", "invoice_payments": "invoice_payment", "invoiceitems": "invoiceitem", "invoices": "invoice", "lines": "line_item",
	"payment_intents": "payment_intent", "payment_methods": "payment_method", "prices": "price", "products": "product", "refunds": "refund",
	"setup_intents": "setup_intent", "subscription_items": "subscription_item", "subscription_schedules": "subscription_schedule",
	"subscriptions": "subscription", "test_helpers/test_clocks": "test_helpers.test_clock", "webhook_endpoints": "webhook_endpoint",
	"balance_transactions": "balance_transaction",
}

func unrecognized(r *http.Request) error {
	return &apiError{status: http.StatusNotFound, kind: "invalid_request_error",
		message: fmt.Sprintf("Unrecognized request URL (%s: %s). Please see https://stripe.com/docs or we can help at https://support.stripe.com/. "+
			"(This is a fake, which has less than Stripe: GET /_fake/ lists what it has.)", r.Method, shown(r.URL.Path))}
}

// allRoutes are the routes of the whole API.
func allRoutes() []route { return slices.Concat(coreRoutes(), paymentRoutes(), billingRoutes()) }
