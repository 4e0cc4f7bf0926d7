package customer_test

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/job"
	"github.com/duesday/duesday/internal/billing/portal"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/customer"
	"github.com/duesday/duesday/internal/history"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/sandbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

// A bank is the sandbox with pages for customers.
type bank struct {
	*sandbox.Sandbox
	links map[string]string // pages for cards, by key
	asked int
	base  string // of the pages
	fails error
}

func (b *bank) MakeCustomer(context.Context, processor.CustomerRequest) (string, error) {
	return "cus_1", nil
}

func (b *bank) Attach(_ context.Context, _ processor.Payer, method string) (processor.Card, error) {
	return processor.Card{Method: method, Brand: "visa", Last4: "4242"}, nil
}

func (b *bank) Card(_ context.Context, _, method string) (processor.Card, error) {
	return processor.Card{Method: method, Brand: "visa", Last4: "4242"}, nil
}

func (b *bank) CardLink(_ context.Context, r processor.LinkRequest) (processor.CardLink, error) {
	b.asked++
	if b.fails != nil {
		return processor.CardLink{}, b.fails
	}
	if b.links[r.Key] == "" {
		b.links[r.Key] = b.base + "/" + r.Account + "/" + r.Subscription + "/" + string(rune('a'+len(b.links)))
	}
	return processor.CardLink{URL: b.links[r.Key]}, nil
}

func (b *bank) Setups(context.Context, processor.ListRequest) iter.Seq2[processor.Setup, error] {
	return func(func(processor.Setup, error) bool) {}
}

func (b *bank) Lookup(ctx context.Context, ref string) (processor.Intent, error) {
	in, err := b.Sandbox.Lookup(ctx, ref)
	if in.State == processor.RequiresAction {
		in.Link = "https://hooks.example/" + in.Tag.Account
	}
	return in, err
}

// A portalWorld is a shop whose customers have the page, with the accounts ada and bob.
type portalWorld struct {
	*testing.T
	now     time.Time
	mem     *memstore.Store
	bank    *bank
	engine  *engine.Engine
	handler http.Handler
	logged  bytes.Buffer
	cookie  *http.Cookie
}

const base = "https://pay.example.com"

func newPortal(t *testing.T, set ...string) *portalWorld {
	t.Helper()
	w := &portalWorld{T: t, now: time.Date(2026, 6, 20, 12, 0, 0, 0, time.UTC)}
	now := func() time.Time { return w.now }
	tables := schema.New(schema.DefaultPrefix)
	box, err := sandbox.Open("", sandbox.Options{Now: now})
	if err == nil {
		w.mem, err = memstore.Open(tables.All(), now)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.bank = &bank{Sandbox: box, links: map[string]string{}, base: "https://checkout.example"}
	log := slog.New(slog.NewTextHandler(&w.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.engine, err = engine.Open(t.Context(), engine.Options{Store: w.mem, Tables: tables, Processor: w.bank, Now: now,
		Config: engine.DefaultConfig(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	w.set(append([]string{"public-url=" + base, "seller=Gym Ltd", "seller-address=Here", "reply-to=help@example.com", "portal=on", "portal-cancel=on",
		"product.gold=Gold membership"}, set...)...)
	w.subscribe("ada", "1", "gold", 1299, "pm_card_visa")
	w.subscribe("bob", "1", "gold", 999, "pm_card_visa")
	w.handler = customer.New(w.engine.Records, w.engine, log)
	return w
}

func (w *portalWorld) set(texts ...string) {
	w.Helper()
	if _, err := settings.Change(w.Context(), w.engine.Records, func(now *settings.Settings) error {
		for _, text := range texts {
			name, value, _ := strings.Cut(text, "=")
			if err := now.Set(name, value); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		w.Fatal(err)
	}
	w.now = w.now.Add(5 * time.Second) // the handler reads them again
}

// subscribe creates a subscription that is due on the 28th, and pays with the account's method.
func (w *portalWorld) subscribe(account, id, sku string, cents int64, method string, change ...func(*billing.NewSubscription)) {
	w.Helper()
	eur, err := money.ParseCurrency("EUR")
	n := billing.NewSubscription{Account: account, Email: account + "@example.com", ID: id, SKU: sku, Amount: money.New(cents, eur), PaymentDay: 28}
	if _, known := w.engine.Account(w.Context(), account); known == nil {
		n.Email = ""
	}
	for _, c := range change {
		c(&n)
	}
	if err == nil {
		_, err = w.engine.CreateSubscription(w.Context(), n)
	}
	if err == nil && method != "" {
		_, err = w.engine.Attach(w.Context(), account, billing.Attachment{Customer: "cus_1", Method: method})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// pay runs the payments of the day.
func (w *portalWorld) pay(day string) {
	w.Helper()
	at, err := time.Parse(time.DateOnly, day)
	if err == nil {
		w.now = at.Add(9 * time.Hour)
		_, err = job.Payments(w.Context(), w.engine, job.Options{Date: civil.Of(at), Workers: 1})
	}
	if err != nil {
		w.Fatal(err)
	}
}

func (w *portalWorld) link(purpose portal.Purpose, account, subscription string) string {
	w.Helper()
	l, err := portal.NewLink(w.Context(), w.engine.Records, portal.Pass{Purpose: purpose, Account: account, Of: subscription}, time.Hour, false)
	if err != nil {
		w.Fatal(err)
	}
	path, ok := strings.CutPrefix(l.URL, base)
	if !ok {
		w.Fatal(l.URL)
	}
	return path
}

// ask sends the request with the world's cookie, as a browser does.
func (w *portalWorld) ask(method, path string, form url.Values, change ...func(*http.Request)) *http.Response {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), method, path, strings.NewReader(form.Encode()))
	r.Host = host
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", base)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if w.cookie != nil && strings.HasPrefix(path, w.cookie.Path) {
		r.AddCookie(w.cookie)
	}
	for _, c := range change {
		c(r)
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return rec.Result()
}

// enter exchanges a link for the cookie.
func (w *portalWorld) enter(account string) {
	w.Helper()
	r := w.ask("POST", w.link(portal.Page, account, ""), nil)
	if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/account" || len(r.Cookies()) != 1 {
		w.Fatalf("%d %v", r.StatusCode, r.Header)
	}
	w.cookie = r.Cookies()[0]
}

// page returns the text of the account's page.
func (w *portalWorld) page() string {
	w.Helper()
	r := w.ask("GET", "/account", nil)
	if r.StatusCode != http.StatusOK {
		w.Fatal(r.StatusCode, w.logged.String())
	}
	return body(w.T, r)
}

var hidden = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`)

// form returns a form with the pass in the page's text, and what the customer has read before its button.
func form(t *testing.T, page string, pairs ...string) url.Values {
	t.Helper()
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	for part := range strings.SplitSeq(page, "<form") {
		fields := url.Values{}
		for _, found := range hidden.FindAllStringSubmatch(part, -1) {
			fields.Set(found[1], found[2])
		}
		if fields.Has("form") {
			v.Set("form", fields.Get("form"))
		}
		if fields.Has("agreed") && fields.Get("subscription") == v.Get("subscription") {
			v.Set("agreed", fields.Get("agreed"))
		}
	}
	if !v.Has("form") {
		t.Fatalf("no form in %s", page)
	}
	return v
}

// items returns everything in the store.
func (w *portalWorld) items() (all []store.Item) {
	w.Helper()
	for _, table := range []string{w.engine.Table, w.engine.Tables.Outbox.Name} {
		for it, err := range w.mem.Scan(w.Context(), store.Scan{Table: table}) {
			if err != nil {
				w.Fatal(err)
			}
			all = append(all, it)
		}
	}
	return all
}

// history returns the account's entries of the kind, the newest first.
func (w *portalWorld) history(account, what string) (found []*history.Entry) {
	w.Helper()
	for e, err := range history.Of(w.Context(), w.engine.Records, account, "", "") {
		if err != nil {
			w.Fatal(err)
		}
		if e.What == what {
			found = append(found, e)
		}
	}
	return found
}

// passes returns what signs the links.
func (w *portalWorld) passes() *portal.Passes {
	w.Helper()
	s, err := settings.Read(w.Context(), w.engine.Records)
	if err != nil {
		w.Fatal(err)
	}
	return portal.NewPasses(&s, w.engine.Opened.LinkKey)
}

// without opens the store with a processor that has no pages.
func (w *portalWorld) without() {
	w.Helper()
	e, err := engine.Open(w.Context(), engine.Options{Store: w.mem, Tables: w.engine.Tables, Processor: w.bank.Sandbox, Now: func() time.Time { return w.now },
		Config: engine.DefaultConfig(), Log: w.engine.Log})
	if err != nil {
		w.Fatal(err)
	}
	w.handler = customer.New(e.Records, e, e.Log)
}

// reprice changes what the account's subscription costs.
func (w *portalWorld) reprice(account string, cents int64) {
	w.Helper()
	eur, err := money.ParseCurrency("EUR")
	if err == nil {
		_, err = w.engine.UpdateSubscription(w.Context(), billing.Name{Account: account, ID: "1", SKU: "gold"}, billing.Change{Amount: new(money.New(cents, eur))})
	}
	if err != nil {
		w.Fatal(err)
	}
}
