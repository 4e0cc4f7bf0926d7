package api

import "encoding/json"

// Which declines are final is told by the issuer's advice first, and else by the code:
// docs.stripe.com/declines/codes, and what Stripe's own retries leave alone
// (docs.stripe.com/billing/revenue-recovery/smart-retries). An unknown code is soft: the
// attempts of a period are few.
const (
	hardDeclines = " card_not_supported currency_not_supported do_not_try_again expired_card fraudulent highest_risk_level incorrect_number " +
		"invalid_account invalid_expiry_month invalid_expiry_year invalid_number lost_card merchant_blacklist pickup_card restricted_card " +
		"revocation_of_all_authorizations revocation_of_authorization stolen_card stop_payment_order testmode_decline transaction_not_allowed "
	// hardErrors are codes of errors, where no decline code says more.
	hardErrors = " account_closed account_number_invalid bank_account_restricted bank_account_unusable billing_invalid_mandate debit_not_authorized " +
		"expired_card incorrect_number india_recurring_payment_mandate_canceled invalid_card_type invalid_expiry_month invalid_expiry_year " +
		"invalid_number payment_intent_mandate_invalid payment_method_bank_account_blocked resource_missing "
	// softErrors are codes of errors that are declines under whatever status they come.
	softErrors = " balance_insufficient bank_account_declined card_decline_rate_limit_exceeded card_declined charge_exceeds_source_limit " +
		"charge_exceeds_transaction_limit incorrect_address incorrect_cvc incorrect_zip insufficient_funds invalid_cvc " +
		"payment_intent_payment_attempt_expired payment_intent_payment_attempt_failed payment_method_customer_decline " +
		"payment_method_provider_decline payment_method_provider_timeout processing_error "
	// customerCodes say that the customer has to authenticate.
	customerCodes = " authentication_required payment_intent_action_required payment_intent_authentication_failure "
)

// IsHard reports whether trying the same card again is pointless.
func IsHard(code, decline, advice string) bool {
	switch advice {
	case "do_not_try_again", "confirm_card_data":
		return true
	case "try_again_later":
		return false
	}
	if decline != "" && decline != "generic_decline" {
		return listed(hardDeclines, decline)
	}
	return listed(hardErrors, code)
}

// IsAction reports whether the customer has to authenticate.
func IsAction(code, decline string) bool {
	return listed(customerCodes, code) || decline == "authentication_required"
}

// AdviceOf reads the issuer's advice, which the library leaves out, from an error or an
// Intent as Stripe wrote it.
func AdviceOf(raw []byte) string {
	var body struct {
		Error *struct {
			Advice string `json:"advice_code"`
		} `json:"error"`
		Last *struct {
			Advice string `json:"advice_code"`
		} `json:"last_payment_error"`
	}
	if json.Unmarshal(raw, &body) != nil { // then nothing else of it was read either
		return ""
	}
	switch {
	case body.Error != nil:
		return body.Error.Advice
	case body.Last != nil:
		return body.Last.Advice
	}
	return ""
}
