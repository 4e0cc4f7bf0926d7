package stripefake

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A shop is a world with something to sell.
type shop struct {
	*world
	product, monthly, yearly string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	return newWorld(t, Options{}).shop()
}

func (w *world) shop() *shop {
	w.t.Helper()
	s := &shop{world: w}
	s.product = s.post("products", "name=Tea").id()
	s.monthly = s.post("prices", "currency=usd", "unit_amount=1500", "recurring[interval]=month",
		"product="+s.product).id()
	s.yearly = s.post("prices", "currency=usd", "unit_amount=12000", "recurring[interval]=year", "product="+s.product).id()
	return s
}

// params writes parameters, given as name=value, as a body.
func params(pairs []string) string {
	var list []string
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		list = append(list, url.QueryEscape(name)+"="+url.QueryEscape(value))
	}
	return strings.Join(list, "&")
}

// post is a request that has to succeed.
func (s *shop) post(path string, pairs ...string) answer {
	s.t.Helper()
	return s.ok("POST", "/v1/"+path, params(pairs))
}

// try is a request that may fail.
func (s *shop) try(path string, pairs ...string) answer {
	s.t.Helper()
	return s.do("POST", "/v1/"+path, params(pairs))
}

func (s *shop) get(path string, pairs ...string) answer {
	s.t.Helper()
	return s.ok("GET", "/v1/"+path, params(pairs))
}

// buyerWith returns a customer who pays with the test payment method, and that method's id.
func (s *shop) buyerWith(method string, pairs ...string) (customer, card string) {
	s.t.Helper()
	customer = s.post("customers", append([]string{"name=Ann", "email=ann@example.com"}, pairs...)...).id()
	if method != "" {
		card = s.post("payment_methods/"+method+"/attach", "customer="+customer).id()
		s.post("customers/"+customer, "invoice_settings[default_payment_method]="+card)
	}
	return customer, card
}

// subscribe returns a new subscription to the monthly price.
func (s *shop) subscribe(customer string, pairs ...string) answer {
	s.t.Helper()
	return s.post("subscriptions", append([]string{"customer=" + customer, "items[0][price]=" + s.monthly}, pairs...)...)
}

// until advances the fake's clock to the time.
func (s *shop) until(text string) {
	s.t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		s.t.Fatal(err)
	}
	s.SetNow(when)
}

// story is the types of the events since the last call, oldest first, without those about
// products, prices, customers and payment methods.
func (s *shop) story() string {
	s.t.Helper()
	s.api.Mu.Lock()
	defer s.api.Mu.Unlock()
	space := s.api.In(DefaultAccount, false)
	var list []string
	events := space.All("event")
	for _, e := range events {
		if e["_heard"] != nil {
			continue
		}
		e["_heard"] = true
		typ := e.Str("type")
		kind, _, _ := strings.Cut(typ, ".")
		if kind == "product" || kind == "price" || kind == "payment_method" || kind == "test_helpers" ||
			strings.HasPrefix(typ, "customer.") && !strings.HasPrefix(typ, "customer.subscription.") {
			continue
		}
		list = append(list, typ)
	}
	return strings.Join(list, " ")
}

// heard checks the story since the last call.
func (s *shop) heard(what string, want ...string) {
	s.t.Helper()
	if got, want := s.story(), strings.Join(want, " "); got != want {
		s.t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// is checks members of an object, given as path=text.
func (s *shop) is(o answer, pairs ...string) {
	s.t.Helper()
	for _, pair := range pairs {
		path, want, _ := strings.Cut(pair, "=")
		got := o.at(path)
		if n, ok := got.(float64); ok {
			got = int64(n)
		}
		if fmt.Sprint(got) != want {
			s.t.Errorf("%s of %s is %v, want %s", path, o.id(), got, want)
		}
	}
}
