package billingapi

import (
	"errors"
	"net/http"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/charging"
	"github.com/duesday/duesday/internal/billing/payout"
	"github.com/duesday/duesday/internal/billing/planchange"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/lookup"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/web"
)

var (
	errNothing = billing.Invalid("", "must contain at least one field")
	errCollect = &web.Problem{Status: http.StatusForbidden, Code: "scope", Detail: "collect needs an API key with scope charge"}
	errNow     = &web.Problem{Status: http.StatusForbidden, Code: "scope", Detail: "now needs an API key with scope charge"}
	errAdmin   = &web.Problem{Status: http.StatusForbidden, Code: "scope", Detail: "verify and reconcile need an API key with scope admin"}
	errBusy    = &web.Problem{Status: http.StatusConflict, Code: "run_in_progress", Title: "Another run is in progress",
		Detail: "another run is in progress; wait until it has ended"}
	errReporting = &web.Problem{Status: http.StatusServiceUnavailable, Code: "unavailable",
		Detail: "another report is being made; wait until it has ended"}
)

// problem maps a billing error to a Problem without the request's values. It logs an error that the operator
// must see.
func (s *server) problem(r *web.Request, err error) error {
	if err == nil || errors.As(err, new(*web.Problem)) || errors.As(err, new(*billing.FieldError)) {
		return err
	}
	for _, k := range kinds() {
		_, illegible := errors.AsType[*billing.IllegibleError](err)
		if !errors.Is(err, k.Is) && !(illegible && k.Is == errIllegible) {
			continue
		}
		if k.Status >= http.StatusInternalServerError {
			r.Failed(err)
		}
		return &web.Problem{Status: k.Status, Code: k.Code, Title: k.Title, Detail: r.WithoutValues(err.Error())}
	}
	return err
}

// errIllegible stands for a billing.IllegibleError in kinds.
var errIllegible = errors.New("illegible")

// kinds maps billing's errors to Problems. The first match counts.
func kinds() []web.Kind {
	const conflict, refused, unavailable = http.StatusConflict, http.StatusUnprocessableEntity, http.StatusServiceUnavailable
	return []web.Kind{
		{Is: call.ErrVersion, Status: http.StatusPreconditionFailed, Code: "version", Title: "The object has changed"},
		{Is: errIllegible, Status: conflict, Code: "illegible", Title: "The stored object cannot be read"},
		// These come before ErrState, because their cause is not the object.
		{Is: charging.ErrOff, Status: conflict, Code: "charging_off", Title: "Charging is off"},
		{Is: charging.ErrWentBack, Status: conflict, Code: "went_back", Title: "The store was restored and must be reconciled"},
		{Is: charging.ErrOtherInstallation, Status: conflict, Code: "other_installation", Title: "Another installation has charged"},
		{Is: charging.ErrOtherProcessor, Status: conflict, Code: "other_processor", Title: "The store belongs to another processor"},
		{Is: billing.ErrMoved, Status: conflict, Code: "moved", Title: "The store has moved"},
		{Is: billing.ErrClock, Status: unavailable, Code: "clock", Title: "The server's clock is wrong"},
		{Is: billing.ErrExists, Status: conflict, Code: "exists", Title: "The object already exists"},
		{Is: processor.ErrUnknown, Status: unavailable, Code: "unknown", Title: "The outcome is unknown"},
		{Is: store.ErrUnknown, Status: unavailable, Code: "unknown", Title: "The outcome is unknown"},
		{Is: store.ErrOvertaken, Status: unavailable, Code: "unknown", Title: "The outcome is unknown"},
		{Is: processor.ErrNotExecuted, Status: unavailable, Code: "processor_busy", Title: "The processor is busy"},
		{Is: processor.ErrRefused, Status: http.StatusBadGateway, Code: "processor_key", Title: "The processor rejected the server's key"},
		{Is: processor.ErrAccountRefused, Status: conflict, Code: "processor_account", Title: "The processor rejected the connected account"},
		{Is: processor.ErrInvalid, Status: refused, Code: "processor", Title: "The processor rejected the request"},
		{Is: processor.ErrNoIntent, Status: conflict, Code: "no_intent", Title: "The processor does not have the payment intent"},
		{Is: processor.ErrNoWallet, Status: conflict, Code: "no_wallet", Title: "The processor stores no cards"},
		{Is: refund.ErrNoRefunds, Status: conflict, Code: "no_refunds", Title: "The processor cannot refund"},
		{Is: payout.ErrNone, Status: conflict, Code: "no_payouts", Title: "The processor has no payouts"},
		{Is: planchange.ErrCurrencies, Status: refused, Code: "currencies", Title: "The subscriptions have several currencies"},
		{Is: delivery.ErrState, Status: conflict, Code: "state", Title: "The object's state does not allow the request"},
		{Is: lookup.ErrIncomplete, Status: conflict, Code: "state", Title: "The object's state does not allow the request"},
		{Is: billing.ErrErased, Status: conflict, Code: "state", Title: "The object's state does not allow the request"},
		{Is: billing.ErrState, Status: conflict, Code: "state", Title: "The object's state does not allow the request"},
		{Is: billing.ErrNoStore, Status: unavailable, Code: "no_store", Title: "The store is gone"},
		{Is: store.ErrThrottled, Status: unavailable, Code: "busy", Title: "The store is busy"},
	}
}
