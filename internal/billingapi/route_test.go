package billingapi_test

import (
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/billingapi"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/test/spectest"
)

// TestRoutes_Spec: openapi.json has each route as it is.
func TestRoutes_Spec(t *testing.T) {
	spectest.New(t).Routes(t, billingapi.Routes(billingapi.Options{}), false)
}

// TestRoutes_Scopes: a key without the route's scope, and one of a merchant, get 403 from every route. A key
// that has the scope gets past it.
func TestRoutes_Scopes(t *testing.T) {
	w := newWorld(t)
	for _, to := range billingapi.Routes(billingapi.Options{}) {
		method, path := splitPattern(to.Pattern)
		if !slices.Contains(key.Scopes(), to.Scope) || to.Merchants {
			t.Errorf("%s: scope %q, merchants %v", to.Pattern, to.Scope, to.Merchants)
		}
		for _, scope := range append(key.Scopes(), "merchant") {
			allowed := scope != "merchant" && scope.Includes(to.Scope)
			a := w.ask(string(scope), method, path, "scope "+string(scope), `{"unknown":1}`)
			if (a.status == 403) == allowed {
				t.Errorf("%s with a key of scope %s: %d %s", to.Pattern, scope, a.status, a.text)
			}
		}
	}
}

// TestRoutes_SignUp walks through the life of a subscription.
func TestRoutes_SignUp(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	w.must("GET", "/v1/accounts/ada", "")
	w.must("PATCH", "/v1/accounts/ada", `{"name":"Ada","time_zone":"Europe/Berlin"}`)
	w.must("POST", "/v1/accounts/ada/payment_methods", `{"payment_method":"pm_card_mastercard"}`)
	w.must("POST", "/v1/accounts/ada/subscriptions/preview", `{"subscription":"s2","sku":"gym","amount":5,"currency":"JPY","trial_days":7}`)
	w.must("GET", "/v1/accounts/ada/subscriptions", "")
	if due := w.must("GET", "/v1/due/payments?date="+today, "").body["data"].([]any); len(due) != 1 {
		t.Errorf("due payments: %v", due)
	}
	w.must("GET", "/v1/due/reminders?date=2027-01-24", "")
	w.must("POST", subscription+"/charge", `{}`)
	w.must("GET", subscription+"/periods/0", "")
	w.must("GET", subscription+"/periods/1", "")
	w.must("GET", subscription+"/periods/0/proof", "")
	w.must("GET", subscription+"/periods", "")
	w.must("PATCH", subscription, `{"payment_day":15,"early":true,"reminder_days":3,"address":"1 High Street"}`)
	w.must("POST", subscription+"/plan/preview", `{"amount":1500,"currency":"EUR"}`)
	w.must("POST", subscription+"/plan", `{"sku":"gym-plus","amount":1500,"currency":"EUR","from":"2027-03-01","notify":true}`)
	w.must("POST", subscription+"/pause", `{}`)
	w.must("POST", subscription+"/resume", `{}`)
	receipts := w.must("GET", "/v1/receipts?account=ada&from="+today+"&to="+today, "").body["data"].([]any)
	if len(receipts) != 1 {
		t.Fatalf("receipts: %v", receipts)
	}
	number := receipts[0].(map[string]any)["number"].(string)
	w.must("POST", "/v1/receipts/"+number+"/refunds", `{"account":"ada","amount":299,"currency":"EUR","reason":"requested_by_customer"}`)
	if x := w.must("GET", "/v1/receipts/"+number+"?account=ada", "").body; x["refunded"] != 299.0 {
		t.Errorf("the receipt of a refunded charge: %v", x)
	}
	w.must("GET", "/v1/refunds?account=ada", "")
	w.days = 40
	w.restart()
	w.must("POST", subscription+"/receipts", `{"amount":1299,"currency":"EUR","note":"bank 7"}`)
	w.must("POST", subscription+"/skip", `{"until":"2027-03-12"}`)
	w.must("POST", subscription+"/cancel", `{"at_period_end":true}`)
	w.must("POST", subscription+"/cancel", `{}`)
	if n := w.charged(); n != 1 {
		t.Errorf("%d charges, want 1", n)
	}
}

// TestRoutes_Installation walks through what is about the installation.
func TestRoutes_Installation(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	w.must("GET", "/v1/status", "")
	w.must("GET", "/v1/report?from=2027-01&days=60", "")
	w.must("PUT", "/v1/charging", `{"charging":false,"reason":"a holiday"}`)
	if a := w.ask("charge", "POST", subscription+"/charge", "off", `{}`); a.status != 409 || a.body["code"] != "charging_off" {
		t.Errorf("charging is off: %d %s", a.status, a.text)
	}
	w.must("PUT", "/v1/charging", `{"charging":true}`)
	w.must("POST", subscription+"/charge", `{}`)
	w.must("GET", "/v1/charging", "")
	w.must("PATCH", "/v1/settings", `{"retry_days":[1,2],"catch_up":5,"time_zone":"Europe/Berlin","products":[{"sku":"gym","name":"Gym"}]}`)
	w.must("GET", "/v1/settings", "")
	made := w.must("POST", "/v1/keys", `{"name":"shop","scope":"charge","expires":"2028-01-31T00:00:00.000Z"}`).body
	w.must("GET", "/v1/keys", "")
	w.must("DELETE", "/v1/keys/"+made["id"].(string), "")
	if a := w.ask("admin", "DELETE", "/v1/keys/"+made["id"].(string), "", ""); a.status != 404 {
		t.Errorf("revoked twice: %d %s", a.status, a.text)
	}
}
