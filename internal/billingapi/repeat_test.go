package billingapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/call"
	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/store"
)

// TestReplay_CutOff: a repeated replay sends what is left of one that was cut off, and nothing a third time.
func TestReplay_CutOff(t *testing.T) {
	w := newWorld(t)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer receiver.Close()
	w.must("POST", "/v1/endpoints", fmt.Sprintf(`{"url":%q}`, receiver.URL))
	messages := delivery.New(delivery.Options{Store: w.mem, Tables: w.tables, Now: w.now, Days: func(context.Context) (int, error) { return 30, nil }})
	send := func() {
		x := messages.NewSender(w.now, true)
		if _, err := x.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		for w.pages("/v1/deliveries?state=waiting") > 0 {
			if _, err := x.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		x.Close(t.Context())
	}
	for i := range 5 {
		rows, err := messages.Effect(t.Context(), fmt.Sprint(i), delivery.Event{Type: "period.paid", Data: map[string]any{"account": "ada"}})
		if err != nil || w.mem.Commit(t.Context(), rows...) != nil {
			t.Fatal(err)
		}
	}
	send()
	w.days.Add(1)
	w.restart()
	w.faults.left.Store(2)
	const all = `{"from":"2027-01-01T00:00:00.000Z"}`
	if a := w.ask("admin", "POST", "/v1/deliveries/replay", "replay", all); a.status < 500 {
		t.Fatal(a.status, a.text)
	}
	w.days.Add(1)
	w.restart()
	send()
	for _, want := range []float64{3, 0} {
		if a := w.ask("admin", "POST", "/v1/deliveries/replay", "replay", all); a.status != 200 || a.body["replayed"] != want {
			t.Errorf("%d %s, want %v", a.status, a.text, want)
		}
		w.days.Add(1)
		send()
	}
	if n := w.pages("/v1/deliveries?state=delivered"); n != 5 {
		t.Error(n, "are delivered")
	}
}

// TestSettings_IfMatch: a change of the settings counts only if they are as they were read.
func TestSettings_IfMatch(t *testing.T) {
	w := newWorld(t)
	w.must("PATCH", "/v1/settings", `{"history_months":30}`)
	w.match = w.ask("read", "GET", "/v1/settings", "", "").header.Get("ETag")
	for _, want := range []int{200, 412} {
		if a := w.ask("admin", "PATCH", "/v1/settings", "", `{"history_months":31}`); a.status != want {
			t.Errorf("%d %s, want %d", a.status, a.text, want)
		}
		w.match = `"1"`
	}
}

// TestLocation: the Location of a new object leads to it, whatever characters its ID has.
func TestLocation(t *testing.T) {
	w := newWorld(t)
	for i, id := range []string{"a?b", "%41", "ä+;~"} {
		a := w.ask("write", "POST", "/v1/accounts", fmt.Sprint(i), fmt.Sprintf(`{"id":%q,"email":"ada@example.com"}`, id))
		if at := w.must("GET", a.header.Get("Location"), ""); at.body["id"] != id {
			t.Errorf("%s: %s", id, at.text)
		}
	}
}

// TestValues_NotInAKey: what no key of the store can have is not found or refused, and nothing of it reaches
// the store.
func TestValues_NotInAKey(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	for _, value := range []string{"%ff", strings.Repeat("x", 3000)} {
		for path, want := range map[string]int{"/v1/subscriptions?sku=": 422, "/v1/subscriptions?email=": 422, "/v1/accounts?customer=": 422,
			"/v1/accounts/ada/history?subscription=": 422, "/v1/accounts/": 404, "/v1/accounts/ada/subscriptions/": 404, "/v1/runs/": 404} {
			if a := w.ask("read", "GET", path+value, "", ""); a.status != want {
				t.Errorf("%s: %d %s", path, a.status, a.text)
			}
		}
		if a := w.ask("admin", "POST", "/v1/endpoints/"+value+"/rotate", "rotate", `{}`); a.status != 404 {
			t.Errorf("%d %s", a.status, a.text)
		}
	}
}

// TestKeys_AnyForm: an idempotency key that package web accepts is good for every request.
func TestKeys_AnyForm(t *testing.T) {
	for _, key := range []string{strings.Repeat("k", 254), "4242424242424242", " a ", "a#b/c", `"<&~`} {
		w := newWorld(t)
		w.signUp(visa)
		if a := w.ask("charge", "POST", subscription+"/charge", key, `{}`); a.status != 200 || w.charged() != 1 {
			t.Errorf("%q: %d %s", key, a.status, a.text)
		}
		paid := w.must("GET", "/v1/receipts?account=ada", "").body["data"].([]any)[0].(map[string]any)["id"].(string)
		if a := w.ask("charge", "POST", "/v1/receipts/"+paid+"/refunds", key+"r", `{"account":"ada"}`); a.status != 201 {
			t.Errorf("%q: %d %s", key, a.status, a.text)
		}
		w.days.Add(28)
		if a := w.ask("charge", "POST", subscription+"/receipts", key+"m", `{"period":1}`); a.status != 201 {
			t.Errorf("%q: %d %s", key, a.status, a.text)
		}
	}
}

// TestReport_OneAtATime: reports, which read the whole store, do not keep it from charges.
func TestReport_OneAtATime(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	var once sync.Once
	began := false
	w.faults.scan = func() {
		once.Do(func() {
			began = true
			if a := w.ask("read", "GET", "/v1/report", "", ""); a.status != 503 || a.header.Get("Retry-After") == "" {
				t.Errorf("beside another: %d %s", a.status, a.text)
			}
		})
	}
	for range 2 {
		w.must("GET", "/v1/report", "")
	}
	if !began {
		t.Error("no scan")
	}
}

// TestRefund_Overpayment: a refund of a manual payment that was too much does not return the period's charge.
func TestRefund_Overpayment(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	w.must("POST", subscription+"/charge", `{}`)
	for it, err := range w.mem.Query(t.Context(), store.Query{Table: w.tables.RecurringPayments.Name, Partition: billing.AccountPK("ada"), Prefix: billing.RecPrefix}) {
		r, derr := billing.DecodeReceipt(it)
		if err != nil || derr != nil {
			t.Fatal(err, derr)
		}
		r.Kind, r.Charge = billing.Overpayment, "wire 7"
		if err := w.mem.Commit(t.Context(), store.Put(w.tables.RecurringPayments.Name, r.Item())); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range w.must("GET", "/v1/receipts?account=ada", "").body["data"].([]any) {
		r := x.(map[string]any)
		want := map[any]int{"charge": 201, "overpayment": 409}[r["kind"]]
		if a := w.ask("charge", "POST", fmt.Sprint("/v1/receipts/", r["id"], "/refunds"), fmt.Sprint(r["kind"]), `{"account":"ada","amount":1,"currency":"EUR"}`); a.status != want {
			t.Errorf("%s: %d %s", r["kind"], a.status, a.text)
		}
	}
}

// TestLists_KeyOfACommand: the key of a command finds what it has done, without the account.
func TestLists_KeyOfACommand(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	e, err := engine.Open(t.Context(), engine.Options{Store: w.mem, Tables: w.tables, Processor: w.box, Now: w.now, Config: engine.DefaultConfig()})
	if err != nil {
		t.Fatal(err)
	}
	n := billing.Name{Account: "ada", ID: "s1"}
	by := func(key string) context.Context {
		return call.With(t.Context(), &call.Call{Actor: "user anna", Key: key, Table: e.Table, Now: w.now})
	}
	_, err = e.ChargePeriod(by("charge"), n, engine.PeriodCharge{})
	if err == nil {
		_, _, err = e.Refunds().Refund(by("refund"), refund.Order{Name: n})
	}
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/v1/receipts?idempotency_key=charge": 1, "/v1/receipts?idempotency_key=refund": 1, "/v1/subscriptions?idempotency_key=charge": 1,
		"/v1/refunds?idempotency_key=refund": 1, "/v1/refunds?idempotency_key=charge": 0, "/v1/refunds?idempotency_key=must+1": 0} {
		if got := w.pages(path); got != want {
			t.Errorf("%s: %d rows, want %d", path, got, want)
		}
	}
}
