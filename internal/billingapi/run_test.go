package billingapi_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/internal/store"
)

// TestRuns: one run after another does what the command of its kind does, and its record shows how it ended.
func TestRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.signUp(visa)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.runs.Run(ctx)
		for _, c := range []struct {
			kind, state, counted string
			n                    float64
		}{{"payments", "completed", "paid", 1}, {"payments", "completed", "due", 0}, {"reminders", "completed", "written", 0},
			{"verify", "completed", "charges", 1}, {"verify", "completed", "problems", 0}, {"reconcile", "completed", "adopted", 0}} {
			id := w.must("POST", "/v1/runs", `{"kind":"`+c.kind+`"}`).body["id"].(string)
			synctest.Wait()
			run := w.must("GET", "/v1/runs/"+url.PathEscape(id), "").body
			if run["state"] != c.state || run[c.counted] != c.n || run["ended_at"] == nil || run["actor"] != "key admin" {
				t.Errorf("%s: got %v, want %s %v", c.kind, run, c.counted, c.n)
			}
		}
		if n := w.pages("/v1/runs"); n != 6 {
			t.Errorf("%d runs, want 6", n)
		}
	})
}

// TestRuns_One: a second run is refused while one is under way, and a key may not start what needs an admin.
func TestRuns_One(t *testing.T) {
	w := newWorld(t)
	w.must("POST", "/v1/runs", `{"kind":"payments"}`)
	if a := w.ask("admin", "POST", "/v1/runs", "second", `{"kind":"verify"}`); a.status != 409 || a.body["code"] != "run_in_progress" {
		t.Errorf("a second run: %d %s", a.status, a.text)
	}
	for _, kind := range []string{"verify", "reconcile"} {
		if a := w.ask("charge", "POST", "/v1/runs", kind, `{"kind":"`+kind+`"}`); a.status != 403 {
			t.Errorf("%s with scope charge: %d %s", kind, a.status, a.text)
		}
	}
	w.restart() // the run was lost with its process
	w.must("POST", "/v1/runs", `{"kind":"verify"}`)
}

// TestRuns_AfterAPanic: a run whose acceptance panicked is not under way.
func TestRuns_AfterAPanic(t *testing.T) {
	w := newWorld(t)
	w.claims = new(store.Claims)
	w.restart()
	w.faults.bad.Store(true)
	if a := w.ask("admin", "POST", "/v1/runs", "bad", `{"kind":"payments"}`); a.status != 500 {
		t.Fatalf("%d %s", a.status, a.text)
	}
	w.must("POST", "/v1/runs", `{"kind":"payments"}`)
}

// TestRuns_OneOfAllProcesses: while one process runs what was requested, no other accepts a request, whatever the
// kind. The end frees it, and so does the death of the process.
func TestRuns_OneOfAllProcesses(t *testing.T) {
	for _, shared := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			if w.claims = new(store.Claims); shared {
				w.lease, w.claims = 2*time.Minute, nil
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer cancel()
			process := func() (runs func()) {
				w.restart()
				of := w.runs
				return func() {
					go of.Run(ctx)
					synctest.Wait()
				}
			}
			try := 0
			ask := func(what, kind string, status int) {
				t.Helper()
				try++
				a := w.ask("admin", "POST", "/v1/runs", fmt.Sprint("try ", try), `{"kind":"`+kind+`"}`)
				if a.status != status || status == 409 && a.body["code"] != "run_in_progress" {
					t.Errorf("shared %t, %s: %d %s", shared, what, a.status, a.text)
				}
			}
			one := process()
			ask("the first", "payments", 202)
			other := process()
			ask("another process", "verify", 409)
			w.days.Add(1)
			<-time.After(time.Minute) // the first renews its lease
			ask("a long run", "reminders", 409)
			one()
			ask("after its end", "verify", 202)
			w.faults.dead.Store(true) // with its process
			if w.claims != nil {
				w.claims = new(store.Claims)
			}
			third := process()
			if shared {
				<-time.After(time.Minute)
				ask("before the lease of the dead process has expired", "verify", 409)
				w.days.Add(1)
				<-time.After(time.Minute)
			}
			ask("after the death", "verify", 202)
			third()
			w.faults.left.Store(1) // the lease, or the record
			if w.faults.lost.Store(true); shared {
				w.faults.left.Store(2)
			}
			ask("the process dies as it stores the record", "reconcile", 503)
			w.days.Add(1)
			last := process()
			ask("after that", "reconcile", 202)
			last()
			ask("at once", "payments", 202)
			synctest.Wait()
			other() // so that nothing of the dead process remains
		})
	}
}

// TestCharges_Scope: a key that may not charge cancels without collecting, and gives a card without charging it.
func TestCharges_Scope(t *testing.T) {
	w := newWorld(t)
	w.signUp(`,"payment_method":"pm_card_visa_chargeDeclinedInsufficientFunds"`)
	w.must("POST", subscription+"/charge", `{}`)
	if a := w.ask("write", "POST", subscription+"/cancel", "c", `{"collect":true}`); a.status != 403 {
		t.Errorf("collect with scope write: %d %s", a.status, a.text)
	}
	if a := w.ask("write", "PATCH", subscription, "", `{"payment_method":"pm_card_visa"}`); a.status != 200 || w.charged() != 0 {
		t.Errorf("a new method with scope write: %d %s, %d charged", a.status, a.text, w.charged())
	}
	if a := w.ask("charge", "PATCH", subscription, "", `{"payment_method":"pm_card_visa"}`); a.status != 200 || w.charged() != 1 {
		t.Errorf("a new method with scope charge: %d %s, %d charged", a.status, a.text, w.charged())
	}
}

// TestVersions: If-Match with another version changes nothing.
func TestVersions(t *testing.T) {
	w := newWorld(t)
	w.signUp(visa)
	for _, path := range []string{"/v1/accounts/ada", subscription} {
		tag := w.must("GET", path, "").header.Get("ETag")
		body := map[string]string{"/v1/accounts/ada": `{"name":"Ada"}`, subscription: `{"address":"1 High Street"}`}[path]
		w.match = `"99"`
		if a := w.ask("admin", "PATCH", path, "", body); a.status != 412 {
			t.Errorf("%s at another version: %d %s", path, a.status, a.text)
		}
		w.match = tag
		if a := w.ask("admin", "PATCH", path, "", body); a.status != 200 {
			t.Errorf("%s at its version: %d %s", path, a.status, a.text)
		}
		w.match = ""
	}
}

// TestRuns_Unpaid: a payment run lists what it has not charged, page by page, with the outcome, the reason and the next attempt. What
// it has charged is not listed, and neither is a run of another kind.
func TestRuns_Unpaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.signUp(visa)
		for i, method := range []string{"pm_card_visa_chargeDeclined", "pm_card_visa_chargeDeclinedLostCard", "pm_card_authenticationRequired"} {
			w.must("POST", taxed, fmt.Sprintf(`{"id":"left-%d","sku":"gym","amount":1299,"currency":"EUR","payment_day":31,"payment_method":%q}`, i, method))
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.runs.Run(ctx)
		run := func(kind string) string {
			id := w.must("POST", "/v1/runs", `{"kind":"`+kind+`"}`).body["id"].(string)
			synctest.Wait()
			return "/v1/runs/" + url.PathEscape(id)
		}
		path := run("payments")
		if n := w.pages(path + "/unpaid"); n != 3 {
			t.Errorf("%d unpaid periods, want 3: %s", n, w.must("GET", path, "").text)
		}
		var got []string
		for _, x := range w.must("GET", path+"/unpaid", "").body["data"].([]any) {
			o := x.(map[string]any)
			if o["account"] != "ada" || o["period"] != 0.0 || o["amount"] != 1299.0 || o["currency"] != "EUR" || o["detail"] == nil || o["due_date"] == nil {
				t.Errorf("an unpaid period: %v", o)
			}
			got = append(got, fmt.Sprint(o["subscription"], " ", o["outcome"], " ", o["retry_date"] != nil))
		}
		if want := []string{"left-0 retry true", "left-1 failed false", "left-2 pending false"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if a := w.ask("read", "GET", run("verify")+"/unpaid", "", ""); a.status != 404 {
			t.Errorf("of an audit: %d %s", a.status, a.text)
		}
	})
}
