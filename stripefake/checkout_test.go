package stripefake_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func (l *till) session(params ...string) (session, customer string) {
	l.t.Helper()
	customer = l.must(l.post("customers", "email=ada@example.org")).id()
	return l.must(l.post("checkout/sessions", append([]string{"mode=setup", "currency=usd", "customer=" + customer,
			"success_url=https://shop.example/done?s={CHECKOUT_SESSION_ID}",
			"cancel_url=https://shop.example/no", "metadata[a]=b", "setup_intent_data[metadata][c]=d"}, params...)...)).id(),
		customer
}

func TestCheckout(t *testing.T) {
	l := newTill(t)
	id, customer := l.session()
	a := l.get("checkout/sessions/"+id, "expand[]=setup_intent")
	page := a.at("url")
	l.expect(a, "status=open", "mode=setup", "metadata.a=b", "setup_intent.status=requires_payment_method",
		"setup_intent.metadata.c=d", "setup_intent.customer="+customer, "url=http://fake.test/checkout/"+id)
	w := l.page("GET", page)
	for _, want := range []string{`type="radio"`, "pm_card_visa", `href="https://shop.example/no"`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, bad := range []string{"<script", `type="text"`, "_secret_"} {
		if strings.Contains(w.Body.String(), bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") ||
		!strings.Contains(csp, "form-action 'self' https://shop.example;") {
		t.Errorf("the page's Content-Security-Policy is %q", csp)
	}
	if w := l.page("POST", page, "card=pm_card_visa_chargeDeclined"); w.Code != 200 ||
		!strings.Contains(w.Body.String(), "Your card was declined.") {
		t.Errorf("a card that is declined: %d %s", w.Code, w.Body)
	}
	if w := l.page("POST", page, "card=pm_card_diners"); w.Code != http.StatusBadRequest {
		t.Errorf("a card that is not offered: %d, want 400", w.Code)
	}
	w = l.page("POST", page, "card=pm_card_mastercard")
	if got, want := w.Header().Get("Location"), "https://shop.example/done?s="+id; w.Code != http.StatusSeeOther ||
		got != want {
		t.Errorf("the page leads to %d %s, want %s", w.Code, got, want)
	}
	a = l.get("checkout/sessions/"+id, "expand[]=setup_intent.payment_method")
	l.expect(a, "status=complete", "url=nil", "setup_intent.status=succeeded",
		"setup_intent.payment_method.customer="+customer, "setup_intent.payment_method.card.brand=mastercard")
	if w := l.page("GET", page); w.Header().Get("Location") != "https://shop.example/done?s="+id {
		t.Errorf("the page afterwards leads to %q", w.Header().Get("Location"))
	}
	want := "setup_intent.created setup_intent.setup_failed setup_intent.succeeded"
	if got := l.events("setup_intent."); got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	if got := l.events("checkout."); got != "checkout.session.completed" {
		t.Errorf("events %s", got)
	}
	l.expect(l.get("setup_intents", "customer="+customer), "data.0.status=succeeded")
}

// TestCheckoutWithAuthentication: the bank's page is between the customer and the end.
func TestCheckoutWithAuthentication(t *testing.T) {
	l := newTill(t)
	id, _ := l.session()
	page := l.get("checkout/sessions/" + id).at("url")
	for _, answer := range []string{"fail", "complete"} {
		bank := l.page("POST", page, "card=pm_card_authenticationRequiredOnSetup").Header().Get("Location")
		if csp := l.page("GET", bank).Header().Get("Content-Security-Policy"); !strings.Contains(csp,
			"https://shop.example;") {
			t.Errorf("the bank's page's Content-Security-Policy is %q", csp)
		}
		if got := l.page("POST", bank, "answer="+answer).Header().Get("Location"); got != page {
			t.Errorf("%s leads to %s, want %s", answer, got, page)
		}
		if w := l.page("GET", page); answer == "fail" && !strings.Contains(w.Body.String(), "authentication failed") {
			t.Errorf("after a failure the page says %s", w.Body)
		}
	}
	l.expect(l.get("checkout/sessions/"+id), "status=complete")
}

func TestCheckoutExpires(t *testing.T) {
	l := newTill(t)
	id, _ := l.session()
	page := l.get("checkout/sessions/" + id).at("url")
	l.fake.Advance(24*time.Hour - time.Second)
	l.expect(l.get("checkout/sessions/"+id), "status=open")
	l.fake.Advance(time.Second)
	if w := l.page("POST", page, "card=pm_card_visa"); w.Code != http.StatusGone {
		t.Errorf("the page after 24 hours: %d, want 410", w.Code)
	}
	a := l.get("checkout/sessions/"+id, "expand[]=setup_intent")
	l.expect(a, "status=expired", "url=nil", "setup_intent.status=canceled")
	if a := l.post("checkout/sessions/" + id + "/expire"); a.status != http.StatusBadRequest {
		t.Errorf("the expiry of an expired session: %d, want 400", a.status)
	}
}

func TestPagesRefuseStrangers(t *testing.T) {
	l := newTill(t)
	id, _ := l.session()
	page := l.get("checkout/sessions/" + id).at("url")
	r := l.page("GET", page)
	if got := r.Header().Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("X-Content-Type-Options %q", got)
	}
	if w := l.foreign(page, "card=pm_card_visa"); w.Code != http.StatusForbidden {
		t.Errorf("a form of another site: %d, want 403", w.Code)
	}
	l.expect(l.get("checkout/sessions/"+id), "status=open")
	for _, address := range []string{"http://fake.test/checkout/cs_test_none",
		"http://fake.test/redirect/authenticate/pi_none", "http://fake.test/redirect/authenticate/seti_none",
		"http://fake.test/other"} {
		if w := l.page("GET", address); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", address, w.Code)
		}
	}
}

// TestPagesEscape: what comes from a request is text on a page.
func TestPagesEscape(t *testing.T) {
	l := newTill(t)
	a := l.must(l.post("checkout/sessions", "mode=setup", "currency=usd", "success_url=https://shop.example/",
		"cancel_url=https://shop.example/?a=\"><script>alert(1)</script>"))
	if w := l.page("GET", a.at("url")); strings.Contains(w.Body.String(), "<script") {
		t.Errorf("the page has a script: %s", w.Body)
	}
}

func TestSessionsThatAreRefused(t *testing.T) {
	l := newTill(t)
	for want, params := range map[string][]string{
		"mode":         {"mode=payment", "success_url=https://shop.example/", "currency=usd"},
		"success_url":  {"mode=setup", "currency=usd"},
		"currency":     {"mode=setup", "success_url=https://shop.example/"},
		"expires_at":   {"mode=setup", "success_url=https://shop.example/", "currency=usd", "expires_at=5"},
		"cancel_url":   {"mode=setup", "success_url=https://shop.example/", "currency=usd", "cancel_url=javascript:alert(1)"},
		"customer":     {"mode=setup", "success_url=https://shop.example/", "currency=usd", "customer=cus_none"},
		"discounts":    {"mode=setup", "success_url=https://shop.example/", "currency=usd", "discounts[0][coupon]=x"},
		"success_urls": {"mode=setup", "success_urls=https://shop.example/", "currency=usd"},
	} {
		a := l.post("checkout/sessions", params...)
		if a.status != http.StatusBadRequest || a.at("error.param") != want {
			t.Errorf("%v: %d about %s, want 400 about %s", params, a.status, a.at("error.param"), want)
		}
	}
	l.expect(l.get("checkout/sessions"), "data.0=absent")
	l.expect(l.get("setup_intents"), "data.0=absent")
}

func TestSetupIntents(t *testing.T) {
	l := newTill(t)
	customer := l.must(l.post("customers")).id()
	open := func(params ...string) string {
		return l.must(l.post("setup_intents", append([]string{"customer=" + customer, "payment_method_types[]=card"},
			params...)...)).id()
	}
	id := open()
	l.expect(l.get("setup_intents/"+id), "status=requires_payment_method", "usage=off_session")
	l.expect(l.post("setup_intents/"+id+"/confirm"), "error.code=setup_intent_unexpected_state")
	l.expect(l.post("setup_intents/"+id+"/confirm", "payment_method=pm_card_visa_chargeDeclinedStolenCard"),
		"error.decline_code=stolen_card", "error.setup_intent.status=requires_payment_method",
		"error.setup_intent.last_setup_error.code=card_declined")
	a := l.must(l.post("setup_intents/"+id+"/confirm", "payment_method=pm_card_visa"))
	l.expect(a, "status=succeeded", "last_setup_error=nil")
	l.expect(l.get("payment_methods/"+a.at("payment_method")), "customer="+customer)
	for _, verb := range []string{"/confirm", "/cancel", ""} {
		l.expect(l.post("setup_intents/"+id+verb), "error.code=setup_intent_unexpected_state", "error.setup_intent.id="+id)
	}
	id = open("payment_method=pm_card_authenticationRequired")
	l.expect(l.get("setup_intents/"+id), "status=requires_confirmation")
	l.expect(l.post("setup_intents/"+id+"/confirm", "return_url=https://shop.example/"), "status=requires_action",
		"next_action.type=redirect_to_url")
	if err := l.fake.Authenticate(id, false); err != nil {
		t.Fatal(err)
	}
	l.expect(l.get("setup_intents/"+id), "status=requires_payment_method",
		"last_setup_error.code=setup_intent_authentication_failure")
	l.expect(l.must(l.post("setup_intents/"+id+"/cancel", "cancellation_reason=abandoned")), "status=canceled",
		"cancellation_reason=abandoned")
	l.expect(l.post("setup_intents", "confirm=true", "payment_method=pm_card_visa"), "error.param=return_url")
	session, _ := l.session()
	inner := l.get("checkout/sessions/" + session).at("setup_intent")
	l.expect(l.post("setup_intents/"+inner+"/cancel"), "error.param=intent")
}
