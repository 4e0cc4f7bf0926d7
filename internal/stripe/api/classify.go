package api

import (
	"net/http"
	"strings"
)

// An Answer is what of Stripe's answer decides what it means.
type Answer struct {
	Status    int    // of HTTP; 0: there was none
	readable  bool   // it is in Stripe's form
	Kind      string // the error's type
	Code      string
	Decline   string
	Advice    string
	param     string
	connected bool // the request was for a connected account
}

// A Verdict is what an answer means.
type Verdict string

// The verdicts. Only declined, action and payerGone say that an attempt to take money has
// failed; only they, moved, gone, invalid, refused and accountRefused are certain.
const (
	Declined       Verdict = "declined"        // a definite no of this attempt
	Action         Verdict = "action"          // the customer has to authenticate
	PayerGone      Verdict = "payer gone"      // there is no such customer or payment method: a definite no
	Moved          Verdict = "moved"           // the intent is in another state: look it up
	Gone           Verdict = "gone"            // there is no such object
	Busy           Verdict = "busy"            // not executed: the same request may be sent again
	Invalid        Verdict = "invalid"         // the request is wrong
	Refused        Verdict = "refused"         // our credentials
	AccountRefused Verdict = "account refused" // our credentials at this connected account
	Unknown        Verdict = "unknown"         // done, or not
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
// Is unknown where the money may have moved, and invalid, which a person looks at, where
// Stripe says that the request was wrong.
func classify(a Answer) Verdict {
	switch {
	case a.Status == http.StatusTooManyRequests && !a.readable:
		return Busy // of what stands before Stripe's servers: nothing got behind it
	case !a.readable || a.Status < 400 || a.Status >= 500 || a.Status == http.StatusRequestTimeout:
		return Unknown
	case a.Status == http.StatusUnauthorized || listed(credentialCodes, a.Code):
		return Refused
	case a.Code == "card_decline_rate_limit_exceeded": // of the card: after a day, not after a second
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
	case a.Status == http.StatusPaymentRequired || a.Kind == "card_error" || listed(softErrors, a.Code) || listed(hardErrors, a.Code):
		return Declined
	case a.Status == http.StatusConflict:
		return Unknown // two requests met: which of them was carried out is not said
	}
	return Invalid
}

// cuts reports whether the answer says that a connected account has let go of us: asking
// again soon is pointless.
func (a Answer) cuts() bool { return a.connected && listed(accountGoneCodes, a.Code) }

// listed reports whether the word is in a list that begins and ends with a space.
func listed(list, word string) bool {
	return word != "" && !strings.Contains(word, " ") && strings.Contains(list, " "+word+" ")
}
