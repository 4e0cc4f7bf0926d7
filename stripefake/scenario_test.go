package stripefake

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/test/stripetest"
)

// A listener is a shop's server: webhooks come to /new and /old, over HTTP.
type listener struct {
	*httptest.Server
	mu   sync.Mutex
	down bool       // guarded by mu; it answers 500
	got  []delivery // guarded by mu; host is the path
}

func newListener(t *testing.T) *listener {
	l := &listener{}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	return l
}

// ServeHTTP implements http.Handler.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	d := delivery{host: r.URL.Path, signature: r.Header.Get("Stripe-Signature"), payload: text}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || l.down || json.Unmarshal(text, &d.event) != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	l.got = append(l.got, d)
}

func (l *listener) setDown(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
}

// at are the deliveries to the path, in order.
func (l *listener) at(path string) (list []delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.got {
		if d.host == path {
			list = append(list, d)
		}
	}
	return list
}

// A visit asks a fake over HTTP.
type visit struct {
	*world
	server  *httptest.Server
	control Control
}

func (w *world) visit() *visit {
	server := httptest.NewServer(w.handler)
	w.t.Cleanup(server.Close)
	return &visit{w, server, Control{Base: server.URL}}
}

// ask sends a request, whose answer is a 200; key is its idempotency key, or "".
func (v *visit) ask(method, path, key string, pairs ...string) answer {
	v.t.Helper()
	target, body := v.server.URL+"/v1/"+path, params(pairs)
	if method == "GET" {
		target, body = target+"?"+body, ""
	}
	r, err := http.NewRequestWithContext(v.t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	r.SetBasicAuth(testKey, "")
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	res, err := v.server.Client().Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	a := v.answerOf(res)
	if a.status != http.StatusOK {
		v.t.Fatalf("%s %s: %d %s", method, path, a.status, a.text)
	}
	return a
}

// twice sends a request again with the same key, and wants the answer again.
func (v *visit) twice(path string, pairs ...string) answer {
	v.t.Helper()
	first, again := v.ask("POST", path, path+"-key", pairs...), v.ask("POST", path, path+"-key", pairs...)
	equal(v.t, path+" again", []any{again.text, again.header.Get("Idempotent-Replayed")}, []any{first.text, "true"})
	return first
}

// sell begins a shop's life: it sells a subscription. Every request is sent twice.
func (v *visit) sell() (customer string) {
	v.t.Helper()
	product := v.twice("products", "name=Tea").id()
	price := v.twice("prices", "product="+product, "currency=usd", "unit_amount=1500", "recurring[interval]=month").id()
	customer = v.twice("customers", "email=ann@example.com", "payment_method=pm_card_visa",
		"invoice_settings[default_payment_method]=pm_card_visa").id()
	sub := v.twice("subscriptions", "customer="+customer, "items[0][price]="+price)
	equal(v.t, "status", sub.at("status"), any("active"))
	return customer
}

// renew goes on: the subscription renews, and a payment is refunded, which the bank sends
// back.
func (v *visit) renew(customer string) {
	v.t.Helper()
	for _, d := range []time.Duration{28 * 24 * time.Hour, time.Hour} { // February; the draft's hour
		if _, err := v.control.Advance(v.t.Context(), d); err != nil {
			v.t.Fatal(err)
		}
	}
	charges := v.ask("GET", "charges", "", "customer="+customer)
	equal(v.t, "charges", len(charges.ids()), 2)
	refund := v.twice("refunds", "charge="+charges.ids()[0], "amount=500").id()
	if err := v.control.Do(v.t.Context(), "POST", "refunds/"+refund+"/finish", map[string]bool{"ok": false},
		nil); err != nil {
		v.t.Fatal(err)
	}
	equal(v.t, "the refund", v.ask("GET", "refunds/"+refund, "").at("status"), any("failed"))
}

// deliver has everything delivered that waits.
func (v *visit) deliver() {
	v.t.Helper()
	var left struct {
		Waiting int `json:"waiting"`
	}
	if err := v.control.Do(v.t.Context(), "POST", "webhooks/flush", struct{}{}, &left); err != nil || left.Waiting != 0 {
		v.t.Fatalf("flush: %d left, %v", left.Waiting, err)
	}
}

// events reads the list of events to its end, oldest first.
func (v *visit) events(pairs ...string) (list []map[string]any) {
	v.t.Helper()
	for cursor := []string(nil); ; {
		page := v.ask("GET", "events", "", append(append([]string{"limit=7"}, pairs...), cursor...)...)
		for _, e := range page.body["data"].([]any) {
			list = append(list, e.(map[string]any))
		}
		if page.body["has_more"] != true {
			slices.Reverse(list)
			return list
		}
		ids := page.ids()
		cursor = []string{"starting_after=" + ids[len(ids)-1]}
	}
}

func idsOf(events []map[string]any) (list []string) {
	for _, e := range events {
		list = append(list, e["id"].(string))
	}
	return list
}

const lifeOfAShop = "product.created price.created customer.created payment_method.attached " +
	"invoice.created payment_intent.created invoice.updated invoice.finalized charge.succeeded " +
	"payment_intent.succeeded invoice_payment.paid " +
	"customer.subscription.created invoice.updated invoice.paid invoice.payment_succeeded " +
	"invoice.created customer.subscription.updated " +
	"payment_intent.created invoice.updated invoice.finalized charge.succeeded payment_intent.succeeded " +
	"invoice_payment.paid " +
	"invoice.updated invoice.paid invoice.payment_succeeded " +
	"refund.created charge.refunded refund.updated charge.refund.updated refund.failed"

// TestScenario: what the list of events has is what webhooks bring, in order where nothing
// goes wrong.
func TestScenario(t *testing.T) {
	shop, spec := newListener(t), stripetest.Load(t)
	w := newWorld(t, Options{Webhooks: []Webhook{{URL: shop.URL + "/new", Secret: "whsec_new"}}})
	v := w.visit()
	old := v.ask("POST", "webhook_endpoints", "", "url="+shop.URL+"/old", "api_version=2024-06-20",
		"enabled_events[]=invoice.paid", "enabled_events[]=customer.subscription.updated")
	v.renew(v.sell())
	v.deliver()
	events := v.events()
	var types, inOrder []string
	for _, e := range events {
		types = append(types, e["type"].(string))
	}
	equal(t, "story", strings.Join(types, " "), lifeOfAShop)
	for i, d := range shop.at("/new") {
		inOrder = append(inOrder, fmt.Sprint(d.event["id"]))
		equal(t, "signed", []bool{d.signed("whsec_new"), d.signed("whsec_other")}, []bool{true, false})
		equal(t, "data", d.event["data"], events[min(i, len(events)-1)]["data"])
		if problems := spec.CheckEvent(d.payload); len(problems) > 0 {
			t.Errorf("%s: %v", d.event["type"], problems)
		}
	}
	equal(t, "delivered", inOrder, idsOf(events))
	var few []string
	for _, d := range shop.at("/old") {
		few = append(few, d.event["type"].(string))
		equal(t, "signed for the old one", d.signed(old.body["secret"].(string)), true)
		equal(t, "version", d.event["api_version"], any("2024-06-20"))
		if a := (answer{body: d.event}); few[len(few)-1] == "customer.subscription.updated" {
			equal(t, "previous", a.at("data.previous_attributes.current_period_end"), a.at("data.object.current_period_start"))
		}
	}
	equal(t, "of these types", strings.Join(few, " "), "invoice.paid customer.subscription.updated invoice.paid")
	equal(t, "waiting", len(v.events("delivery_success=false")), 0)
}

// TestScenario_faults: with copies, losses, disorder and a shop that is down at first, what
// comes at last is what the list says was delivered, and the list has all.
func TestScenario_faults(t *testing.T) {
	shop := newListener(t)
	w := newWorld(t, Options{
		Webhooks: []Webhook{{URL: shop.URL + "/new", Secret: "whsec_new"}},
		Faults:   Faults{Seed: 5, WebhookCopies: .4, WebhookDrops: .3, WebhookShuffle: true},
	})
	v := w.visit()
	shop.setDown(true)
	customer := v.sell()
	equal(t, "delivered while it is down", len(v.events("delivery_success=true")), 0)
	shop.setDown(false)
	v.deliver()
	v.renew(customer)
	v.deliver()
	all, delivered, lost := idsOf(v.events()), idsOf(v.events("delivery_success=true")),
		idsOf(v.events("delivery_success=false"))
	equal(t, "events", len(all), len(strings.Fields(lifeOfAShop)))
	times := map[string]int{}
	var order []string
	for _, d := range shop.at("/new") {
		id := fmt.Sprint(d.event["id"])
		equal(t, "signed", d.signed("whsec_new"), true)
		if times[id]++; times[id] == 1 {
			order = append(order, id)
		}
	}
	equal(t, "what came", slices.Sorted(slices.Values(order)), slices.Sorted(slices.Values(delivered)))
	equal(t, "what came and what did not", len(delivered)+len(lost), len(all))
	copies := len(shop.at("/new")) - len(order)
	if len(lost) == 0 || copies == 0 || slices.Equal(order, delivered) {
		t.Errorf("%d lost, %d copies, in order: %v; want some, some, and no", len(lost), copies,
			slices.Equal(order, delivered))
	}
}
