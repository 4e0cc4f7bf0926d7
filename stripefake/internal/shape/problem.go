package shape

import (
	"net/http"
	"regexp"
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
	Network string // network_decline_code, shown in the last error of an object alone
}

func (e *Error) Error() string { return e.Message }

// Object returns the members of the error, without the objects in it.
func (e *Error) Object() Object {
	o := Object{"type": e.Kind, "message": e.Message}
	for name, text := range map[string]string{"code": e.Code, "decline_code": e.Decline, "advice_code": e.Advice,
		"param": e.Param, "charge": e.Charge} {
		if text != "" {
			o[name] = text
		}
	}
	if e.Code != "" {
		o["doc_url"] = "https://stripe.com/docs/error-codes/" + strings.ReplaceAll(e.Code, "_", "-")
	}
	return o
}

// IsValidation reports whether Stripe finds the error first: the idempotency key stays free.
func (e *Error) IsValidation() bool {
	return e.Status == http.StatusBadRequest && e.Kind == "invalid_request_error" &&
		(e.Code == "" || strings.HasPrefix(e.Code, "parameter_") || slices.Contains([]string{"amount_too_large",
			"amount_too_small", "email_invalid", "url_invalid"}, e.Code))
}

// Refused is an invalid_request_error.
func Refused(status int, code, param, message string) *Error {
	return &Error{Status: status, Kind: "invalid_request_error", Code: code, Param: param, Message: message}
}

// Invalid is a 400 about a parameter.
func Invalid(code, param, message string) error {
	return Refused(http.StatusBadRequest, code, param, message)
}

// Missed is the error of a required parameter that is absent or empty.
func Missed(param string) error {
	return Invalid("parameter_missing", param, "Missing required param: "+param+".")
}

// OnlyOne is the error of a parameter that excludes another.
func OnlyOne(param, names string) error {
	return Invalid("", param, "You may only specify one of these parameters: "+names+".")
}

// Missing is the error of an absent object of the path: a 404.
func Missing(kindName, id, param string) *Error {
	return Refused(http.StatusNotFound, "resource_missing", param, "No such "+kindName+": '"+Shown(id)+"'")
}

// Absent is the error of a parameter with the id of an absent object: a 400.
func Absent(kindName, id, param string) error {
	return Invalid("resource_missing", param, "No such "+kindName+": '"+Shown(id)+"'")
}

func UnknownParam(name string) error {
	return Invalid("parameter_unknown", name, "Received unknown parameter: "+Shown(name))
}

// longDigits may be the number of a card.
var longDigits = regexp.MustCompile(`[0-9](?:[ -]?[0-9]){11,}`)

// Shown returns a parameter as errors show it: cut if long, without digits that may be a card's.
func Shown(v any) string {
	s, ok := v.(string)
	s = longDigits.ReplaceAllString(s, "************")
	switch {
	case !ok:
		return "a value with brackets"
	case len(s) > 40:
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}
