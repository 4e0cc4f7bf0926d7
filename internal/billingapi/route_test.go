package billingapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	w.must("POST", "/v1/accounts/ada/subscriptions/preview", `{"id":"s2","sku":"gym","amount":5,"currency":"JPY","trial_days":7}`)
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
	number := receipts[0].(map[string]any)["id"].(string)
	w.must("POST", "/v1/receipts/"+number+"/refunds", `{"account":"ada","amount":299,"currency":"EUR","reason":"requested_by_customer"}`)
	if x := w.must("GET", "/v1/receipts/"+number+"?account=ada", "").body; x["refunded"] != 299.0 {
		t.Errorf("the receipt of a refunded charge: %v", x)
	}
	w.must("GET", "/v1/refunds?account=ada", "")
	w.days.Store(40)
	w.restart()
	w.must("POST", subscription+"/receipts", `{"amount":1299,"currency":"EUR","note":"bank 7"}`)
	w.must("POST", subscription+"/skip", `{"until":"2027-03-12"}`)
	if x := w.must("POST", subscription+"/cancel", `{"at_period_end":true}`).body; x["ends_on"] != x["due_date"] || x["due_date"] == nil {
		t.Errorf("a cancellation at the end: %v", x)
	}
	w.must("POST", subscription+"/cancel", `{}`)
	if n := w.charged(); n != 1 {
		t.Errorf("%d charges, want 1", n)
	}
}

// TestRoutes_Installation walks through what is about the installation.
func TestRoutes_Installation(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	if a := w.must("GET", "/v1/status", ""); a.body["as_of"] != "2027-01-31T11:59:59.250Z" {
		t.Errorf("the time of the checks: %s", a.text)
	}
	w.must("GET", "/v1/report?from=2027-01&days=60", "")
	if a := w.ask("read", "GET", "/v1/report/payouts?from=2027-01-01", "", ""); a.status != 409 || a.body["code"] != "no_payouts" {
		t.Errorf("payouts of the sandbox: %d %s", a.status, a.text)
	}
	w.must("PUT", "/v1/charging", `{"charging":false,"reason":"a holiday"}`)
	if a := w.ask("charge", "POST", subscription+"/charge", "off", `{}`); a.status != 409 || a.body["code"] != "charging_off" {
		t.Errorf("charging is off: %d %s", a.status, a.text)
	}
	w.must("PUT", "/v1/charging", `{"charging":true}`)
	w.must("POST", subscription+"/charge", `{}`)
	w.must("GET", "/v1/charging", "")
	w.must("PATCH", "/v1/settings", `{"retry_days":[1,2],"catch_up":5,"time_zone":"Europe/Berlin","products":{"gym":"Gym"}}`)
	w.must("GET", "/v1/settings", "")
	made := w.must("POST", "/v1/keys", `{"name":"shop","scope":"charge","expires_at":"2028-01-31T00:00:00.000Z"}`).body
	w.must("GET", "/v1/keys", "")
	w.must("DELETE", "/v1/keys/"+made["id"].(string), "")
	if a := w.ask("admin", "DELETE", "/v1/keys/"+made["id"].(string), "", ""); a.status != 404 {
		t.Errorf("revoked twice: %d %s", a.status, a.text)
	}
}

// TestRoutes_Lists: the lists that an index finds, by each filter and by idempotency key, page by page. A
// filter without an index is 422.
func TestRoutes_Lists(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	for i := range 5 {
		w.must("POST", "/v1/accounts/ada/subscriptions", fmt.Sprintf(`{"id":"t%d","sku":"swim","amount":%d,"currency":"EUR",`+
			`"payment_day":31}`, i, 100+i))
	}
	w.ask("admin", "POST", subscription+"/charge", "the charge", `{}`)
	w.ask("admin", "POST", "/v1/runs", "the run", `{"kind":"reminders"}`)
	for path, want := range map[string]int{
		"/v1/accounts?email=ADA@example.com": 1, "/v1/accounts?email=bob@example.com": 0, "/v1/accounts?customer=cus_1": 0,
		"/v1/accounts?idempotency_key=must%201": 1, "/v1/accounts?idempotency_key=unknown": 0,
		"/v1/accounts": 1, "/v1/subscriptions": 6, "/v1/subscriptions?status=active": 6, "/v1/subscriptions?sku=swim": 5, "/v1/subscriptions?email=ada@example.com&sku=gym": 1,
		"/v1/subscriptions?status=paused": 0, "/v1/subscriptions?idempotency_key=must%202": 1,
		"/v1/accounts/ada/subscriptions": 6, "/v1/accounts/ada/subscriptions?idempotency_key=must%202": 1,
		"/v1/receipts?idempotency_key=the+charge": 1, "/v1/refunds?idempotency_key=unknown": 0, "/v1/receipts?account=ada": 1, "/v1/receipts?account=ada&idempotency_key=the+charge": 1,
		"/v1/receipts?account=ada&idempotency_key=must%202": 0, "/v1/receipts?account=ada&from=2027-02-01": 0,
		"/v1/runs?idempotency_key=the+run": 1, "/v1/runs?kind=payments": 0, "/v1/keys": 5, "/v1/due/payments?date=" + today: 5,
	} {
		if got := w.pages(path); got != want {
			t.Errorf("%s: %d rows, want %d", path, got, want)
		}
	}
	for _, path := range []string{"/v1/subscriptions?status=gone", "/v1/receipts", "/v1/refunds",
		"/v1/due/payments", "/v1/runs?kind=x", "/v1/accounts?name=Ada", "/v1/accounts?limit=0", "/v1/accounts?email=a&cursor=x"} {
		if a := w.ask("read", "GET", path, "", ""); a.status != 422 {
			t.Errorf("%s: %d %s", path, a.status, a.text)
		}
	}
}

// TestRoutes_RepeatedWhileOff: while charging is off, a repeated charge gets the subscription as it is, whether
// the first one has ended or was cut off. A new one is refused.
func TestRoutes_RepeatedWhileOff(t *testing.T) {
	for _, cut := range []bool{false, true} {
		w := newWorld(t)
		w.signUp(visa)
		if cut {
			w.faults.left.Store(1)
		}
		first := w.ask("charge", "POST", subscription+"/charge", "the charge", `{}`)
		w.restart()
		w.must("PUT", "/v1/charging", `{"charging":false}`)
		again := w.ask("charge", "POST", subscription+"/charge", "the charge", `{}`)
		if (first.status >= 500) != cut || again.status != 200 || again.header.Get("Idempotent-Replayed") != "true" || w.charged() == 1 == cut {
			t.Errorf("cut %t: %d %s, then %d %s, %d charges", cut, first.status, first.text, again.status, again.text, w.charged())
		}
		if a := w.ask("charge", "POST", subscription+"/charge", "another", `{}`); a.status != 409 || a.body["code"] != "charging_off" {
			t.Errorf("%d %s", a.status, a.text)
		}
		w.must("PUT", "/v1/charging", `{"charging":true}`)
		if a := w.ask("charge", "POST", subscription+"/charge", "the charge", `{}`); a.status != 200 || w.charged() != 1 {
			t.Errorf("cut %t: %d %s, %d charges", cut, a.status, a.text, w.charged())
		}
	}
}

// TestRoutes_OneOfAPeriod: of several refunds and receipts of one period, a key selects its own.
func TestRoutes_OneOfAPeriod(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	w.ask("admin", "POST", subscription+"/charge", "the charge", `{}`)
	number := w.must("GET", "/v1/receipts?account=ada", "").body["data"].([]any)[0].(map[string]any)["id"].(string)
	for i, amount := range []string{`,"amount":100,"currency":"EUR"`, `,"amount":101,"currency":"EUR"`, ``} {
		key := fmt.Sprint("refund", i)
		a := w.ask("admin", "POST", "/v1/receipts/"+number+"/refunds", key, `{"account":"ada"`+amount+`}`)
		for _, account := range []string{"", "account=ada&"} {
			found := w.must("GET", "/v1/refunds?"+account+"idempotency_key="+key, "").body["data"].([]any)
			if len(found) != 1 || found[0].(map[string]any)["id"] != a.body["id"] {
				t.Errorf("%s%s: %d %v: %v", account, key, a.status, a.body, found)
			}
		}
	}
	for path, want := range map[string]int{"/v1/refunds?account=ada": 3, "/v1/refunds?idempotency_key=the+charge": 0,
		"/v1/receipts?idempotency_key=the+charge": 1, "/v1/receipts?idempotency_key=refund0": 1} {
		if got := w.pages(path); got != want {
			t.Errorf("%s: %d rows, want %d", path, got, want)
		}
	}
}

// pages returns the number of a list's rows, in pages of two.
func (w *world) pages(path string) (n int) {
	w.Helper()
	glue := "?"
	if strings.Contains(path, "?") {
		glue = "&"
	}
	for cursor := ""; ; {
		page := w.must("GET", path+glue+"limit=2"+cursor, "").body
		n += len(page["data"].([]any))
		if page["has_more"] != true {
			return n
		}
		cursor = "&cursor=" + page["next_cursor"].(string)
	}
}

// TestRoutes_Endpoints walks through what is about deliveries.
func TestRoutes_Endpoints(t *testing.T) {
	w := newWorld(t)
	made := w.ask("admin", "POST", "/v1/endpoints", "made", `{"url":"https://shop.example/hook","types":["period.*"]}`)
	again := w.ask("admin", "POST", "/v1/endpoints", "made", `{"url":"https://shop.example/hook","types":["period.*"]}`)
	if made.status != 201 || made.body["secret"] == nil || again.body["secret"] != nil || again.body["id"] != made.body["id"] {
		t.Fatalf("created: %d %s, repeated: %s", made.status, made.text, again.text)
	}
	path := "/v1/endpoints/" + made.body["id"].(string)
	if n := w.pages("/v1/endpoints"); n != 1 {
		t.Errorf("%d endpoints", n)
	}
	w.must("PATCH", path, `{"types":["receipt.created"]}`)
	rotated := w.ask("admin", "POST", path+"/rotate", "rotated", `{}`)
	if again := w.ask("admin", "POST", path+"/rotate", "rotated", `{}`); rotated.body["secret"] == nil || again.body["secret"] != nil {
		t.Errorf("rotated: %s, repeated: %s", rotated.text, again.text)
	}
	if one := w.must("GET", path, ""); one.body["id"] != made.body["id"] || one.header.Get("ETag") == "" || one.body["secret"] != nil {
		t.Errorf("one endpoint: %s", one.text)
	}
	for _, unknown := range []string{"/v1/endpoints/ep_x", "/v1/deliveries/msg_x", "/v1/deliveries/msg_x?endpoint=ep_x&created_at=2027-01-01T00:00:00.000Z"} {
		if a := w.ask("admin", "GET", unknown, "", ""); a.status != 404 {
			t.Errorf("%s: %d %s", unknown, a.status, a.text)
		}
	}
	if a := w.ask("admin", "GET", "/v1/deliveries/msg_x?created_at=now", "", ""); a.status != 422 || a.names() != "created_at" {
		t.Errorf("%d %s", a.status, a.text)
	}
	w.must("POST", "/v1/deliveries/replay", `{"from":"2027-01-01T00:00:00.000Z"}`)
	if n := w.pages("/v1/deliveries?state=failed"); n != 0 {
		t.Errorf("%d deliveries", n)
	}
	w.must("PATCH", path, `{"paused":true}`)
	for body, want := range map[string]string{`{}`: "id", `{"state":"waiting"}`: "state", `{"id":"x","until":"2027-01-01T00:00:00.000Z"}`: ""} {
		if a := w.ask("admin", "POST", "/v1/deliveries/replay", "wrong "+body, body); a.status < 400 || a.names() != want {
			t.Errorf("%s: %d %s", body, a.status, a.text)
		}
	}
	for i := range 6 { // their IDs are random: no order of them is that in which they were made
		w.days.Add(1)
		w.must("POST", "/v1/endpoints", fmt.Sprintf(`{"url":"https://shop.example/%d"}`, i))
	}
	if n := w.pages("/v1/endpoints"); n != 7 {
		t.Errorf("page by page, there are %d endpoints", n)
	}
	w.must("DELETE", path, "")
	if a := w.ask("admin", "DELETE", path, "", ""); a.status != 404 {
		t.Errorf("deleted twice: %d %s", a.status, a.text)
	}
}

// TestRoutes_History: who changed what, newest first, page by page, of an account or of a subscription.
func TestRoutes_History(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	w.must("PATCH", subscription, `{"address":"1 High Street"}`)
	if n := w.pages("/v1/accounts/ada/history"); n < 3 {
		t.Errorf("%d changes of the account", n)
	}
	newest := w.must("GET", "/v1/accounts/ada/history?subscription=s1&limit=1", "").body["data"].([]any)[0].(map[string]any)
	if newest["actor"] != "key admin" || newest["subscription"] != "s1" {
		t.Errorf("the newest change: %v", newest)
	}
}

// TestRoutes_ReadAndPost: a program that reads an object posts a similar one with the members that it has read.
func TestRoutes_ReadAndPost(t *testing.T) {
	w := newWorld(t)
	w.must("POST", "/v1/accounts", `{"id":"ada","email":"ada@example.com","name":"Ada","time_zone":"Europe/Berlin","locale":"de"}`)
	w.must("POST", "/v1/accounts/ada/payment_methods", `{"payment_method":"pm_card_visa","fallback_payment_method":"pm_card_mastercard"}`)
	w.must("POST", "/v1/accounts/ada/subscriptions", `{"id":"s1","sku":"gym","amount":1299,"currency":"EUR","payment_day":31,`+
		`"interval":"quarterly","collection":"manual","reminder_days":3,"installments":4,"address":"1 Rue"}`)
	w.must("PATCH", "/v1/settings", `{"retry_days":[],"daily":["06:10"],"ended_by":["paused"],"operator":"o@example.com","products":{"gym":"Gym"}}`)
	similar := func(from, request string, change map[string]any) string {
		read := w.must("GET", from, "").body
		maps.Copy(read, change)
		known := w.spec.Doc.Components.Schemas[request].Value.Properties
		maps.DeleteFunc(read, func(name string, _ any) bool { return known[name] == nil })
		text, _ := json.Marshal(read)
		return string(text)
	}
	same := func(a, b map[string]any, but ...string) {
		t.Helper()
		for _, name := range append(but, "id", "version", "created_at", "payment_method_given_at") {
			delete(a, name)
			delete(b, name)
		}
		if !maps.EqualFunc(a, b, func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
			t.Errorf("got %v, want %v", b, a)
		}
	}
	w.must("POST", "/v1/accounts", similar("/v1/accounts/ada", "NewAccount", map[string]any{"id": "bob"}))
	w.must("POST", "/v1/accounts/bob/payment_methods", similar("/v1/accounts/ada", "PaymentMethod", nil))
	same(w.must("GET", "/v1/accounts/ada", "").body, w.must("GET", "/v1/accounts/bob", "").body)
	w.must("POST", "/v1/accounts/bob/subscriptions", similar(subscription, "NewSubscription", nil))
	same(w.must("GET", subscription, "").body, w.must("GET", "/v1/accounts/bob/subscriptions/s1", "").body, "account")
	was := w.must("GET", "/v1/settings", "").body
	now := w.must("PATCH", "/v1/settings", similar("/v1/settings", "SettingsChange", nil)).body
	if was["version"] != now["version"] {
		t.Errorf("a change to the same settings: %v to %v", was, now)
	}
	same(was, now)
}
