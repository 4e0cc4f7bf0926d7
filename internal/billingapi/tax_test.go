package billingapi_test

import (
	"strings"
	"testing"
)

const taxed = "/v1/accounts/ada/subscriptions"

// TestTax_Refused: a wrong tax is refused by its place, for a new subscription and for a change, and with the same answer by
// their previews. Nothing is stored.
func TestTax_Refused(t *testing.T) {
	w := newWorld(t)
	w.signUp(`,"payment_method":"pm_card_visa","tax":{"rate":"7"}`)
	w.must("POST", taxed, `{"id":"none","sku":"gym","amount":1299,"currency":"EUR","payment_day":31}`)
	before := w.must("GET", subscription, "").text
	const both, created, changed = "created changed", "created", "changed"
	for _, tt := range []struct{ tax, names, problem, of string }{
		{`{"rate":"19%"}`, "tax/rate", "must be a percentage from 0 to 100 with at most 4 decimals", both},
		{`{"rate":"1.00001"}`, "tax/rate", "must be a percentage", both},
		{`{"rate":"100.1"}`, "tax/rate", "must be a percentage", both},
		{`{"rate":"-1"}`, "tax/rate", "must be a percentage", both},
		{`{"rate":""}`, "tax/rate", "must be a percentage", both},
		{`{"rate":19}`, "tax/rate", "must be a string", both},
		{`{"rate":null}`, "tax/rate", "must be a string", both},
		{`{"rate":"none"}`, "tax/rate", "must be a percentage for a new subscription", created},
		{`{"rate":"none","note":"x"}`, "tax/rate", "none cannot be combined", changed},
		{`{"rate":"none","mode":"exclusive"}`, "tax/rate", "none cannot be combined", changed},
		{`{"mode":"exclusive"}`, "tax/rate", "is required", created},
		{`{"note":"reverse charge"}`, "tax/rate", "is required", created},
		{`{}`, "tax/rate", "is required", created},
		{`{"rate":"19","mode":"gross"}`, "tax/mode", "must be inclusive or exclusive", both},
		{`{"rate":"19","mode":""}`, "tax/mode", "must not be empty", both},
		{`{"rate":"19","mode":"gross","note":"x\u0000"}`, "tax/mode tax/note", "must be inclusive or exclusive", both},
		{`{"rate":"19","note":"` + strings.Repeat("x", 201) + `"}`, "tax/note", "must be at most 200 bytes", both},
		{`{"rate":"19","note":"4242 4242 4242 4242"}`, "tax/note", "looks like a card number", both},
		{`{"rate":"19","country":"DE"}`, "tax", "no fields other than rate, mode, note", both}, // it is the account's
		{`"19"`, "tax", "must be an object", both},
	} {
		for of := range strings.FieldsSeq(tt.of) {
			method, path, body := "PATCH", subscription, `{"tax":`+tt.tax+`}`
			if of == created {
				method, path, body = "POST", taxed, `{"id":"s2","sku":"gym","amount":1299,"currency":"EUR","payment_day":31,"tax":`+tt.tax+`}`
			}
			a, shown := w.ask("write", method, path, map[string]string{"POST": "new " + tt.tax}[method], body), w.ask("read", "POST", path+"/preview", "", body)
			if a.status != 422 || a.names() != tt.names || !strings.Contains(a.text, tt.problem) {
				t.Errorf("%s %s: %d %s", method, tt.tax, a.status, a.text)
			}
			if shown.status != a.status || shown.names() != tt.names || shown.body["detail"] != a.body["detail"] {
				t.Errorf("preview of %s %s: %d %s", method, tt.tax, shown.status, shown.text)
			}
		}
	}
	if a := w.ask("write", "PATCH", taxed+"/none", "", `{"tax":{"note":"reverse charge"}}`); a.status != 422 || a.names() != "tax/rate" {
		t.Errorf("a note without a rate: %d %s", a.status, a.text)
	}
	for _, rates := range []string{`["XX:19"]`, `["DE:19%"]`, `["DE:19","DE:7"]`, `"DE:19"`, `["de:19"]`} {
		if a := w.ask("admin", "PATCH", "/v1/settings", "", `{"tax_rates":`+rates+`}`); a.status != 422 || a.names() != "tax_rates" {
			t.Errorf("%s: %d %s", rates, a.status, a.text)
		}
	}
	if got := w.must("GET", subscription, "").text; got != before {
		t.Errorf("refused changes have changed %s to %s", before, got)
	}
	if a := w.ask("read", "GET", taxed+"/s2", "", ""); a.status != 404 {
		t.Errorf("a refused subscription is there: %s", a.text)
	}
}

// TestTax_NextPeriod: a preview shows a new rate and stores nothing. A stored rate is shown at once, but the open period
// keeps its price, and the next one has the new rate.
func TestTax_NextPeriod(t *testing.T) {
	w := newWorld(t)
	w.must("PATCH", "/v1/settings", `{"tax":"on","receipt_months":0,"tax_rates":["DE:19"],"tax_mode":"exclusive"}`)
	w.must("POST", "/v1/accounts", `{"id":"ada","email":"ada@example.com","address":{"country":"DE"}}`)
	has := func(what string, a answer, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(a.text, part) {
				t.Errorf("%s: %s, want %s", what, a.text, part)
			}
		}
	}
	const german, books = `"tax":{"rate":"19","mode":"exclusive","country":"DE"}`, `"tax":{"rate":"7","mode":"exclusive","country":"DE","note":"books"}`
	const body = `{"id":"s1","sku":"gym","amount":1299,"currency":"EUR","payment_day":31,"payment_method":"pm_card_visa_chargeDeclined"}`
	has("preview", w.ask("read", "POST", taxed+"/preview", "", body), german, `"sku":"gym","amount":1546,"currency":"EUR"`)
	has("created", w.must("POST", taxed, body), german, `"amount":1299,`)
	w.must("POST", subscription+"/charge", `{}`)
	has("open", w.must("GET", subscription, ""), german, `"open":{"period":0,"due_date":"2027-01-31","amount":1546,`)

	before := w.must("GET", subscription, "").text
	const change = `{"tax":{"rate":"7","note":"books"}}`
	has("preview of the change", w.ask("read", "POST", subscription+"/preview", "", change), books,
		`"changed":{"tax":{"before":{"rate":"19","mode":"exclusive","country":"DE"},"after":{"rate":"7","mode":"exclusive","country":"DE","note":"books"}}}`,
		`"open":{"period":0,"due_date":"2027-01-31","amount":1546,`, `{"period":0,"due_date":"2027-01-31","sku":"gym","amount":1546,"currency":"EUR"}`,
		`{"period":1,"due_date":"2027-02-28","sku":"gym","amount":1390,"currency":"EUR"}`)
	if got := w.must("GET", subscription, "").text; got != before {
		t.Errorf("a preview has changed %s to %s", before, got)
	}
	has("changed", w.must("PATCH", subscription, change), books)
	has("while the period is open", w.must("GET", subscription, ""), books, `"open":{"period":0,"due_date":"2027-01-31","amount":1546,`)
	if a := w.must("PATCH", subscription, `{"tax":{"rate":"7"}}`); strings.Contains(a.text, "books") {
		t.Errorf("a new rate keeps the note: %s", a.text)
	}
	has("mode only", w.must("PATCH", subscription, `{"tax":{"mode":"inclusive"}}`), `"tax":{"rate":"7","mode":"inclusive","country":"DE"}`)
	w.must("PATCH", subscription, `{"payment_method":"pm_card_visa"}`) // and charges the open period
	const first = `"tax":{"net":1299,"tax":247,"tax_rate":"19","tax_mode":"exclusive","tax_country":"DE"}`
	has("first receipt", w.must("GET", "/v1/receipts?account=ada", ""), `"amount":1546,`, first)
	w.days.Store(28)
	w.must("POST", subscription+"/charge", `{}`)
	has("receipts", w.must("GET", "/v1/receipts?account=ada", ""), first, `"tax":{"net":1214,"tax":85,"tax_rate":"7","tax_mode":"inclusive","tax_country":"DE"}`)
	if a := w.must("PATCH", subscription, `{"tax":{"rate":"none"}}`); a.body["tax"] != nil || w.charged() != 2 {
		t.Errorf("removed: %s", a.text)
	}
	has("report", w.must("GET", "/v1/report", ""), `"taxes":[{"month":"2027-01","country":"DE","rate":"19","currency":"EUR","receipts":1,"net":1299,"tax":247,"gross":1546,`)
}
