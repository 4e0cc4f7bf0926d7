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
		{"POST", "/v1/accounts", `{"account":"a/b","email":"SECRET","locale":"SECRET","time_zone":"SECRET"}`, "account email time_zone locale"},
		{"PATCH", "/v1/accounts/ada", `{"email":"SECRET","locale":"SECRET"}`, "email locale"},
		{"POST", "/v1/accounts/ada/payment_methods", `{"customer":"SE CRET","payment_method":"4242424242424242","fee":-1}`,
			"customer payment_method fee"},
		{"POST", "/v1/accounts/ada/subscriptions", `{"subscription":"SE CRET","sku":"","amount":-1,"currency":"SECRET","payment_day":77,` +
			`"interval":"SECRET","start_date":"SECRET","reminder_days":999,"email":"SECRET"}`,
			"start_date interval currency amount subscription sku payment_day reminder_days email"},
		{"POST", "/v1/accounts/ada/subscriptions/preview", `{"subscription":"s2","sku":"k"}`, "amount payment_day"},
		{"PATCH", subscription, `{"sku":"SE CRET","reminder_days":999,"address":"SECRET\u0000"}`, "sku address reminder_days"},
		{"PATCH", subscription, `{"from":"SECRET","amount":0,"currency":"EUR","early":true}`, "from amount early"},
		{"POST", subscription + "/plan", `{"notify":true}`, "sku"},
		{"POST", subscription + "/cancel", `{"at_period_end":true,"collect":true}`, "collect"},
		{"POST", subscription + "/skip", `{"until":"SECRET"}`, "until"},
		{"POST", subscription + "/receipts", `{"amount":1,"date":"SECRET"}`, "currency date"},
		{"POST", subscription + "/periods/0/charge", `{"period":0}`, "period"},
		{"POST", "/v1/runs", `{"kind":"SECRET","date":"2030-01-01"}`, "kind date"},
		{"PATCH", "/v1/settings", `{"nothing":"SECRET"}`, "nothing"},
		{"PUT", "/v1/charging", `{"reason":"SECRET"}`, "charging"},
	} {
		a := w.ask("admin", c.method, c.path, "wrong "+c.body, c.body)
		if a.status != 422 || strings.Contains(a.text, "SECRET") {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.text)
		}
		got, want := strings.Fields(a.names()), strings.Fields(c.want)
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
	w.must("POST", "/v1/accounts", `{"account":"SECRET","email":"x@example.com"}`)
	w.must("POST", subscription+"/charge", `{}`)
	for i, c := range []struct{ path, body, code string }{
		{"/v1/accounts", `{"account":"SECRET","email":"x@example.com"}`, "exists"},
		{"/v1/accounts/ada/subscriptions", `{"subscription":"s1","sku":"gym","amount":1,"currency":"EUR","payment_day":1}`, "exists"},
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
