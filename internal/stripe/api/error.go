package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/secret"
)

// An Error describes a failed request.
type Error struct {
	Verdict  Verdict
	Answer   Answer
	Request  string             // method and path, without ids
	Text     string             // Stripe's message, or the failure on the way; holds no secret
	Intent   *sdk.PaymentIntent // the one in the error, or nil
	Charge   string             // the failed charge in the error, or ""
	Replayed bool               // the answer to an earlier send of the same key
	Maybe    bool               // an earlier send may have been carried out
	cause    error              // the error of the context or of its gate, or nil
}

// Error names the request and its outcome.
func (e *Error) Error() string {
	return fmt.Sprintf("%v: stripe: %s: %s", e.sentinel(), e.Request, e.Text)
}

// Unwrap returns the verdict's error in package billing, as of a request other than an attempt to
// take money.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.sentinel()}
	}
	return []error{e.sentinel(), e.cause}
}

func (e *Error) sentinel() error {
	switch e.Verdict {
	case Busy:
		return billing.ErrNotExecuted
	case Refused:
		return billing.ErrRefused
	case AccountRefused:
		return billing.ErrAccountRefused
	case Declined, Action, PayerGone, Moved, Gone, Invalid:
		return billing.ErrInvalid
	}
	return billing.ErrUnknown
}

// Is returns the error as an *Error if it has one of the verdicts.
func Is(err error, verdicts ...Verdict) (*Error, bool) {
	if e, ok := errors.AsType[*Error](err); ok && slices.Contains(verdicts, e.Verdict) {
		return e, true
	}
	return nil, false
}

// Disconnected reports whether a connected account has disconnected, now or a moment ago. A key
// that lacks one permission, or a mode that the account does not have yet, is another case.
func (e *Error) Disconnected() bool {
	return e.Verdict == AccountRefused && (e.Answer.Status == 0 || e.Answer.disconnects())
}

// IsRejected reports whether the request was wrong and was not carried out.
func IsRejected(err error) bool {
	if _, ok := errors.AsType[*unsentError](err); ok {
		return true
	}
	e, ok := Is(err, Invalid, Gone, PayerGone, AccountRefused)
	switch {
	case !ok, e.Answer.Kind == "idempotency_error": // an earlier request under the key may have been carried out
		return false
	case e.Verdict == AccountRefused:
		return !e.Disconnected() && listed(atAccountCodes, e.Answer.Code)
	}
	return true
}

// IsReplay reports whether Stripe repeats its answer to an earlier send of the same key.
func IsReplay(h http.Header) bool { return h.Get("Idempotent-Replayed") == "true" }

// Unsent is the error of a wrong request, which is not sent. It wraps billing.ErrInvalid, and its
// text does not say that Stripe refused it.
func Unsent(format string, args ...any) error { return &unsentError{fmt.Sprintf(format, args...)} }

type unsentError struct{ text string }

func (e *unsentError) Error() string { return e.text }
func (e *unsentError) Unwrap() error { return billing.ErrInvalid }

// Unusable is the error of an unusable answer with a status of success: the outcome of the request
// is unknown. object names the expected object.
func Unusable(object, format string, args ...any) error {
	return &Error{Verdict: Unknown, Request: object, Text: Clean(fmt.Sprintf(format, args...))}
}

// Clean makes a foreign text fit for an error: one short line, without secrets and card numbers.
func Clean(text string) string {
	return secret.Short(strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " "))
}
