package customer_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/document"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/customer"
	"github.com/duesday/duesday/internal/listen"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
	"github.com/duesday/duesday/internal/web"
)

// A shop is a store with one receipt, and the handler of its customers.
type shop struct {
	*testing.T
	records *billing.Records
	store   *counted
	now     time.Time
	receipt *billing.Receipt
	handler *customer.Handler
}

// counted counts the reads, and lets them fail.
type counted struct {
	store.Store
	reads atomic.Int64
	fails error
}

func (c *counted) Get(ctx context.Context, table string, k store.Key) (store.Item, error) {
	if c.reads.Add(1); c.fails != nil {
		return nil, c.fails
	}
	return c.Store.Get(ctx, table, k)
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{T: t, now: time.Date(2026, 6, 28, 12, 0, 0, 0, time.UTC)}
	now := func() time.Time { return s.now }
	tables := schema.New(schema.DefaultPrefix)
	mem, err := memstore.Open(tables.All(), now)
	if err != nil {
		t.Fatal(err)
	}
	s.store = &counted{Store: mem}
	s.records = billing.NewRecords(s.store, tables, now, slog.New(slog.DiscardHandler))
	s.records.Opened.Installation, s.records.Opened.Salt = "INSTALLATION", "salt"
	currency, err := money.ParseCurrency("EUR")
	if err != nil {
		t.Fatal(err)
	}
	a := &billing.Account{ID: "1001", Name: "Jürgen", Locale: "de", TimeZone: "UTC"}
	s.receipt = &billing.Receipt{Name: billing.Name{Account: "1001", ID: "1", SKU: "gold"}, SKU: "gold", Kind: billing.Charged, Processed: s.now,
		Amount: money.New(1299, currency), Charge: "ch_1"}
	if err := mem.Commit(t.Context(), store.Put(s.records.Table, billing.ItemAt(billing.MetaKey)), store.Put(s.records.Table, a.Item()),
		store.Put(s.records.Table, s.receipt.Item())); err != nil {
		t.Fatal(err)
	}
	s.set("public-url=https://pay.example.com", "seller=Gym Ltd", "seller-address=Here")
	s.handler = customer.New(s.records, nil, s.records.Log)
	return s
}

func (s *shop) set(texts ...string) settings.Settings {
	s.Helper()
	now, err := settings.Change(s.Context(), s.records, func(now *settings.Settings) (err error) {
		for _, text := range texts {
			name, value, _ := strings.Cut(text, "=")
			err = errors.Join(err, now.Set(name, value))
		}
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	return now
}

// link returns the path of the receipt's link.
func (s *shop) link() string {
	s.Helper()
	now, err := settings.Read(s.Context(), s.records)
	if err != nil {
		s.Fatal(err)
	}
	l := document.NewLinks(&now, s.records.Opened.Salt).To("1001", s.receipt.Number("INSTALLATION"))
	path, ok := strings.CutPrefix(l, "https://pay.example.com")
	if !ok {
		s.Fatal(l)
	}
	return path
}

func (s *shop) ask(method, host, path string) *http.Response {
	r := httptest.NewRequestWithContext(s.Context(), method, path, nil)
	r.Host = host
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const host = "pay.example.com"

func TestHandler_Receipt(t *testing.T) {
	s := newShop(t)
	r := s.ask("GET", host, s.link())
	if text := body(t, r); r.StatusCode != http.StatusOK || !strings.Contains(text, `lang="de"`) || !strings.Contains(text, "12,99") {
		t.Errorf("%d %s", r.StatusCode, text)
	}
	for name, want := range map[string]string{"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		"X-Robots-Tag": "noindex, nofollow", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": document.Policy()} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if len(r.Header["Set-Cookie"]) > 0 {
		t.Error("a cookie")
	}
}

// TestHandler_TellsNothing: what is not served looks the same, whatever it is and whether it exists.
func TestHandler_TellsNothing(t *testing.T) {
	s := newShop(t)
	link := s.link()
	now, err := settings.Read(t.Context(), s.records)
	if err != nil {
		t.Fatal(err)
	}
	links := document.NewLinks(&now, "salt")
	gone := strings.TrimPrefix(links.To("1001", "20260627-AAAAAAAA-AAAAAAAA"), "https://"+host)
	want := body(t, s.ask("GET", host, "/nothing"))
	for name, c := range map[string]struct{ host, path string }{"root": {host, "/"}, "no token": {host, "/r/"}, "changed": {host, link[:len(link)-2] + "AA"},
		"longer": {host, link + "/x"}, "query": {host, link + "?x=1"}, "another host": {"evil.example", link}, "address": {"127.0.0.1:8083", link}, "no host": {"", link},
		"API": {host, "/v1/accounts"}, "metrics": {host, "/metrics"}, "health": {host, "/healthz"}, "ready": {host, "/readyz"}, "docs": {host, "/docs"},
		"hooks": {host, "/hooks/stripe"}, "gone": {host, gone}, "dots": {host, "/r/../r/" + link[3:]}, "double": {host, "//r/" + link[3:]}} {
		r := s.ask("GET", c.host, c.path)
		if got := body(t, r); r.StatusCode != http.StatusNotFound || got != want {
			t.Errorf("%s: %d %s", name, r.StatusCode, got)
		}
		if r.Header.Get("Content-Security-Policy") != document.Policy() {
			t.Errorf("%s: no policy", name)
		}
	}
}

func TestHandler_Methods(t *testing.T) {
	s := newShop(t)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"} {
		for _, path := range []string{s.link(), "/v1/accounts"} {
			r := s.ask(method, host, path)
			if text := body(t, r); r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != "GET, HEAD" || strings.Contains(text, "12,99") {
				t.Errorf("%s: %d %s", method, r.StatusCode, text)
			}
		}
	}
	if r := s.ask("HEAD", host, s.link()); r.StatusCode != http.StatusOK || r.Header.Get("Content-Length") == "" {
		t.Errorf("HEAD: %d %v", r.StatusCode, r.Header)
	}
}

// TestHandler_Rotation: within seconds of the change, old links lead nowhere, and the new ones work.
func TestHandler_Rotation(t *testing.T) {
	s := newShop(t)
	old := s.link()
	if r := s.ask("GET", host, old); r.StatusCode != http.StatusOK {
		t.Fatal(r.StatusCode)
	}
	s.set("receipt-links=2")
	s.now = s.now.Add(5 * time.Second)
	for path, want := range map[string]int{old: http.StatusNotFound, s.link(): http.StatusOK} {
		if r := s.ask("GET", host, path); r.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, r.StatusCode, want)
		}
	}
	s.set("public-url=")
	s.now = s.now.Add(5 * time.Second)
	if r := s.ask("GET", host, old); r.StatusCode != http.StatusNotFound {
		t.Errorf("without a URL: %d", r.StatusCode)
	}
}

// TestHandler_GuessesCostNothing: forged links do not reach the store.
func TestHandler_GuessesCostNothing(t *testing.T) {
	s := newShop(t)
	s.ask("GET", host, "/")
	was := s.store.reads.Load()
	for range 100 {
		s.ask("GET", host, "/r/"+strings.Repeat("A", 80))
	}
	if got := s.store.reads.Load(); got != was {
		t.Errorf("%d reads", got-was)
	}
}

func TestHandler_StoreFails(t *testing.T) {
	s := newShop(t)
	link := s.link()
	s.store.fails = errors.New("the disk SECRET is full")
	r := s.ask("GET", host, link)
	if text := body(t, r); r.StatusCode != http.StatusServiceUnavailable || strings.Contains(text, "SECRET") || !strings.Contains(text, "try again") {
		t.Errorf("%d %s", r.StatusCode, text)
	}
	s.store.fails = nil
	if r := s.ask("GET", host, link); r.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %d", r.StatusCode)
	}
}

// TestHandler_Language: a notice is in the language of the browser.
func TestHandler_Language(t *testing.T) {
	s := newShop(t)
	for header, want := range map[string]string{"": "en", "de-DE,de;q=0.9": "de", "ko": "ko", "pt,en;q=0.5": "pt", "fr, de": "en", "<script>": "en"} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.Header.Set("Accept-Language", header)
		w := httptest.NewRecorder()
		if s.handler.ServeHTTP(w, r); !strings.Contains(w.Body.String(), `<html lang="`+want+`">`) {
			t.Errorf("%q: %s", header, w.Body)
		}
	}
}

// TestHandler_OwnSlots: customers who hold all of their listener's slots leave another listener's free.
func TestHandler_OwnSlots(t *testing.T) {
	s := newShop(t)
	link := s.link()
	begun, answer := make(chan struct{}), make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	var ends []chan error
	var at []string
	for _, h := range []http.Handler{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-answer
		s.handler.ServeHTTP(w, r)
	}), s.handler} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, l.Addr().String())
		end := make(chan error, 1)
		ends = append(ends, end)
		go func() { end <- web.Serve(ctx, l, h, listen.Limits{Connections: 2}, slog.New(slog.DiscardHandler)) }()
	}
	get := func(address string) int {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+address+link, nil)
		if err != nil {
			t.Error(err)
			return 0
		}
		r.Host = host
		answered, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer answered.Body.Close()
		return answered.StatusCode
	}
	held := make(chan int, 1)
	go func() { held <- get(at[0]) }() // the only slot
	<-begun
	if got := get(at[1]); got != http.StatusOK {
		t.Errorf("the other listener: %d", got)
	}
	close(answer)
	if got := <-held; got != http.StatusOK {
		t.Errorf("held: %d", got)
	}
	stop()
	for _, end := range ends {
		if err := <-end; err != nil {
			t.Error(err)
		}
	}
}
