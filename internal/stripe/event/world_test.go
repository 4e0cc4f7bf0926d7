package event

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/test/apitest"
	"github.com/duesday/duesday/stripefake"
)

// eventVersions are those that a body is decoded in: one from every change of shape that
// matters, and the ends.
var eventVersions = []string{"2020-08-27", "2022-11-15", "2024-04-10", "2025-03-31.basil", "2025-09-30.clover",
	stripefake.NewestVersion}

// A webhook is one as it came.
type webhook struct {
	version, signature string
	body               []byte
}

// An eventWorld is a platform with a connected account, and one Connect endpoint for every version,
// at a path of its name.
type eventWorld struct {
	t       *testing.T
	fake    *stripefake.Fake
	server  *httptest.Server
	secrets map[string]secret.Text // by version
	monthly string                 // a price

	mu  sync.Mutex
	got []webhook // guarded by mu
}

const (
	eventShop     = "acct_shop"
	eventPurchase = "0190b6d2-7c1f-7a3e-9d5b-2f6c8e4a1b70"
)

func newEventWorld(t *testing.T) *eventWorld {
	t.Helper()
	w := &eventWorld{t: t, secrets: map[string]secret.Text{}}
	w.fake = stripefake.New(stripefake.Options{Now: func() time.Time { return apitest.Now }})
	w.server = httptest.NewServer(w)
	t.Cleanup(func() {
		w.server.Close()
		if err := w.fake.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, version := range eventVersions {
		made := w.call("", "POST", "webhook_endpoints", "url="+w.server.URL+"/"+version, "enabled_events[]=*", "connect=true",
			"api_version="+version)
		w.secrets[version] = secret.New(made["secret"].(string))
	}
	if err := w.fake.Connect(eventShop, ""); err != nil {
		t.Fatal(err)
	}
	product := w.post("products", "name=Tea")["id"].(string)
	w.monthly = w.post("prices", "currency=usd", "unit_amount=1500", "recurring[interval]=month",
		"product="+product)["id"].(string)
	return w
}

// ServeHTTP implements http.Handler: webhooks come here.
func (w *eventWorld) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = append(w.got, webhook{strings.TrimPrefix(r.URL.Path, "/"), r.Header.Get("Stripe-Signature"), body})
}

// heard returns all webhooks so far, by event and version.
func (w *eventWorld) heard() map[string]map[string]webhook {
	w.t.Helper()
	if left, err := w.fake.Flush(w.t.Context()); err != nil || left != 0 {
		w.t.Fatalf("%d webhooks are left, %v", left, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]map[string]webhook{}
	for _, g := range w.got {
		var e struct{ ID string }
		if err := json.Unmarshal(g.body, &e); err != nil {
			w.t.Fatal(err)
		}
		if all[e.ID] == nil {
			all[e.ID] = map[string]webhook{}
		}
		all[e.ID][g.version] = g
	}
	return all
}

// call makes a request, whose answer may be an error of Stripe's.
func (w *eventWorld) call(at, method, path string, pairs ...string) map[string]any {
	w.t.Helper()
	form := url.Values{}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		form.Add(name, value)
	}
	r := httptest.NewRequestWithContext(w.t.Context(), method, "/v1/"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer sk_test_duesday")
	if at != "" {
		r.Header.Set("Stripe-Account", at)
	}
	answer := httptest.NewRecorder()
	w.fake.ServeHTTP(answer, r)
	var out map[string]any
	if err := json.Unmarshal(answer.Body.Bytes(), &out); err != nil {
		w.t.Fatalf("%s %s: %s", method, path, answer.Body)
	}
	return out
}

// post is a request at the connected account, which has to succeed.
func (w *eventWorld) post(path string, pairs ...string) map[string]any {
	w.t.Helper()
	out := w.call(eventShop, "POST", path, pairs...)
	if out["id"] == nil {
		w.t.Fatalf("%s: %v", path, out)
	}
	return out
}

// buyer makes a customer with that card.
func (w *eventWorld) buyer(card string) string {
	w.t.Helper()
	return w.post("customers", "email=ann@example.com", "payment_method="+card,
		"invoice_settings[default_payment_method]="+card)["id"].(string)
}

// purchased is the metadata of a purchase, below a parameter.
func purchased(kind string) []string {
	return []string{"metadata[duesday_installation]=inst", "metadata[duesday_purchase]=" + eventPurchase,
		"metadata[duesday_purchase_kind]=" + kind}
}

func textIn(v any) string { return fmt.Sprint(v) }
