package stripefake

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/test/stripetest"
	"github.com/duesday/duesday/stripefake/internal/api"
	"github.com/duesday/duesday/stripefake/internal/shape"
)

// TestDate: an answer says what time it is at Stripe, whatever its status.
func TestDate(t *testing.T) {
	w := newWorld(t, Options{})
	for _, tt := range []struct {
		path, key string
		status    int
	}{{customers, testKey, 200}, {"/v1/customers/none", testKey, 404}, {customers, "sk_test_none", 401}} {
		w.Advance(25 * time.Hour)
		a := w.do("GET", tt.path, "", "Authorization", "Bearer "+tt.key)
		equal(t, tt.path, a.status, tt.status)
		at, err := http.ParseTime(a.header.Get("Date"))
		if err != nil || !at.Equal(w.Now()) {
			t.Errorf("%s: got the date %q, %v, want %v", tt.path, a.header.Get("Date"), err, w.Now())
		}
	}
	first := w.ok("POST", customers, "", "Idempotency-Key", "k").header.Get("Date")
	w.Advance(time.Second)
	again := w.ok("POST", customers, "", "Idempotency-Key", "k")
	if again.header.Get("Idempotent-Replayed") != "true" || again.header.Get("Date") == first {
		t.Errorf("a replay: got the date %q, want a second after %q", again.header.Get("Date"), first)
	}
}

// TestResend: an event can be sent again, to endpoints that were not there before, in their
// version, and as it was.
func TestResend(t *testing.T) {
	w := newWorld(t, Options{Faults: Faults{WebhookDrops: 1}})
	r := w.receive()
	w.endpointAt("a", "enabled_events[]=*")
	intent := w.ok("POST", "/v1/payment_intents", "amount=1000&currency=usd&payment_method=pm_card_visa&confirm=true&"+
		"return_url=http://a.example")
	paid := w.ok("GET", "/v1/events", "type=payment_intent.succeeded").ids()[0]
	if err := w.SetFaults(Faults{}); err != nil {
		t.Fatal(err)
	}
	_, secret := w.endpointAt("old", "enabled_events[]=payment_intent.succeeded&api_version=2020-08-27")
	w.endpointAt("other", "enabled_events[]=charge.refunded")
	w.ok("POST", "/v1/refunds", "payment_intent="+intent.id())
	w.flush(0)
	r.got = nil
	pending := func() any { return w.ok("GET", "/v1/events/"+paid, "").body["pending_webhooks"] }
	equal(t, "not delivered", pending(), any(1.0))
	for range 2 {
		sent, err := w.Resend(paid)
		if err != nil || sent != 2 {
			t.Fatalf("got %d, %v, want 2", sent, err)
		}
		w.flush(0)
	}
	equal(t, "came", r.members("id"), []string{paid, paid, paid, paid})
	equal(t, "delivered once", pending(), any(0.0))
	for _, d := range r.got {
		a := answer{body: d.event}
		switch d.host {
		case "a":
			equal(t, "newest", []any{a.at("api_version"), a.at("data.object.charges")}, []any{NewestVersion, nil})
		case "old":
			charge := a.at("data.object.charges.data").([]any)[0].(map[string]any)
			equal(t, "old", []any{d.signed(secret), a.at("api_version"), charge["refunded"]}, []any{true, "2020-08-27", false})
		default:
			t.Errorf("it came to %s", d.host)
		}
	}
}

// TestFakeEvents: a test gets what a webhook would bring, in order and however old.
func TestFakeEvents(t *testing.T) {
	w := newWorld(t, Options{Connected: []string{"acct_a"}})
	r := w.receive()
	at := []string{"Stripe-Account", "acct_a"}
	w.endpointAt("a", "enabled_events[]=*&connect=true&api_version=2024-06-20")
	id := w.customer("name=A", at...)
	w.ok("POST", customers+"/"+id, "name=B", at...)
	w.flush(0)
	w.Advance(31 * 24 * time.Hour)
	equal(t, "listed", len(w.ok("GET", "/v1/events", "", at...).ids()), 0)
	got := w.Events("acct_a", false, "2024-06-20")
	for i, e := range got {
		body := string(e.Body)
		e.Body = nil
		equal(t, "event", e, Event{ID: r.members("id")[i], Type: r.members("type")[i], Account: "acct_a", Created: testStart})
		// delivered by now
		equal(t, "body", body, strings.Replace(string(r.got[i].payload), `"pending_webhooks": 1`, `"pending_webhooks": 0`, 1))
	}
	equal(t, "types", r.members("type"), []string{"customer.created", "customer.updated"})
	equal(t, "others", []int{len(got), len(w.Events("acct_a", true, "")), len(w.Events(DefaultAccount, false, ""))},
		[]int{2, 0, 0})
	equal(t, "of its own version", strings.Contains(string(w.Events("acct_a", false, "")[0].Body), NewestVersion), true)
}

// TestEventLosses: of a change that is lost there is nothing, and it was made all the same.
func TestEventLosses(t *testing.T) {
	w := newWorld(t, Options{Faults: Faults{EventLosses: .5, Seed: 1}})
	r := w.receive()
	w.endpointAt("a", "enabled_events[]=*")
	for range 60 {
		w.customer("")
	}
	w.flush(0)
	listed := w.ok("GET", "/v1/events", "limit=100").ids()
	slices.Reverse(listed)
	equal(t, "sent and listed", r.members("id"), listed)
	equal(t, "customers", len(w.ok("GET", customers, "limit=100").ids()), 60)
	if n := len(listed); n < 15 || n > 45 {
		t.Errorf("%d of 60 have an event, want about 30", n)
	}
}

// TestWebhook_Application: the platform's Connect endpoints learn that an account comes and
// goes, in both modes, and then nothing more of it.
func TestWebhook_Application(t *testing.T) {
	w := newWorld(t, Options{Webhooks: []Webhook{{URL: "http://own", Secret: "whsec_1"},
		{URL: "http://connect", Secret: "whsec_2", Connect: true}}})
	r, spec := w.receive(), stripetest.Load(t)
	came := func(what string, want ...string) (first map[string]any) {
		t.Helper()
		w.flush(0)
		var got []string
		for _, d := range r.got {
			got = append(got, fmt.Sprint(d.host, " ", d.event["account"], " ", d.event["type"], " ", d.event["livemode"]))
			equal(t, "by the specification", spec.CheckEvent(d.payload), []string(nil))
			equal(t, "signed", d.signed(map[string]string{"own": "whsec_1", "connect": "whsec_2"}[d.host]), true)
		}
		equal(t, what, got, want)
		if len(r.got) > 0 {
			first = r.got[0].event
		}
		r.got = nil // nothing is under way after a flush
		return first
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	authorized := []string{"connect acct_a account.application.authorized false",
		"connect acct_a account.application.authorized true"}
	gone := []string{"connect acct_a account.application.deauthorized false",
		"connect acct_a account.application.deauthorized true"}
	check(w.Connect("acct_a", ""))
	equal(t, "object", came("connected", authorized...)["data"],
		any(map[string]any{"object": map[string]any{"id": "ca_duesday", "object": "application", "name": DefaultAccount}}))
	check(w.Connect("acct_a", ""))
	came("connected before")
	check(w.Disconnect("acct_a"))
	last := came("disconnected", gone...)["id"].(string)
	check(w.Disconnect("acct_a"))
	came("disconnected before")
	w.do("GET", "/v1/events", "", "Stripe-Account", "acct_a").refused(t, "its events", 403, "account_invalid", nil)
	_, err := w.Resend(last)
	check(err)
	came("again", gone[0])
	// a change of the account's own
	check(w.api.Act("webhook_endpoint", w.ok("GET", "/v1/webhook_endpoints", "").ids()[0],
		func(c *api.Call, _ shape.Object) error {
			c.Space = c.In("acct_a", false)
			c.Emit("customer.created", shape.Object{"id": "cus_1", "object": "customer"}, nil)
			return nil
		}))
	came("what happens afterwards")
	check(w.Connect("acct_a", ""))
	came("connected again", authorized...)
	w.ok("DELETE", "/v1/accounts/acct_a", "")
	came("deleted", gone...)
	w.customer("")
	came("our own", "own <nil> customer.created false")
}

// BenchmarkAccounts makes three events in each of 860 connected accounts.
func BenchmarkAccounts(b *testing.B) {
	for b.Loop() {
		f := New(Options{})
		for i := range 860 {
			id := fmt.Sprint("acct_", i)
			if err := f.Connect(id, ""); err != nil {
				b.Fatal(err)
			}
			for range 3 {
				ask(b, f, id)
			}
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// ask makes a customer of the account.
func ask(t testing.TB, f *Fake, account string) {
	t.Helper()
	r := httptest.NewRequest("POST", customers, strings.NewReader("name=A"))
	r.Header.Set("Authorization", "Bearer "+testKey)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Stripe-Account", account)
	rec := httptest.NewRecorder()
	f.ServeHTTP(rec, r)
	if rec.Code != http.StatusOK {
		t.Fatalf("got %d %s", rec.Code, rec.Body)
	}
}
