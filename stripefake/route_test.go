package stripefake

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/test/stripetest"
	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

// TestParams_areStripes holds every name that a route takes against the specification: the
// fake takes nothing that Stripe refuses, and so hides no mistake.
func TestParams_areStripes(t *testing.T) {
	spec := stripetest.Load(t)
	unknown := func(route api.Route, name string) bool {
		query, form := url.Values{name: {"x"}}, url.Values(nil)
		if route.Method == "POST" {
			query, form = nil, query
		}
		return slices.Contains(spec.CheckRequest(route.Method, route.Path, query, form),
			"parameter "+name+" is unknown to Stripe")
	}
	names := 0
	for _, route := range allRoutes() {
		if strings.HasPrefix(route.Path, "/v2/") { // the specification does not have API v2
			continue
		}
		if !unknown(route, "of_nobody") {
			t.Errorf("%s: the specification takes anything", route.Endpoint())
		}
		for _, name := range append(route.Names(), "expand") {
			names++
			if route.Know(shape.Form{name: "x"}, NewestVersion) == nil && unknown(route, name) {
				t.Errorf("%s takes %s, which Stripe has not", route.Endpoint(), name)
			}
		}
	}
	if names < 500 {
		t.Errorf("%d names only", names)
	}
}

// TestParams_former: what Stripe has dropped, versions of before that still have, and only
// where there is something to expand can it be asked for.
func TestParams_former(t *testing.T) {
	s := newShop(t)
	s.handler = s.Fake // the specification has no old versions
	once := s.post("prices", "currency=usd", "unit_amount=700", "product="+s.product).id()
	customer, _ := s.buyerWith("")
	item := params([]string{"customer=" + customer, "price=" + once})
	s.do("POST", "/v1/invoiceitems", item).refused(t, "price, newest", 400, "parameter_unknown", "price")
	s.do("POST", "/v1/invoiceitems", item, "Stripe-Version", "2025-03-31.basil").refused(t, "price, basil", 400,
		"parameter_unknown", "price")
	s.is(s.ok("POST", "/v1/invoiceitems", item, "Stripe-Version", "2025-02-24.acacia"), "price.id="+once)
	s.do("DELETE", "/v1/customers/"+customer, "expand[]=subscriptions").refused(t, "expand", 400, "parameter_unknown",
		"expand")
	s.removes("customers/" + customer)
}
