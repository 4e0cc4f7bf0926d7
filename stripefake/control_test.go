package stripefake

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestControl: everything that can be done by Fake's methods can be done over HTTP.
func TestControl(t *testing.T) {
	w := newWorld(t, Options{})
	w.receive()
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	ctx, c := t.Context(), Control{Base: server.URL + "/"}
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	var out struct {
		Secret  string `json:"secret"`
		Sent    int    `json:"sent"`
		Waiting int    `json:"waiting"`
	}
	post := func(path, in string) error { return c.Do(ctx, "POST", path, json.RawMessage(in), &out) }
	id, err := c.Identity(ctx)
	check("identity", err)
	equal(t, "identity", []any{id.Fake, id.Version, id.Account, id.Now}, []any{"stripefake", NewestVersion,
		DefaultAccount, testStart})
	equal(t, "what it has", []bool{slices.Contains(id.Controls, "POST /_fake/clock"),
		slices.Contains(id.Endpoints, "POST /v1/customers/{customer}")}, []bool{true, true})

	now, err := c.Advance(ctx, 25*time.Hour)
	check("advance", err)
	equal(t, "now", now, testStart.Add(25*time.Hour))
	now, err = c.SetNow(ctx, testStart)
	check("set", err)
	equal(t, "now", now, testStart)
	now, err = c.Now(ctx)
	check("now", err)
	equal(t, "now", now, testStart)

	want := Faults{Latency: time.Millisecond, LostRequests: .1, LostReplies: .2, Errors: .05, LateErrors: .15, Busy: .25,
		Rate: 7, Seed: 8,
		EventLosses: .7, WebhookCopies: .9, WebhookDrops: .8, WebhookShuffle: true, WebhookDelay: time.Second}
	check("set faults", c.SetFaults(ctx, want))
	got, err := c.Faults(ctx)
	check("faults", err)
	equal(t, "faults", got, want)
	equal(t, "faults in effect", w.Faults(), want)
	if err := c.SetFaults(ctx, Faults{Busy: 2}); err == nil || !strings.Contains(err.Error(), "busy must be a probability from 0 to 1 (got 2)") {
		t.Errorf("got %v, want the limits of busy", err)
	}
	check("no faults", c.SetFaults(ctx, Faults{}))
	check("thin events", post("events", `{"form":"thin"}`))
	var form struct{ Form EventForm }
	check("form", c.Do(ctx, "GET", "events", nil, &form))
	equal(t, "form", form.Form, ThinEvents)
	if err := post("events", `{"form":"fat"}`); err == nil || !strings.Contains(err.Error(), "snapshot, thin or both") {
		t.Errorf("got %v, want the three forms", err)
	}
	check("an event", post("events/thin", `{"type":"v2.core.account.closed","related_object":{"id":"acct_1"}}`))
	check("snapshots", post("events", `{"form":"snapshot"}`))

	check("connect", post("accounts", `{"id":"acct_a"}`))
	w.customer("", "Stripe-Account", "acct_a")
	check("disconnect", post("accounts/acct_a/disconnect", `{}`))
	w.do("GET", customers, "", "Stripe-Account", "acct_a").refused(t, "disconnected", 403, "account_invalid", nil)
	check("version", post("accounts/"+DefaultAccount, `{"api_version":"2024-06-20"}`))
	equal(t, "version", w.ok("GET", customers, "").header.Get("Stripe-Version"), "2024-06-20")
	check("version", post("accounts/"+DefaultAccount, `{"api_version":"`+NewestVersion+`"}`))
	check("revoke", post("keys/revoke", `{"key":"`+testKey+`"}`))
	w.do("GET", customers, "").refused(t, "revoked", 401, "api_key_expired", nil)
	check("restore", post("keys/restore", `{"key":"`+testKey+`"}`))

	hook, _ := w.endpointAt("a", "enabled_events[]=*")
	check("roll", post("webhook_endpoints/"+hook+"/roll", `{}`))
	equal(t, "secret", strings.HasPrefix(out.Secret, "whsec_"), true)
	w.customer("")
	made := w.Events(DefaultAccount, false, "")
	check("resend", post("events/"+made[len(made)-1].ID+"/resend", `{}`))
	equal(t, "sent again", out.Sent, 1)
	check("flush", post("webhooks/flush", `{}`))
	equal(t, "waiting", out.Waiting, 0)

	for what, err := range map[string]error{
		"No such payment_intent: 'pi_none'": post("intents/pi_none/authenticate", `{"ok":true}`),
		"No such setup_intent: 'seti_none'": post("intents/seti_none/authenticate", `{"ok":true}`),
		"No such payment_intent: 'pi_no'":   post("intents/pi_no/finish", `{"ok":true}`),
		"No such refund: 're_no'":           post("refunds/re_no/finish", `{"ok":true}`),
		"No such dispute: 'du_none'":        post("disputes/du_none", `{"status":"won"}`),
		"must be one of won, lost":          post("disputes/du_none", `{"status":"drawn"}`),
		"No such account: 'acct_x'":         post("accounts/acct_x/disconnect", `{}`),
		"No such event: 'evt_none'":         post("events/evt_none/resend", `{}`),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %q", err, what)
		}
	}
	counts, err := c.Counts(ctx)
	check("counts", err)
	var n int64
	for _, k := range counts {
		if k.Endpoint == "GET /v1/customers" && k.Status == 401 {
			n = k.Requests
		}
	}
	equal(t, "refused requests", n, int64(1))
	requests, err := c.Requests(ctx)
	check("requests", err)
	equal(t, "requests", requests, w.Requests())
	check("fail", c.FailNext(ctx, "GET /v1/customers", 503, "", 1))
	w.do("GET", customers, "").refused(t, "the next request", 503, nil, nil)
	if err := c.FailNext(ctx, "GET /v1/nothing", 500, "", 1); err == nil || !strings.Contains(err.Error(), "GET /v1/nothing") {
		t.Errorf("got %v, want the endpoint", err)
	}
}

func TestControl_Refuses(t *testing.T) {
	w := newWorld(t, Options{})
	ask := func(method, path, body, kind string) (int, string) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		rec := httptest.NewRecorder()
		w.ServeHTTP(rec, r)
		return rec.Code, rec.Body.String()
	}
	for _, tt := range []struct{ path, body, kind, says string }{
		{"clock", `{"advance":"1h"}`, "text/plain", "application/json"}, // as a page in a browser can send it
		{"clock", `{}`, jsonType, "must be"},
		{"clock", `{"advance":"1h","now":"2026-01-01T00:00:00Z"}`, jsonType, "must be"},
		{"clock", `{"advance":"long"}`, jsonType, "such as 25h"},
		{"intents/pi_1/authenticate", `{}`, jsonType, `must be {\"ok\":true}`},
		{"faults", `{"busy":"x"}`, jsonType, "busy must be a number (got a JSON string)"},
		{"faults", `{"latency":5}`, jsonType, "latency must be a string such as"},
		{"clock", `{"now":"tomorrow"}`, jsonType, "tomorrow"},
		{"clock", `{"advance":"1h"}{}`, jsonType, "a single JSON value"},
		{"faults", `{"lost_reply":1}`, jsonType, "lost_reply"},
		{"faults", `{"latency":"2m"}`, jsonType, "(got 2m0s)"},
		{"faults", "{", jsonType, "must be the JSON object"},
	} {
		if code, body := ask("POST", "/_fake/"+tt.path, tt.body, tt.kind); code != http.StatusBadRequest ||
			!strings.Contains(body, tt.says) {
			t.Errorf("%s %s: got %d %s, want 400 with %q", tt.path, tt.body, code, body, tt.says)
		}
	}
	equal(t, "the clock", w.Now(), testStart)
	for _, path := range []string{"/_fake", "/_fake/"} {
		code, _ := ask("GET", path, "", "")
		equal(t, path, code, http.StatusOK)
	}
	code, _ := ask("GET", "/_fake/nothing", "", "")
	equal(t, "an unknown path", code, http.StatusNotFound)
}

// TestControl_Partial: faults that are not named stay as they are.
func TestControl_Partial(t *testing.T) {
	w := newWorld(t, Options{Faults: Faults{Busy: .5, Rate: 9}})
	r := httptest.NewRequest("POST", "/_fake/faults", strings.NewReader(`{"busy":0}`))
	r.Header.Set("Content-Type", jsonType)
	equal(t, "status", w.send(r).status, http.StatusOK)
	equal(t, "faults", w.Faults(), Faults{Rate: 9})
}
