package payment

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
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

// SandboxDecline is the prefix of the fake's own payment methods. They can be attached and set up,
// and their charges are declined with the code that follows.
const SandboxDecline = "pm_sandbox_decline_"

// testCards are Stripe's test payment methods, by the ids of its documentation "Testing", and the
// fake's own, pm_sandbox_…. They work in live mode too, unlike at Stripe, because there are no
// other cards here.
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

	"pm_card_authenticationRequired": credit("visa", "3184",
		behaviour{on: true, Off: true}),
	"pm_card_authenticationRequiredOnSetup": credit("visa", "3155",
		behaviour{on: true, Off: true, SetupFrees: true}),
	"pm_card_authenticationRequiredSetupForOffSession": credit("visa", "0446", behaviour{on: true}),
	"pm_card_authenticationRequiredChargeDeclinedInsufficientFunds": credit("visa", "3178",
		behaviour{on: true, Off: true, declines: "insufficient_funds"}),
	"pm_card_threeDSecure2Required": credit("visa", "3220",
		behaviour{on: true, Off: true}),
	"pm_card_threeDSecureRequired": credit("visa", "3063",
		behaviour{on: true, Off: true}),
	"pm_card_threeDSecureRequiredChargeDeclined": credit("visa", "1629",
		behaviour{on: true, Off: true, declines: "generic_decline"}),
	"pm_card_threeDSecureOptional": credit("visa", "3055", behaviour{}),
	"pm_card_createDispute": credit("visa", "0259",
		behaviour{disputes: "fraudulent"}),
	"pm_card_createDisputeProductNotReceived": credit("visa", "2685",
		behaviour{disputes: "product_not_received"}),
	"pm_card_createDisputeInquiry": credit("visa", "1976",
		behaviour{disputes: "fraudulent", inquiry: true}),
	"pm_card_pendingRefund":    credit("visa", "7726", behaviour{refund: "pending"}),
	"pm_card_refundFail":       credit("visa", "5126", behaviour{refund: "failed"}),
	"pm_usBankAccount_success": {"", "6789", "", "US", behaviour{bank: true}},
	"pm_usBankAccount_insufficientFunds": {"", "2227", "", "US",
		behaviour{bank: true, declines: "insufficient_funds"}},
	"pm_sandbox_flaky":   credit("visa", "1001", behaviour{flaky: true}),
	"pm_sandbox_timeout": credit("visa", "1002", behaviour{breaks: true}),
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

// testMethod makes a payment method of a known test id. Its card expires at the end of the fourth
// year from now.
func (c Call) testMethod(id string) object {
	card, _ := CardOf(id)
	sum := sha256.Sum256([]byte(id))
	fingerprint := hex.EncodeToString(sum[:8])
	members := object{"allow_redisplay": "unspecified", "billing_details": noBilling(), "customer": nil,
		"customer_account": nil, "_test": id}
	if card.acts.bank {
		members["type"] = "us_bank_account"
		members["us_bank_account"] = object{"account_holder_type": "individual", "account_type": "checking",
			"bank_name":                     "STRIPE TEST BANK",
			"financial_connections_account": nil, "fingerprint": fingerprint, "last4": card.last4,
			"networks": object{"preferred": "ach", "supported": []any{"ach"}}, "routing_number": "110000000",
			"status_details": object{}}
		return c.Create("payment_method", "pm", members)
	}
	members["type"] = "card"
	members["card"] = object{"brand": card.brand, "checks": object{"address_line1_check": nil,
		"address_postal_code_check": nil, "cvc_check": "unchecked"},
		"country": card.country, "display_brand": displayBrand(card.brand), "exp_month": int64(12),
		"exp_year":    int64(time.Unix(c.Now, 0).UTC().Year() + 4),
		"fingerprint": fingerprint, "funding": card.funding, "generated_from": nil, "last4": card.last4,
		"networks": object{"available": []any{card.brand}, "preferred": nil}, "regulated_status": "unregulated",
		"three_d_secure_usage": object{"supported": true}, "wallet": nil}
	return c.Create("payment_method", "pm", members)
}

func displayBrand(brand string) string {
	switch brand {
	case "amex":
		return "american_express"
	case "diners":
		return "diners_club"
	}
	return brand
}

func noBilling() object {
	return object{"address": noAddress()}.Null("email name phone tax_id")
}

const addressTexts = "city country line1 line2 postal_code state"

func noAddress() object { return object{}.Null(addressTexts) }
