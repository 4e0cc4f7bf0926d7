package payment

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// A testCard is the card of a test payment method, and its behaviour.
type testCard struct {
	brand, last4, funding, country string
	acts                           behaviour
}

// A behaviour is the outcome of using a payment method. The zero value succeeds.
type behaviour struct {
	declines   string // the code of its declines; "": none
	refuses    bool   // it is declined already when it is attached or set up
	on, Off    bool   // the customer has to authenticate a payment: on-session, off-session
	SetupFrees bool   // off is over once the customer has authenticated its setup
	disputes   string // why the charge is disputed, as soon as it has succeeded
	inquiry    bool   // the dispute is an inquiry only
	refund     string // the outcome of its refunds: failed, or pending until they are finished
	bank       bool   // an account, not a card: it is processing until it is finished
	flaky      bool   // the fake's own: the first attempt on each payment intent is declined
	breaks     bool   // the fake's own: the request is carried out, and the connection breaks
}

func credit(brand, last4 string, acts behaviour) testCard {
	return testCard{brand, last4, "credit", "US", acts}
}

func declining(last4, code string) testCard {
	return credit("visa", last4, behaviour{declines: code, refuses: true})
}

// SandboxDecline and a code is a method whose charges are declined. It can be attached and set up.
const SandboxDecline = "pm_sandbox_decline_"

// testCards are Stripe's test payment methods, by the ids of its documentation "Testing", and the
// fake's own, pm_sandbox_…. Unlike at Stripe, they work in live mode too.
var testCards = map[string]testCard{
	"pm_card_visa":               credit("visa", "4242", behaviour{}),
	"pm_card_visa_debit":         {"visa", "5556", "debit", "US", behaviour{}},
	"pm_card_mastercard":         credit("mastercard", "4444", behaviour{}),
	"pm_card_mastercard_debit":   {"mastercard", "8210", "debit", "US", behaviour{}},
	"pm_card_mastercard_prepaid": {"mastercard", "5100", "prepaid", "US", behaviour{}},
	"pm_card_amex":               credit("amex", "0005", behaviour{}),
	"pm_card_discover":           credit("discover", "1117", behaviour{}),
	"pm_card_diners":             credit("diners", "0004", behaviour{}),
	"pm_card_jcb":                credit("jcb", "0505", behaviour{}),
	"pm_card_unionpay":           credit("unionpay", "0005", behaviour{}),
	"pm_card_us":                 credit("visa", "4242", behaviour{}),
	"pm_card_br":                 {"visa", "0010", "credit", "BR", behaviour{}},
	"pm_card_ca":                 {"visa", "0000", "credit", "CA", behaviour{}},
	"pm_card_mx":                 {"visa", "8003", "credit", "MX", behaviour{}},
	"pm_card_de":                 {"visa", "0008", "credit", "DE", behaviour{}},
	"pm_card_fr":                 {"visa", "0003", "credit", "FR", behaviour{}},
	"pm_card_gb":                 {"visa", "0000", "credit", "GB", behaviour{}},
	"pm_card_jp":                 {"visa", "0003", "credit", "JP", behaviour{}},
	"pm_card_bypassPending":      credit("visa", "0077", behaviour{}),

	"pm_card_visa_chargeDeclined":                      declining("0002", "generic_decline"),
	"pm_card_visa_chargeDeclinedInsufficientFunds":     declining("9995", "insufficient_funds"),
	"pm_card_visa_chargeDeclinedLostCard":              declining("9987", "lost_card"),
	"pm_card_visa_chargeDeclinedStolenCard":            declining("9979", "stolen_card"),
	"pm_card_visa_chargeDeclinedVelocityLimitExceeded": declining("6975", "card_velocity_exceeded"),
	"pm_card_visa_chargeDeclinedFraudulent":            declining("0019", "fraudulent"),
	"pm_card_chargeDeclined":                           declining("0002", "generic_decline"),
	"pm_card_chargeDeclinedInsufficientFunds":          declining("9995", "insufficient_funds"),
	"pm_card_chargeDeclinedExpiredCard":                declining("0069", "expired_card"),
	"pm_card_chargeDeclinedIncorrectCvc":               declining("0127", "incorrect_cvc"),
	"pm_card_chargeDeclinedProcessingError":            declining("0119", "processing_error"),
	"pm_card_radarBlock":                               declining("0019", blockedCode),
	"pm_card_chargeCustomerFail":                       credit("visa", "0341", behaviour{declines: "generic_decline"}),

	"pm_card_authenticationRequired": credit("visa", "3184", behaviour{on: true, Off: true}),
	"pm_card_authenticationRequiredOnSetup": credit("visa", "3155",
		behaviour{on: true, Off: true, SetupFrees: true}),
	"pm_card_authenticationRequiredSetupForOffSession": credit("visa", "0446", behaviour{on: true}),
	"pm_card_authenticationRequiredChargeDeclinedInsufficientFunds": credit("visa", "3178",
		behaviour{on: true, Off: true, declines: "insufficient_funds"}),
	"pm_card_threeDSecure2Required": credit("visa", "3220", behaviour{on: true, Off: true}),
	"pm_card_threeDSecureRequired":  credit("visa", "3063", behaviour{on: true, Off: true}),
	"pm_card_threeDSecureRequiredChargeDeclined": credit("visa", "1629",
		behaviour{on: true, Off: true, declines: "generic_decline"}),
	"pm_card_threeDSecureOptional": credit("visa", "3055", behaviour{}),
	"pm_card_createDispute":        credit("visa", "0259", behaviour{disputes: "fraudulent"}),
	"pm_card_createDisputeProductNotReceived": credit("visa", "2685",
		behaviour{disputes: "product_not_received"}),
	"pm_card_createDisputeInquiry":       credit("visa", "1976", behaviour{disputes: "fraudulent", inquiry: true}),
	"pm_card_pendingRefund":              credit("visa", "7726", behaviour{refund: "pending"}),
	"pm_card_refundFail":                 credit("visa", "5126", behaviour{refund: "failed"}),
	"pm_usBankAccount_success":           {"", "6789", "", "US", behaviour{bank: true}},
	"pm_usBankAccount_insufficientFunds": {"", "2227", "", "US", behaviour{bank: true, declines: "insufficient_funds"}},
	"pm_sandbox_flaky":                   credit("visa", "1001", behaviour{flaky: true}),
	"pm_sandbox_timeout":                 credit("visa", "1002", behaviour{breaks: true}),
}

// CardOf returns the card of the test id.
func CardOf(id string) (testCard, bool) {
	if code, ok := strings.CutPrefix(id, SandboxDecline); ok {
		_, known := declines[code]
		return credit("visa", "0341", behaviour{declines: code}), known
	}
	card, ok := testCards[id]
	return card, ok
}

// BehaviourOf returns how the payment method behaves.
func BehaviourOf(method object) behaviour {
	card, _ := CardOf(method.Str("_test"))
	return card.acts
}

// tokenMethod returns the test payment method with the card of a test token (tok_visa).
func tokenMethod(token string) (string, bool) {
	name, ok := strings.CutPrefix(token, "tok_")
	if !ok {
		return "", false
	}
	for _, id := range []string{"pm_card_" + name, "pm_card_visa_" + name} {
		if _, known := CardOf(id); known {
			return id, true
		}
	}
	return "", false
}

// testMethod makes a payment method of a known test id. Its card expires four years from now.
func (c Call) testMethod(id string) object {
	card, _ := CardOf(id)
	sum := sha256.Sum256([]byte(id))
	fingerprint := hex.EncodeToString(sum[:8])
	members := object{"allow_redisplay": "unspecified", "billing_details": noBilling(), "customer": nil,
		"customer_account": nil, "_test": id}
	if card.acts.bank {
		members["type"] = "us_bank_account"
		members["us_bank_account"] = object{"account_holder_type": "individual", "account_type": "checking",
			"bank_name": "STRIPE TEST BANK", "financial_connections_account": nil, "fingerprint": fingerprint,
			"last4": card.last4, "networks": object{"preferred": "ach", "supported": []any{"ach"}},
			"routing_number": "110000000", "status_details": object{}}
		return c.Create("payment_method", "pm", members)
	}
	members["type"] = "card"
	members["card"] = object{"brand": card.brand, "checks": object{"address_line1_check": nil,
		"address_postal_code_check": nil, "cvc_check": "unchecked"},
		"country": card.country, "display_brand": cmp.Or(displayBrands[card.brand], card.brand), "exp_month": int64(12),
		"exp_year":    int64(time.Unix(c.Now, 0).UTC().Year() + 4),
		"fingerprint": fingerprint, "funding": card.funding, "generated_from": nil, "last4": card.last4,
		"networks": object{"available": []any{card.brand}, "preferred": nil}, "regulated_status": "unregulated",
		"three_d_secure_usage": object{"supported": true}, "wallet": nil}
	return c.Create("payment_method", "pm", members)
}

// displayBrands are the brands that are displayed by another name.
var displayBrands = map[string]string{"amex": "american_express", "diners": "diners_club"}

func noBilling() object {
	return object{"address": noAddress()}.Null("email name phone tax_id")
}

const addressTexts = "city country line1 line2 postal_code state"

func noAddress() object { return object{}.Null(addressTexts) }

const (
	again       = "try_again_later"
	never       = "do_not_try_again"
	check       = "confirm_card_data"
	unsupported = "Your card does not support this type of purchase."
)

// declines are the decline codes of this fake, each with the advice of Stripe's documentation. The
// usual message and the code card_declined are left out. The network's code is Visa's.
var declines = map[string]struct{ advice, network, message, code string }{
	"approve_with_id": {again, "", "", ""},
	"authentication_required": {"", "1A",
		"Your card was declined. This transaction requires authentication.", "authentication_required"},
	"call_issuer":        {again, "01", "", ""},
	"card_not_supported": {never, "", unsupported, ""},
	"card_velocity_exceeded": {again, "65",
		"Your card was declined for making repeated attempts too frequently or exceeding its amount limit.", ""},
	"currency_not_supported": {never, "", "Your card does not support this currency.", ""},
	"do_not_honor":           {again, "05", "", ""},
	"do_not_try_again":       {never, "", "", ""},
	"duplicate_transaction":  {"", "94", "", ""},
	"expired_card":           {check, "54", "Your card has expired.", "expired_card"},
	"fraudulent":             {never, "59", "", ""},
	"generic_decline":        {again, "01", "", ""},
	"incorrect_cvc":          {check, "N7", "Your card's security code is incorrect.", "incorrect_cvc"},
	"incorrect_number":       {check, "14", "Your card number is incorrect.", "incorrect_number"},
	"incorrect_zip":          {check, "", "Your card's zip code failed validation.", "incorrect_zip"},
	"insufficient_funds":     {again, "51", "Your card has insufficient funds.", ""},
	"invalid_account":        {never, "14", "", ""},
	"invalid_amount": {"", "13",
		"Your card was declined: the amount is not one that it allows.", ""},
	"issuer_not_available":              {again, "91", "", ""},
	"lost_card":                         {never, "41", "", ""},
	"merchant_blacklist":                {"", "", "", ""},
	"new_account_information_available": {check, "", "", ""},
	"no_action_taken":                   {again, "", "", ""},
	"not_permitted":                     {never, "57", "", ""},
	"pickup_card":                       {never, "04", "", ""},
	"processing_error": {again, "96",
		"An error occurred while processing your card. Try again in a little bit.", "processing_error"},
	"reenter_transaction":              {again, "19", "", ""},
	"restricted_card":                  {never, "62", "", ""},
	"revocation_of_all_authorizations": {never, "R1", "", ""},
	"revocation_of_authorization":      {never, "R0", "", ""},
	"security_violation":               {never, "63", "", ""},
	"service_not_allowed":              {never, "", "", ""},
	"stolen_card":                      {never, "43", "", ""},
	"stop_payment_order":               {never, "R0", "", ""},
	"testmode_decline":                 {"", "", "", ""},
	"transaction_not_allowed":          {never, "57", unsupported, ""},
	"try_again_later":                  {again, "", "", ""},
	"withdrawal_count_limit_exceeded":  {again, "61", "Your card was declined for exceeding its limit.", ""},
}

// blockedCode is Radar's: the payment never reaches the bank.
const blockedCode = "highest_risk_level"

// Declined returns the error of a card that is declined for the code; nil for an unknown code.
func Declined(code string) *shape.Error {
	if _, known := declines[code]; !known {
		return nil
	}
	return reasonFor(code)
}

// reasonFor returns the error of an attempt declined for the code: one of the table, or Radar's.
func reasonFor(code string) *shape.Error {
	d := declines[code]
	e := &shape.Error{Status: http.StatusPaymentRequired, Kind: "card_error", Code: cmp.Or(d.code, "card_declined"),
		Decline: code, Advice: d.advice, Network: d.network, Message: cmp.Or(d.message, "Your card was declined.")}
	if code == blockedCode {
		e.Decline = "fraudulent"
	}
	return e
}

func declineOutcome(code string) object {
	d := reasonFor(code)
	o := object{"advice_code": shape.OrNil(d.Advice), "network_advice_code": nil,
		"network_decline_code": shape.OrNil(d.Network), "network_status": "declined_by_network",
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
func paymentError(e *shape.Error, method object) object {
	o := e.Object()
	if e.Network != "" {
		o["network_decline_code"] = e.Network
	}
	if method != nil {
		o["payment_method"] = method.Clone().Strip()
	}
	return o
}
