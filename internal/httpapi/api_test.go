package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/web"
)

const orderBody = `{"merchant":"` + account + `","kind":"legacy","amount":1299,"currency":"EUR","description":"A book"}`

const merchantBody = `{"id":"` + account + `","stripe_account":"acct_1"}`

// routes are all that are behind the key, each with a request that is right.
var routes = []struct{ method, path, body, call string }{
	{"POST", "/v1/purchases", orderBody, "create k1"},
	{"GET", "/v1/purchases?merchant=" + account, "", "purchases of " + account},
	{"GET", "/v1/purchases/" + purchaseID, "", "timeline " + purchaseID},
	{"GET", "/v1/payments?limit=5&merchant=" + account, "", "payments of " + account},
	{"GET", "/v1/payments/acct_1/pi_1", "", "payment acct_1 pi_1"},
	{"GET", "/v1/events", "", "events"},
	{"GET", "/v1/events/evt_1", "", "event evt_1"},
	{"GET", "/v1/events?status=waiting", "", "undecided after "},
	{"GET", "/v1/events?status=quarantined", "", "quarantined after  "},
	{"POST", "/v1/events/evt_1/replay", "", "event evt_1"},
	{"GET", "/v1/merchants", "", "accounts"},
	{"POST", "/v1/merchants", merchantBody, "register " + account + " acct_1"},
	{"POST", "/v1/merchants/acct_1/import", `{"dry_run":true}`, "import acct_1 true false"},
	{"GET", "/v1/jobs", "", "jobs"},
	{"POST", "/v1/jobs/fulfil%2Fp1/retry", "", "replay fulfil/p1"},
}

// fullWorld has something to show for every route.
func fullWorld() *world {
	w := newWorld()
	w.timeline = &tracking.Timeline{Purchase: &tracking.Purchase{ID: purchaseID, Merchant: account}}
	w.purchases = []*tracking.Purchase{{ID: "p1"}, {ID: "p2"}, {ID: "p3"}}
	w.payments = []*tracking.Payment{{ID: "pi_1", Merchant: account}}
	w.events = []tracking.EventRow{{ID: "evt_1", StripeAccount: stripeAccount, At: w.now}}
	w.event = &tracking.Event{ID: "evt_1", Merchant: account}
	w.accounts = []*tracking.ConnectedAccount{{StripeAccount: stripeAccount, Merchant: account}}
	return w
}

func TestAPI_EveryRouteWantsTheKey(t *testing.T) {
	w := fullWorld()
	server := w.serve(t)
	for _, to := range routes {
		for _, given := range []string{"", "Bearer ", "Bearer wrong", "Bearer " + apiKey + "x", "Bearer " + apiKey[1:],
			apiKey, "Basic " + apiKey, "Bearer" + apiKey} {
			a := do(t, request(t, to.method, server.URL+to.path, to.body, "Authorization", given, "Content-Type",
				"application/json", "Idempotency-Key", "k1"))
			says := "the API key is not valid on this server; send Authorization: Bearer KEY"
			if given == "" {
				says = "the request needs an API key: Authorization: Bearer KEY"
			}
			if a.status != 401 || a.err != says || a.code != "key" ||
				a.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s %s with %q: got %d %q", to.method, to.path, given, a.status, a.text)
			}
		}
		if got := w.calls(); len(got) != 0 {
			t.Fatalf("%s %s: without the key, %v was called", to.method, to.path, got)
		}
	}
	if text := w.logged(); strings.Contains(text, apiKey) || !strings.Contains(text, "level=WARN") ||
		!strings.Contains(text, "does not have the form") {
		t.Errorf("the log has the key, or no warning: %.500s", text)
	}
	for _, path := range []string{"/v1", "/v1/", "/v1/nothing", "/v1/../internal"} {
		if a := do(t, request(t, "GET", server.URL+path, "")); a.status != 401 {
			t.Errorf("%s: got %d, want 401: who has no key learns nothing", path, a.status)
		}
	}
}

func TestAPI_EveryRouteWithTheKey(t *testing.T) {
	for _, to := range routes {
		w := fullWorld()
		a := do(t, authorized(t, to.method, w.serve(t).URL+to.path, to.body, "Idempotency-Key", "k1"))
		if got := w.calls(); a.status/100 != 2 || len(got) == 0 || got[0] != to.call {
			t.Errorf("%s %s: got %d %s and %v, want %s", to.method, to.path, a.status, a.text, got, to.call)
		}
		w = fullWorld()
		// so that lists begin with the error
		w.purchases, w.payments, w.events, w.accounts = nil, nil, nil, nil
		w.fail = errors.New("private: sk_test_1234567890abcdef")
		a = do(t, authorized(t, to.method, w.serve(t).URL+to.path, to.body, "Idempotency-Key", "k1"))
		if a.status != 503 || a.header.Get("Retry-After") == "" || strings.Contains(a.text, "private") {
			t.Errorf("%s %s, the store is down: got %d %s", to.method, to.path, a.status, a.text)
		}
		if text := w.logged(); !strings.Contains(text, "private") || strings.Contains(text, "1234567890abcdef") {
			t.Errorf("%s %s: the log wants the error without a secret: %s", to.method, to.path, text)
		}
	}
}

// TestAPI_WithoutKeys: a server that has none answers nobody, and without a shop there is no /v1.
func TestAPI_WithoutKeys(t *testing.T) {
	w := fullWorld()
	o := w.options()
	o.Keys = nil
	server := newServer(t, httpapi.New(o))
	for _, given := range []string{"", "Bearer ", "Bearer " + apiKey} {
		a := do(t, request(t, "GET", server+"/v1/purchases/"+purchaseID, "", "Authorization", given))
		if a.status != 401 || a.code != "key" || len(w.calls()) != 0 {
			t.Errorf("%q: got %d %s, %v", given, a.status, a.text, w.calls())
		}
	}
	if a := do(t, request(t, "POST", server+platformPath, eventBody, "Stripe-Signature",
		signed(w, eventBody, newSecret))); a.status != 200 {
		t.Errorf("the endpoint: got %d", a.status)
	}
	o = w.options()
	o.Shop, o.Record = nil, nil
	if a := do(t, authorized(t, "GET", newServer(t, httpapi.New(o))+"/v1/merchants", "")); a.status != 404 {
		t.Errorf("without a shop: got %d %s", a.status, a.text)
	}
	o.Routes = []web.Route{{Pattern: "GET /v1/other", Scope: key.Read}}
	server = newServer(t, httpapi.New(o))
	for _, to := range routes {
		a := do(t, authorized(t, to.method, server+to.path, ""))
		if a.status != 409 || a.code != "not_followed" || !strings.Contains(a.text, "DUESDAY_STRIPE_KEY") {
			t.Errorf("%s beside other routes, without a shop: got %d %s", to.path, a.status, a.text)
		}
	}
	if a := do(t, request(t, "GET", server+"/v1/merchants", "", "Authorization", "Bearer x")); a.status != 401 {
		t.Errorf("without a key: got %d %s", a.status, a.text)
	}
}

func TestAPI_Routing(t *testing.T) {
	w := fullWorld()
	server := w.serve(t)
	for _, tt := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/v1/nothing", 404, ""},
		{"GET", "/v1/purchases/", 404, ""},
		{"GET", "/v1//purchases", 404, ""},
		{"GET", "/v1/purchases/..", 404, ""},
		{"GET", "/v1/purchases/p1", 404, ""},
		{"GET", "/v1/purchases/" + strings.ToUpper(purchaseID), 200, ""},
		{"GET", "/v1/purchases/a%2Fb", 404, ""},
		{"GET", "/v1/purchases/a%0Ab", 404, ""},
		{"DELETE", "/v1/purchases", 405, "GET, HEAD, POST"},
		{"POST", "/v1/purchases/" + purchaseID, 405, "GET, HEAD"},
		{"GET", "/", 404, ""},
		{"HEAD", "/v1/purchases/" + purchaseID, 200, ""},
	} {
		a := do(t, authorized(t, tt.method, server.URL+tt.path, ""))
		if a.status != tt.status || a.header.Get("Allow") != tt.allow {
			t.Errorf("%s %s: got %d, Allow %q; want %d, %q", tt.method, tt.path, a.status, a.header.Get("Allow"), tt.status,
				tt.allow)
		}
	}
	for _, site := range []string{"cross-site", "same-site"} {
		a := do(t, authorized(t, "POST", server.URL+"/v1/purchases", orderBody, "Idempotency-Key", "k", "Sec-Fetch-Site",
			site))
		if a.status != 403 || a.code != "cross_origin" {
			t.Errorf("%s: got %d %s, want 403", site, a.status, a.text)
		}
	}
	for _, call := range w.calls() {
		if strings.HasPrefix(call, "create") {
			t.Error("a page of another origin has sold something")
		}
	}
}

func TestAPI_Health(t *testing.T) {
	w := newWorld()
	o := w.options()
	var ready error
	o.Ready = func(ctx context.Context) error {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the question has no deadline")
		}
		return ready
	}
	server := newServer(t, httpapi.New(o))
	for _, tt := range []struct {
		method, path string
		ready        error
		status       int
	}{
		{"GET", "/healthz", errors.New("private"), 200}, {"HEAD", "/healthz", nil, 200}, {"GET", "/readyz", nil, 200},
		{"GET", "/readyz", errors.New("private"), 503}, {"POST", "/readyz", nil, 405},
	} {
		ready = tt.ready
		a := do(t, request(t, tt.method, server+tt.path, ""))
		if a.status != tt.status || strings.Contains(a.text, "private") {
			t.Errorf("%s %s: got %d %s, want %d", tt.method, tt.path, a.status, a.text, tt.status)
		}
		if a.status == 503 && (a.code != "unready" || a.err != "not ready" || a.header.Get("Retry-After") == "") {
			t.Errorf("%s is not the form of an error: %s %v", tt.path, a.text, a.header)
		}
	}
}

func TestAPI_ErrorsHaveTheirStatus(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		code   string
		create string // the code when creating a purchase; "": the same
	}{
		{&tracking.FieldError{Field: "amount", Problem: "want more than 0"}, 422, "field", ""},
		{fmt.Errorf("x: %w", &tracking.FieldError{Field: "amount", Problem: "want more than 0"}), 422, "field", ""},
		{tracking.ErrUnregistered, 422, "unregistered", ""},
		{fmt.Errorf("order: %w", tracking.ErrOther), 422, "other", ""},
		{fmt.Errorf("%w: no such price", tracking.ErrOrder), 422, "order", ""},
		{fmt.Errorf("purchase p1: %w", tracking.ErrTooLate), 422, "too_late", ""},
		{tracking.ErrDisconnected, 409, "disconnected", ""},
		{store.ErrNotFound, 404, "not_found", "unknown"},
		{tracking.ErrBody, 400, "body", "unknown"},
		{errors.New("private"), 503, "unavailable", "unknown"},
		{fmt.Errorf("%w: private", tracking.ErrStripeKey), 503, "unavailable", "stripe_key"},
		{context.DeadlineExceeded, 503, "unavailable", "unknown"},
	} {
		w := fullWorld()
		w.fail = tt.err
		server := w.serve(t)
		a := do(t, authorized(t, "GET", server.URL+"/v1/purchases/"+purchaseID, ""))
		if a.status != tt.status || a.code != tt.code || (a.field == "amount") != (tt.code == "field") {
			t.Errorf("%v: got %d %s, want %d %s", tt.err, a.status, a.text, tt.status, tt.code)
		}
		a = do(t, authorized(t, "POST", server.URL+"/v1/purchases", orderBody, "Idempotency-Key", "k"))
		status, code := tt.status, tt.code
		if tt.create != "" {
			status, code = map[string]int{"unknown": 503, "stripe_key": 502}[tt.create], tt.create
		}
		if a.status != status || a.code != code ||
			(code == "unknown") != strings.Contains(a.err, "again with the same key") {
			t.Errorf("creating, %v: got %d %s, want %d %s", tt.err, a.status, a.text, status, code)
		}
	}
}

// TestHook_WithoutSecret: an endpoint without a signing secret takes no event, whoever signed it.
func TestHook_WithoutSecret(t *testing.T) {
	for _, secrets := range [][]secret.Text{nil, {secret.New("")}} {
		w := newWorld()
		o := w.options()
		o.Hooks[0].Secrets = secrets
		body := []byte(`{"id":"evt_1"}`)
		for _, key := range []secret.Text{oldSecret, secret.New("")} {
			r := httptest.NewRequest("POST", platformPath, bytes.NewReader(body))
			r.Header.Set("Stripe-Signature", event.Sign(body, key, w.now))
			a := httptest.NewRecorder()
			httpapi.New(o).ServeHTTP(a, r)
			if a.Code != http.StatusBadRequest || len(w.origins()) != 0 {
				t.Errorf("got %d %s, and %d events were taken", a.Code, a.Body, len(w.origins()))
			}
		}
	}
}

func TestAPI_Parameters(t *testing.T) {
	w := fullWorld()
	server := w.serve(t)
	const ours = "?merchant=" + account
	for path, field := range map[string]string{
		"/v1/purchases":                            "merchant",
		"/v1/purchases?merchant=":                  "merchant",
		"/v1/purchases?merchant=a":                 "merchant",
		"/v1/purchases?merchant=a%20b":             "merchant",
		"/v1/purchases" + ours + "&merchant=b":     "merchant",
		"/v1/purchases" + ours + "&limit=0":        "limit",
		"/v1/purchases" + ours + "&limit=":         "limit",
		"/v1/purchases" + ours + "&limit=1001":     "limit",
		"/v1/payments" + ours + "&limit=x":         "limit",
		"/v1/payments?acount=a":                    "", // a name is not repeated
		"/v1/payments" + ours + "&cursor=":         "cursor",
		"/v1/payments" + ours + "&cursor=AAAA":     "cursor",
		"/v1/events?merchant=a":                    "merchant",
		"/v1/events?stripe_account=":               "stripe_account",
		"/v1/events?stripe_account=a%23b":          "stripe_account",
		"/v1/events?subscription=a%20b":            "subscription",
		"/v1/events?type=a%0Ab":                    "type",
		"/v1/events?from=yesterday":                "from",
		"/v1/events?to=2026-13-01":                 "to",
		"/v1/events?to=99999-01-01":                "to",
		"/v1/events?to=":                           "to",
		"/v1/events?from=2026-01-02&to=2026-01-02": "to",
		"/v1/merchants?limit=-1":                   "limit",
	} {
		if a := do(t, authorized(t, "GET", server.URL+path, "")); a.status != 422 || a.code != "field" || a.field != field {
			t.Errorf("%s: got %d %s, want 422 of %s", path, a.status, a.text, field)
		}
	}
	if got := w.calls(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	a := do(t, authorized(t, "GET", server.URL+"/v1/purchases?merchant="+strings.ToUpper(account), ""))
	if got := w.calls(); a.status != 200 || len(got) != 1 || got[0] != "purchases of "+account {
		t.Errorf("in capitals: got %d, %v", a.status, got)
	}
}
