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
}

// A route is one method and path of the API.
type route struct {
	method string
	path   string // with {names}, as in Stripe's spec: /v1/payment_intents/{intent}/confirm
	params string // the top-level parameters that it knows, separated by spaces; metadata, expand, limit… included
	do     func(*call) (object, error)
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
		message: "No such " + kindName + ": '" + id + "'"}
}

// invalid is a 400 about a parameter.
func invalid(code, param, message string) error {
	return &apiError{status: http.StatusBadRequest, kind: "invalid_request_error", code: code, param: param, message: message}
}

// A form is the parameters of a request: string, form or []any, as the brackets of their
// names say.
type form map[string]any

func (f form) has(name string) bool   { _, ok := f[name]; return ok }
func (f form) str(name string) string { s, _ := f[name].(string); return s }
func (f form) yes(name string) bool   { return f.str(name) == "true" }
func (f form) sub(name string) form   { s, _ := f[name].(form); return s }
func (f form) list(name string) []any { l, _ := f[name].([]any); return l }

// emit makes the event of a change of the object: an event object with a snapshot, and what
// has to be sent to webhook endpoints. previous are the members that have changed, as they
// were; nil unless the type is one of …updated.
func (c *call) emit(typ string, o object, previous object) {}
