// Package billing fakes Stripe Billing: products, prices, invoice items, invoices, subscriptions, schedules
// and test clocks. It charges through package payment, and does not know the test cards.
package billing

import (
	"cmp"
	"slices"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/payment"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

type object = shape.Object

// A call is a request about these resources, or a change by itself.
type call struct{ payment.Call }

// Resources are the routes and kinds of this package and of package payment, and this package's
// parts in the other's steps. A phase of a schedule ends before its subscription renews.
func Resources() api.Resources {
	of := func(do func(call, object)) func(*api.Call, object) {
		return func(c *api.Call, o object) { do(call{payment.Call{Call: c}}, o) }
	}
	return api.Resources{
		Routes: slices.Concat(payment.Routes(), productRoutes(), priceRoutes(), couponRoutes(), itemRoutes(), invoiceRoutes(),
			subscriptionRoutes(), scheduleRoutes(), clockRoutes()),
		Timed: map[string]api.Timed{
			"subscription_schedule": {Rank: 0, Due: scheduleDue, Happens: of(call.scheduleHappens)},
			"invoice":               {Rank: 1, Due: invoiceDue, Happens: of(call.invoiceHappens)},
			"subscription":          {Rank: 2, Due: subscriptionDue, Happens: of(call.subscriptionHappens)},
			"checkout.session":      payment.TimedSession(),
			"payout":                payment.TimedPayout(),
		},
		Followers: map[string]func(*api.Call, object){
			payment.IntentMoved: of(call.followIntent), payment.CustomerLeaves: of(call.customerGone),
		},
		Decline: payment.Declined,
	}
}

func on(method, path, params string, do func(call) (object, error)) api.Route {
	handler := func(c *api.Call) (object, error) { return do(call{payment.Call{Call: c}}) }
	return api.Route{Method: method, Path: path, Params: params, Do: handler}
}

// collected is the one collection_method of this fake: it sends no invoices.
const collected = "collection_method=charge_automatically "

// find returns a handler for the object that the path names. param names it in the error.
func find(kindName, param string) func(call) (object, error) {
	return func(c call) (object, error) { return c.Find(kindName, c.ID, param) }
}

// timed sets the call's time to that of the object's customer.
func timed(load func(call) (object, error)) func(call) (object, error) {
	return api.With(load, func(c call, o object) (object, error) {
		c.Now = c.ClockNow(c.customerOf(o))
		return o, nil
	})
}

// formerly adds parameters for versions before 2025-03-31.basil.
func formerly(params string, r api.Route) api.Route {
	r.Former = params
	return r
}

// buyer returns the customer of the parameter, and sets the call's time to the customer's.
func (c call) buyer() (object, error) {
	if err := c.Form.Require("customer"); err != nil {
		return nil, err
	}
	customer, err := c.Customer(c.Form.Str("customer"), "customer")
	if err == nil {
		c.Now = c.ClockNow(customer)
	}
	return customer, err
}

func (c call) customerOf(o object) object { return c.Space.Get("customer", o.Str("customer")) }

// payer returns the payment method of the parameter, which must be the customer's; "": none.
func (c call) payer(p shape.Params, name string, customer object) (string, error) {
	id := p.Str(name)
	if id == "" {
		return "", nil
	}
	method, err := c.Find("payment_method", id, p.In(name))
	if err != nil {
		return "", err
	}
	if method.Str("customer") != customer.ID() {
		return "", p.Invalid("resource_missing", name, "The payment method "+id+" does not belong to the customer "+
			customer.ID()+". Please attach it to the customer first.")
	}
	return method.ID(), nil
}

// methodFor returns an invoice's payment method, its subscription's, or the customer's; "": none.
func (c call) methodFor(invoice object) string {
	return cmp.Or(invoice.Str("default_payment_method"),
		c.subscriptionOf(invoice).Str("default_payment_method"), c.DefaultMethod(c.customerOf(invoice)))
}

func issuer() object { return object{"type": "self"} }
