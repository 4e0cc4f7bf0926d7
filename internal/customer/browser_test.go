package customer_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/portal"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/test/browsertest"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// TestBrowser_Customer: in Chromium, a customer opens the link, reads the page in a window and on a phone,
// light and dark, cancels, and comes to the processor's page for a new card. The page's policy stops none of it.
func TestBrowser_Customer(t *testing.T) {
	soaktest.Long(t)
	w := newPortal(t)
	came := make(chan string, 10) // what the bank learns of where its customers come from
	bank := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprint(rw, "<!DOCTYPE html><html lang=en><title>Bank</title>")
		if strings.HasPrefix(r.URL.Path, "/ada/") {
			came <- r.Referer()
		}
	}))
	defer bank.Close()
	site := httptest.NewServer(w.handler)
	defer site.Close()
	w.bank.base = bank.URL
	w.set("public-url="+site.URL, "product.gold="+strings.Repeat("W", 150))
	w.put("ada", schema.Name, strings.Repeat("W", 200))
	w.subscribe("ada", "2", "own", 500, "", func(n *billing.NewSubscription) { n.Method = "pm_card_visa" })
	w.pay("2026-06-28")
	b := browsertest.New(t, site.URL, false)
	link := func(purpose portal.Purpose) string {
		l, err := portal.NewLink(t.Context(), w.engine.Records, portal.Pass{Purpose: purpose, Account: "ada"}, portal.Hour, false)
		w.must(err)
		return strings.TrimPrefix(l.URL, site.URL)
	}
	inspect := func(path string) {
		wrong := append(b.Troubles(), b.Unreached()...)
		for _, look := range []struct{ dark, phone bool }{{false, false}, {true, true}} {
			b.Look(look.dark, look.phone)
			wrong = append(append(wrong, b.Barriers()...), b.Overflow())
		}
		if text := strings.TrimSpace(strings.Join(wrong, "\n")); text != "" {
			t.Errorf("%s: %s", path, text)
		}
	}
	b.Visit(link(portal.Page))
	inspect("link")
	b.Open("button")
	if b.Path() != "/account" || b.Status() != http.StatusOK {
		t.Fatal(b.Path(), b.Status())
	}
	inspect("/account")
	b.Click("summary")
	b.Type("input[name=reason]", `too "dear"`)
	b.Open("button.danger")
	if text := b.Text("main"); b.Path() != "/account" || !strings.Contains(text, "Ends on 28 July 2026") {
		t.Error(b.Path(), text)
	}
	if e := w.history("ada", "subscription.updated"); len(e) == 0 || e[0].Reason != `too "dear"` {
		t.Errorf("%+v", e)
	}
	for _, open := range []func(){func() { b.Click("details summary"); b.Open("details button") }, func() { b.Visit(link(portal.Card)); inspect("card"); b.Open("button") }} {
		b.Visit("/account")
		b.Troubles()
		open()
		if wrong := strings.Join(b.Troubles(), "\n"); strings.Contains(wrong, "Content Security Policy") {
			t.Fatal(wrong)
		}
		if from := <-came; from != "" && from != site.URL+"/" {
			t.Errorf("the bank learns %s", from)
		}
	}
	if n := len(w.history("ada", "consent.given")); n != 1 {
		t.Errorf("%d consents", n)
	}
}
