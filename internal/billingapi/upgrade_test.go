package billingapi_test

import (
	"strings"
	"testing"
)

// TestUpgrade: a preview says what an upgrade charges and gives away, and stores nothing. The upgrade needs
// a key that may charge, is made once for its idempotency key, and its subscription says how it went.
func TestUpgrade(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	const plan = subscription + "/plan"
	const body = `{"sku":"gym-plus","amount":1999,"currency":"EUR","now":true}`
	if a := w.ask("charge", "POST", plan, "early", body); a.status != 409 || !strings.Contains(a.text, "due on "+today) && !strings.Contains(a.text, "first period") {
		t.Errorf("before the first payment: %d %s", a.status, a.text)
	}
	w.must("POST", subscription+"/charge", `{}`)
	w.days.Store(10)
	before := w.must("GET", subscription, "").text
	a := w.ask("read", "POST", plan+"/preview", "", body)
	offer, _ := a.body["offer"].(map[string]any)
	if a.status != 200 || a.body["sku"] != "gym-plus" || a.body["upgrade"] != nil || offer["amount"] != 1999.0 || offer["days_given_away"] != 18.0 ||
		offer["due_date"] != "2027-02-10" || offer["next_due_date"] != "2027-03-10" {
		t.Errorf("preview: %d %s", a.status, a.text)
	}
	if w.must("GET", subscription, "").text != before || w.charged() != 1 {
		t.Error("a preview has changed something")
	}
	for text, names := range map[string]string{`{"sku":"x","now":true,"notify":true}`: "now", `{"quantity":3,"now":true}`: "now",
		`{"sku":"a/b","now":true}`: "sku", `{"amount":5,"currency":"USD","now":true}`: "amount", `{"sku":"x","now":1}`: "now"} {
		for _, path := range []string{plan, plan + "/preview"} {
			if a := w.ask("charge", "POST", path, "wrong"+text, text); a.status != 422 && a.status != 400 || a.names() != names {
				t.Errorf("%s %s: %d %s", path, text, a.status, a.text)
			}
		}
	}
	if a := w.ask("write", "POST", plan, "scope", body); a.status != 403 || a.body["code"] != "scope" {
		t.Errorf("a key that may not charge: %d %s", a.status, a.text)
	}
	for range 2 {
		a = w.ask("charge", "POST", plan, "up", body)
		up, _ := a.body["upgrade"].(map[string]any)
		if a.status != 200 || a.body["sku"] != "gym-plus" || a.body["due_date"] != "2027-03-10" || up["state"] != "charged" || up["date"] != "2027-02-10" || w.charged() != 2 {
			t.Errorf("upgrade: %d %s", a.status, a.text)
		}
	}
	if a := w.ask("charge", "POST", plan, "up", strings.Replace(body, "1999", "2999", 1)); a.status != 422 || a.body["code"] != "idempotency_key" {
		t.Errorf("another request with the key: %d %s", a.status, a.text)
	}
	if a := w.ask("charge", "POST", plan, "same", body); a.status != 409 || a.body["code"] != "state" || !strings.Contains(a.text, "already has this plan") {
		t.Errorf("the plan in force: %d %s", a.status, a.text)
	}
	w.must("PATCH", subscription, `{"payment_method":"pm_card_visa_chargeDeclinedLostCard"}`)
	a = w.ask("charge", "POST", plan, "again", `{"sku":"gym-max","now":true}`)
	if up, _ := a.body["upgrade"].(map[string]any); a.status != 200 || up["state"] != "declined" || a.body["sku"] != "gym-plus" || w.charged() != 2 {
		t.Errorf("declined: %d %s", a.status, a.text)
	}
	w.must("PATCH", subscription, `{"payment_method":"pm_card_authenticationRequired"}`)
	a = w.ask("charge", "POST", plan, "auth", `{"sku":"gym-max","now":true}`)
	if up, _ := a.body["upgrade"].(map[string]any); a.status != 200 || up["state"] != "action_required" || a.body["open"] == nil {
		t.Errorf("with authentication: %d %s", a.status, a.text)
	}
	if a := w.ask("charge", "POST", plan, "third", body); a.status != 409 || a.body["code"] != "state" || !strings.Contains(a.text, "under way") {
		t.Errorf("while one is under way: %d %s", a.status, a.text)
	}
}
