package httpapi

import (
	"net/http"

	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/web"
)

const (
	codeSignature  = "signature" // of an event or a mark is invalid
	titleSignature = "The signature is missing or wrong"
	codeUnknown    = "unknown" // the order may or may not have been placed
)

// kinds maps the errors of package tracking to HTTP.
var kinds = []web.Kind{
	{Is: tracking.ErrBody, Status: http.StatusBadRequest, Code: "body", Title: "The body is not a Stripe event"},
	{Is: tracking.ErrEndpoint, Status: http.StatusBadRequest, Code: "endpoint", Title: "The event belongs to the other endpoint"},
	{Is: tracking.ErrNotApplied, Status: http.StatusConflict, Code: "not_applied", Title: "The event cannot be applied"},
	{Is: tracking.ErrDisconnected, Status: http.StatusConflict, Code: "disconnected", Title: "The merchant's Stripe account is disconnected"},
	{Is: tracking.ErrUnregistered, Status: http.StatusUnprocessableEntity, Code: "unregistered", Title: "The merchant has no Stripe account here"},
	{Is: tracking.ErrOther, Status: http.StatusUnprocessableEntity, Code: "other", Title: "The Stripe account belongs to another merchant"},
	{Is: tracking.ErrTooLate, Status: http.StatusUnprocessableEntity, Code: "too_late", Title: "The order with this Idempotency-Key is too old to be repeated"},
	{Is: tracking.ErrOrder, Status: http.StatusUnprocessableEntity, Code: "order", Title: "Stripe rejected the order"},
}

var (
	errUnknown = &web.Problem{Status: http.StatusServiceUnavailable, Code: codeUnknown, Title: "The outcome is unknown",
		Detail: "the outcome is unknown; send the request again with the same key"}
	errStripeKey = &web.Problem{Status: http.StatusBadGateway, Code: "stripe_key", Title: "Stripe rejected the server's key",
		Detail: "Stripe rejected the server's key, so nothing was charged; an operator must replace the key"}
	errNotFollowed = &web.Problem{Status: http.StatusConflict, Code: "not_followed", Title: "The server does not follow Stripe",
		Detail: "this server does not follow Stripe, so it has no purchases; the operator turns that on with DUESDAY_STRIPE_KEY for duesday serve"}
	errUnsigned = &web.Problem{Status: http.StatusBadRequest, Code: codeSignature, Title: titleSignature,
		Detail: "the Stripe-Signature header is missing"}
)
