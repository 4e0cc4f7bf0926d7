package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/stripe/stripe-go/v86"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/secret"
)

// An Answer holds the parts of Stripe's answer that its classification needs.
type Answer struct {
	Status    int    // of HTTP; 0: no answer came
	readable  bool   // in Stripe's form
	Kind      string // the error's type
	Code      string
	Decline   string
	Advice    string
	param     string
	connected bool // the request was for a connected account
}

// A Verdict is the meaning of an answer.
type Verdict string

// The verdicts. Only Declined, Action and PayerGone mean that an attempt to charge failed. All
// verdicts except Busy and Unknown are final.
const (
	Declined       Verdict = "declined"        // a definite no to this attempt
	Action         Verdict = "action"          // the customer has to authenticate
	PayerGone      Verdict = "payer gone"      // no such customer or payment method: a definite no
	Moved          Verdict = "moved"           // the intent is in another state: look it up
	Gone           Verdict = "gone"            // no such object
	Busy           Verdict = "busy"            // not executed: retryable with the same key
	Invalid        Verdict = "invalid"         // the request is wrong
	Refused        Verdict = "refused"         // our credentials
	AccountRefused Verdict = "account refused" // our credentials, at this connected account
	Unknown        Verdict = "unknown"         // done, or not
)

const (
	busyCodes       = " idempotency_key_in_use lock_timeout rate_limit "
	credentialCodes = " api_key_expired platform_account_required platform_api_key_expired secret_key_required "
	atAccountCodes  = " account_invalid livemode_mismatch testmode_charges_only "
	otherStateCodes = " intent_invalid_state payment_intent_unexpected_state "
	payerParameters = " customer customer_account payment_method source "
)

// classify returns the meaning of an answer other than a success. It is total. An answer it does
// not know is Unknown if the money may have moved. It is Invalid, for a person to look at, if
// Stripe calls the request wrong.
func classify(a Answer) Verdict {
	switch {
	case a.Status == http.StatusTooManyRequests && !a.readable:
		return Busy // from a proxy before Stripe's servers: the request got no further
	case !a.readable || a.Status < 400 || a.Status >= 500 || a.Status == http.StatusRequestTimeout:
		return Unknown
	case a.Status == http.StatusUnauthorized || listed(credentialCodes, a.Code):
		return Refused
	case a.Code == "card_decline_rate_limit_exceeded": // a limit of the card, for a day
		return Declined
	case a.Status == http.StatusTooManyRequests || listed(busyCodes, a.Code):
		return Busy
	case a.Kind == "idempotency_error":
		return Invalid
	case a.Status == http.StatusForbidden || listed(atAccountCodes, a.Code):
		if a.connected {
			return AccountRefused
		}
		return Refused
	case listed(otherStateCodes, a.Code):
		return Moved
	case IsAction(a.Code, a.Decline):
		return Action
	case a.Code == "resource_missing" && listed(payerParameters, a.param):
		return PayerGone
	case a.Code == "resource_missing":
		return Gone
	case a.Status == http.StatusPaymentRequired || a.Kind == "card_error" || listed(softErrors, a.Code) ||
		listed(hardErrors, a.Code):
		return Declined
	case a.Status == http.StatusConflict:
		return Unknown // two requests met, and Stripe does not say which one it carried out
	}
	return Invalid
}

// disconnects reports whether a connected account has disconnected.
func (a Answer) disconnects() bool { return a.connected && a.Code == "account_invalid" }

// listed reports whether a list, which begins and ends with a space, has the word.
func listed(list, word string) bool {
	return word != "" && !strings.Contains(word, " ") && strings.Contains(list, " "+word+" ")
}

// The issuer's advice says whether a decline is final, or else the code does. The lists follow
// docs.stripe.com/declines/codes and the codes that Stripe's own retries leave alone
// (docs.stripe.com/billing/revenue-recovery/smart-retries). An unknown code is soft: a period has
// few attempts.
const (
	hardDeclines = " card_not_supported currency_not_supported do_not_try_again expired_card fraudulent " +
		"highest_risk_level incorrect_number invalid_account invalid_expiry_month invalid_expiry_year invalid_number " +
		"lost_card merchant_blacklist pickup_card restricted_card revocation_of_all_authorizations " +
		"revocation_of_authorization stolen_card stop_payment_order testmode_decline transaction_not_allowed "
	// hardErrors are codes of errors without a decline code.
	hardErrors = " account_closed account_number_invalid bank_account_restricted bank_account_unusable " +
		"billing_invalid_mandate debit_not_authorized expired_card incorrect_number " +
		"india_recurring_payment_mandate_canceled invalid_card_type invalid_expiry_month invalid_expiry_year " +
		"invalid_number payment_intent_mandate_invalid payment_method_bank_account_blocked resource_missing "
	// softErrors are codes of declines, under any status.
	softErrors = " balance_insufficient bank_account_declined card_decline_rate_limit_exceeded card_declined " +
		"charge_exceeds_source_limit charge_exceeds_transaction_limit incorrect_address incorrect_cvc incorrect_zip " +
		"insufficient_funds invalid_cvc payment_intent_payment_attempt_expired payment_intent_payment_attempt_failed " +
		"payment_method_customer_decline payment_method_provider_decline payment_method_provider_timeout " +
		"processing_error "
	// customerCodes require the customer to authenticate.
	customerCodes = " authentication_required payment_intent_action_required payment_intent_authentication_failure "
)

const doNotTryAgain = "do_not_try_again"

// IsStop reports whether no further attempt should be made, not even with another card.
func IsStop(decline, advice string) bool { return decline == doNotTryAgain || advice == doNotTryAgain }

// IsHard reports whether another attempt with the same card is pointless.
func IsHard(code, decline, advice string) bool {
	switch advice {
	case doNotTryAgain, "confirm_card_data":
		return true
	case "try_again_later":
		return false
	}
	if decline != "" && decline != "generic_decline" {
		return listed(hardDeclines, decline)
	}
	return listed(hardErrors, code)
}

// IsAction reports whether the customer must authenticate.
func IsAction(code, decline string) bool {
	return listed(customerCodes, code) || decline == "authentication_required"
}

// AdviceOf reads the issuer's advice from Stripe's error or intent, because Stripe's library omits
// it.
func AdviceOf(raw []byte) string {
	type advised struct {
		Advice string `json:"advice_code"`
	}
	var body struct {
		Error advised `json:"error"`
		Last  advised `json:"last_payment_error"`
	}
	if json.Unmarshal(raw, &body) != nil { // then the library read nothing else of it either
		return ""
	}
	return cmp.Or(body.Error.Advice, body.Last.Advice)
}

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

// Unwrap returns the verdict's error in package processor, as for a request that moves no money.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.sentinel()}
	}
	return []error{e.sentinel(), e.cause}
}

func (e *Error) sentinel() error {
	switch e.Verdict {
	case Busy:
		return processor.ErrNotExecuted
	case Refused:
		return processor.ErrRefused
	case AccountRefused:
		return processor.ErrAccountRefused
	case Declined, Action, PayerGone, Moved, Gone, Invalid:
		return processor.ErrInvalid
	}
	return processor.ErrUnknown
}

// Is returns the error as an *Error if it has one of the verdicts.
func Is(err error, verdicts ...Verdict) (*Error, bool) {
	if e, ok := errors.AsType[*Error](err); ok && slices.Contains(verdicts, e.Verdict) {
		return e, true
	}
	return nil, false
}

// Disconnected reports whether a connected account has disconnected, according to this or a recent
// answer. It returns false if the key lacks a permission, or if the account does not have the mode
// yet.
func (e *Error) Disconnected() bool {
	return e.Verdict == AccountRefused && (e.Answer.Status == 0 || e.Answer.disconnects())
}

// IsRejected reports whether Stripe rejected the request as wrong and did not execute it.
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

// IsReplay reports whether Stripe replayed its answer to an earlier request with the same key.
func IsReplay(h http.Header) bool { return h.Get("Idempotent-Replayed") == "true" }

// Unsent returns the error for a wrong request that was not sent. It wraps processor.ErrInvalid.
func Unsent(format string, args ...any) error { return &unsentError{fmt.Sprintf(format, args...)} }

type unsentError struct{ text string }

func (e *unsentError) Error() string { return e.text }
func (e *unsentError) Unwrap() error { return processor.ErrInvalid }

// Unusable returns the error for a successful answer that cannot be used, so the outcome of the
// request is unknown. object names the expected object.
func Unusable(object, format string, args ...any) error {
	return &Error{Verdict: Unknown, Request: object, Text: Clean(fmt.Sprintf(format, args...))}
}

// Clean returns a text from elsewhere in a form that an error can contain: one short line without
// secrets and card numbers.
func Clean(text string) string {
	return secret.Short(strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " "))
}
