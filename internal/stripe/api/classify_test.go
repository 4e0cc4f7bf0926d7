package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The rows of the table of the charge protocol, and every code that Stripe documents for them.
func TestClassify(t *testing.T) {
	tests := []struct {
		status    int
		kind      string
		codes     string // of errors, each by itself; "-" for none
		connected bool
		want      Verdict
	}{
		{402, "card_error", "card_declined expired_card incorrect_cvc incorrect_number incorrect_zip insufficient_funds " +
			"invalid_cvc invalid_expiry_month invalid_expiry_year invalid_number processing_error -", false, Declined},
		{402, "invalid_request_error", "payment_intent_payment_attempt_failed payment_method_provider_decline " +
			"payment_method_customer_decline -", false, Declined},
		{400, "invalid_request_error", "debit_not_authorized account_closed payment_intent_mandate_invalid " +
			"india_recurring_payment_mandate_canceled bank_account_declined", false, Declined},
		{429, "card_error", "card_decline_rate_limit_exceeded", false, Declined},
		{402, "card_error", "card_decline_rate_limit_exceeded", false, Declined},
		{402, "card_error", "authentication_required payment_intent_authentication_failure payment_intent_action_required",
			false, Action},
		{400, "invalid_request_error", "payment_intent_authentication_failure", false, Action},
		{409, "idempotency_error", "idempotency_key_in_use", false, Busy},
		{409, "invalid_request_error", "lock_timeout idempotency_key_in_use", false, Busy},
		{400, "idempotency_error", "idempotency_key_in_use", false, Busy},
		{429, "invalid_request_error", "rate_limit lock_timeout idempotency_key_in_use payment_intent_rate_limit_exceeded -",
			false, Busy},
		{429, "api_error", "- lock_timeout rate_limit", true, Busy},
		{409, "invalid_request_error", "-", false, Unknown},
		{400, "invalid_request_error", "payment_intent_unexpected_state intent_invalid_state", false, Moved},
		{400, "idempotency_error", "-", false, Invalid},
		{400, "invalid_request_error", "parameter_missing parameter_unknown amount_too_small amount_too_large url_invalid " +
			"charge_already_refunded email_invalid a_code_of_tomorrow -", false, Invalid},
		{400, "invalid_request_error", "parameter_missing", true, Invalid},
		{401, "invalid_request_error", "- api_key_expired platform_api_key_expired", false, Refused},
		{401, "invalid_request_error", "-", true, Refused},
		{400, "invalid_request_error", "secret_key_required api_key_expired", true, Refused},
		{403, "invalid_request_error", "- account_invalid", false, Refused},
		{403, "invalid_request_error", "- account_invalid", true, AccountRefused},
		{400, "invalid_request_error", "account_invalid testmode_charges_only livemode_mismatch", true, AccountRefused},
		{404, "invalid_request_error", "resource_missing", false, Gone},
		{404, "invalid_request_error", "-", false, Invalid},
		{500, "api_error", "- lock_timeout card_declined resource_missing", false, Unknown},
		{503, "api_error", "-", false, Unknown},
		{599, "card_error", "card_declined", false, Unknown},
		{408, "invalid_request_error", "-", false, Unknown},
		{0, "", "-", false, Unknown},
		{200, "", "-", false, Unknown},
		{302, "", "-", false, Unknown},
	}
	for _, tt := range tests {
		for code := range strings.FieldsSeq(tt.codes) {
			a := Answer{Status: tt.status, readable: tt.kind != "", Kind: tt.kind, Code: strings.Trim(code, "-"),
				connected: tt.connected}
			if got := classify(a); got != tt.want {
				t.Errorf("%+v: got %s, want %s", a, got, tt.want)
			}
		}
	}
	for _, param := range []string{"customer", "payment_method", "source"} {
		if got := classify(Answer{Status: 404, readable: true, Kind: "invalid_request_error", Code: "resource_missing",
			param: param}); got != PayerGone {
			t.Errorf("no such %s: got %s, want %s", param, got, PayerGone)
		}
	}
	if got := classify(Answer{Status: 402, readable: true, Kind: "card_error", Code: "card_declined",
		Decline: "authentication_required"}); got != Action {
		t.Errorf("declined for want of authentication: got %s, want %s", got, Action)
	}
	if got := classify(Answer{Status: 429}); got != Busy {
		t.Errorf("429 of what stands before Stripe: got %s, want %s", got, Busy)
	}
}

// Whatever comes: there is a verdict, what Stripe did not say is never a no, and neither is
// what its servers failed at.
func TestClassify_IsTotal(t *testing.T) {
	all := []Verdict{Declined, Action, PayerGone, Moved, Gone, Busy, Invalid, Refused, AccountRefused, Unknown}
	words := strings.Fields(hardDeclines + hardErrors + softErrors + customerCodes + busyCodes + credentialCodes +
		atAccountCodes + otherStateCodes +
		" resource_missing x card_error api_error idempotency_error invalid_request_error ")
	word := rapid.OneOf(rapid.Just(""), rapid.SampledFrom(words), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		a := Answer{Status: rapid.OneOf(rapid.Int(), rapid.IntRange(100, 599),
			rapid.SampledFrom([]int{400, 401, 402, 403, 404, 409, 429, 500})).Draw(t, "status"),
			readable: rapid.Bool().Draw(t, "readable"), Kind: word.Draw(t, "kind"), Code: word.Draw(t,
				"code"), Decline: word.Draw(t, "decline"),
			Advice: word.Draw(t, "advice"), param: word.Draw(t, "param"), connected: rapid.Bool().Draw(t, "connected")}
		got := classify(a)
		if !slices.Contains(all, got) {
			t.Fatalf("%+v: got %q", a, got)
		}
		certain := got != Unknown && got != Busy
		if certain && (!a.readable || a.Status < 400 || a.Status > 499) {
			t.Fatalf("%+v: got %s of what Stripe did not say", a, got)
		}
		if got == AccountRefused && !a.connected {
			t.Fatalf("%+v: got %s at no connected account", a, got)
		}
		if a.readable && a.Status == http.StatusUnauthorized && got != Refused {
			t.Fatalf("%+v: got %s, want refused", a, got)
		}
	})
}

func TestIsHard(t *testing.T) {
	const (
		hard = "card_not_supported currency_not_supported do_not_try_again expired_card fraudulent highest_risk_level " +
			"incorrect_number invalid_account invalid_expiry_month invalid_expiry_year invalid_number lost_card " +
			"merchant_blacklist pickup_card restricted_card revocation_of_all_authorizations revocation_of_authorization " +
			"stolen_card stop_payment_order testmode_decline transaction_not_allowed"
		soft = "approve_with_id authentication_required call_issuer card_velocity_exceeded do_not_honor " +
			"duplicate_transaction generic_decline incorrect_cvc incorrect_pin incorrect_zip insufficient_funds " +
			"invalid_amount invalid_cvc invalid_pin issuer_not_available new_account_information_available no_action_taken " +
			"not_permitted offline_pin_required online_or_offline_pin_required pin_try_exceeded processing_error " +
			"reenter_transaction security_violation service_not_allowed try_again_later withdrawal_count_limit_exceeded " +
			"a_code_of_tomorrow"
	)
	for list, want := range map[string]bool{hard: true, soft: false} {
		for code := range strings.FieldsSeq(list) {
			for advice, want := range map[string]bool{"": want, "do_not_try_again": true, "confirm_card_data": true,
				"try_again_later": false, "of tomorrow": want} {
				if got := IsHard("card_declined", code, advice); got != want {
					t.Errorf("%s, advised %q: got hard %t, want %t", code, advice, got, want)
				}
			}
		}
	}
	for code, want := range map[string]bool{"expired_card": true, "resource_missing": true, "account_closed": true,
		"card_declined": false, "processing_error": false, "": false, " ": false, "expired_card incorrect_number": false} {
		if got := IsHard(code, "", ""); got != want {
			t.Errorf("error %q: got hard %t, want %t", code, got, want)
		}
	}
	if !IsHard("expired_card", "generic_decline", "") {
		t.Error("a generic decline hides that the card has expired")
	}
}
