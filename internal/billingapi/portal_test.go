package billingapi_test

import (
	"strings"
	"testing"
)

// TestPortalLinks: a link is for an hour, and only while the customer's page is on. A repeated request revokes once.
func TestPortalLinks(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	const path = "/v1/accounts/ada/portal_links"
	if a := w.ask("write", "POST", path, "off", `{"revoke":true}`); a.status != 409 || a.body["code"] != "state" || !strings.Contains(a.text, "portal=on") {
		t.Errorf("off: %d %s", a.status, a.text)
	}
	w.must("PATCH", "/v1/settings", `{"portal":"on","public_url":"https://pay.example.com","seller":"Gym","seller_address":"Here"}`)
	for key, want := range map[string]int{"read": 403, "merchant": 403, "write": 200, "admin": 200} {
		a := w.ask(key, "POST", path, "by "+key, `{}`)
		if url, _ := a.body["url"].(string); a.status != want || want == 200 && (!strings.HasPrefix(url, "https://pay.example.com/l/") || a.body["expires_at"] != "2027-01-31T13:00:00.000Z") {
			t.Errorf("%s: %d %s", key, a.status, a.text)
		}
	}
	if a := w.ask("write", "POST", "/v1/accounts/none/portal_links", "none", `{}`); a.status != 404 {
		t.Errorf("unknown: %d %s", a.status, a.text)
	}
	first := w.ask("write", "POST", path, "revoke", `{"revoke":true}`)
	again := w.ask("write", "POST", path, "revoke", `{"revoke":true}`)
	if first.status != 200 || again.status != 200 || first.body["url"] != again.body["url"] {
		t.Errorf("%s, %s", first.text, again.text)
	}
	if a := w.ask("read", "GET", "/v1/accounts/ada/history", "", ""); strings.Count(a.text, `"link_epoch"`) != 1 {
		t.Error(a.text)
	}
}
