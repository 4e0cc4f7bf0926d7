package billingapi_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFaults_Fields: a request is refused with all of its wrong fields, and none of its values.
func TestFaults_Fields(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/v1/accounts", `{"id":"a/b","email":"SECRET","locale":"SECRET","time_zone":"SECRET"}`, "id email time_zone locale"},
		{"PATCH", "/v1/accounts/ada", `{"email":"SECRET","locale":"SECRET"}`, "email locale"},
		{"PATCH", "/v1/accounts/ada", `{"company":"SECRET\u0000","address":{"country":"SECRET","line1":"SECRET\u0000"},"tax_id":"SECRET_"}`,
			"address/country address/line1 company tax_id"},
		{"POST", "/v1/accounts", `{"id":"b","email":"b@example.com","address":{"country":"FR","city":5,"SECRET":1},"tax_id":"DE123456789"}`,
			"address address/city tax_id"},
		{"PATCH", "/v1/accounts/ada", `{"address":"SECRET"}`, "address"},
		{"POST", "/v1/accounts/ada/payment_methods", `{"customer":"SE CRET","payment_method":"4242424242424242","application_fee":-1}`,
			"customer payment_method application_fee"},
		{"POST", "/v1/accounts/ada/subscriptions", `{"id":"SE CRET","sku":"","amount":-1,"currency":"SECRET","payment_day":77,` +
			`"interval":"SECRET","start_date":"SECRET","reminder_days":999,"email":"SECRET"}`,
			"start_date interval currency amount id sku payment_day reminder_days email"},
		{"POST", "/v1/accounts/ada/subscriptions/preview", `{"id":"s2","sku":"k"}`, "amount payment_day"},
		{"PATCH", subscription, `{"sku":"SE CRET","reminder_days":999,"address":"SECRET\u0000"}`, "sku address reminder_days"},
		{"PATCH", subscription, `{"from":"SECRET","amount":0,"currency":"EUR","early":true}`, "from amount early"},
		{"POST", subscription + "/plan", `{"notify":true}`, "sku"},
		{"POST", subscription + "/cancel", `{"at_period_end":true,"collect":true}`, "collect"},
		{"POST", subscription + "/skip", `{"until":"SECRET"}`, "until"},
		{"POST", subscription + "/receipts", `{"amount":1,"date":"SECRET"}`, "currency date"},
		{"POST", subscription + "/periods/0/charge", `{"period":0}`, "period"},
		{"POST", "/v1/runs", `{"kind":"SECRET","date":"2030-01-01"}`, "kind date"},
		{"PATCH", "/v1/settings", `{"nothing":"SECRET"}`, "#"},
		{"PUT", "/v1/charging", `{"reason":"SECRET"}`, "charging"},

		// An unknown field and a wrong type beside what is missing or invalid. Nothing is said of a field about
		// which a wrong one decides.
		{"POST", "/v1/accounts", `{"SECRET":1,"email":5,"time_zone":"SECRET"}`, "# id email time_zone"},
		{"POST", "/v1/accounts", `{"id":["SECRET"],"account":"a","name":null,"email":{"SECRET":1}}`, "# id email name"},
		{"PATCH", "/v1/accounts/ada", `{"SECRET":1}`, "#"},
		{"PATCH", "/v1/accounts/ada", `{"name":5,"email":"SECRET","locale":{}}`, "email locale name"},
		{"POST", "/v1/accounts/ada/payment_methods", `{"payment_method":5,"application_fee":-1,"SECRET":{}}`, "# payment_method application_fee"},
		{"POST", "/v1/accounts/ada/payment_methods", `{"SECRET":{}}`, "# customer"},
		{"POST", "/v1/accounts/ada/card_links", `{"subscription":5,"SECRET":1}`, "# subscription"},
		{"POST", "/v1/accounts/ada/card_links", `{"subscription":"SE CRET"}`, "subscription"},
		{"POST", "/v1/keys", `{"name":"shop","scope":"read","merchant":""}`, "merchant"}, // it would see everybody
		{"POST", subscription + "/skip", `{"until":""}`, "until"},
		{"POST", "/v1/accounts/ada/subscriptions", `{"id":"s9","sku":"k","amount":1000000000000,"currency":"EUR","payment_day":1}`, "amount"},
		{"GET", "/v1/subscriptions?status=&email=%FF&sku=" + strings.Repeat("SECRET", 100), "", "email sku status"},
		{"POST", "/v1/accounts/ada/subscriptions", `{"sku":5,"amount":"12.99","currency":978,"trial_days":"14","start_date":"SECRET","SECRET":[]}`,
			"# amount currency sku start_date id trial_days"},
		{"POST", "/v1/accounts/ada/subscriptions", `{"id":"s2","sku":"k","amount":1,"currency":"SECRET","payment_day":1.5,"address":[]}`,
			"address currency payment_day"},
		{"PATCH", subscription, `{"payment_day":"5","early":true,"reminder_days":999,"address":"SECRET\u0000","SECRET":0}`,
			"# address payment_day reminder_days"},
		{"PATCH", subscription, `{"SECRET":0}`, "#"},
		{"PATCH", subscription, `{"from":5,"notify":"SECRET"}`, "from notify"},
		{"PATCH", subscription, `{"sku":"SE CRET","amount":1.5,"currency":"EUR"}`, "amount sku"},
		{"POST", subscription + "/plan", `{"from":5}`, "from"},
		{"POST", subscription + "/pause", `{"SECRET":5}`, "#"},
		{"POST", subscription + "/skip", `{"until":5,"SECRET":5}`, "# until"},
		{"POST", subscription + "/cancel", `{"at_period_end":1,"collect":true}`, "at_period_end"},
		{"POST", subscription + "/receipts", `{"period":-1,"amount":1,"date":5,"note":"SECRET\u0000"}`, "currency date note period"},
		{"POST", subscription + "/charge", `{"period":-1,"reopen":"SECRET\u0000","SECRET":1}`, "# period reopen"},
		{"POST", subscription + "/periods/0/charge", `{"period":"0","reopen":5}`, "period reopen"},
		{"POST", "/v1/receipts/1/refunds", `{"amount":1,"reason":"SECRET","SECRET":5}`, "# account currency reason"},
		{"POST", "/v1/runs", `{"kind":5,"date":"2030-01-01"}`, "kind"},
		{"POST", "/v1/runs", `{"kind":5,"date":"2027-01-01","SECRET":1}`, "# kind"},
		{"PUT", "/v1/charging", `{"charging":"yes","accept_other_installation":"SECRET","reason":"SECRET\u0000"}`, "charging reason"},
		{"PATCH", "/v1/settings", `{"SECRET":1,"catch_up":"5","retry_days":[1,"SECRET"],"sender":"SECRET","products":{"SECRET":5}}`,
			"# catch_up products retry_days/1 sender"},
		{"PATCH", "/v1/settings", `{"products":{"SECRET":null,"SE CRET":"x"},"daily":["SECRET"]}`, "daily products"},
		{"POST", "/v1/keys", `{"name":"SE CRET","scope":"SECRET","merchant":"SECRET","expires_at":"SECRET","SECRET":1}`, "# expires_at merchant name scope"},
		{"POST", "/v1/keys", `{"expires_at":"2020-01-01T00:00:00Z","scope":"read"}`, "expires_at name"},
		{"POST", "/v1/endpoints", `{"url":"SECRET","types":["period.paid",5],"SECRET":1}`, "# types/1 url"},
		{"PATCH", "/v1/endpoints/none", `{"url":"SECRET","types":["SECRET"],"paused":"SECRET"}`, "paused types url"},
		{"POST", "/v1/endpoints/none/rotate", `{"now":"SECRET","SECRET":1}`, "# now"},
		{"POST", "/v1/deliveries/replay", `{"from":"SECRET","until":"2027-01-01T00:00:00Z","state":"SECRET"}`, "from state"},
		{"POST", "/v1/deliveries/replay", `{"endpoint":5}`, "endpoint id"},

		{"POST", "/v1/keys", `{"name":"k","scope":"read","merchant":""}`, "merchant"},
		{"GET", "/v1/receipts?idempotency_key=unknown&to=SECRET", "", "to"},
		{"GET", "/v1/receipts?idempotency_key=", "", "idempotency_key"},
		{"GET", "/v1/subscriptions?sku=" + strings.Repeat("9", 5000), "", "sku"},
		{"GET", "/v1/report?from=SECRET&to=SECRET&days=SECRET&SECRET=1", "", " days from to"},
		{"GET", "/v1/report/payouts?until=SECRET&settled=367&SECRET=1", "", " from settled until"},
		{"GET", "/v1/report/payouts?from=2027-01-02&until=2027-01-01", "", "until"},
		{"GET", "/v1/receipts?from=SECRET&to=SECRET&limit=SECRET&order=SECRET&subscription=SE/CRET&SECRET=1", "", " account from limit order subscription to"},
		{"GET", "/v1/receipts/1?SECRET=1", "", ""},
		{"GET", "/v1/subscriptions?status=SECRET&cursor=SECRET", "", "cursor status"},
		{"GET", "/v1/accounts/ada?card=SECRET&SECRET=1", "", " card"},
		{"GET", "/v1/runs?kind=SECRET&limit=SECRET", "", "kind limit"},
		{"GET", "/v1/due/payments?date=SECRET&limit=0", "", "date limit"},
	} {
		a := w.ask("admin", c.method, c.path, "wrong "+c.body, c.body)
		if a.status != 422 || strings.Contains(a.text, "SECRET") {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.text)
		}
		got, want := strings.Split(a.names(), " "), strings.Split(c.want, " ")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s %s: the fields %q, want %q: %s", c.method, c.path, got, want, a.text)
		}
	}
}

// TestFaults_Known: each error that billing and the packages below it export is in the table, or is one that
// no caller of the API can meet.
func TestFaults_Known(t *testing.T) {
	table, err := os.ReadFile("fault.go")
	if err != nil {
		t.Fatal(err)
	}
	inside := []string{
		"billing.ErrUnchanged", "billing.ErrStrayMark", // handled by the engine; an IllegibleError
		"job.ErrUnreconciled", "outbox.ErrPermanent", // billing.ErrState; of a drain
		"store.ErrNotFound",                                                             // package web knows it
		"store.ErrConflict", "store.ErrTooLarge", "store.ErrInvalid", "store.ErrClosed", // 503 without a detail
		"store.ErrLocked", "store.ErrMissing", "store.ErrFormat", "store.ErrDamaged", // serve does not start
		"delivery.ErrPrivate", // of a message that is sent
	}
	for _, dir := range []string{"billing", "billing/account", "billing/charging", "billing/engine", "billing/job", "billing/refund",
		"billing/settings", "billing/wallet", "delivery", "lookup", "outbox", "processor", "store"} {
		files, err := filepath.Glob("../" + dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for id := range f.Scope.Objects {
				known := f.Name.Name + "." + id
				if strings.HasPrefix(id, "Err") && f.Scope.Objects[id].Kind == ast.Var && !strings.Contains(string(table), known) &&
					!slices.Contains(inside, known) {
					t.Errorf("%s has no answer", known)
				}
			}
		}
	}
}

// TestFaults_State: what the state does not allow is 409 with its code, without the values of the request.
func TestFaults_State(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	w.must("POST", "/v1/accounts", `{"id":"SECRET","email":"x@example.com"}`)
	w.must("POST", subscription+"/charge", `{}`)
	for i, c := range []struct{ path, body, code string }{
		{"/v1/accounts", `{"id":"SECRET","email":"x@example.com"}`, "exists"},
		{"/v1/accounts/ada/subscriptions", `{"id":"s1","sku":"gym","amount":1,"currency":"EUR","payment_day":1}`, "exists"},
		{subscription + "/charge", `{}`, "state"},
		{subscription + "/resume", `{}`, "state"},
		{subscription + "/skip", `{}`, "state"},
		{subscription + "/receipts", `{"period":0}`, "state"},
		{"/v1/accounts/ada/card_links", `{}`, "no_wallet"},
		{"/v1/accounts/none/subscriptions/s1/pause", `{}`, "not_found"},
		{"/v1/accounts/none/card_links", `{}`, "no_wallet"},
	} {
		a := w.ask("admin", "POST", c.path, fmt.Sprint("state ", i), c.body)
		if a.body["code"] != c.code || strings.Contains(a.text, "SECRET") {
			t.Errorf("%s %s: %d %s, want %s", c.path, c.body, a.status, a.text, c.code)
		}
	}
}
