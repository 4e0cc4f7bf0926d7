// Package payment has customers, payment methods, payment and setup intents, checkout sessions,
// charges, refunds and disputes. It does not know invoices and subscriptions: package billing
// follows the steps named here.
package payment

import (
	"slices"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

type object = shape.Object

// A Call is a request about these resources, or a change by itself.
type Call struct{ *api.Call }

// The steps for followers of this package.
const (
	IntentMoved    = "payment_intent.moved" // with the payment intent in its new state
	CustomerLeaves = "customer.leaves"      // with the customer, before it is deleted
)

// Routes are the endpoints of this package.
func Routes() []api.Route {
	return slices.Concat(customerRoutes(), methodRoutes(), intentRoutes(), setupRoutes(), checkoutRoutes(),
		chargeRoutes(), refundRoutes(), disputeRoutes())
}

// Timed are this package's kinds with changes by themselves.
func Timed() map[string]api.Timed {
	return map[string]api.Timed{
		"checkout.session": {Rank: 3, Due: sessionDue, Happens: func(c *api.Call, o object) { Call{c}.expireSession(o) }},
	}
}

func on(method, path, params string, do func(Call) (object, error)) api.Route {
	handler := func(c *api.Call) (object, error) { return do(Call{c}) }
	return api.Route{Method: method, Path: path, Params: params, Do: handler}
}

// find returns a handler for the object that the path names. param names it in the error.
func find(kindName, param string) func(Call) (object, error) {
	return func(c Call) (object, error) { return c.Find(kindName, c.ID, param) }
}

// IntentKind is the kind of the payment intent or setup intent, by the prefix of its id.
func IntentKind(id string) string {
	if strings.HasPrefix(id, "seti_") {
		return "setup_intent"
	}
	return "payment_intent"
}
