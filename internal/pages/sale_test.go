package pages_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/pages"
)

// answers answers each path of the API with the JSON text, and the others with none of its problems: 404.
func answers(asked *[]string, texts map[string]string) *pages.Handler {
	var mu sync.Mutex // a page asks for its objects together
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		*asked = append(*asked, r.Method+" "+r.URL.RequestURI())
		mu.Unlock()
		text, known := texts[r.URL.Path]
		if !known {
			w.WriteHeader(http.StatusNotFound)
			text = `{"title":"none","status":404}`
		}
		_, _ = w.Write([]byte(text))
	})
	return pages.New(pages.Options{API: api, Keys: keys{scope: key.Admin}, Now: func() time.Time { return time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC) },
		Log: slog.New(slog.DiscardHandler)})
}

const aTimeline = `{"purchase":{"id":"p1","merchant":"m1","kind":"subscription","fulfilled":true,"fulfilment":{"state":"done","reason":"active sub_1"},
"automations":[{"automation":"command","action":"fulfil","at":"2026-03-01T09:00:02Z"}]},
"payments":[{"id":"pi_1","stripe_account":"acct_1","status":"paid","amount":1299,"currency":"EUR","subscription":"sub_1"}],
"subscriptions":[{"id":"sub_1","stripe_account":"acct_1","status":"active"},{"id":"sub_2","stripe_account":"acct_1","status":"terminated"}],
"steps":[{"at":"2026-03-01T09:00:00Z","about":"p1","what":"asked for"},
{"at":"2026-03-01T09:00:01Z","about":"p1","what":"fulfil asked for: active sub_1","event":"evt_1","detail":"customer.subscription.updated"},
{"at":"2026-03-01T09:00:01Z","about":"sub_1","what":"active","event":"evt_1","detail":"customer.subscription.updated"},
{"at":"2026-03-01T09:00:02Z","about":"p1","what":"fulfil: command"},
{"at":"2026-03-01T09:00:03Z","about":"pi_1","what":"paid","event":"evt_2"},
{"at":"2026-03-02T09:00:00Z","about":"sub_2","what":"terminated: canceled","event":"evt_3"}]}`

// TestSale: the timeline of a purchase has what each event changed and which action it triggered, the latest first, with
// links to the event and to what it changed. A payment's and a subscription's page have the entries about it, whole.
func TestSale(t *testing.T) {
	var asked []string
	h := answers(&asked, map[string]string{"/v1/purchases/p1": aTimeline,
		"/v1/payments/acct_1/pi_1": `{"id":"pi_1","stripe_account":"acct_1","merchant":"m1","purchase":"p1","status":"paid","amount":1299,"currency":"EUR"}`})
	entries := func(path string) []string {
		t.Helper()
		w := ask(h, "GET", path, nil, nil)
		_, text, found := strings.Cut(w.Body.String(), "<h2>Timeline</h2>")
		if w.Code != 200 || !found {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		return strings.Split(text, "<article")[1:]
	}
	all := entries("/purchases/p1")
	if len(all) != 5 || !strings.Contains(all[0], "evt_3") || !strings.Contains(all[4], "asked for") {
		t.Fatalf("%d entries: %q", len(all), all)
	}
	for _, want := range []string{`href="/events/evt_1"`, "customer.subscription.updated", "fulfil asked for: active sub_1", `href="/purchases/p1/subscriptions/sub_1"`, ">action<"} {
		if !strings.Contains(all[3], want) {
			t.Errorf("the entry of evt_1 has no %s: %s", want, all[3])
		}
	}
	if !strings.Contains(all[1], `href="/payments/acct_1/pi_1"`) || strings.Contains(all[1], ">action<") || !strings.Contains(all[2], ">action<") {
		t.Errorf("entries: %q", all)
	}
	if of := entries("/purchases/p1/subscriptions/sub_1"); len(of) != 1 || !strings.Contains(of[0], "fulfil asked for") {
		t.Errorf("entries of sub_1: %q", of)
	}
	if of := entries("/payments/acct_1/pi_1"); len(of) != 1 || !strings.Contains(of[0], "evt_2") {
		t.Errorf("entries of pi_1: %q", of)
	}
	if w := ask(h, "GET", "/purchases/p1/subscriptions/sub_9", nil, nil); w.Code != http.StatusNotFound {
		t.Errorf("another subscription: %d", w.Code)
	}
}

// TestEvents: the list asks for the newest events with their source, and for those that a filter selects. A merchant's page
// says until when its events are verified, and asks for what the poller found.
func TestEvents(t *testing.T) {
	var asked []string
	h := answers(&asked, map[string]string{
		"/v1/events":    `{"data":[{"id":"evt_1","type":"invoice.paid","status":"quarantined","source":"poll","at":"2026-03-01T09:00:00Z","reason":"not registered"}],"has_more":true}`,
		"/v1/merchants": `{"data":[{"id":"m1","stripe_account":"acct_1","status":"connected","verified_through":"2026-03-15T11:58:00Z"}]}`})
	for path, want := range map[string]string{
		"/events":                       "GET /v1/events?details=true&order=newest",
		"/events?source=poll&cursor=c":  "GET /v1/events?cursor=c&details=true&order=newest&source=poll",
		"/events?status=quarantined&x=": "GET /v1/events?details=true&order=newest&status=quarantined",
	} {
		asked = nil
		w := ask(h, "GET", path, nil, nil)
		if len(asked) != 1 || asked[0] != want {
			t.Errorf("%s asks %q", path, asked)
		}
		for _, text := range []string{">poll<", ">quarantined<", ">not registered<", `href="/events/evt_1"`} {
			if !strings.Contains(w.Body.String(), text) {
				t.Errorf("%s has no %s: %s", path, text, w.Body)
			}
		}
	}
	asked = nil
	w := ask(h, "GET", "/merchants/m1", nil, nil)
	for _, want := range []string{"GET /v1/events?merchant=m1&source=poll&order=newest&limit=20&from=2026-03-08", "GET /v1/events?merchant=m1&status=waiting&limit=20"} {
		if !strings.Contains(strings.Join(asked, "\n"), want) {
			t.Errorf("the merchant's page does not ask %s: %q", want, asked)
		}
	}
	if text := w.Body.String(); !strings.Contains(text, "Every event until <b>2026-03-15 11:58:00</b> is stored") || !strings.Contains(text, `href="/events/evt_1"`) {
		t.Errorf("the merchant's page: %s", text)
	} else if !strings.Contains(text, `"/events?merchant=m1&amp;status=waiting"`) || !strings.Contains(text, `"/events?merchant=m1&amp;source=poll"`) {
		t.Errorf("the merchant's page leads to events of others: %s", text)
	}
}

// TestReplays: an event is offered for a replay until it is final, and an endpoint offers what helps: to be resumed, or else
// to get again what failed. Each page says which command does the same, and sends one request with the right body.
func TestReplays(t *testing.T) {
	for _, tt := range []struct {
		path, object string // page, and what the API has there
		button       string // link on the page; "": none
		other        string // link that is not there
		command      string
		body         string
	}{
		{"/events/evt_1", `{"id":"evt_1","status":"dead","source":"webhook"}`, "/events/evt_1/replay", "", "duesday replay evt_1", `{}`},
		{"/events/evt_1", `{"id":"evt_1","status":"applied","source":"webhook"}`, "", "/events/evt_1/replay", "", ""},
		{"/endpoints/ep_1", `{"id":"ep_1","paused_at":"2026-03-01T00:00:00Z","dead":3,"waiting":0}`, "/endpoints/ep_1/resume", "/endpoints/ep_1/replay",
			"duesday endpoint update ep_1 --resume", `{"paused":false}`},
		{"/endpoints/ep_1", `{"id":"ep_1","dead":3,"waiting":0}`, "/endpoints/ep_1/replay", "/endpoints/ep_1/resume",
			"duesday delivery replay --endpoint ep_1 --state failed", `{"endpoint":"ep_1","state":"failed"}`},
		{"/endpoints/ep_1", `{"id":"ep_1","dead":0,"waiting":2}`, "", "/endpoints/ep_1/replay", "", ""},
	} {
		var sent []string
		api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != "GET" {
				var body any
				_ = json.NewDecoder(r.Body).Decode(&body)
				text, _ := json.Marshal(body)
				sent = append(sent, string(text))
			}
			if strings.HasPrefix(r.URL.Path, "/v1"+tt.path) {
				_, _ = w.Write([]byte(tt.object))
				return
			}
			_, _ = w.Write([]byte(`{"data":[]}`))
		})
		h := pages.New(pages.Options{API: api, Keys: keys{scope: key.Admin}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		page := ask(h, "GET", tt.path, nil, nil).Body.String()
		if !strings.Contains(page, `href="`+tt.button) || tt.other != "" && strings.Contains(page, tt.other) {
			t.Errorf("%s of %s: %s", tt.path, tt.object, page)
		}
		if tt.button == "" {
			continue
		}
		shown := ask(h, "POST", tt.button, url.Values{}, nil).Body.String()
		_, version, _ := strings.Cut(shown, `name="version" value="`)
		version, _, _ = strings.Cut(version, `"`)
		if !strings.Contains(shown, tt.command) || len(sent) > 0 {
			t.Errorf("%s: sent %q, and shows %s", tt.button, sent, shown)
		}
		w := ask(h, "POST", tt.button, url.Values{"version": {version}, "confirm": {"yes"}}, nil)
		if w.Code != http.StatusSeeOther || len(sent) != 1 || sent[0] != tt.body {
			t.Errorf("%s: %d, sent %q, want %s", tt.button, w.Code, sent, tt.body)
		}
	}
}
