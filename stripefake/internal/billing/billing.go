// Package billing is Stripe Billing: products, prices, invoice items, invoices,
// subscriptions, schedules and test clocks. It takes payments by package payment, and does not
// answer for cards.
package billing

import (
	"slices"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/payment"
)

// A call is a request about these resources, or a change by itself.
type call struct{ payment.Call }

func callOf(c *api.Call) call { return call{payment.Call{Call: c}} }

// Routes are the endpoints of this package.
func Routes() []api.Route {
	return slices.Concat(productRoutes(), priceRoutes(), itemRoutes(), invoiceRoutes(), invoicePaymentRoutes(),
		subscriptionRoutes(), scheduleRoutes(), clockRoutes())
}

// Timed are this package's kinds with changes by themselves. A phase of a schedule ends before its
// subscription renews.
func Timed() map[string]api.Timed {
	timed := func(rank int, due func(object) (int64, bool), happens func(call, object)) api.Timed {
		return api.Timed{Rank: rank, Due: due, Happens: func(c *api.Call, o object) { happens(callOf(c), o) }}
	}
	return map[string]api.Timed{
		"subscription_schedule": timed(0, scheduleDue, call.scheduleHappens),
		"invoice":               timed(1, invoiceDue, call.invoiceHappens),
		"subscription":          timed(2, subscriptionDue, call.subscriptionHappens),
	}
}

// Followers are this package's parts in the steps of package payment.
func Followers() map[string]func(*api.Call, object) {
	return map[string]func(*api.Call, object){
		payment.IntentMoved:    func(c *api.Call, o object) { callOf(c).followIntent(o) },
		payment.CustomerLeaves: func(c *api.Call, o object) { callOf(c).customerGone(o) },
	}
}

func on(method, path, params string, do func(call) (object, error)) api.Route {
	handler := func(c *api.Call) (object, error) { return do(callOf(c)) }
	return api.Route{Method: method, Path: path, Params: params, Do: handler}
}

// formerly adds parameters for versions before 2025-03-31.basil.
func formerly(params string, r api.Route) api.Route {
	r.Former = params
	return r
}
