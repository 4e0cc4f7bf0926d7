package stripe

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/secret"
)

// A failure is a request that did not succeed.
type failure struct {
	verdict  verdict
	answer   answer
	what     string             // method and path, without ids
	text     string             // what Stripe said, or what happened on the way; holds no secret
	intent   *sdk.PaymentIntent // the one in the error, or nil
	charge   string             // the failed charge in the error, or ""
	replayed bool               // it is the answer to an earlier send of the same key
	cause    error              // the context's error, or nil
}

// Error tells what was asked and what came of it.
func (f *failure) Error() string {
	return fmt.Sprintf("%v: stripe: %s: %s", f.sentinel(), f.what, f.text)
}

// Unwrap gives the error of package billing that the verdict stands for, where the request
// was no attempt to take money.
func (f *failure) Unwrap() []error {
	if f.cause == nil {
		return []error{f.sentinel()}
	}
	return []error{f.sentinel(), f.cause}
}

func (f *failure) sentinel() error {
	switch f.verdict {
	case busy:
		return billing.ErrNotExecuted
	case refused:
		return billing.ErrRefused
	case accountRefused:
		return billing.ErrAccountRefused
	case declined, action, payerGone, moved, gone, invalid:
		return billing.ErrInvalid
	}
	return billing.ErrUnknown
}

// is reports whether the error is a failure with one of the verdicts.
func is(err error, verdicts ...verdict) (*failure, bool) {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return nil, false
	}
	if slices.Contains(verdicts, f.verdict) {
		return f, true
	}
	return nil, false
}

// unsent is a request that is not sent, because it cannot be right: billing.ErrInvalid, without
// the words that Stripe refused it.
func unsent(format string, args ...any) error { return &unsentError{fmt.Sprintf(format, args...)} }

type unsentError struct{ text string }

func (e *unsentError) Error() string { return e.text }
func (e *unsentError) Unwrap() error { return billing.ErrInvalid }

// strange is an answer that was called a success and is none that can be used: what became of
// the request is unknown.
func strange(what, format string, args ...any) error {
	return &failure{verdict: unknown, what: what, text: clean(fmt.Sprintf(format, args...))}
}

// maxText is how much of what others say goes into an error.
const maxText = 300

// clean makes a text of others fit for an error: one short line, without secrets and cards.
func clean(text string) string {
	text = secret.Clean(strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " "))
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
