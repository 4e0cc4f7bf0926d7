package stripefake

import "net/http"

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

// An apiError is the error of an answer, and carries everything that Stripe puts into one.
type apiError struct {
	status  int
	kind    string // card_error, invalid_request_error, idempotency_error, api_error, …
	code    string
	decline string // decline_code
	advice  string // advice_code
	param   string
	message string
	intent  object // payment_intent or setup_intent, shown in the error; nil: none
	method  object // payment_method; nil: none
	charge  string
}

func (e *apiError) Error() string { return e.message }

func missing(kindName, id, param string) error {
	return &apiError{status: http.StatusNotFound, kind: "invalid_request_error", code: "resource_missing", param: param,
		message: "No such " + kindName + ": '" + shown(id) + "'"}
}

// invalid is a 400 about a parameter.
func invalid(code, param, message string) error {
	return &apiError{status: http.StatusBadRequest, kind: "invalid_request_error", code: code, param: param, message: message}
}
