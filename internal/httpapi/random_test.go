package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/httpapi"
	"github.com/duesday/duesday/internal/key"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/stripe/event"
	"github.com/duesday/duesday/internal/test/soaktest"
	"github.com/duesday/duesday/internal/test/spectest"
	"github.com/duesday/duesday/internal/tracking"
	"github.com/duesday/duesday/internal/web"
)

// A counterStripe sells everything and remembers nothing: it stands for Stripe.
type counterStripe struct{ now func() time.Time }

func (counterStripe) Check(tracking.Order) error              { return nil }
func (counterStripe) Connected(context.Context, string) error { return nil }
func (c counterStripe) Find(ctx context.Context, o tracking.Order) (tracking.Sale, error) {
	return c.Sell(ctx, o, true)
}

func (c counterStripe) Sell(_ context.Context, o tracking.Order, _ bool) (tracking.Sale, error) {
	status := map[bool]string{true: "requires_payment_method", false: "succeeded"}[o.Kind == tracking.Legacy]
	return tracking.Sale{Customer: "cus_1", ClientSecret: secret.New("pi_1_secret_x"), Objects: []tracking.Object{{
		Kind: tracking.KindPayment, ID: "pi_" + strings.ReplaceAll(o.Tag.Purchase, "-", ""), Status: status, Fetched: true,
		Created: c.now(), InvoiceTold: true, Amount: 100, Currency: "EUR", Tag: o.Tag}}}, nil
}

func (counterStripe) Payment(context.Context, string, string) (tracking.Object, error) {
	return tracking.Object{}, tracking.ErrGone
}

func (counterStripe) Subscription(context.Context, string, string) (tracking.Object, error) {
	return tracking.Object{}, tracking.ErrGone
}

func (counterStripe) Schedule(context.Context, string, string) (tracking.Object, error) {
	return tracking.Object{}, tracking.ErrGone
}

func (counterStripe) Object(context.Context, string, string, string) (tracking.Object, error) {
	return tracking.Object{}, tracking.ErrGone
}

// A crowd sends random requests to a server with a real service and store. What it can make there is
// bounded, so that its memory has to stay as it is.
type crowd struct {
	t       *testing.T
	random  *rand.Rand
	passed  atomic.Int64 // nanoseconds, of the clock; the last use of a key is noted beside a request
	handler http.Handler
	log     lineLog
	keys    []crowdKey
	cursors []string
	found   []string // ids in answers
	status  map[int]int
	route   map[string]int // answers of 2xx
}

type crowdKey struct {
	text, merchant string
	scope          key.Scope // "": not valid
}

// lineLog has the last lines of the log.
type lineLog struct{ last string }

func (l *lineLog) Write(p []byte) (int, error) {
	l.last = string(p)
	return len(p), nil
}

func newCrowd(t *testing.T) *crowd {
	c := &crowd{t: t, random: rand.New(rand.NewPCG(soaktest.Seed(t), 15)),
		status: map[int]int{}, route: map[string]int{}}
	now := c.now
	tables := schema.New("")
	s, err := memstore.Open(tables.All(), now)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(&c.log, nil))
	service, err := tracking.Open(t.Context(), tracking.Options{Store: s, Tables: tables, Installation: "I", Own: "acct_own",
		Now: now, Log: log, Decode: event.Decode, Finder: counterStripe{now}, Seller: counterStripe{now}})
	if err != nil {
		t.Fatal(err)
	}
	for merchant, at := range map[string]string{account: stripeAccount, other: "acct_other"} {
		if _, err := service.Register(t.Context(), merchant, at); err != nil {
			t.Fatal(err)
		}
	}
	ring := key.New(key.Options{Store: s, Table: tables.RecurringPayments.Name, Now: now})
	storeAPIKey(s)
	t.Cleanup(ring.Wait)
	c.keys = []crowdKey{{apiKey, "", key.Admin}, {"", "", ""}, {"wrong", "", ""}, {"dd_aaaaaaaaaa_" + strings.Repeat("0", 64), "", ""}}
	for i, scope := range key.Scopes() {
		for j, merchant := range []string{"", account, other} {
			for _, valid := range []bool{true, false} {
				k := key.Key{Name: fmt.Sprintf("%s-%d-%t", scope, j, valid), Scope: scope, Merchant: merchant}
				text, err := ring.Create(t.Context(), &k)
				if err == nil && !valid {
					_, err = ring.Revoke(t.Context(), k.ID)
				}
				if err != nil {
					t.Fatal(err)
				}
				has := scope
				if !valid {
					has = ""
				}
				if valid || i == 0 {
					c.keys = append(c.keys, crowdKey{text.Reveal(), merchant, has})
				}
			}
		}
	}
	handler := httpapi.New(httpapi.Options{Inbox: service, Shop: service, Record: service, Backend: service, Verify: event.Verify, Hooks: []httpapi.Hook{
		{Path: platformPath, Secrets: []secret.Text{newSecret}}, {Path: connectPath, Connect: true, Secrets: []secret.Text{connectSecret}}},
		Options: web.Options{Keys: ring, Store: s, Table: tables.RecurringPayments.Name, CursorKey: service.CursorKey(), Now: now, Log: log,
			Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "duesday_up 1") })}})
	spec := spectest.New(t)
	spec.Routes(t, handler.Routes(), false)
	c.handler = spec.Wrap(t, handler)
	return c
}

func (c *crowd) now() time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(c.passed.Load()))
}

func oneOf[T any](c *crowd, all ...T) T { return all[c.random.IntN(len(all))] }

func (c *crowd) chance(percent int) bool { return c.random.IntN(100) < percent }

// text is a value somebody might send: usual, hostile, or made of random bytes.
func (c *crowd) text() string {
	if c.chance(20) && len(c.found) > 0 {
		return oneOf(c, c.found...)
	}
	if c.chance(10) {
		b := make([]byte, c.random.IntN(300))
		for i := range b {
			b[i] = byte(c.random.IntN(256))
		}
		return string(b)
	}
	return oneOf(c, "Canary-7", "a Canary 7", "canary", account, strings.ToUpper(account), other, "acct_other", stripeAccount, "acct_own", "evt_1", "pi_1", "sub_1", "",
		"a", "0", "-1", "1001", "99999999999999999999", "null", "{}", "..", "../..", "%2e%2e", "a/b", "a%00b", "é", "\u202e", "#", "?&=",
		"4242424242424242", "sk_live_x", "9999-12-31", "0001-01-01", "2026-11-21", "2026-11-21T12:00:00Z", "2026-11-21T12:00:00+99:99",
		"invoice.paid", strings.Repeat("9", 5000), "EUR", "eur", "XXX", "KWD", "legacy", "product", "pm_1", "cus_1", "ann@example.com")
}

// path is one of a route, or near it.
func (c *crowd) path() string {
	id := url.PathEscape(c.text())
	return oneOf(c, "/v1/purchases", "/v1/purchases", "/v1/payments", "/v1/events", "/v1/events", "/v1/merchants", "/v1/merchants", "/v1/jobs", "/v1/jobs/"+id+"/retry", "/v1/purchases/"+id,
		"/v1/payments/"+url.PathEscape(c.text())+"/"+id, "/v1/events/"+id, "/v1/"+id, "/v1", "/v1//", "/"+id, "/internal/objects",
		"/internal/"+id, "/metrics", "/healthz", "/readyz", platformPath, connectPath)
}

func (c *crowd) query() string {
	q := url.Values{}
	if c.chance(60) {
		q.Set("merchant", oneOf(c, account, account, other))
	}
	for c.chance(35) {
		name := oneOf(c, "merchant", "idempotency_key", "limit", "cursor", "stripe_account", "subscription", "type", "from", "to", "Account", "x", "canary")
		value := c.text()
		if name == "cursor" && len(c.cursors) > 0 && c.chance(80) {
			value = oneOf(c, c.cursors...)
		}
		if name == "limit" && c.chance(70) {
			value = oneOf(c, "1", "2", "1000")
		}
		q.Add(name, value)
	}
	text := q.Encode()
	if c.chance(3) {
		text += oneOf(c, "&%zz", ";", "&a=%", "&&&", "&=x")
	}
	return text
}

func (c *crowd) order() string {
	kind := oneOf(c, "legacy", "product", "subscription", "split")
	o := map[string]any{"merchant": oneOf(c, account, other), "kind": kind}
	if kind == "legacy" || kind == "product" {
		o["amount"], o["currency"] = 1+c.random.IntN(9999), oneOf(c, "EUR", "usd", "JPY")
	} else {
		o["price"] = oneOf(c, "price_1", "gold21323")
	}
	if kind == "split" {
		o["payments"] = 2
	}
	if kind != "legacy" {
		o["payment_method"], o["email"] = "pm_1", "ann@example.com"
	}
	for c.chance(25) {
		o[oneOf(c, "merchant", "kind", "amount", "currency", "price", "payments", "email", "customer", "name", "description",
			"payment_method", "key", "Tag", "x", "canary")] = oneOf[any](c, c.text(), c.random.Int64(), -1, 1.5, nil, true, []int{1}, o["kind"])
	}
	text, _ := json.Marshal(o)
	for c.chance(10) {
		i := c.random.IntN(len(text))
		text[i] = byte(c.random.IntN(256))
	}
	return string(text)
}

func (c *crowd) event() string {
	text := fmt.Sprintf(`{"id":"evt_%d","object":"event","type":%q,"created":%d,"livemode":%t,"api_version":"2025-03-31.basil",`+
		`"account":%q,"data":{"object":{"id":"sub_%d","object":"subscription","status":"active","created":1,"metadata":{}}}}`,
		c.random.IntN(500), oneOf(c, "customer.subscription.updated", "invoice.paid", "x"), c.now().Unix()-int64(c.random.IntN(1e6)),
		c.chance(5), oneOf(c, stripeAccount, "acct_other", "acct_own"), c.random.IntN(9))
	if c.chance(10) {
		text = text[:c.random.IntN(len(text))]
	}
	return text
}

// request is the next one, as it would come over the wire, and its key; nil if no server would read it.
func (c *crowd) request() (*http.Request, crowdKey) {
	method, path, body := oneOf(c, "GET", "GET", "GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"), c.path(), ""
	if path == "/v1/purchases" && c.chance(60) {
		method = "POST"
	}
	target := path
	if q := c.query(); q != "" && c.chance(80) {
		target += "?" + q
	}
	var h strings.Builder
	add := func(name, value string) { fmt.Fprintf(&h, "%s: %s\r\n", name, strings.Map(printable, value)) }
	who := oneOf(c, c.keys...)
	if who.text != "" {
		add("Authorization", oneOf(c, "Bearer ", "Bearer ", "bearer ")+who.text)
	}
	switch {
	case path == platformPath, path == connectPath:
		method, body = "POST", c.event()
		with := oneOf(c, newSecret, connectSecret)
		if c.chance(90) {
			add("Stripe-Signature", event.Sign([]byte(body), with, c.now()))
		} else {
			add("Stripe-Signature", c.text())
		}
	case method == "POST" || method == "PUT":
		body = c.order()
		if path == "/v1/merchants" && c.chance(80) {
			body = fmt.Sprintf(`{"stripe_account":%q,"id":%q}`, oneOf(c, stripeAccount, "acct_other", "acct_third", "Canary-7"), oneOf(c, account, other, "canary"))
		}
		add("Content-Type", oneOf(c, "application/json", "application/json", "application/json; charset=utf-8", c.text()))
		if c.chance(95) {
			add("Idempotency-Key", oneOf(c, fmt.Sprint("k", c.random.IntN(200)), "k", "", strings.Repeat("k", 256), "sk_live_x"))
		}
	}
	if c.chance(20) {
		add(oneOf(c, "Accept", "Request-Id", "Sec-Fetch-Site", "Content-Encoding", "Origin", "X-Forwarded-For"),
			oneOf(c, "application/x-ndjson", "application/x-ndjson", "cross-site", "gzip", c.text()))
	}
	raw := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\n%s\r\n%s", method, target, len(body), h.String(), body)
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	if err != nil {
		return nil, who
	}
	r.RemoteAddr = "192.0.2.1:1"
	return r.WithContext(c.t.Context()), who
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

// check holds an answer to what every answer keeps.
func (c *crowd) check(r *http.Request, who crowdKey, a *httptest.ResponseRecorder) error {
	text := a.Body.String()
	c.status[a.Code]++
	switch hidden := map[string]string{account: other, other: account}[who.merchant]; {
	case a.Code >= 500:
		return fmt.Errorf("a fault of the server; the log: %s", c.log.last)
	case hidden != "" && a.Code/100 == 2 && strings.HasPrefix(r.URL.Path, "/v1") && strings.Contains(text, hidden):
		return errors.New("it shows another merchant")
	case who.scope == "" && a.Code/100 == 2 && (strings.HasPrefix(r.URL.Path, "/v1") || r.URL.Path == "/metrics"):
		return errors.New("it is answered without a valid key")
	case a.Code == 201 && !who.scope.Includes(key.Charge):
		return errors.New("it sells with too small a scope")
	case strings.HasPrefix(r.URL.Path, "/internal") && a.Code != 404:
		return errors.New("there is something under /internal")
	case who.text != "" && len(who.text) > 10 && strings.Contains(text, who.text):
		return errors.New("the answer has the key")
	case strings.Contains(a.Header().Get("Content-Type"), "ndjson") && !strings.Contains(text[strings.LastIndexByte(text[:max(1, len(text)-1)], '\n')+1:], `{"end":true`):
		return errors.New("the list has no end")
	case a.Header().Get("Content-Type") == "application/json" && !json.Valid(a.Body.Bytes()):
		return errors.New("the answer is no JSON")
	}
	if a.Code/100 != 2 {
		problem(c.t, a.Code, a.Header(), a.Body.Bytes())
		own := a.Header().Get("Request-Id") // the only part of a request that is repeated
		if strings.Contains(strings.ToLower(strings.ReplaceAll(text, own, "")), "canary") {
			return errors.New("the problem repeats a value or a name of the request")
		}
	}
	if parts := strings.Split(r.URL.Path, "/"); a.Code/100 == 2 {
		c.route[r.Method+" "+strings.Join(parts[:min(3, len(parts))], "/")+strings.Repeat("/{id}", max(0, len(parts)-3))]++
	}
	var p page
	if a.Code == 200 && json.Unmarshal(a.Body.Bytes(), &p) == nil {
		if p.Next != "" {
			c.keep(&c.cursors, p.Next)
		}
		if len(p.Data) > 0 && p.Data[0].ID != "" {
			c.keep(&c.found, p.Data[c.random.IntN(len(p.Data))].ID)
		}
	}
	return nil
}

// keep remembers a few texts.
func (c *crowd) keep(list *[]string, text string) {
	if len(*list) < 200 {
		*list = append(*list, text)
	} else {
		(*list)[c.random.IntN(200)] = text
	}
}

// TestRandomRequests: over every route, with keys of every scope and merchant, valid and not, no answer
// is a fault of the server, nothing of another merchant is shown, and the memory stays as it is.
func TestRandomRequests(t *testing.T) {
	n := soaktest.Cases(t, 2_000, 20_000, 1_000_000)
	c := newCrowd(t)
	var early, late runtime.MemStats
	unread := 0
	for i := range n {
		c.passed.Add(int64(time.Millisecond))
		r, who := c.request()
		if r == nil {
			unread++
			continue
		}
		sent := r.Method + " " + r.RequestURI
		a := httptest.NewRecorder()
		c.handler.ServeHTTP(a, r)
		if err := c.check(r, who, a); err != nil {
			t.Fatalf("request %d: %s by %s of %q: %d %.500s: %v", i, sent, who.scope, who.merchant, a.Code, a.Body, err)
		}
		if i == n/2 {
			runtime.GC()
			runtime.ReadMemStats(&early)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&late)
	t.Logf("%d requests, %d that no server reads; statuses %v; heap %d KiB after half, %d KiB at the end", n, unread, c.status,
		early.HeapAlloc>>10, late.HeapAlloc>>10)
	t.Logf("answered: %v", c.route)
	if n >= 1_000_000 && late.HeapAlloc > early.HeapAlloc+8<<20 {
		t.Errorf("the memory grows: %d bytes after half, %d at the end", early.HeapAlloc, late.HeapAlloc)
	}
	if len(c.route) < 10 {
		t.Errorf("%d routes answered: this tries too little", len(c.route))
	}
}
