package httpapi

import (
	"net/http"

	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/web"
)

const (
	codeSignature = "signature" // of an event or a mark is wrong
	codeUnknown   = "unknown"   // of an order: it may or may not have been carried out
)

// kinds maps the errors of package tracking to HTTP.
var kinds = []web.Kind{
	{Is: tracking.ErrBody, Status: http.StatusBadRequest, Code: "body"},
	{Is: tracking.ErrEndpoint, Status: http.StatusBadRequest, Code: "endpoint"},
	{Is: tracking.ErrDisconnected, Status: http.StatusConflict, Code: "disconnected"},
	{Is: tracking.ErrUnregistered, Status: http.StatusUnprocessableEntity, Code: "unregistered"},
	{Is: tracking.ErrOther, Status: http.StatusUnprocessableEntity, Code: "other"},
	{Is: tracking.ErrTooLate, Status: http.StatusUnprocessableEntity, Code: "too_late"},
	{Is: tracking.ErrOrder, Status: http.StatusUnprocessableEntity, Code: "order"},
}

var (
	errUnknown = &web.Problem{Status: http.StatusServiceUnavailable, Code: codeUnknown,
		Detail: "the outcome of the order is unknown; repeat it with the same key"}
	errStripeKey = &web.Problem{Status: http.StatusBadGateway, Code: "stripe_key",
		Detail: "Stripe refuses this server's key, so nothing was charged; the operator must replace the key"}
	errUnsigned = &web.Problem{Status: http.StatusBadRequest, Code: codeSignature,
		Detail: "the Stripe-Signature header is missing"}
)
