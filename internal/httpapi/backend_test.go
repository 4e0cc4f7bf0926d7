package httpapi_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/stripe/event"
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

// TestReplayEvent: an event of an unregistered account is listed with its reason, by page, and stays quarantined when it is
// replayed. Once the account is registered, a replay applies it, and a repeated request changes nothing.
func TestReplayEvent(t *testing.T) {
	c := newCrowd(t)
	send := func(method, path, body, key string) (status int, text string, replayed bool) {
		t.Helper()
		r, a := httptest.NewRequest(method, path, strings.NewReader(body)), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+apiKey)
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		c.handler.ServeHTTP(a, r)
		return a.Code, a.Body.String(), a.Header().Get("Idempotent-Replayed") != ""
	}
	for i := range 3 {
		body := fmt.Sprintf(`{"id":"evt_%d","object":"event","account":"acct_new","api_version":"2020-08-27","created":%d,"livemode":false,"type":"customer.subscription.updated",`+
			`"data":{"object":{"id":"sub_1","object":"subscription","status":"active"}}}`, i, c.now().Unix())
		r, a := httptest.NewRequest("POST", connectPath, strings.NewReader(body)), httptest.NewRecorder()
		r.Header.Set("Stripe-Signature", event.Sign([]byte(body), connectSecret, c.now()))
		if c.handler.ServeHTTP(a, r); a.Code != 200 || !strings.Contains(a.Body.String(), `"quarantined"`) {
			t.Fatalf("got %d %s", a.Code, a.Body)
		}
	}
	const list = "/v1/events?limit=2&status=quarantined"
	_, text, _ := send("GET", list, "", "")
	_, next, _ := strings.Cut(text, `"next_cursor":"`)
	next, _, _ = strings.Cut(next, `"`)
	_, rest, _ := send("GET", list+"&cursor="+next, "", "")
	if !strings.Contains(text, `"evt_0"`) || !strings.Contains(text, `"evt_1"`) || strings.Contains(text, `"evt_2"`) ||
		!strings.Contains(text, `"reason":"the Stripe account is not registered","source":"webhook"`) ||
		!strings.Contains(rest, `"evt_2"`) || strings.Contains(rest, `"evt_1"`) {
		t.Errorf("quarantined: %s, and then %s", text, rest)
	}
	for i, tt := range []struct {
		method, path, body, key string
		status                  int
		want                    string
		replayed                bool
	}{
		{"GET", "/v1/events?status=waiting", "", "", 200, `{"data":[],"has_more":false}`, false},
		{"GET", "/v1/events?status=applied", "", "", 422, "must be one of waiting, dead, quarantined", false},
		{"GET", "/v1/events?status=waiting&from=2026-01-01", "", "", 422, "cannot be combined", false},
		{"GET", "/v1/events?source=poll", "", "", 200, `{"data":[],"has_more":false}`, false},
		{"GET", "/v1/events?source=webhook&order=newest&limit=1", "", "", 200, `"status":"quarantined"`, false},
		{"POST", "/v1/events/evt_none/replay", "", "r0", 404, "not_found", false},
		{"POST", "/v1/events/evt_1/replay", "{}", "r1", 200, `"status":"quarantined"`, false},
		{"POST", "/v1/events/evt_2/replay", "", "r1", 422, "idempotency_key", false},
		{"POST", "/v1/merchants", `{"stripe_account":"acct_new","id":"` + other + `"}`, "m", 201, `"connected"`, false},
		{"GET", "/v1/events?status=waiting", "", "", 200, `"evt_2"`, false},
		{"POST", "/v1/events/evt_1/replay", "", "r2", 200, `"status":"ignored","reason":"not tracked"`, false},
		{"POST", "/v1/events/evt_1/replay", "", "r2", 200, `"status":"ignored"`, true},
		{"POST", "/v1/events/evt_1/replay", "{}", "r1", 200, `"status":"ignored"`, true},
	} {
		if status, text, replayed := send(tt.method, tt.path, tt.body, tt.key); status != tt.status || !strings.Contains(text, tt.want) || replayed != tt.replayed {
			t.Errorf("%d: %s %s: got %d %s, replayed %t", i, tt.method, tt.path, status, text, replayed)
		}
	}
}
