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

// An Error is a request that did not succeed.
type Error struct {
	Verdict  Verdict
	Answer   Answer
	Request  string             // Method and path, without ids
	Text     string             // Request Stripe said, or what happened on the way; holds no secret
	Intent   *sdk.PaymentIntent // the one in the error, or nil
	Charge   string             // the failed charge in the error, or ""
	Replayed bool               // it is the answer to an earlier send of the same key
	cause    error              // the context's error, or nil
}

// Error tells what was asked and what came of it.
func (f *Error) Error() string {
	return fmt.Sprintf("%v: stripe: %s: %s", f.sentinel(), f.Request, f.Text)
}

// Unwrap gives the error of package billing that the verdict stands for, where the request
// was no attempt to take money.
func (f *Error) Unwrap() []error {
	if f.cause == nil {
		return []error{f.sentinel()}
	}
	return []error{f.sentinel(), f.cause}
}

func (f *Error) sentinel() error {
	switch f.Verdict {
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

// Is reports whether the error is a failure with one of the verdicts.
func Is(err error, verdicts ...Verdict) (*Error, bool) {
	f, ok := errors.AsType[*Error](err)
	if !ok {
		return nil, false
	}
	if slices.Contains(verdicts, f.Verdict) {
		return f, true
	}
	return nil, false
}

// Disconnected reports whether a connected account refuses us for good, or did a moment ago. A key
// without the permission for one request, or a mode that the account does not have yet, is
// something else.
func (f *Error) Disconnected() bool {
	return f.Verdict == AccountRefused && (f.Answer.Status == 0 || f.Answer.cuts())
}

// IsRejected reports whether the error says that the request was wrong, and was not carried out.
func IsRejected(err error) bool {
	if _, ok := errors.AsType[*unsentError](err); ok {
		return true
	}
	f, ok := Is(err, Invalid, Gone, PayerGone, AccountRefused)
	switch {
	case !ok, f.Answer.Kind == "idempotency_error": // the key has another request to it, which may have been carried out
		return false
	case f.Verdict == AccountRefused:
		return !f.Disconnected() && listed(atAccountCodes, f.Answer.Code)
	}
	return true
}

func IsReplay(h http.Header) bool { return h.Get("Idempotent-Replayed") == "true" }

// Unsent is a request that is not sent, because it cannot be right: billing.ErrInvalid, without
// the words that Stripe refused it.
func Unsent(format string, args ...any) error { return &unsentError{fmt.Sprintf(format, args...)} }

type unsentError struct{ text string }

func (e *unsentError) Error() string { return e.text }
func (e *unsentError) Unwrap() error { return billing.ErrInvalid }

// Unusable is an answer that was called a success and is none that can be used: what became of
// the request is unknown.
func Unusable(what, format string, args ...any) error {
	return &Error{Verdict: Unknown, Request: what, Text: Clean(fmt.Sprintf(format, args...))}
}

// maxText is how much of what others say goes into an error.
const maxText = 300

// Clean makes a text of others fit for an error: one short line, without secrets and cards.
func Clean(text string) string {
	text = secret.Clean(strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " "))
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
