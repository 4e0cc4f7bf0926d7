package shape

import (
	"net/http"
	"slices"
	"strings"
)

// An Error is the error of an answer, with everything that Stripe puts into one.
type Error struct {
	Status  int
	Kind    string // card_error, invalid_request_error, idempotency_error, api_error, …
	Code    string
	Decline string // decline_code
	Advice  string // advice_code
	Param   string
	Message string
	Intent  Object // payment_intent or setup_intent, shown in the error; nil: none
	Method  Object // payment_method; nil: none
	Charge  string
}

func (e *Error) Error() string { return e.Message }

func Missing(kindName, id, param string) error {
	return &Error{Status: http.StatusNotFound, Kind: "invalid_request_error", Code: "resource_missing", Param: param,
		Message: "No such " + kindName + ": '" + Shown(id) + "'"}
}

// Invalid is a 400 about a parameter.
func Invalid(code, param, message string) error {
	return &Error{Status: http.StatusBadRequest, Kind: "invalid_request_error", Code: code, Param: param, Message: message}
}

// Absent is the error of a parameter with the id of an absent object: a 400. An absent object of
// the path is a 404.
func Absent(kindName, id, param string) error {
	return &Error{Status: http.StatusBadRequest, Kind: "invalid_request_error", Code: "resource_missing", Param: param,
		Message: "No such " + kindName + ": '" + Shown(id) + "'"}
}

// IsValidation reports whether Stripe finds the error before it carries the request out: its
// idempotency key stays free.
func (e *Error) IsValidation() bool {
	return e.Status == http.StatusBadRequest && e.Kind == "invalid_request_error" &&
		(e.Code == "" || strings.HasPrefix(e.Code, "parameter_") || slices.Contains([]string{"amount_too_large",
			"amount_too_small", "email_invalid", "url_invalid"}, e.Code))
}

func UnknownParam(name string) error {
	return Invalid("parameter_unknown", name, "Received unknown parameter: "+Shown(name))
}
