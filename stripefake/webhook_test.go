package stripefake

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duesday/duesday/stripefake/internal/api"
)

// A receiver is where webhooks arrive, without a network.
type receiver struct {
	mu     sync.Mutex
	status func(n int) int // for the delivery with the number, from 1; nil: 200
	got    []delivery
}

type delivery struct {
	host, signature string
	payload         []byte
	event           map[string]any
	at              time.Time
}

// RoundTrip implements http.RoundTripper.
func (r *receiver) RoundTrip(q *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d := delivery{host: q.URL.Host, signature: q.Header.Get("Stripe-Signature"), payload: text, at: time.Now()}
	if err := json.Unmarshal(text, &d.event); err != nil {
		return nil, err
	}
	r.got = append(r.got, d)
	status := http.StatusOK
	if r.status != nil {
		status = r.status(len(r.got))
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Location": {"http://elsewhere.example"}},
		Body: io.NopCloser(bytes.NewReader(nil)), Request: q}, nil
}

// members are those of the events that have come, in order.
func (r *receiver) members(name string) (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.got {
		list = append(list, fmt.Sprint(d.event[name]))
	}
	return list
}

// signed says whether the signature is one by the secret, as Stripe's page has it.
func (d delivery) signed(secret string) bool {
	parts := strings.Split(d.signature, ",")
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s.%s", strings.TrimPrefix(parts[0], "t="), d.payload)
	return strings.HasPrefix(parts[0], "t=") && slices.Contains(parts[1:], "v1="+hex.EncodeToString(mac.Sum(nil)))
}

// receive has the fake's webhooks come to a receiver.
func (w *world) receive() *receiver {
	r := &receiver{}
	w.webhooks.RoundTripper = r
	return r
}

// endpoint makes one, and returns its id and its secret.
func (w *world) endpointAt(host, params string, headers ...string) (id, secret string) {
	w.t.Helper()
	a := w.ok("POST", "/v1/webhook_endpoints", "url="+url.QueryEscape("http://"+host+"/hook")+"&"+params, headers...)
	return a.id(), a.body["secret"].(string)
}

func (w *world) flush(want int) {
	w.t.Helper()
	left, err := w.Flush(w.t.Context())
	if err != nil || left != want {
		w.t.Errorf("flush: got %d waiting, %v, want %d", left, err, want)
	}
}

func TestWebhook_Signed(t *testing.T) {
	w := newWorld(t, Options{})
	r := w.receive()
	id, first := w.endpointAt("a", "enabled_events[]=*")
	w.customer("name=A", "Idempotency-Key", "k")
	w.flush(0)
	d := r.got[0]
	equal(t, "signed", []bool{d.signed(first), d.signed("whsec_other")}, []bool{true, false})
	equal(t, "t", strings.HasPrefix(d.signature, "t="+strconv.FormatInt(testStart.Unix(), 10)+","), true)

	second, err := w.Roll(id)
	if err != nil {
		t.Fatal(err)
	}
	w.customer("")
	w.flush(0)
	equal(t, "signed by both", []bool{r.got[1].signed(first), r.got[1].signed(second)}, []bool{true, true})
	w.Advance(24 * time.Hour)
	w.customer("")
	w.flush(0)
	equal(t, "signed a day later", []bool{r.got[2].signed(first), r.got[2].signed(second)}, []bool{false, true})
	if strings.Contains(w.ok("GET", "/v1/webhook_endpoints/"+id, "").text, "whsec") {
		t.Error("an endpoint's secret is shown again")
	}
}

func TestWebhook_Event(t *testing.T) {
	w := newWorld(t, Options{Faults: Faults{WebhookDelay: time.Hour}}) // nothing leaves before the flush
	r := w.receive()
	w.endpointAt("a", "enabled_events[]=customer.created")
	w.endpointAt("b", "enabled_events[]=invoice.paid")
	a := w.ok("POST", customers, "name=A", "Idempotency-Key", "k")
	event := w.ok("GET", "/v1/events", "").body["data"].([]any)[0].(map[string]any)
	w.flush(0)
	equal(t, "sent to", []string{r.got[0].host}, []string{"a"})
	got := r.got[0].event
	equal(t, "id", got["id"], event["id"])
	equal(t, "request", got["request"], any(map[string]any{"id": a.header.Get("Request-Id"), "idempotency_key": "k"}))
	equal(t, "object", answer{body: got}.at("data.object.id"), a.body["id"])
	equal(t, "members", []any{got["object"], got["type"], got["api_version"], got["livemode"], got["pending_webhooks"],
		got["account"]},
		[]any{"event", "customer.created", NewestVersion, false, 1.0, nil})
	equal(t, "pending before", event["pending_webhooks"], any(1.0))
	equal(t, "pending after", w.ok("GET", "/v1/events/"+event["id"].(string), "").body["pending_webhooks"], any(0.0))
}

// TestWebhook_Retry: what is not answered 2xx comes again, later and later, and signed anew.
func TestWebhook_Retry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Now: time.Now})
		defer w.Close()
		r := w.receive()
		r.status = func(n int) int { return []int{500, 302, 404, 200}[n-1] }
		_, secret := w.endpointAt("a", "enabled_events[]=*")
		w.customer("")
		after(time.Hour)
		var pauses []time.Duration
		for i, d := range r.got {
			equal(t, "signed", d.signed(secret), true)
			if i > 0 {
				pauses = append(pauses, d.at.Sub(r.got[i-1].at))
				equal(t, "payload", string(d.payload), string(r.got[0].payload))
			}
		}
		equal(t, "pauses", pauses, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second})
		equal(t, "not delivered", len(w.ok("GET", "/v1/events", "delivery_success=false").ids()), 0)
	})
}

// TestWebhook_GivesUp: after three days of the fake's clock it is tried no more.
func TestWebhook_GivesUp(t *testing.T) {
	w := newWorld(t, Options{})
	r := w.receive()
	r.status = func(int) int { return 500 }
	w.endpointAt("a", "enabled_events[]=*")
	w.customer("")
	w.flush(1)
	w.Advance(api.RetryFor - time.Second)
	w.flush(1)
	w.Advance(time.Second)
	w.flush(0)
	equal(t, "not delivered", len(w.ok("GET", "/v1/events", "delivery_success=false").ids()), 1)
	equal(t, "delivered", len(w.ok("GET", "/v1/events", "delivery_success=true").ids()), 0)
	if len(r.got) < 3 {
		t.Errorf("tried %d times, want 3", len(r.got))
	}
}

func TestWebhook_Faults(t *testing.T) {
	play := func(f Faults) (sent, got []string) {
		f.WebhookDelay = time.Hour // nothing leaves before the flush
		w := newWorld(t, Options{Faults: f})
		r := w.receive()
		r.status = func(n int) int { return []int{500, 200}[min(n-1, 1)] }
		w.endpointAt("a", "enabled_events[]=customer.created")
		for range 50 {
			w.customer("")
		}
		w.flush(1)
		w.flush(0)
		sent = append(w.ok("GET", "/v1/events", "limit=100").ids(), r.members("id")[0])
		slices.Reverse(sent)
		return sent, r.members("id")
	}
	sorted := func(l []string) []string { return slices.Compact(slices.Sorted(slices.Values(l))) }

	sent, got := play(Faults{})
	equal(t, "in order", got[1:50], sent[2:])
	equal(t, "the refused one at last", got[50], sent[0])

	_, got = play(Faults{WebhookDrops: .5})
	if n := len(sorted(got)); n < 10 || n > 40 {
		t.Errorf("%d of 50 came, want about half", n)
	}
	sent, got = play(Faults{WebhookCopies: 1})
	equal(t, "copies", len(got), 101)
	equal(t, "all came", sorted(got), sorted(sent))

	sent, got = play(Faults{WebhookShuffle: true})
	equal(t, "all came", sorted(got), sorted(sent))
	equal(t, "in order", slices.IsSorted(got[1:50]), false)
}

func TestWebhook_Delay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Now: time.Now, Faults: Faults{WebhookDelay: time.Hour}})
		defer w.Close()
		r := w.receive()
		w.endpointAt("a", "enabled_events[]=*")
		began := time.Now()
		for range 20 {
			w.customer("")
		}
		after(time.Hour)
		synctest.Wait()
		equal(t, "came", len(r.got), 20)
		if last := r.got[19].at.Sub(began); last < 30*time.Minute || last > time.Hour {
			t.Errorf("the last one came after %v, want nearly an hour", last)
		}
	})
}

func TestWebhook_Connect(t *testing.T) {
	w := newWorld(t, Options{})
	r := w.receive()
	if err := w.Connect("acct_a", ""); err != nil {
		t.Fatal(err)
	}
	live := []string{"Authorization", "Bearer " + liveKey}
	w.endpointAt("own", "enabled_events[]=*")
	w.endpointAt("connect", "enabled_events[]=*&connect=true")
	w.endpointAt("live-connect", "enabled_events[]=*&connect=true", live...)
	w.endpointAt("live-own", "enabled_events[]=*", live...)
	step := func(want []string, headers ...string) (events []map[string]any) {
		t.Helper()
		r.got = nil
		w.customer("", headers...)
		w.flush(0)
		var hosts []string
		for _, d := range r.got {
			hosts, events = append(hosts, d.host), append(events, d.event)
		}
		slices.Sort(hosts)
		equal(t, "sent to", hosts, want)
		return events
	}
	equal(t, "account", step([]string{"own"})[0]["account"], nil)
	for _, e := range step([]string{"connect", "live-connect"}, "Stripe-Account", "acct_a") {
		equal(t, "account and mode", []any{e["account"], e["livemode"]}, []any{"acct_a", false})
	}
	step([]string{"live-connect"}, append(live, "Stripe-Account", "acct_a")...)
	step([]string{"live-own"}, live...)
}

func TestWebhook_Endpoints(t *testing.T) {
	w := newWorld(t, Options{})
	r := w.receive()
	id, _ := w.endpointAt("a", "enabled_events[]=*&description=shop&metadata[a]=1&api_version=2024-06-20")
	equal(t, "endpoint", w.ok("GET", "/v1/webhook_endpoints/"+id, "").body["api_version"], any("2024-06-20"))
	w.customer("")
	w.flush(0)
	equal(t, "version", r.got[0].event["api_version"], any("2024-06-20"))
	w.ok("POST", "/v1/webhook_endpoints/"+id, "disabled=true")
	w.customer("")
	w.flush(0)
	w.ok("POST", "/v1/webhook_endpoints/"+id, "disabled=false&enabled_events[]=charge.succeeded")
	w.customer("")
	w.flush(0)
	equal(t, "came", len(r.got), 1)
	w.ok("DELETE", "/v1/webhook_endpoints/"+id, "")
	w.do("GET", "/v1/webhook_endpoints/"+id, "").refused(t, "deleted", 404, "resource_missing", "webhook_endpoint")
	equal(t, "list", len(w.ok("GET", "/v1/webhook_endpoints", "").ids()), 0)
	for _, u := range []string{"ftp://a.example", "a.example", "http://", "http://u:p@a.example"} {
		w.do("POST", "/v1/webhook_endpoints", "enabled_events[]=*&url="+url.QueryEscape(u)).refused(t, u, 400,
			"url_invalid", "url")
	}
	w.do("POST", "/v1/webhook_endpoints", "url=http://a.example&enabled_events=all").refused(t, "no list", 400, nil,
		"enabled_events")
}

// TestWebhook_RolledTwice: a secret signs for 24 hours after it was rolled, however often
// that is done again.
func TestWebhook_RolledTwice(t *testing.T) {
	w := newWorld(t, Options{})
	r := w.receive()
	id, first := w.endpointAt("a", "enabled_events[]=*")
	var keys []string
	for range 2 {
		key, err := w.Roll(id)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
		w.Advance(12 * time.Hour)
	}
	w.customer("")
	w.flush(0)
	equal(t, "signed", []bool{r.got[0].signed(first), r.got[0].signed(keys[0]), r.got[0].signed(keys[1])},
		[]bool{false, true, true})
}

// TestWebhook_CopyCounts: a copy is no second delivery.
func TestWebhook_CopyCounts(t *testing.T) {
	w := newWorld(t, Options{Faults: Faults{WebhookCopies: 1}})
	r := w.receive()
	w.endpointAt("a", "enabled_events[]=*")
	w.customer("")
	w.flush(0)
	equal(t, "came", len(r.got), 2)
	equal(t, "delivered", len(w.ok("GET", "/v1/events", "delivery_success=true").ids()), 1)
}
