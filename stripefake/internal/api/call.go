// Package api is the machinery under Stripe's resources: accounts and modes with their objects,
// calls, routes, lists, expansion, idempotency keys, faults, events, webhooks, and the changes
// that happen by themselves. It has the routes of accounts, events and webhook endpoints; it
// does not know payments and invoices, which register theirs.
package api

// A Call is one API request while the fake carries it out. Mu is held.
type Call struct {
	*Fake
	Space   *Space
	Now     int64             // Unix seconds, by the fake's clock
	Version string            // of the answer, as YYYY-MM-DD.name
	Path    map[string]string // the named parts of the path
	Form    form
	key     string // idempotency key
	id      string // of the request, req_…; "" for a change by itself
	url     string // the request's path: /v1/customers
	Base    string // how the fake was reached, for links to its own pages: http://127.0.0.1:12111
	route   *Route // nil for a change by itself

	BreakOff bool // the request's effect breaks the connection instead of answering
}

// A Route is one method and path of the API.
type Route struct {
	Method string
	Path   string // with {names}, as in Stripe's spec: /v1/payment_intents/{intent}/confirm
	// Params are the parameters, separated by spaces, each with the type that it must have: name,
	// name:int, name:time (not negative), name:amount (not larger than an amount either),
	// name:bool, name:one|two. Names may have brackets. A list has ListParams. Every route but
	// a DELETE has expand as well.
	Params string
	Former string // parameters that versions before 2025-03-31.basil alone have
	Do     func(*Call) (object, error)

	parts []string // of the path; the router's
}

// Follow calls the follower of the step, if a package has registered one.
func (c *Call) Follow(step string, o object) {
	if do := c.Options.Followers[step]; do != nil {
		do(c, o)
	}
}

func on(method, path, params string, do func(*Call) (object, error)) Route {
	return Route{Method: method, Path: path, Params: params, Do: do}
}

// With returns a handler for the object that load finds.
func With[C any](load func(C) (object, error), do func(C, object) (object, error)) func(C) (object, error) {
	return func(c C) (object, error) {
		o, err := load(c)
		if err != nil {
			return nil, err
		}
		return do(c, o)
	}
}
