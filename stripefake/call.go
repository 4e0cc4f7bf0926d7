package stripefake

// A call is one API request that is being carried out, with the fake's lock held.
type call struct {
	*Fake
	space   *space
	now     int64             // Unix seconds, by the fake's clock
	version string            // of the API, as YYYY-MM-DD.name, that the answer is in
	path    map[string]string // the parts of the path that the route names
	form    form
	key     string // idempotency key
	id      string // of the request, req_…; "" for what Stripe does by itself
	url     string // the request's path: /v1/customers
	base    string // how the fake was reached, for links to its own pages: http://127.0.0.1:12111
	route   *route // nil for what Stripe does by itself

	breakOff bool // the connection is to be broken instead of an answer; set by what the request does
}

// A route is one method and path of the API.
type route struct {
	method string
	path   string // with {names}, as in Stripe's spec: /v1/payment_intents/{intent}/confirm
	params string // the top-level parameters that it knows, separated by spaces; expand need not be said unless it is a DELETE, listParams are those of lists
	former string // those that only versions before 2025-03-31.basil know
	do     func(*call) (object, error)

	parts []string // of the path; the router's
}

// follow has the package that is registered for the step do its part of it.
func (c *call) follow(step string, o object) {
	if do := c.followers[step]; do != nil {
		do(c, o)
	}
}
