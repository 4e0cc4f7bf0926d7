package stripefake_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestCustomers(t *testing.T) {
	l := newTill(t)
	a := l.must(l.post("customers", "email=ada@example.org", "name=Ada", "metadata[a]=1", "address[city]=London",
		"invoice_settings[footer]=Thanks"))
	l.expect(a, "email=ada@example.org", "metadata.a=1", "address.city=London", "address.line1=nil",
		"invoice_settings.footer=Thanks", "invoice_settings.default_payment_method=nil")
	id := a.id()
	l.expect(l.must(l.post("customers/"+id, "name=Ada L", "metadata[a]=", "metadata[b]=2")), "name=Ada L",
		"metadata.a=absent", "metadata.b=2", "email=ada@example.org")
	l.must(l.post("customers", "email=bob@example.org"))
	l.expect(l.get("customers", "email=ada@example.org"), "data.0.id="+id, "data.1=absent")
	l.expect(l.post("customers", "email=ada"), "error.code=email_invalid")
	l.expect(l.post("customers", "surname=x"), "error.code=parameter_unknown")
	l.expect(l.post("customers", "source=tok_visa"), "error.param=source")

	card := l.must(l.post("payment_methods/pm_card_visa/attach", "customer="+id)).id()
	l.must(l.post("customers/"+id, "invoice_settings[default_payment_method]="+card))
	l.expect(l.get("customers/"+id, "expand[]=invoice_settings.default_payment_method"),
		"invoice_settings.default_payment_method.card.last4=4242")
	l.expect(l.must(l.ask("DELETE", "customers/"+id, "")), "deleted=true", "id="+id, "email=absent")
	l.expect(l.must(l.get("customers/"+id)), "deleted=true")
	l.expect(l.get("payment_methods/"+card), "customer=nil")
	if a := l.post("customers/"+id, "name=x"); a.status != http.StatusNotFound {
		t.Errorf("an update of a deleted customer: %d, want 404", a.status)
	}
	l.expect(l.post("payment_intents", "amount=1000", "currency=usd", "customer="+id), "error.code=resource_missing",
		"error.param=customer")
	l.expect(l.get("customers"), "data.0.email=bob@example.org", "data.1=absent")
	if got, want := l.events("customer."), "customer.created customer.updated customer.created customer.updated "+
		"customer.deleted"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
}

func TestCustomerWithMethod(t *testing.T) {
	l := newTill(t)
	a := l.must(l.post("customers", "payment_method=pm_card_visa",
		"invoice_settings[default_payment_method]=pm_card_visa"))
	card := a.at("invoice_settings.default_payment_method")
	l.expect(l.get("payment_methods/"+card), "customer="+a.id())
	if a := l.post("customers", "payment_method=pm_card_visa_chargeDeclined"); a.status != http.StatusPaymentRequired {
		t.Errorf("a card that its bank refuses: %d, want 402", a.status)
	}
	l.expect(l.post("customers", "invoice_settings[default_payment_method]="+card), "error.code=resource_missing")
	l.expect(l.get("customers"), "data.1=absent")
}

func TestAttachAndDetach(t *testing.T) {
	l := newTill(t)
	ada, card := l.customer("pm_card_mastercard")
	bob, _ := l.customer("pm_card_amex")
	l.expect(l.get("payment_methods/"+card), "card.brand=mastercard", "card.last4=4444", "card.exp_month=12",
		"card.exp_year=2030")
	l.expect(l.get("customers/"+ada+"/payment_methods"), "data.0.id="+card, "data.1=absent")
	l.expect(l.get("payment_methods", "customer="+bob, "type=card"), "data.0.card.brand=amex", "data.1=absent")
	if a := l.post("payment_methods/"+card+"/attach", "customer="+bob); !strings.Contains(a.at("error.message"),
		"already been attached") {
		t.Errorf("attached twice: %v", a.body)
	}
	l.expect(l.post("payment_methods/pm_card_visa_chargeDeclinedLostCard/attach", "customer="+bob),
		"error.decline_code=lost_card", "error.advice_code=do_not_try_again")
	// somebody else's card, and a card without its customer
	l.expect(l.post("payment_intents", "amount=1000", "currency=usd", "customer="+bob, "payment_method="+card),
		"error.param=payment_method")
	l.expect(l.post("payment_intents", "amount=1000", "currency=usd", "payment_method="+card),
		"error.param=payment_method")
	l.expect(l.get("customers/"+bob+"/payment_methods/"+card), "error.code=resource_missing")

	l.expect(l.must(l.post("payment_methods/"+card, "card[exp_month]=3", "card[exp_year]=2031",
		"billing_details[name]=Ada")), "card.exp_month=3", "card.exp_year=2031", "billing_details.name=Ada")
	l.expect(l.post("payment_methods/"+card, "card[exp_month]=8", "card[exp_year]=2026"), "error.code=invalid_expiry_year")
	l.must(l.post("customers/"+ada, "invoice_settings[default_payment_method]="+card))
	l.expect(l.must(l.post("payment_methods/"+card+"/detach")), "customer=nil")
	l.expect(l.get("customers/"+ada), "invoice_settings.default_payment_method=nil")
	if a := l.post("payment_methods/"+card+"/attach", "customer="+ada); !strings.Contains(a.at("error.message"),
		"may not be used again") {
		t.Errorf("attached after it was detached: %v", a.body)
	}
	if got, want := l.events("payment_method."), "payment_method.attached payment_method.attached "+
		"payment_method.updated payment_method.detached"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
}

// TestMethodsAreUsedOnce: a payment method that no customer has is used up by an attempt,
// even by one that is declined.
func TestMethodsAreUsedOnce(t *testing.T) {
	for _, token := range []string{"tok_visa", "tok_chargeDeclined"} {
		l := newTill(t)
		card := l.must(l.post("payment_methods", "type=card", "card[token]="+token)).id()
		first := l.post("payment_intents/"+l.intent()+"/confirm", "payment_method="+card)
		if first.status == http.StatusBadRequest {
			t.Fatalf("%s: %s", token, first.at("error.message"))
		}
		a := l.post("payment_intents/"+l.intent()+"/confirm", "payment_method="+card)
		if a.status != http.StatusBadRequest || !strings.Contains(a.at("error.message"), "may not be used again") {
			t.Errorf("%s used twice: %d %s", token, a.status, a.at("error.message"))
		}
	}
	l := newTill(t)
	customer := l.must(l.post("customers")).id()
	card := l.must(l.post("payment_methods", "type=card", "card[token]=tok_visa")).id()
	l.expect(l.post("payment_intents/"+l.intent("customer="+customer, "setup_future_usage=off_session")+"/confirm",
		"payment_method="+card), "status=succeeded")
	l.expect(l.get("payment_methods/"+card), "customer="+customer)
	l.expect(l.post("payment_intents/"+l.intent("customer="+customer)+"/confirm", "payment_method="+card),
		"status=succeeded")
}

// TestNoCardNumbers: a number is refused, and repeated nowhere.
func TestNoCardNumbers(t *testing.T) {
	l := newTill(t)
	a := l.post("payment_methods", "type=card", "card[number]=4242424242424242", "card[exp_month]=1",
		"card[exp_year]=2030", "card[cvc]=314")
	if a.status != http.StatusPaymentRequired || strings.Contains(a.at("error.message"), "4242") {
		t.Errorf("a card number: %d %s", a.status, a.at("error.message"))
	}
	l.expect(l.post("payment_methods", "type=card", "card[token]=tok_unheard_of"), "error.code=resource_missing")
	l.expect(l.post("payment_intents", "amount=1000", "currency=usd", "payment_method=pm_card_unheard_of"),
		"error.code=resource_missing", "error.param=payment_method")
}

// TestMoney is not held against the specification, which knows no upper case.
func TestMoney(t *testing.T) {
	l := newUnwatchedTill(t)
	for _, c := range []struct{ amount, currency, want string }{
		{"50", "usd", "requires_payment_method"}, {"49", "usd", "400 amount_too_small"},
		{"50", "USD", "requires_payment_method"},
		{"99999999", "usd", "requires_payment_method"}, {"100000000", "usd", "400 amount_too_large"},
		{"100000000", "idr", "requires_payment_method"},
		{"0", "kwd", "400 parameter_invalid_integer"}, {"-1", "usd", "400 parameter_invalid_integer"},
		{"1.5", "usd", "400 parameter_invalid_integer"},
		{"5120", "kwd", "requires_payment_method"}, {"5124", "kwd", "400 parameter_invalid_integer"},
		{"500", "isk", "requires_payment_method"},
		{"550", "isk", "400 parameter_invalid_integer"}, {"50", "jpy", "requires_payment_method"},
		{"49", "jpy", "400 amount_too_small"},
		{"29", "gbp", "400 amount_too_small"}, {"17500", "huf", "requires_payment_method"}, {"1000", "xxx", "400 absent"},
		{"1000", "", "400 parameter_missing"},
	} {
		a := l.post("payment_intents", "amount="+c.amount, "currency="+c.currency)
		if got := a.outcome(); got != c.want {
			t.Errorf("%s %s: %s, want %s (%s)", c.amount, c.currency, got, c.want, a.at("error.message"))
		}
		if a.status == http.StatusOK {
			l.expect(a, "currency="+strings.ToLower(c.currency), "amount="+c.amount)
		}
	}
	if got, want := l.post("payment_intents", "amount=1", "currency=usd").at("error.message"),
		"Amount must be at least $0.50 usd"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

func TestConnect(t *testing.T) {
	l := newTill(t)
	if err := l.fake.Connect("acct_other", ""); err != nil {
		t.Fatal(err)
	}
	l.expect(l.post("payment_intents", "amount=1000", "currency=usd", "application_fee_amount=10"),
		"error.param=application_fee_amount")
	l.header.Set("Stripe-Account", "acct_other")
	l.expect(l.post("payment_intents", "amount=1000", "currency=usd", "application_fee_amount=1001"),
		"error.param=application_fee_amount")
	id := l.intent("application_fee_amount=10", "payment_method=pm_card_visa", "confirm=true")
	charge := l.get("charges", "payment_intent="+id)
	l.expect(charge, "data.0.application_fee_amount=10")
	l.expect(l.post("refunds", "payment_intent="+id, "amount=100", "refund_application_fee=true"), "status=succeeded")
	l.header.Del("Stripe-Account")
	if a := l.get("payment_intents/" + id); a.status != http.StatusNotFound {
		t.Errorf("another account's payment intent: %d, want 404", a.status)
	}
}

// TestTestClock: what a customer with a test clock does happens at that clock's time.
func TestTestClock(t *testing.T) {
	l := newTill(t)
	clock := l.must(l.post("test_helpers/test_clocks", "frozen_time=1893456000")).id()
	customer := l.must(l.post("customers", "test_clock="+clock, "payment_method=pm_card_visa",
		"invoice_settings[default_payment_method]=pm_card_visa"))
	l.expect(customer, "created=1893456000", "test_clock="+clock)
	id := l.intent("customer="+customer.id(), "payment_method="+customer.at("invoice_settings.default_payment_method"),
		"confirm=true")
	l.expect(l.get("payment_intents/"+id, "expand[]=latest_charge"), "created=1893456000",
		"latest_charge.created=1893456000")
	l.expect(l.get("customers", "test_clock="+clock), "data.0.id="+customer.id())
	l.expect(l.post("customers", "test_clock=clock_none"), "error.param=test_clock")
}
