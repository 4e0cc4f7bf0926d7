package pages_test

import (
	"strings"
	"testing"
)

// TestRun: the page of a payment run shows each period that it has not charged, with the reason and the next step. That of a
// reminder run asks for none.
func TestRun(t *testing.T) {
	var asked []string
	h := answers(&asked, map[string]string{"/v1/runs/r": `{"id":"r","kind":"payments","state":"completed","due":4,"paid":1}`,
		"/v1/runs/r/unpaid": `{"data":[
{"account":"a","subscription":"1","period":3,"outcome":"retry","retry_date":"2026-03-16","amount":1299,"currency":"EUR","detail":"insufficient_funds"},
{"account":"b","subscription":"1","period":0,"outcome":"failed","amount":500,"currency":"JPY","detail":"lost_card"},
{"account":"c","subscription":"1","period":7,"outcome":"parked"}],"has_more":true}`,
		"/v1/runs/s": `{"id":"s","kind":"reminders","state":"completed"}`})
	text := ask(h, "GET", "/runs/r", nil, nil).Body.String()
	for _, want := range []string{`<a href="/accounts/a/subscriptions/1">a/1</a>`, "12.99 EUR", "insufficient_funds", "Next attempt on 2026-03-16", "500 JPY",
		`<a href="/accounts/b/subscriptions/1/change">`, `<a href="/accounts/c/subscriptions/1/skip">`, "first 1,000"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	asked = nil
	if w := ask(h, "GET", "/runs/s", nil, nil); w.Code != 200 || len(asked) != 1 {
		t.Errorf("a reminder run: %d, asked %q", w.Code, asked)
	}
}
