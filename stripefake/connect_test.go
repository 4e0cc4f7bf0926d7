package stripefake

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/duesday/duesday/stripefake/internal/api"
)

func TestKeys(t *testing.T) {
	w := newWorld(t, Options{Keys: append(DefaultKeys(), Key{Secret: "rk_live_narrow", Account: DefaultAccount,
		Refused: []string{"/v1/events", "POST /v1/customers"}})})
	auth := func(header string) answer {
		t.Helper()
		return w.do("GET", customers, "", "Authorization", header)
	}
	for header, want := range map[string]int{
		"Bearer " + testKey: 200, "bearer rk_test_duesday": 200, "Basic c2tfdGVzdF9kdWVzZGF5Og==": 200,
		"Bearer rk_live_narrow": 200,
		"":                      401, "Bearer": 401, "Bearer sk_test_other": 401, "Bearer " + testKey + "x": 401, "Token " +
			testKey: 401,
		"Basic c2tfdGVzdF9vdGhlcjo=": 401,
	} {
		a := auth(header)
		equal(t, header, a.status, want)
		if a.status == 401 && strings.Contains(a.text, "sk_test_other") {
			t.Errorf("%s: the key is shown: %s", header, a.text)
		}
	}
	equal(t, "message", auth("Bearer sk_test_other").at("error.message"), any("Invalid API Key provided: sk_test_***"))

	narrow := []string{"Authorization", "Bearer rk_live_narrow"}
	for path, want := range map[string]int{"GET " + customers: 200, "POST " + customers: 403, "GET /v1/events": 403,
		"GET /v1/events/evt_1": 403, "GET /v1/accounts": 200} {
		method, path, _ := strings.Cut(path, " ")
		a := w.do(method, path, "", narrow...)
		equal(t, method+" "+path, a.status, want)
		if strings.Contains(a.text, "rk_live_narrow") {
			t.Errorf("%s: the key is shown: %s", path, a.text)
		}
	}

	if err := w.Revoke(testKey); err != nil {
		t.Fatal(err)
	}
	auth("Bearer "+testKey).refused(t, "a revoked key", 401, "api_key_expired", nil)
	equal(t, "another key", auth("Bearer rk_test_duesday").status, 200)
	if err := w.Restore(testKey); err != nil {
		t.Fatal(err)
	}
	equal(t, "restored", auth("Bearer "+testKey).status, 200)
	if err := w.Revoke("sk_test_other"); err == nil || strings.Contains(err.Error(), "other") {
		t.Errorf("revoking an unknown key: got %v", err)
	}
}

func TestModes(t *testing.T) {
	w := newWorld(t, Options{})
	id := w.customer("")
	live := []string{"Authorization", "Bearer " + liveKey}
	a := w.do("GET", customers+"/"+id, "", live...)
	a.refused(t, "a test object with a live key", 404, "resource_missing", "id")
	if message := a.at("error.message").(string); !strings.Contains(message,
		"a similar object exists in test mode, but a live mode key was used") {
		t.Errorf("got %q", message)
	}
	equal(t, "live customers", len(w.ok("GET", customers, "", live...).ids()), 0)
	equal(t, "live events", len(w.ok("GET", "/v1/events", "", live...).ids()), 0)
	equal(t, "livemode", []any{w.ok("GET", customers+"/"+id, "").body["livemode"],
		w.ok("POST", customers, "", live...).body["livemode"]}, []any{false, true})
}

func TestConnect(t *testing.T) {
	w := newWorld(t, Options{Keys: append(DefaultKeys(), Key{Secret: "sk_test_rival", Account: "acct_rival"})})
	for _, id := range []string{"acct_a", "acct_b"} {
		if err := w.Connect(id, ""); err != nil {
			t.Fatal(err)
		}
	}
	as := func(id string) []string { return []string{"Stripe-Account", id} }
	ours, a, b := w.customer(""), w.customer("", as("acct_a")...), w.customer("", as("acct_b")...)
	equal(t, "ours", w.ok("GET", customers, "").ids(), []string{ours})
	equal(t, "of a", w.ok("GET", customers, "", as("acct_a")...).ids(), []string{a})
	equal(t, "of b", w.ok("GET", customers, "", as("acct_b")...).ids(), []string{b})
	equal(t, "ours by header", w.ok("GET", customers, "", as(DefaultAccount)...).ids(), []string{ours})
	w.do("GET", customers+"/"+a, "", as("acct_b")...).refused(t, "a's with b", 404, "resource_missing", "id")
	equal(t, "who", w.ok("GET", "/v1/account", "", as("acct_a")...).id(), "acct_a")
	equal(t, "connected", len(w.ok("GET", "/v1/accounts", "").ids()), 2)

	rival := w.do("GET", customers, "", append(as("acct_a"), "Authorization", "Bearer sk_test_rival")...)
	rival.refused(t, "another platform's key", 403, "account_invalid", nil)
	w.do("GET", customers, "", as("acct_none")...).refused(t, "an unknown account", 403, "account_invalid", nil)

	if err := w.Disconnect("acct_a"); err != nil {
		t.Fatal(err)
	}
	gone := w.do("POST", customers, "", as("acct_a")...)
	gone.refused(t, "disconnected", 403, "account_invalid", nil)
	if message := gone.at("error.message").(string); !strings.Contains(message,
		"Application access may have been revoked") || strings.Contains(message, testKey) {
		t.Errorf("got %q", message)
	}
	w.do("GET", "/v1/accounts/acct_a", "").refused(t, "the account", 403, "account_invalid", nil)
	w.customer("", as("acct_b")...)
	if err := w.Connect("acct_a", ""); err != nil {
		t.Fatal(err)
	}
	equal(t, "connected again", w.ok("GET", customers, "", as("acct_a")...).ids(), []string{a})
	for id, says := range map[string]string{"a": "must be acct_", "acct_ x": "must be acct_",
		"acct_rival": "another platform"} {
		if err := w.Connect(id, ""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Connect(%q): got %v, want %q", id, err, says)
		}
	}
}

func TestAccounts(t *testing.T) {
	w := newWorld(t, Options{})
	id := w.ok("POST", "/v1/accounts", "type=express&country=DE&metadata[shop]=7").id()
	equal(t, "read", w.ok("GET", "/v1/accounts/"+id, "").at("metadata.shop"), any("7"))
	w.ok("POST", "/v1/accounts/"+id, "email=a@b.example")
	w.customer("", "Stripe-Account", id)
	equal(t, "deleted", w.ok("DELETE", "/v1/accounts/"+id, "").body["deleted"], any(true))
	w.do("POST", customers, "", "Stripe-Account", id).refused(t, "deleted", 403, "account_invalid", nil)
	w.do("DELETE", "/v1/accounts/"+DefaultAccount, "").refused(t, "our own", 400, nil, "account")
}

// TestHost: a Host that is no host is shown in no link.
func TestHost(t *testing.T) {
	for host, want := range map[string]string{"127.0.0.1:12111": "http://127.0.0.1:12111", "[::1]:1": "http://[::1]:1",
		"a\"><script>": "http://localhost", "": "http://localhost"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		equal(t, host, api.BaseOf(r), want)
	}
}
