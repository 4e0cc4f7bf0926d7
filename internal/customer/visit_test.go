package customer_test

import (
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/meta"
	"github.com/duesday/duesday/internal/billing/portal"
	"github.com/duesday/duesday/internal/billing/recipient"
	"github.com/duesday/duesday/internal/billing/refund"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/customer"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/store"
)

// TestVisit: a link shows a button, its POST gives a cookie and redirects, and the page shows what is paid.
func TestVisit(t *testing.T) {
	w := newPortal(t)
	w.pay("2026-06-28")
	link := w.link(portal.Page, "ada", "")
	r := w.ask("GET", link, nil)
	text := body(t, r)
	if r.StatusCode != http.StatusOK || !strings.Contains(text, `<form method="post">`) || strings.Contains(text, "Gold") || len(r.Cookies()) > 0 {
		t.Errorf("%d %s", r.StatusCode, text)
	}
	w.enter("ada")
	c := w.cookie
	if c.SameSite != http.SameSiteLaxMode || c.MaxAge != 1800 || c.Path != "/account" || !c.HttpOnly || !c.Secure || c.Domain != "" {
		t.Errorf("%+v", c)
	}
	page := w.page()
	for _, want := range []string{"Gym Ltd", "Gold membership", "€12.99 · 28 July 2026", "every month", "Active", "28 June 2026", `<a href="` + base + `/r/`, "help@example.com"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in %s", want, page)
		}
	}
	if strings.Contains(page, "9.99 ·") || strings.Contains(page, "bob") || strings.Contains(page, "<script") || strings.Contains(page, " style=") {
		t.Error(page)
	}
	for _, p := range []*http.Response{r, w.ask("GET", "/account", nil)} {
		for name, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "strict-origin", "X-Robots-Tag": "noindex, nofollow",
			"X-Content-Type-Options": "nosniff"} {
			if got := p.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if got := p.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'; style-src 'sha256-") ||
			!strings.Contains(got, "frame-ancestors 'none'") || strings.Contains(got, "unsafe") {
			t.Errorf("policy: %s", got)
		}
	}
}

// TestVisit_GETChangesNothing: mail scanners follow every link, and ask for every address that they find.
func TestVisit_GETChangesNothing(t *testing.T) {
	w := newPortal(t)
	links := []string{w.link(portal.Page, "ada", ""), w.link(portal.Card, "ada", ""), w.link(portal.Card, "ada", "1")}
	w.enter("ada")
	was, asked := w.items(), w.bank.asked
	for _, path := range append(links, "/account", "/account/card", "/account/cancel", "/account/authenticate") {
		for _, method := range []string{"GET", "HEAD"} {
			if r := w.ask(method, path, url.Values{"subscription": {"1"}}); len(r.Cookies()) > 0 {
				t.Errorf("%s %s sets a cookie", method, path)
			}
		}
	}
	if got := w.items(); !reflect.DeepEqual(got, was) || w.bank.asked != asked {
		t.Errorf("%d items, %d requests to the processor", len(got)-len(was), w.bank.asked-asked)
	}
	if len(w.history("ada", "consent.given")) > 0 {
		t.Error("a consent")
	}
}

// TestVisit_Refused: whatever is refused looks like an unknown receipt, for GET and for POST.
func TestVisit_Refused(t *testing.T) {
	for name, spoil := range map[string]func(w *portalWorld, link string) string{
		"unknown account": func(w *portalWorld, _ string) string {
			p := w.passes()
			return portal.Path + p.Token(portal.Pass{Purpose: portal.Page, Account: "nobody", Expires: w.now.Add(time.Hour)})
		},
		"receipt's token": func(w *portalWorld, _ string) string { return portal.Path + strings.Repeat("A", 80) },
		"no token":        func(*portalWorld, string) string { return portal.Path },
		"longer":          func(_ *portalWorld, link string) string { return link + "A" },
		"query":           func(_ *portalWorld, link string) string { return link + "?utm=1" },
		"session as link": func(w *portalWorld, _ string) string { w.enter("ada"); return portal.Path + w.cookie.Value },
		"form as link": func(w *portalWorld, _ string) string {
			w.enter("ada")
			return portal.Path + form(w.T, w.page()).Get("form")
		},
		"revoked": func(w *portalWorld, link string) string {
			w.revoke("ada")
			return link
		},
		"off": func(w *portalWorld, link string) string { w.set("portal=off"); return link },
		"off, expired": func(w *portalWorld, link string) string {
			w.set("portal=off")
			w.now = w.now.Add(2 * time.Hour)
			return link
		},
		"revoked, expired": func(w *portalWorld, link string) string {
			w.revoke("ada")
			w.now = w.now.Add(2 * time.Hour)
			return link
		},
		"erased":   func(w *portalWorld, link string) string { w.erase("ada"); return link },
		"restored": func(w *portalWorld, link string) string { w.restore(); return link },
	} {
		t.Run(name, func(t *testing.T) {
			w := newPortal(t)
			want := body(t, w.ask("GET", "/r/nothing", nil))
			path := spoil(w, w.link(portal.Page, "ada", ""))
			for _, method := range []string{"GET", "POST"} {
				r := w.ask(method, path, nil)
				if got := body(t, r); r.StatusCode != http.StatusNotFound || got != want || len(r.Cookies()) > 0 {
					t.Errorf("%s: %d %s", method, r.StatusCode, got)
				}
			}
		})
	}
	w := newPortal(t)
	link := w.link(portal.Page, "ada", "")
	for _, other := range []string{"evil.example", "127.0.0.1:8083", ""} {
		if r := w.ask("POST", link, nil, func(r *http.Request) { r.Host = other }); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", other, r.StatusCode)
		}
	}
}

// TestVisit_Altered: no change of a link, at any of its bytes, opens anything.
func TestVisit_Altered(t *testing.T) {
	w := newPortal(t)
	link := w.link(portal.Page, "ada", "")
	for i := len(portal.Path); i < len(link); i++ {
		for _, c := range []byte("A_b7.=") {
			altered := link[:i] + string(c) + link[i+1:]
			if altered == link {
				continue
			}
			if got := w.ask("POST", altered, nil); got.StatusCode != http.StatusNotFound {
				t.Fatalf("byte %d: %d", i, got.StatusCode)
			}
		}
	}
	if r := w.ask("POST", link, nil); r.StatusCode != http.StatusSeeOther {
		t.Errorf("unaltered: %d", r.StatusCode)
	}
}

// TestVisit_Expiry is exact, for links and for sessions. An expired link says where to ask for another.
func TestVisit_Expiry(t *testing.T) {
	w := newPortal(t)
	link := w.link(portal.Page, "ada", "")
	made := w.now
	w.now = made.Add(time.Hour - time.Millisecond)
	w.enter("ada")
	entered := w.now
	if r := w.ask("POST", link, nil); r.StatusCode != http.StatusSeeOther {
		t.Errorf("in the last millisecond: %d", r.StatusCode)
	}
	w.now = made.Add(time.Hour)
	for _, method := range []string{"GET", "POST"} {
		r := w.ask(method, link, nil)
		if text := body(t, r); r.StatusCode != http.StatusGone || !strings.Contains(text, "expired") || !strings.Contains(text, "help@example.com") || len(r.Cookies()) > 0 {
			t.Errorf("%s after the hour: %d %s", method, r.StatusCode, text)
		}
	}
	w.now = entered.Add(30*time.Minute - time.Millisecond)
	page := w.page()
	w.now = entered.Add(30 * time.Minute)
	if r := w.ask("GET", "/account", nil); r.StatusCode != http.StatusGone {
		t.Errorf("after 30 minutes: %d", r.StatusCode)
	}
	if r := w.ask("POST", "/account/cancel", form(t, page, "subscription", "1")); r.StatusCode != http.StatusGone {
		t.Errorf("a form after 30 minutes: %d", r.StatusCode)
	}
}

// TestVisit_Ends: revoking an account's links, a restore and the setting also end the sessions.
func TestVisit_Ends(t *testing.T) {
	for name, end := range map[string]func(*portalWorld){"revoked": func(w *portalWorld) { w.revoke("ada") },
		"restored": (*portalWorld).restore, "off": func(w *portalWorld) { w.set("portal=off") }, "erased": func(w *portalWorld) { w.erase("ada") }} {
		w := newPortal(t)
		w.enter("ada")
		page := w.page()
		end(w)
		if r := w.ask("GET", "/account", nil); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", name, r.StatusCode)
		}
		if r := w.ask("POST", "/account/cancel", form(t, page, "subscription", "1")); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: POST %d", name, r.StatusCode)
		}
	}
	w := newPortal(t)
	w.revoke("bob")
	w.enter("ada") // another account's
	w.revoke("ada")
	w.enter("ada") // with a new link
}

// TestVisit_Forms: a form counts with its own account's cookie, sent by the page itself.
func TestVisit_Forms(t *testing.T) {
	w := newPortal(t)
	w.enter("bob")
	ofBob := form(t, w.page(), "subscription", "1")
	w.enter("ada")
	mine := form(t, w.page(), "subscription", "1")
	for name, c := range map[string]struct {
		form   url.Values
		change func(*http.Request)
	}{"of another account": {form: ofBob}, "no form": {form: url.Values{"subscription": {"1"}}}, "made up": {form: url.Values{"form": {"AAAA"}, "subscription": {"1"}}},
		"cross-site":     {mine, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }},
		"other origin":   {mine, func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "https://evil.example") }},
		"too large":      {form: url.Values{"form": mine["form"], "reason": {strings.Repeat("x", 1<<15)}}},
		"cookie as form": {form: url.Values{"form": {w.cookie.Value}, "subscription": {"1"}}}} {
		change := c.change
		if change == nil {
			change = func(*http.Request) {}
		}
		for _, path := range []string{"/account/cancel", "/account/card", "/account/authenticate"} {
			if r := w.ask("POST", path, c.form, change); r.StatusCode != http.StatusForbidden {
				t.Errorf("%s: %s %d", name, path, r.StatusCode)
			}
		}
	}
	for _, s := range []string{"", "2", "1/2", "#", strings.Repeat("x", 1000)} {
		v := url.Values{"form": mine["form"], "subscription": {s}}
		if r := w.ask("POST", "/account/cancel", v); r.StatusCode != http.StatusNotFound {
			t.Errorf("subscription %.10q: %d", s, r.StatusCode)
		}
	}
	for _, path := range []string{"/account", "/account/", "/account/x", "/account/card/x", "/account/cancel"} {
		method := "POST"
		if path == "/account/cancel" {
			method = "GET"
		}
		if r := w.ask(method, path, mine); r.StatusCode != http.StatusNotFound && r.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: %d", method, path, r.StatusCode)
		}
	}
	w.unchanged("ada")
	w.unchanged("bob")
}

// TestVisit_Cancel ends the subscription with its period, once, and keeps the reason.
func TestVisit_Cancel(t *testing.T) {
	w := newPortal(t)
	w.enter("ada")
	page := w.page()
	if !strings.Contains(page, "ends on 28 June 2026") {
		t.Error(page)
	}
	f := form(t, page, "subscription", "1", "reason", "too\x00 dear \u202e 4242 4242 4242 4242 "+strings.Repeat("x", 300))
	for range 2 { // a double click
		if r := w.ask("POST", "/account/cancel", f); r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/account" {
			t.Fatalf("%d %v", r.StatusCode, r.Header)
		}
	}
	s, err := w.engine.Subscription(t.Context(), billing.Name{Account: "ada", ID: "1"})
	if err != nil || !s.CancelAtEnd {
		t.Fatal(s, err)
	}
	changes := w.history("ada", "subscription.updated")
	if len(changes) != 1 || changes[0].Actor != "customer" || !strings.HasPrefix(changes[0].Reason, "too dear ") || strings.Contains(changes[0].Reason, "4242 4242 4242") ||
		len([]rune(changes[0].Reason)) > 201 {
		t.Fatalf("%+v", changes)
	}
	if page := w.page(); !strings.Contains(page, "Ends on 28 June 2026") || strings.Contains(page, "/account/cancel") {
		t.Error(page)
	}
	w.pay("2026-06-28")
	if s, err := w.engine.Subscription(t.Context(), s.Name); err != nil || s.Status != billing.CanceledSub {
		t.Error(s.Status, err)
	}
}

// TestVisit_MayNotCancel: the shop decides.
func TestVisit_MayNotCancel(t *testing.T) {
	w := newPortal(t, "portal-cancel=off")
	w.enter("ada")
	page := w.page()
	if strings.Contains(page, "Cancel") {
		t.Error(page)
	}
	if r := w.ask("POST", "/account/cancel", form(t, page, "subscription", "1")); r.StatusCode != http.StatusNotFound {
		t.Error(r.StatusCode)
	}
	w.unchanged("ada")
}

// TestVisit_Card: a new card makes one page at the processor and one consent for each form, with time and amount.
func TestVisit_Card(t *testing.T) {
	w := newPortal(t)
	w.subscribe("ada", "2", "own", 500, "", func(n *billing.NewSubscription) { n.Method = "pm_card_visa" })
	w.enter("ada")
	page := w.page()
	if !strings.Contains(page, "Gold membership: €12.99 every month, next on 28 June 2026") {
		t.Error(page)
	}
	for _, c := range []struct{ subscription, amount string }{{"", "12.99"}, {"2", "5.00"}} {
		f := form(t, page, "subscription", c.subscription)
		var to []string
		for range 2 {
			r := w.ask("POST", "/account/card", f)
			if r.StatusCode != http.StatusSeeOther {
				t.Fatal(r.StatusCode, body(t, r))
			}
			to = append(to, r.Header.Get("Location"))
		}
		if to[0] != to[1] || !strings.HasPrefix(to[0], "https://checkout.example/ada/"+c.subscription) {
			t.Error(to)
		}
		given := w.history("ada", "consent.given")
		if e := given[0]; len(given) == 0 || !e.At.Equal(w.now) || e.Actor != "customer" || e.Currency != "EUR" || e.Changes[0].Name != "amount" || e.Changes[0].After != c.amount {
			t.Errorf("%+v", given)
		}
		w.now = w.now.Add(time.Second)
	}
	if given := w.history("ada", "consent.given"); len(given) != 2 {
		t.Errorf("%d consents", len(given))
	}
	w.now = w.now.AddDate(3, 0, 0) // the history is kept for two years
	if given := w.history("ada", "consent.given"); len(given) != 2 {
		t.Errorf("after three years: %d consents", len(given))
	}
	if audit, err := w.engine.Verify(t.Context()); err != nil || !audit.OK {
		t.Errorf("%+v, %v", audit, err)
	}
}

// TestVisit_CardAgreed: a consent is to what the page showed, so after another price the page shows it first.
func TestVisit_CardAgreed(t *testing.T) {
	w := newPortal(t)
	w.enter("ada")
	link := w.link(portal.Card, "ada", "")
	forms := map[string]url.Values{"/account/card": form(t, w.page()), link: form(t, body(t, w.ask("GET", link, nil)))}
	w.reprice("ada", 1399)
	for path, f := range forms {
		r := w.ask("POST", path, f)
		if to := r.Header.Get("Location"); r.StatusCode != http.StatusSeeOther || to != "/account" && to != link || w.bank.asked > 0 {
			t.Errorf("%s: %d %s", path, r.StatusCode, to)
		}
	}
	if given := w.history("ada", "consent.given"); len(given) > 0 {
		t.Errorf("%+v", given)
	}
	w.ask("POST", "/account/card", form(t, w.page()))
	if given := w.history("ada", "consent.given"); len(given) != 1 || given[0].Changes[0].After != "13.99" {
		t.Errorf("%+v", given)
	}
}

// TestVisit_CardLink: the link in mail makes the processor's page only when it is used, days later.
func TestVisit_CardLink(t *testing.T) {
	w := newPortal(t)
	l, err := portal.NewLink(t.Context(), w.engine.Records, portal.Pass{Purpose: portal.Card, Account: "ada", Of: "1"}, 7*24*time.Hour, false)
	if err != nil {
		t.Fatal(err)
	}
	link := strings.TrimPrefix(l.URL, base)
	w.now = w.now.Add(7*24*time.Hour - time.Millisecond)
	r := w.ask("GET", link, nil)
	page := body(t, r)
	if w.bank.asked > 0 || !strings.Contains(page, "Gold membership: €12.99 every month") || strings.Contains(page, "Receipts") {
		t.Error(w.bank.asked, page)
	}
	for range 2 {
		r = w.ask("POST", link, form(t, page))
		if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "https://checkout.example/ada/1/a" || len(r.Cookies()) > 0 {
			t.Fatal(r.StatusCode, r.Header)
		}
	}
	if given := w.history("ada", "consent.given"); len(given) != 1 || given[0].Subscription != "1" {
		t.Errorf("%+v", given)
	}
	if r := w.ask("POST", link, nil); r.StatusCode != http.StatusForbidden {
		t.Errorf("without the form: %d", r.StatusCode)
	}
}

// TestVisit_Mail: with portal-mail=on, the links in mail lead to the page for link-days. Without it, a new card has the processor's own page.
func TestVisit_Mail(t *testing.T) {
	w := newPortal(t)
	mails := &recipient.Directory{Cards: w.engine.Cards()}
	e := outbox.Effect{Kind: outbox.KindDeclined, Data: map[string]string{outbox.DataAccount: "ada", outbox.DataSubscription: "1", outbox.DataSKU: "gold"}}
	if page, err := mails.PageLink(t.Context(), e); page != "" || err != nil {
		t.Error(page, err)
	}
	if l, err := mails.Link(t.Context(), e); err != nil || !strings.HasPrefix(l.URL, "https://checkout.example/") {
		t.Error(l, err)
	}
	w.set("portal-mail=on", "link-days=3")
	asked := w.bank.asked
	l, err := mails.Link(t.Context(), e)
	page, perr := mails.PageLink(t.Context(), e)
	if err != nil || perr != nil || w.bank.asked != asked || !l.Expires.Equal(w.now.Add(72*time.Hour)) {
		t.Fatal(l, page, err, perr)
	}
	w.now = w.now.Add(72*time.Hour - time.Millisecond)
	for link, want := range map[string]string{l.URL: "Gold membership: ", page: "Open the page"} {
		if text := body(t, w.ask("GET", strings.TrimPrefix(link, base), nil)); !strings.Contains(text, want) {
			t.Errorf("%s: %s", link, text)
		}
	}
	for name, change := range map[string]func(){"an operator's": func() { e.Data = map[string]string{} }, "unknown account": func() { e.Data[outbox.DataAccount] = "nobody" },
		"erased": func() { w.erase("ada"); e.Data[outbox.DataAccount] = "ada" }} {
		change()
		if page, err := mails.PageLink(t.Context(), e); page != "" || err != nil {
			t.Error(name, page, err)
		}
	}
}

// TestVisit_ProcessorFails: the customer reads a notice, and the same form works later.
func TestVisit_ProcessorFails(t *testing.T) {
	w := newPortal(t)
	w.enter("ada")
	f := form(t, w.page())
	for err, want := range map[error]int{processor.ErrNotExecuted: http.StatusServiceUnavailable, processor.ErrInvalid: http.StatusConflict} {
		w.bank.fails = err
		if r := w.ask("POST", "/account/card", f); r.StatusCode != want {
			t.Errorf("%v: %d", err, r.StatusCode)
		}
	}
	w.bank.fails = nil
	if r := w.ask("POST", "/account/card", f); r.StatusCode != http.StatusSeeOther {
		t.Errorf("later: %d", r.StatusCode)
	}
	if given := w.history("ada", "consent.given"); len(given) != 1 {
		t.Errorf("%d consents", len(given))
	}
}

// TestVisit_Authenticate leads to the bank's page while the payment waits.
func TestVisit_Authenticate(t *testing.T) {
	w := newPortal(t)
	w.subscribe("eve", "1", "gold", 777, "pm_card_authenticationRequired")
	w.pay("2026-06-28")
	w.enter("eve")
	page := w.page()
	if !strings.Contains(page, "confirm the payment of €7.77") {
		t.Error(page)
	}
	f := form(t, page, "subscription", "1")
	if r := w.ask("POST", "/account/authenticate", f); r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "https://hooks.example/eve" {
		t.Error(r.StatusCode, r.Header)
	}
	w.enter("ada")
	if page = w.page(); strings.Contains(page, "/account/authenticate") {
		t.Error(page)
	}
	if r := w.ask("POST", "/account/authenticate", form(t, page, "subscription", "1")); r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/account" {
		t.Error(r.StatusCode, r.Header)
	}
}

// TestVisit_LogsNoToken: neither links, cookies nor the processor's pages are in the log, whatever fails.
func TestVisit_LogsNoToken(t *testing.T) {
	for _, planted := range []bool{false, true} {
		w := newPortal(t)
		secrets := []string{w.link(portal.Page, "ada", ""), w.link(portal.Card, "ada", "")}
		if inner := w.handler; planted {
			w.handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				w.engine.Log.Info("a request", "path", r.URL.Path)
				inner.ServeHTTP(rw, r)
			})
		}
		for _, link := range secrets {
			w.ask("GET", link, nil)
			w.ask("POST", link+"x", nil)
		}
		w.enter("ada")
		secrets = append(secrets, w.cookie.Value)
		f := form(t, w.page(), "subscription", "1")
		for _, w.bank.fails = range []error{nil, processor.ErrNotExecuted, errors.New("odd"), billing.ErrState} {
			for _, path := range []string{"/account/card", "/account/authenticate", "/account/cancel", secrets[1]} {
				r := w.ask("POST", path, f)
				secrets = append(secrets, strings.TrimPrefix(r.Header.Get("Location"), "/account"))
			}
		}
		secrets = append(secrets, f.Get("form"))
		found := false
		for _, s := range secrets {
			found = found || s != "" && strings.Contains(w.logged.String(), strings.TrimPrefix(s, portal.Path))
		}
		if found != planted {
			t.Errorf("planted %v, found %v: %s", planted, found, &w.logged)
		}
	}
}

func (w *portalWorld) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *portalWorld) unchanged(account string) {
	w.Helper()
	s, err := w.engine.Subscription(w.Context(), billing.Name{Account: account, ID: "1"})
	if err != nil || s.CancelAtEnd || len(w.bank.links) > 0 || len(w.history(account, "consent.given")) > 0 {
		w.Errorf("%s: %+v, %v", account, s, err)
	}
}

func (w *portalWorld) restore() {
	w.Helper()
	w.must(meta.Restored(w.Context(), w.engine.Records, w.now, "backup", ""))
	var err error
	w.engine.Opened, err = w.engine.Meta(w.Context())
	w.must(err)
	w.handler = customer.New(w.engine.Records, w.engine, w.engine.Log)
}

// erase marks the account as package person does.
func (w *portalWorld) erase(account string) {
	w.Helper()
	set := store.NewItem(store.Attribute{Name: "ErasedDate", Value: store.S(civil.Of(w.now).String())})
	w.must(w.mem.Commit(w.Context(), store.Update(w.engine.Table, billing.AccountKey(account), set, nil)))
}

func (w *portalWorld) revoke(account string) {
	w.Helper()
	_, err := portal.NewLink(w.Context(), w.engine.Records, portal.Pass{Purpose: portal.Page, Account: account}, portal.Hour, true)
	w.must(err)
}

// TestVisit_Refunded: a receipt says what was refunded of it, all refunds together, and the others do not.
func TestVisit_Refunded(t *testing.T) {
	w := newPortal(t)
	w.pay("2026-06-28")
	w.pay("2026-07-28")
	w.enter("ada")
	if page := w.page(); strings.Contains(page, "refunded") {
		t.Errorf("nothing was refunded: %s", page)
	}
	for _, cents := range []int64{500, 49} {
		eur, err := money.ParseCurrency("EUR")
		w.must(err)
		_, _, err = w.engine.Refunds().Refund(w.Context(), refund.Order{Name: billing.Name{Account: "ada", ID: "1", SKU: "gold"}, Period: 0, Amount: money.New(cents, eur)})
		w.must(err)
	}
	if page := w.page(); strings.Count(page, "refunded") != 1 || !strings.Contains(page, `<bdi>€12.99</bdi><br><bdi class="small">€5.49 refunded</bdi>`) {
		t.Errorf("€5.49 was refunded of one payment: %s", page)
	}
}

// TestVisit_Methods: a path that takes a form says so to requests with other methods.
func TestVisit_Methods(t *testing.T) {
	w := newPortal(t)
	for path, want := range map[string]string{w.link(portal.Page, "ada", ""): "GET, HEAD, POST", "/account/cancel": "GET, HEAD, POST", "/account": "GET, HEAD", "/r/x": "GET, HEAD"} {
		if r := w.ask("PUT", path, nil); r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != want {
			t.Errorf("PUT %s: %d, Allow: %s", path, r.StatusCode, r.Header.Get("Allow"))
		}
	}
}
