package httpapi_test

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCreateMerchant: a merchant is registered once for a key, and a refused request leaves the key free.
// The service and the store are real, and each answer fits openapi.json.
func TestCreateMerchant(t *testing.T) {
	c := newCrowd(t)
	for i, tt := range []struct {
		path, key, body string
		status          int
		code, replayed  string
		want            string // in the answer
	}{
		{"/v1/merchants", "k", `{"stripe_account":"acct_new","id":"` + other + `x"}`, 422, "field", "", `"#/id"`},
		{"/v1/merchants", "k", `{"stripe_account":"new","id":"` + other + `"}`, 422, "field", "", `"#/stripe_account"`},
		{"/v1/merchants", "k", `{"stripe_account":"` + stripeAccount + `","id":"` + other + `"}`, 422, "other", "", "another merchant"},
		{"/v1/merchants", "k", `{"stripe_account":"acct_new","id":"` + other + `"}`, 201, "", "", `"id":"` + other},
		{"/v1/merchants", "k", `{"id":"` + other + `", "stripe_account":"acct_new"}`, 200, "", "true", `"id":"` + other},
		{"/v1/merchants", "k", `{"stripe_account":"acct_new"}`, 422, "idempotency_key", "", `"object":"merchants/acct_new"`},
		{"/v1/merchants", "k2", `{"stripe_account":"acct_own_id"}`, 201, "", "", `"status":"connected"`},
		{"/v1/jobs/fulfil%2Fnone/retry", "k3", "", 404, "not_found", "", ""},
		{"/v1/merchants", "k3", `{"stripe_account":"acct_k3","id":"` + account + `"}`, 201, "", "", `"id":"` + account},
	} {
		r := httptest.NewRequest("POST", tt.path, strings.NewReader(tt.body))
		r.Header.Set("Authorization", "Bearer "+apiKey)
		r.Header.Set("Idempotency-Key", tt.key)
		if tt.body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		a := httptest.NewRecorder()
		c.handler.ServeHTTP(a, r)
		if a.Code != tt.status || a.Header().Get("Idempotent-Replayed") != tt.replayed || !strings.Contains(a.Body.String(), tt.want) ||
			tt.code != "" && problem(t, a.Code, a.Header(), a.Body.Bytes()).Code != tt.code {
			t.Errorf("%d: got %d %s, want %d %s %s", i, a.Code, a.Body, tt.status, tt.code, tt.want)
		}
	}
}

// TestPurchases_ByKey: another order with a key is refused with the purchase of the first, which the key also
// finds, for its merchant alone.
func TestPurchases_ByKey(t *testing.T) {
	c := newCrowd(t)
	send := func(method, path, body string) *httptest.ResponseRecorder {
		r, a := httptest.NewRequest(method, path, strings.NewReader(body)), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+apiKey)
		r.Header.Set("Idempotency-Key", "order 1")
		r.Header.Set("Content-Type", "application/json")
		c.handler.ServeHTTP(a, r)
		return a
	}
	first := send("POST", "/v1/purchases", orderBody)
	path := strings.TrimPrefix(first.Header().Get("Location"), "/v1/")
	if first.Code != 201 || !strings.HasPrefix(path, "purchases/") {
		t.Fatalf("got %d %s", first.Code, first.Body)
	}
	if a := send("POST", "/v1/purchases", orderBody); a.Code != 200 || a.Header().Get("Idempotent-Replayed") != "true" ||
		!strings.Contains(a.Body.String(), path[len("purchases/"):]) {
		t.Errorf("again: got %d %s", a.Code, a.Body)
	}
	a := send("POST", "/v1/purchases", strings.Replace(orderBody, "1299", "1300", 1))
	if p := problem(t, a.Code, a.Header(), a.Body.Bytes()); a.Code != 422 || p.Code != "idempotency_key" || p.Object != path {
		t.Errorf("another order: got %d %s", a.Code, a.Body)
	}
	for merchant, rows := range map[string]int{account: 1, other: 0} {
		a := send("GET", "/v1/purchases?idempotency_key=order+1&merchant="+merchant, "")
		if got := strings.Count(a.Body.String(), path[len("purchases/"):]); a.Code != 200 || got != rows {
			t.Errorf("by key, of %s: got %d %s", merchant, a.Code, a.Body)
		}
	}
}
