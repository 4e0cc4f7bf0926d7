package stripefake

import (
	"fmt"
	"strings"
	"testing"
)

// TestFailNext: a planned failure meets the endpoint's next requests, and its key keeps what Stripe keeps.
func TestFailNext(t *testing.T) {
	for _, tt := range []struct {
		status      int
		code        string
		first, then string // status, code and decline code, with the same key
	}{
		{500, "", "500 <nil> <nil>", "500 <nil> <nil>"},
		{503, "", "503 <nil> <nil>", "503 <nil> <nil>"},
		{402, "insufficient_funds", "402 card_declined insufficient_funds", "402 card_declined insufficient_funds"},
		{402, "", "402 card_declined generic_decline", "402 card_declined generic_decline"},
		{404, "resource_missing", "404 resource_missing <nil>", "404 resource_missing <nil>"},
		{400, "parameter_invalid_empty", "400 parameter_invalid_empty <nil>", "200 <nil> <nil>"},
		{401, "api_key_expired", "401 api_key_expired <nil>", "200 <nil> <nil>"},
		{409, "idempotency_key_in_use", "409 idempotency_key_in_use <nil>", "200 <nil> <nil>"},
		{429, "", "429 rate_limit <nil>", "200 <nil> <nil>"},
		{0, "", "502 <nil> <nil>", "200 <nil> <nil>"}, // a recorder's broken connection
	} {
		w := newWorld(t, Options{})
		w.handler = w.Fake // it fails with what the test asks for
		if err := w.FailNext("POST /v1/customers", tt.status, tt.code, 1); err != nil {
			t.Fatal(err)
		}
		w.ok("GET", customers, "")
		for _, want := range []string{tt.first, tt.then} {
			a := w.do("POST", customers, "name=A", "Idempotency-Key", "k")
			equal(t, fmt.Sprint(tt.status, " ", tt.code), fmt.Sprint(a.status, " ", a.at("error.code"), " ",
				a.at("error.decline_code")), want)
		}
		w.customer("") // another key
	}
}

func TestFailNext_Matches(t *testing.T) {
	w := newWorld(t, Options{})
	w.handler = w.Fake
	a, b := w.customer(""), w.customer("")
	plan := func(endpoint string, status, times int) {
		t.Helper()
		if err := w.FailNext(endpoint, status, "", times); err != nil {
			t.Fatal(err)
		}
	}
	plan("POST /v1/customers/"+b, 500, 1)
	plan("POST /v1/customers/{customer}", 503, 2)
	for i, want := range []int{503, 500, 503, 200} {
		equal(t, fmt.Sprint("request ", i), w.do("POST", customers+"/"+[]string{a, b}[i%2], "").status, want)
	}
	w.ok("POST", customers, "name=A", "Idempotency-Key", "k")
	plan("POST /v1/customers", 500, 1)
	plan("POST /v1/customers", 429, 1)
	again := []int{w.do("POST", customers, "name=A", "Idempotency-Key", "k").status,
		w.do("POST", customers, "name=A", "Idempotency-Key", "k").status, w.do("POST", customers, "name=A").status}
	equal(t, "a key that has an answer", again, []int{429, 200, 500})
	for says, err := range map[string]error{
		"endpoint must be a method and a path": w.FailNext("/v1/customers", 500, "", 1),
		`(got "GET /v1/nothing")`:              w.FailNext("GET /v1/nothing", 500, "", 1),
		"status must be 0 or from 400 to 599":  w.FailNext("POST /v1/customers", 200, "", 1),
		"times must be at least 1":             w.FailNext("POST /v1/customers", 500, "", 0),
	} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

// TestRequests: the log has what a test asserts on, and no secret.
func TestRequests(t *testing.T) {
	w := newWorld(t, Options{Connected: []string{"acct_tea"}})
	w.handler = w.Fake
	w.customer("name=A&metadata[order]=1001", "Idempotency-Key", "k", "Stripe-Account", "acct_tea")
	w.customer("name=A&metadata[order]=1001", "Idempotency-Key", "k", "Stripe-Account", "acct_tea")
	w.do("POST", "/v1/payment_methods", "type=card&card[number]=4242424242424242&card[cvc]=737&metadata[a]=5555 5555 5555 4444"+
		"&metadata[b]=my sk_live_51Hsecret&metadata[c]=pi_1_secret_2&metadata[d]=4242424242424243")
	w.do("GET", customers, "limit=3", "Authorization", "Bearer sk_test_wrong")
	got := w.Requests()
	if len(got) != 4 {
		t.Fatalf("got %d requests, want 4", len(got))
	}
	first, method, wrong := got[0], got[2], got[3]
	equal(t, "replayed", []bool{first.Replayed, got[1].Replayed}, []bool{false, true})
	equal(t, "the request", []any{first.Method, first.Path, first.Endpoint, first.Form.Get("metadata[order]"),
		first.IdempotencyKey, first.Account, first.Live, first.Version, first.Status, first.At},
		[]any{"POST", customers, "POST " + customers, "1001", "k", "acct_tea", false, NewestVersion, 200, testStart})
	for name, want := range map[string]string{"card[number]": "[redacted]", "card[cvc]": "[redacted]",
		"metadata[a]": "[redacted]", "metadata[b]": "[redacted]", "metadata[c]": "[redacted]",
		"metadata[d]": "4242424242424243", "type": "card"} { // d fails the check of card numbers
		equal(t, name, method.Form.Get(name), want)
	}
	equal(t, "a wrong key", []any{wrong.Status, wrong.Account, wrong.Form.Get("limit")}, []any{401, "", "3"})
	for range 10_000 {
		w.do("GET", "/v1/account", "")
	}
	got = w.Requests()
	equal(t, "the last ones", []any{len(got), got[0].Path, got[9_999].ID > got[0].ID}, []any{10_000, "/v1/account", true})
}
