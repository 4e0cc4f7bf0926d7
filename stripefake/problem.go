package stripefake

import (
	"net/http"
	"slices"
	"strings"
)

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

// absent is Stripe's error about a parameter that names something which is not there: a 400,
// whereas an object that the path names is a 404.
func absent(kindName, id, param string) error {
	return &apiError{status: http.StatusBadRequest, kind: "invalid_request_error", code: "resource_missing", param: param,
		message: "No such " + kindName + ": '" + shown(id) + "'"}
}

// isValidation says whether the error is one that Stripe finds before it begins to carry
// the request out, so that its idempotency key is still free.
func (e *apiError) isValidation() bool {
	return e.status == http.StatusBadRequest && e.kind == "invalid_request_error" &&
		(e.code == "" || strings.HasPrefix(e.code, "parameter_") || slices.Contains([]string{"amount_too_large", "amount_too_small", "email_invalid", "url_invalid"}, e.code))
}

func unknownParam(name string) error {
	return invalid("parameter_unknown", name, "Received unknown parameter: "+shown(name))
}
