package payment

import (
	"net/http"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// A decline is why a bank, or Stripe itself, says no.
type decline struct {
	code    string // of the error: card_declined, expired_card, …
	decline string // decline_code
	advice  string // advice_code; "": none
	network string // network_decline_code, as Visa has it; "": none
	message string
}

// The usual messages of declines.
const (
	declined    = "Your card was declined."
	unsupported = "Your card does not support this type of purchase."
)

// declines are the decline codes of this fake, each with the advice of Stripe's documentation.
var declines = map[string]decline{
	"approve_with_id": {"card_declined", "approve_with_id", "try_again_later", "", declined},
	"authentication_required": {"authentication_required", "authentication_required", "", "1A",
		"Your card was declined. This transaction requires authentication."},
	"call_issuer":        {"card_declined", "call_issuer", "try_again_later", "01", declined},
	"card_not_supported": {"card_declined", "card_not_supported", "do_not_try_again", "", unsupported},
	"card_velocity_exceeded": {"card_declined", "card_velocity_exceeded", "try_again_later", "65",
		"Your card was declined for making repeated attempts too frequently or exceeding its amount limit."},
	"currency_not_supported": {"card_declined", "currency_not_supported", "do_not_try_again", "",
		"Your card does not support this currency."},
	"do_not_honor":          {"card_declined", "do_not_honor", "try_again_later", "05", declined},
	"do_not_try_again":      {"card_declined", "do_not_try_again", "do_not_try_again", "", declined},
	"duplicate_transaction": {"card_declined", "duplicate_transaction", "", "94", declined},
	"expired_card": {"expired_card", "expired_card", "confirm_card_data", "54",
		"Your card has expired."},
	"fraudulent":      {"card_declined", "fraudulent", "do_not_try_again", "59", declined},
	"generic_decline": {"card_declined", "generic_decline", "try_again_later", "01", declined},
	"incorrect_cvc": {"incorrect_cvc", "incorrect_cvc", "confirm_card_data", "N7",
		"Your card's security code is incorrect."},
	"incorrect_number": {"incorrect_number", "incorrect_number", "confirm_card_data", "14",
		"Your card number is incorrect."},
	"incorrect_zip": {"incorrect_zip", "incorrect_zip", "confirm_card_data", "",
		"Your card's zip code failed validation."},
	"insufficient_funds": {"card_declined", "insufficient_funds", "try_again_later", "51",
		"Your card has insufficient funds."},
	"invalid_account": {"card_declined", "invalid_account", "do_not_try_again", "14", declined},
	"invalid_amount": {"card_declined", "invalid_amount", "", "13",
		"Your card was declined: the amount is not one that it allows."},
	"issuer_not_available": {"card_declined", "issuer_not_available", "try_again_later", "91", declined},
	"lost_card":            {"card_declined", "lost_card", "do_not_try_again", "41", declined},
	"merchant_blacklist":   {"card_declined", "merchant_blacklist", "", "", declined},
	"new_account_information_available": {"card_declined", "new_account_information_available", "confirm_card_data", "",
		declined},
	"no_action_taken": {"card_declined", "no_action_taken", "try_again_later", "", declined},
	"not_permitted":   {"card_declined", "not_permitted", "do_not_try_again", "57", declined},
	"pickup_card":     {"card_declined", "pickup_card", "do_not_try_again", "04", declined},
	"processing_error": {"processing_error", "processing_error", "try_again_later", "96",
		"An error occurred while processing your card. Try again in a little bit."},
	"reenter_transaction": {"card_declined", "reenter_transaction", "try_again_later", "19", declined},
	"restricted_card":     {"card_declined", "restricted_card", "do_not_try_again", "62", declined},
	"revocation_of_all_authorizations": {"card_declined", "revocation_of_all_authorizations", "do_not_try_again", "R1",
		declined},
	"revocation_of_authorization": {"card_declined", "revocation_of_authorization", "do_not_try_again", "R0",
		declined},
	"security_violation":  {"card_declined", "security_violation", "do_not_try_again", "63", declined},
	"service_not_allowed": {"card_declined", "service_not_allowed", "do_not_try_again", "", declined},
	"stolen_card":         {"card_declined", "stolen_card", "do_not_try_again", "43", declined},
	"stop_payment_order":  {"card_declined", "stop_payment_order", "do_not_try_again", "R0", declined},
	"testmode_decline":    {"card_declined", "testmode_decline", "", "", declined},
	"transaction_not_allowed": {"card_declined", "transaction_not_allowed", "do_not_try_again", "57",
		unsupported},
	"try_again_later": {"card_declined", "try_again_later", "try_again_later", "", declined},
	"withdrawal_count_limit_exceeded": {"card_declined", "withdrawal_count_limit_exceeded", "try_again_later", "61",
		"Your card was declined for exceeding its limit."},
}

// blockedCode is Radar's: the payment never reaches the bank.
const blockedCode = "highest_risk_level"

// reasonFor returns the decline of the code, which is in the table, or Radar's.
func reasonFor(code string) decline {
	if code == blockedCode {
		return decline{code: "card_declined", decline: "fraudulent", message: declined}
	}
	return declines[code]
}

// refusal is the error of an attempt that was declined.
func (d decline) refusal() *shape.Error {
	return &shape.Error{Status: http.StatusPaymentRequired, Kind: "card_error", Code: d.code, Decline: d.decline,
		Advice: d.advice, Message: d.message}
}

// declineOutcome is the outcome of a charge declined for the code.
func declineOutcome(code string) object {
	d := reasonFor(code)
	o := object{"advice_code": shape.OrNil(d.advice), "network_advice_code": nil,
		"network_decline_code": shape.OrNil(d.network), "network_status": "declined_by_network",
		"reason": code, "risk_level": "normal", "risk_score": int64(20),
		"seller_message": "The bank returned the decline code `" + code + "`.", "type": "issuer_declined"}
	switch code {
	case "generic_decline":
		o["seller_message"] = "The bank did not return any further details with this decline."
	case blockedCode:
		o["network_status"], o["type"], o["risk_level"], o["risk_score"] = "not_sent_to_network", "blocked", "highest",
			int64(90)
		o["seller_message"] = "Stripe blocked this payment as too risky."
	}
	return o
}

// paymentError is a last_payment_error or last_setup_error.
func paymentError(kind string, d decline, charge string, method object) object {
	e := object{"code": d.code, "doc_url": "https://stripe.com/docs/error-codes/" + strings.ReplaceAll(d.code, "_", "-"),
		"message": d.message, "type": kind}
	for name, value := range map[string]string{"decline_code": d.decline, "advice_code": d.advice,
		"network_decline_code": d.network, "charge": charge} {
		if value != "" {
			e[name] = value
		}
	}
	if method != nil {
		e["payment_method"] = shape.ShownOf(method)
	}
	return e
}
