package stripefake_test

import (
	"net/http"
	"strings"
	"testing"
)

// inState returns a payment intent in the state.
func (l *till) inState(state string) string {
	l.t.Helper()
	id := ""
	switch state {
	case "requires_payment_method":
		id = l.intent()
	case "requires_confirmation":
		id = l.intent("payment_method=pm_card_visa")
	case "requires_action":
		id = l.intent("payment_method=pm_card_authenticationRequired", "confirm=true")
	case "processing":
		id = l.must(l.post("payment_intents", "amount=1000", "currency=usd", "payment_method_types[]=us_bank_account",
			"payment_method=pm_usBankAccount_success", "confirm=true")).id()
	case "requires_capture":
		id = l.intent("payment_method=pm_card_visa", "confirm=true", "capture_method=manual")
	case "succeeded":
		id = l.intent("payment_method=pm_card_visa", "confirm=true")
	case "canceled":
		id = l.intent()
		l.must(l.post("payment_intents/" + id + "/cancel"))
	}
	if got := l.get("payment_intents/" + id).at("status"); got != state {
		l.t.Fatalf("status %s, want %s", got, state)
	}
	return id
}

// TestEdges is every edge of the state machine: what is done in which state, and to which it
// leads. An edge that is not there is a 400 and changes nothing.
func TestEdges(t *testing.T) {
	const refused = "400 payment_intent_unexpected_state"
	actions := map[string]func(l *till, id string) answer{
		"confirm": func(l *till, id string) answer { return l.post("payment_intents/" + id + "/confirm") },
		"confirm visa": func(l *till, id string) answer {
			return l.post("payment_intents/"+id+"/confirm", "payment_method=pm_card_visa")
		},
		"decline": func(l *till, id string) answer {
			return l.post("payment_intents/"+id+"/confirm", "payment_method=pm_card_visa_chargeDeclined")
		},
		"cancel": func(l *till, id string) answer {
			return l.post("payment_intents/"+id+"/cancel", "cancellation_reason=abandoned")
		},
		"capture": func(l *till, id string) answer { return l.post("payment_intents/" + id + "/capture") },
		"amount":  func(l *till, id string) answer { return l.post("payment_intents/"+id, "amount=2000") },
		"method":  func(l *till, id string) answer { return l.post("payment_intents/"+id, "payment_method=pm_card_visa") },
		"describe": func(l *till, id string) answer {
			return l.post("payment_intents/"+id, "metadata[a]=b", "description=c")
		},
	}
	for action, leads := range map[string]map[string]string{
		"confirm": {"requires_payment_method": refused, "requires_confirmation": "succeeded",
			"requires_action": "requires_action", "processing": refused,
			"requires_capture": refused, "succeeded": refused, "canceled": refused},
		"confirm visa": {"requires_payment_method": "succeeded", "requires_confirmation": "succeeded",
			"requires_action": "succeeded", "processing": refused,
			"requires_capture": refused, "succeeded": refused, "canceled": refused},
		"decline": {"requires_payment_method": "402 card_declined", "requires_confirmation": "402 card_declined",
			"requires_action": "402 card_declined", "processing": refused,
			"requires_capture": refused, "succeeded": refused, "canceled": refused},
		"cancel": {"requires_payment_method": "canceled", "requires_confirmation": "canceled",
			"requires_action": "canceled", "processing": refused,
			"requires_capture": "canceled", "succeeded": refused, "canceled": refused},
		"capture": {"requires_payment_method": refused, "requires_confirmation": refused, "requires_action": refused,
			"processing":       refused,
			"requires_capture": "succeeded", "succeeded": refused, "canceled": refused},
		"amount": {"requires_payment_method": "requires_payment_method", "requires_confirmation": "requires_confirmation",
			"requires_action": "requires_confirmation", "processing": refused,
			"requires_capture": refused, "succeeded": refused, "canceled": refused},
		"method": {"requires_payment_method": "requires_confirmation", "requires_confirmation": "requires_confirmation",
			"requires_action": "requires_confirmation", "processing": refused,
			"requires_capture": refused, "succeeded": refused, "canceled": refused},
		"describe": {"requires_payment_method": "requires_payment_method", "requires_confirmation": "requires_confirmation",
			"requires_action": "requires_action", "processing": "processing",
			"requires_capture": "requires_capture", "succeeded": "succeeded", "canceled": "canceled"},
	} {
		for state, want := range leads {
			t.Run(action+" in "+state, func(t *testing.T) {
				l := newTill(t)
				id := l.inState(state)
				a := actions[action](l, id)
				if a.outcome() != want {
					t.Fatalf("%s in %s: %s, want %s (%s)", action, state, a.outcome(), want, a.at("error.message"))
				}
				after := l.get("payment_intents/" + id)
				switch {
				case want == refused:
					l.expect(a, "error.payment_intent.id="+id, "error.payment_intent.status="+state)
					l.expect(after, "status="+state)
				case strings.HasPrefix(want, "402"):
					l.expect(after, "status=requires_payment_method", "payment_method=nil", "amount_received=0")
				case want == "canceled":
					l.expect(after, "status=canceled", "amount_capturable=0", "amount_received=0")
				case want == "succeeded":
					l.expect(after, "status=succeeded", "amount_received=1000")
				default:
					l.expect(after, "status="+want)
				}
			})
		}
	}
}

// TestDeclines: what a decline looks like in the error, in the payment intent and in the
// charge, for every test payment method that is declined.
func TestDeclines(t *testing.T) {
	for _, c := range []struct{ method, code, decline, advice, network, reason string }{
		{"pm_card_visa_chargeDeclined", "card_declined", "generic_decline", "try_again_later", "declined_by_network",
			"generic_decline"},
		{"pm_card_visa_chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds", "try_again_later",
			"declined_by_network", "insufficient_funds"},
		{"pm_card_visa_chargeDeclinedLostCard", "card_declined", "lost_card", "do_not_try_again", "declined_by_network",
			"lost_card"},
		{"pm_card_visa_chargeDeclinedStolenCard", "card_declined", "stolen_card", "do_not_try_again", "declined_by_network",
			"stolen_card"},
		{"pm_card_visa_chargeDeclinedFraudulent", "card_declined", "fraudulent", "do_not_try_again", "declined_by_network",
			"fraudulent"},
		{"pm_card_chargeDeclinedExpiredCard", "expired_card", "expired_card", "confirm_card_data", "declined_by_network",
			"expired_card"},
		{"pm_card_chargeDeclinedIncorrectCvc", "incorrect_cvc", "incorrect_cvc", "confirm_card_data", "declined_by_network",
			"incorrect_cvc"},
		{"pm_card_chargeDeclinedProcessingError", "processing_error", "processing_error", "try_again_later",
			"declined_by_network", "processing_error"},
		{"pm_card_radarBlock", "card_declined", "fraudulent", "", "not_sent_to_network", "highest_risk_level"},
		{"pm_card_chargeCustomerFail", "card_declined", "generic_decline", "try_again_later", "declined_by_network",
			"generic_decline"},
		{"pm_sandbox_decline_do_not_honor", "card_declined", "do_not_honor", "try_again_later", "declined_by_network",
			"do_not_honor"},
	} {
		t.Run(c.method, func(t *testing.T) {
			l := newTill(t)
			id := l.intent()
			a := l.post("payment_intents/"+id+"/confirm", "payment_method="+c.method, "off_session=true")
			if a.status != http.StatusPaymentRequired {
				t.Fatalf("status %d, want 402", a.status)
			}
			charge, advised, shown := a.at("error.charge"), c.advice, c.advice
			if c.advice == "" { // no member of an error, and null in an outcome
				advised, shown = "absent", "nil"
			}
			l.expect(a, "error.type=card_error", "error.code="+c.code, "error.decline_code="+c.decline,
				"error.advice_code="+advised,
				"error.payment_intent.id="+id, "error.payment_intent.latest_charge="+charge)
			l.expect(l.get("payment_intents/"+id), "status=requires_payment_method", "payment_method=nil",
				"latest_charge="+charge, "last_payment_error.code="+c.code,
				"last_payment_error.decline_code="+c.decline, "last_payment_error.charge="+charge,
				"last_payment_error.payment_method.type=card")
			l.expect(l.get("charges/"+charge), "status=failed", "paid=false", "captured=false", "failure_code="+c.code,
				"outcome.reason="+c.reason,
				"outcome.network_status="+c.network, "outcome.advice_code="+shown, "payment_intent="+id)
			if got, want := l.events(""), "payment_intent.created charge.failed payment_intent.payment_failed"; got != want {
				t.Errorf("events %s, want %s", got, want)
			}
		})
	}
}

func TestOffSessionAuthentication(t *testing.T) {
	l := newTill(t)
	customer, card := l.customer("pm_card_authenticationRequired")
	id := l.intent("customer="+customer, "payment_method="+card)
	a := l.post("payment_intents/"+id+"/confirm", "off_session=true")
	l.expect(a, "error.code=authentication_required", "error.decline_code=authentication_required",
		"error.payment_intent.status=requires_payment_method")
	l.expect(l.get("charges/"+a.at("error.charge")), "status=failed", "outcome.reason=authentication_required")
	// the customer comes back, and the same intent is paid on a page of the bank
	a = l.must(l.post("payment_intents/"+id+"/confirm", "payment_method="+card,
		"return_url=https://shop.example/back?a=b"))
	l.expect(a, "status=requires_action", "next_action.type=redirect_to_url",
		"next_action.redirect_to_url.return_url=https://shop.example/back?a=b", "last_payment_error=nil")
	page := a.at("next_action.redirect_to_url.url")
	if strings.Contains(page, "secret") {
		t.Errorf("the page's address %s has a secret", page)
	}
	if w := l.page("GET", page); w.Code != 200 || !strings.Contains(w.Body.String(), "Complete authentication") ||
		!strings.Contains(w.Body.String(), "$10.00 USD") {
		t.Errorf("the page: %d %s", w.Code, w.Body)
	}
	w := l.page("POST", page, "answer=complete")
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther ||
		!strings.HasPrefix(to, "https://shop.example/back?a=b&payment_intent="+id) ||
		!strings.Contains(to, "redirect_status=succeeded") {
		t.Errorf("the page leads to %d %s", w.Code, to)
	}
	l.expect(l.get("payment_intents/"+id), "status=succeeded", "amount_received=1000", "next_action=nil")
	if w := l.page("POST", page, "answer=complete"); !strings.Contains(w.Body.String(), "need to do anything") {
		t.Errorf("the page again: %s", w.Body)
	}
	if got, want := l.events("charge."), "charge.failed charge.succeeded"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
}

func TestFailedAuthentication(t *testing.T) {
	l := newTill(t)
	id := l.inState("requires_action")
	l.expect(l.get("payment_intents/"+id), "next_action.type=use_stripe_sdk", "latest_charge=nil")
	if err := l.fake.Authenticate(id, false); err != nil {
		t.Fatal(err)
	}
	l.expect(l.get("payment_intents/"+id), "status=requires_payment_method", "payment_method=nil",
		"last_payment_error.code=payment_intent_authentication_failure", "latest_charge=nil", "next_action=nil")
	if err := l.fake.Authenticate(id, true); err == nil {
		t.Error("a payment intent that requires no action was authenticated")
	}
	a := l.post("payment_intents/"+l.intent()+"/confirm", "payment_method=pm_card_authenticationRequired",
		"error_on_requires_action=true")
	l.expect(a, "error.code=authentication_required", "error.payment_intent.status=requires_payment_method")
}

// TestCardsThatAreSetUp: a card that has to be authenticated until it is set up.
func TestCardsThatAreSetUp(t *testing.T) {
	l := newTill(t)
	customer, card := l.customer("pm_card_authenticationRequiredOnSetup")
	pay := func() answer {
		return l.post("payment_intents/"+l.intent("customer="+customer)+"/confirm", "payment_method="+card,
			"off_session=true")
	}
	l.expect(pay(), "error.code=authentication_required")
	setup := l.must(l.post("setup_intents", "customer="+customer, "payment_method="+card, "payment_method_types[]=card",
		"confirm=true"))
	l.expect(setup, "status=requires_action")
	if err := l.fake.Authenticate(setup.id(), true); err != nil {
		t.Fatal(err)
	}
	l.expect(pay(), "status=succeeded")
}

func TestFlakyAndTimeout(t *testing.T) {
	l := newTill(t)
	customer, card := l.customer("pm_sandbox_flaky")
	for range 2 { // on every payment intent anew
		id := l.intent("customer=" + customer)
		l.expect(l.post("payment_intents/"+id+"/confirm", "payment_method="+card), "error.decline_code=generic_decline")
		l.expect(l.post("payment_intents/"+id+"/confirm", "payment_method="+card), "status=succeeded")
	}
	id := l.intent()
	if a := l.post("payment_intents/"+id+"/confirm", "payment_method=pm_sandbox_timeout"); a.status != 0 {
		t.Errorf("status %d, want a broken connection", a.status)
	}
	l.expect(l.get("payment_intents/"+id), "status=succeeded")
}

func TestBankAccounts(t *testing.T) {
	l := newTill(t)
	id := l.inState("processing")
	l.expect(l.get("charges", "payment_intent="+id), "data.0.status=pending", "data.0.paid=false")
	if err := l.fake.Finish(id, true); err != nil {
		t.Fatal(err)
	}
	l.expect(l.get("payment_intents/"+id), "status=succeeded", "amount_received=1000")
	id = l.inState("processing")
	if err := l.fake.Finish(id, false); err != nil {
		t.Fatal(err)
	}
	l.expect(l.get("payment_intents/"+id), "status=requires_payment_method",
		"last_payment_error.code=payment_intent_payment_attempt_failed", "last_payment_error.decline_code=insufficient_funds")
	l.expect(l.get("charges", "payment_intent="+id), "data.0.status=failed", "data.0.failure_code=insufficient_funds")
}

// TestConfirmLimit: after twenty attempts the next one cancels.
func TestConfirmLimit(t *testing.T) {
	l := newTill(t)
	customer, card := l.customer("pm_card_chargeCustomerFail")
	id := l.intent("customer=" + customer)
	for range 20 {
		l.expect(l.post("payment_intents/"+id+"/confirm", "payment_method="+card), "error.code=card_declined")
	}
	l.expect(l.post("payment_intents/"+id+"/confirm", "payment_method="+card),
		"error.code=payment_intent_unexpected_state", "error.payment_intent.status=canceled")
	l.expect(l.get("payment_intents/"+id), "status=canceled", "cancellation_reason=automatic")
}

func TestCapture(t *testing.T) {
	l := newTill(t)
	id := l.inState("requires_capture")
	l.expect(l.get("payment_intents/"+id), "amount_capturable=1000", "amount_received=0")
	// found by TestAtMostOneSuccess: what is only authorized cannot be refunded, and captured then
	l.expect(l.post("refunds", "payment_intent="+id), "error.param=payment_intent")
	l.expect(l.post("refunds", "charge="+l.get("payment_intents/"+id).at("latest_charge")), "error.param=charge")
	l.expect(l.post("payment_intents/"+id+"/capture", "amount_to_capture=1001"), "error.code=amount_too_large")
	l.expect(l.must(l.post("payment_intents/"+id+"/capture", "amount_to_capture=400")), "status=succeeded",
		"amount_received=400", "amount_capturable=0")
	l.expect(l.get("charges", "payment_intent="+id), "data.0.amount_captured=400", "data.0.amount_refunded=600")
	l.expect(l.post("refunds", "payment_intent="+id, "amount=401"), "error.param=amount")
}

// TestReturnURL: a payment intent that may redirect is not confirmed without an address to
// come back to, whatever the payment method; since 2023-08-16 that is the default.
func TestReturnURL(t *testing.T) {
	l := newTill(t)
	open := func(params ...string) string {
		return l.must(l.post("payment_intents", append([]string{"amount=1000", "currency=usd",
			"payment_method=pm_card_visa"}, params...)...)).id()
	}
	id := open()
	l.expect(l.post("payment_intents/"+id+"/confirm", "off_session=true"), "error.param=return_url")
	l.expect(l.post("payment_intents/"+id+"/confirm", "return_url=javascript:alert(1)"), "error.code=url_invalid")
	l.expect(l.post("payment_intents/"+id+"/confirm", "return_url=https://shop.example/"), "status=succeeded")
	l.expect(l.post("payment_intents/"+open("automatic_payment_methods[enabled]=true",
		"automatic_payment_methods[allow_redirects]=never")+"/confirm"), "status=succeeded")
	l.expect(l.post("payment_intents/"+open("payment_method_types[]=card")+"/confirm"), "status=succeeded")
	l.expect(l.post("payment_intents", "amount=1000", "currency=usd", "confirm=true", "payment_method=pm_card_visa"),
		"error.param=return_url")
	l.header.Set("Stripe-Version", "2022-11-15")
	l.expect(l.post("payment_intents/"+open()+"/confirm"), "status=succeeded")
}
