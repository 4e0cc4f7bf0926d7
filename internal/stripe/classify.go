package stripe

import "net/http"

// An answer is what of Stripe's answer decides what it means.
type answer struct {
	status    int    // of HTTP; 0: there was none
	readable  bool   // it is in Stripe's form
	kind      string // the error's type
	code      string
	decline   string
	advice    string
	param     string
	connected bool // the request was for a connected account
}

// A verdict is what an answer means.
type verdict string

// The verdicts. Only declined, action and payerGone say that an attempt to take money has
// failed; only they, moved, gone, invalid, refused and accountRefused are certain.
const (
	declined       verdict = "declined"        // a definite no of this attempt
	action         verdict = "action"          // the customer has to authenticate
	payerGone      verdict = "payer gone"      // there is no such customer or payment method: a definite no
	moved          verdict = "moved"           // the intent is in another state: look it up
	gone           verdict = "gone"            // there is no such object
	busy           verdict = "busy"            // not executed: the same request may be sent again
	invalid        verdict = "invalid"         // the request is wrong
	refused        verdict = "refused"         // our credentials
	accountRefused verdict = "account refused" // our credentials at this connected account
	unknown        verdict = "unknown"         // done, or not
)

const (
	busyCodes        = " idempotency_key_in_use lock_timeout rate_limit "
	credentialCodes  = " api_key_expired platform_account_required platform_api_key_expired secret_key_required "
	atAccountCodes   = " account_invalid livemode_mismatch testmode_charges_only "
	otherStateCodes  = " intent_invalid_state payment_intent_unexpected_state "
	payerParameters  = " customer customer_account payment_method source "
	accountGoneCodes = " account_invalid "
)

// classify tells what an answer that is no success means. It is total: what it does not know
// is unknown where the money may have moved, and invalid, which a person looks at, where
// Stripe says that the request was wrong.
func classify(a answer) verdict {
	switch {
	case a.status == http.StatusTooManyRequests && !a.readable:
		return busy // of what stands before Stripe's servers: nothing got behind it
	case !a.readable || a.status < 400 || a.status >= 500 || a.status == http.StatusRequestTimeout:
		return unknown
	case a.status == http.StatusUnauthorized || listed(credentialCodes, a.code):
		return refused
	case a.code == "card_decline_rate_limit_exceeded": // of the card: after a day, not after a second
		return declined
	case a.status == http.StatusTooManyRequests || listed(busyCodes, a.code):
		return busy
	case a.kind == "idempotency_error":
		return invalid
	case a.status == http.StatusForbidden || listed(atAccountCodes, a.code):
		if a.connected {
			return accountRefused
		}
		return refused
	case listed(otherStateCodes, a.code):
		return moved
	case isAction(a.code, a.decline):
		return action
	case a.code == "resource_missing" && listed(payerParameters, a.param):
		return payerGone
	case a.code == "resource_missing":
		return gone
	case a.status == http.StatusPaymentRequired || a.kind == "card_error" || listed(softErrors, a.code) || listed(hardErrors, a.code):
		return declined
	case a.status == http.StatusConflict:
		return unknown // two requests met: which of them was carried out is not said
	}
	return invalid
}

// cuts reports whether the answer says that a connected account has let go of us: asking
// again soon is pointless.
func (a answer) cuts() bool { return a.connected && listed(accountGoneCodes, a.code) }
