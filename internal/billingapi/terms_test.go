package billingapi_test

import (
	"strings"
	"testing"
)

// TestTerms: a quantity and a discount are read, shown and removed, and a wrong one is named by its place.
func TestTerms(t *testing.T) {
	w := newWorld(t)
	const one = "/v1/accounts/t/subscriptions"
	for body, place := range map[string]string{
		`"quantity": 0`:                                            "#/quantity",
		`"quantity": 1000001`:                                      "#/quantity",
		`"discount": {"percent": "100"}`:                           "#/discount",
		`"discount": {"percent": "7,5"}`:                           "#/discount/percent",
		`"discount": {"percent": "10", "amount": 5}`:               "#/discount/currency",
		`"discount": {"amount": 1299, "currency": "EUR"}`:          "#/discount",
		`"discount": {"amount": 5, "currency": "USD"}`:             "#/discount",
		`"discount": {"amount": -5, "currency": "EUR"}`:            "#/discount/amount",
		`"discount": {"percent": "10", "periods": 10000}`:          "#/discount/periods",
		`"discount": {"periods": 2}`:                               "#/discount/periods",
		`"discount": {"percent": "10", "from": "2027-01-01"}`:      "#/discount",
		`"discount": {"percent": "10", "percent": "20"}`:           "",
		`"quantity": 3, "discount": {"percent": "10", "period":1}`: "#/discount",
	} {
		a := w.ask("admin", "POST", one, "", `{"id": "t", "email": "t@example.com", "sku": "T", "amount": 1299, "currency": "EUR", "payment_day": 31, `+body+`}`)
		if a.status != 422 && a.status != 400 || place != "" && a.names() != strings.TrimPrefix(place, "#/") && !strings.Contains(a.text, place) {
			t.Errorf("%s: %d %s", body, a.status, a.text)
		}
	}
	sub := w.must("POST", one, `{"id": "t", "email": "t@example.com", "sku": "T", "amount": 1299, "currency": "EUR", "payment_day": 31, "quantity": 3, "discount": {"percent": "10", "periods": 2}}`)
	if !strings.Contains(sub.text, `"quantity":3,"discount":{"percent":"10","from_period":0,"periods":2}`) {
		t.Error(sub.text)
	}
	sub = w.must("PATCH", one+"/t", `{"quantity": 1, "discount": {"amount": 250, "currency": "EUR"}}`)
	if strings.Contains(sub.text, "quantity") || !strings.Contains(sub.text, `"discount":{"amount":250,"currency":"EUR","from_period":0}`) {
		t.Error(sub.text)
	}
	if sub = w.must("PATCH", one+"/t", `{"discount": {}}`); strings.Contains(sub.text, "discount") {
		t.Error(sub.text)
	}
}
