package pages_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/pages"
)

// TestSearch: the search finds a payment in the Stripe account of whichever merchant has it, a merchant by its account, and
// the events of a Stripe subscription.
func TestSearch(t *testing.T) {
	var asked []string
	h := answers(&asked, map[string]string{
		"/v1/merchants":            `{"data":[{"id":"m1","stripe_account":"acct_1"},{"id":"m2","stripe_account":"acct_2"}]}`,
		"/v1/payments/acct_2/pi_9": `{"id":"pi_9","stripe_account":"acct_2","status":"succeeded"}`,
		"/v1/events":               `{"data":[{"id":"evt_7"}]}`,
		"/v1/subscriptions":        `{"data":[]}`,
	})
	for q, want := range map[string]string{"pi_9": `href="/payments/acct_2/pi_9"`, "acct_2": `href="/merchants/m2"`, "sub_5": `href="/events/evt_7"`} {
		if text := ask(h, "GET", "/search?q="+q, nil, nil).Body.String(); !strings.Contains(text, want) || strings.Count(text, `<article class="item">`) > 2 {
			t.Errorf("%s: no %s in %s", q, want, text)
		}
	}
	if text := ask(h, "GET", "/search?q=pi_8", nil, nil).Body.String(); !strings.Contains(text, "Not found: <b dir=\"auto\">pi_8</b>") {
		t.Errorf("an unknown payment: %s", text)
	}
}

// TestSearch_Merchant: what a merchant's key may not read does not hide what it may.
func TestSearch_Merchant(t *testing.T) {
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/purchases/") {
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(map[string]any{"status": 403, "title": "The API key belongs to a merchant"})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"id": "p1"})
	})
	for merchant, want := range map[string]int{"m1": http.StatusOK, "": http.StatusForbidden} {
		h := pages.New(pages.Options{API: api, Keys: keys{scope: key.Read, merchant: merchant}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		w := ask(h, "GET", "/search?q=p1", nil, nil)
		if w.Code != want || want == http.StatusOK && !strings.Contains(w.Body.String(), `href="/purchases/p1"`) {
			t.Errorf("a key of merchant %q: %d %s", merchant, w.Code, w.Body)
		}
	}
}
