package customer_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/portal"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/locale"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// tags are the tags and attributes of a page.
var tags = regexp.MustCompile(`<[^>]*>`)

// TestVisit_Hostile: no name, product, seller or reason adds a tag to a page, reverses its text, or makes it long.
func TestVisit_Hostile(t *testing.T) {
	tame := newPortal(t)
	tame.pay("2026-06-28")
	tame.enter("ada")
	want := len(tags.FindAllString(tame.page(), -1))
	for _, text := range []string{`"><script>alert(1)</script>`, `'><img src=x onerror=alert(1)>`, "{{.Pass}}", "\u202egnp.exe\u2066", "</title></style><script>", "a\r\nSet-Cookie: x=1",
		strings.Repeat("x", 10_000), strings.Repeat("\u0301", 10_000), "\xff\xfe", "{seller}{amount}"} {
		w := newPortal(t, "seller="+clip(text, 300), "product.gold="+clip(text, 150))
		w.put("ada", schema.Name, strings.ToValidUTF8(text, "\uFFFD"))
		w.pay("2026-06-28")
		w.enter("ada")
		page := w.page()
		if got := len(tags.FindAllString(page, -1)); got < want || got > want+4 || strings.Contains(page, "<script") || strings.Contains(page, "<img") { // the name has four
			t.Errorf("%.40q: %d tags, want %d: %s", text, got, want, page)
		}
		if strings.ContainsAny(page, "\u202e\u2066") || len(page) > 20_000 {
			t.Errorf("%.40q: %d bytes", text, len(page))
		}
		for _, path := range []string{w.link(portal.Page, "ada", ""), w.link(portal.Card, "ada", "")} {
			if text := body(t, w.ask("GET", path, nil)); strings.Contains(text, "<script") || strings.Contains(text, "<img") || strings.ContainsAny(text, "\u202e\u2066") {
				t.Error(text)
			}
		}
		r := w.ask("POST", "/account/cancel", form(t, page, "subscription", "1", "reason", text))
		if r.StatusCode == http.StatusForbidden && len(url.QueryEscape(text)) > 16<<10 {
			continue // the form is too large
		}
		if r.StatusCode != http.StatusSeeOther || len(r.Header["Set-Cookie"]) > 0 {
			t.Errorf("%.40q: %d %v", text, r.StatusCode, r.Header)
		}
		if e := w.history("ada", "subscription.updated"); len(e) != 1 || len([]rune(e[0].Reason)) > 201 || strings.ContainsAny(e[0].Reason, "\r\n\u202e") {
			t.Errorf("%.40q: %+v", text, e)
		}
	}
}

// clip returns what a setting may contain of the text.
func clip(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == '\uFFFD' {
			return -1
		}
		return r
	}, text)
	return "x" + strings.ToValidUTF8(text[:min(len(text), most)], "")
}

func (w *portalWorld) put(account, attribute, text string) {
	w.Helper()
	w.must(w.mem.Commit(w.Context(), store.Update(w.engine.Table, billing.AccountKey(account), store.NewItem(store.Attribute{Name: attribute, Value: store.S(text)}), nil)))
}

// TestWords: each language has all words, with the same values in them.
func TestWords(t *testing.T) {
	values := regexp.MustCompile(`\{\w+\}`)
	read := func(language string) (words map[string]string) {
		text, err := os.ReadFile("words/" + language + ".json")
		if err == nil {
			err = json.Unmarshal(text, &words)
		}
		if err != nil {
			t.Fatal(err)
		}
		return words
	}
	en := read("en")
	for _, language := range locale.Languages() {
		words := read(language)
		if got, want := slices.Sorted(maps.Keys(words)), slices.Sorted(maps.Keys(en)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", language, got, want)
		}
		for key, text := range words {
			got, want := values.FindAllString(text, -1), values.FindAllString(en[key], -1)
			if slices.Sort(got); text == "" || !slices.Equal(got, slices.Sorted(slices.Values(want))) {
				t.Errorf("%s %s: %s", language, key, text)
			}
		}
	}
	var source strings.Builder
	for _, name := range []string{"page.go", "subscription.go", "visit.go", "page.html"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source.WriteString(string(text))
	}
	for _, s := range []billing.Status{billing.Active, billing.Paused, billing.PastDue, billing.ParkedState, billing.CanceledSub, billing.Completed} {
		source.WriteString(`"` + string(s) + `"`)
	}
	for key := range en {
		if !strings.Contains(source.String(), `"`+key+`"`) && !strings.Contains(source.String(), `"`+strings.TrimSuffix(key, "_text")+`"`) && !strings.HasPrefix(key, "every_") {
			t.Errorf("nothing says %s", key)
		}
	}
}

// TestVisit_Languages: the page is in the account's language, and complete in each one.
func TestVisit_Languages(t *testing.T) {
	for _, language := range locale.Languages() {
		w := newPortal(t)
		w.put("ada", schema.Locale, language)
		w.enter("ada")
		page := w.page()
		if !strings.Contains(page, `<html lang="`+language+`">`) || strings.ContainsAny(page, "{}") && strings.ContainsAny(page[strings.Index(page, "</style>"):], "{}") ||
			strings.Contains(page, "><bdi></bdi>") || strings.Contains(page, "<h1></h1>") {
			t.Error(page)
		}
	}
}

// TestVisit_States: the page says what is paid and when, in every state of a subscription.
func TestVisit_States(t *testing.T) {
	quarter := civil.Interval{N: 3, Unit: civil.Month}
	percent, err := price.ParsePercent("10")
	vat, err2 := price.ParsePercent("19")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	for name, c := range map[string]struct {
		method string
		make   func(*billing.NewSubscription)
		do     func(w *portalWorld, n billing.Name) error
		want   []string
		lacks  string
	}{
		"several": {"pm_card_visa", func(n *billing.NewSubscription) {
			n.Interval, n.Terms = quarter, price.Terms{Quantity: 2, Discount: price.Discount{Percent: percent, Periods: 1}, Tax: price.Tax{Mode: price.Exclusive, Rate: vat}}
		}, nil, []string{"€21.42 · 28 June 2026; from 28 September 2026 on €23.80", "every 3 months", "<bdi>2</bdi>", "<dt>Discount</dt><dd><bdi>€2.00", "€3.42 (19%)", "€21.42 every 3 months, next on 28 June 2026; from"}, ""},
		"trial": {"pm_card_visa", func(n *billing.NewSubscription) { n.TrialDays, n.PaymentDay, n.ReminderDays = 14, 0, 7 }, nil, []string{"Free until"}, ""},
		"later": {"pm_card_visa", nil, func(w *portalWorld, n billing.Name) error {
			eur, err := money.ParseCurrency("EUR")
			if err == nil {
				from := civil.Of(w.now).AddDays(100)
				_, err = w.engine.UpdateSubscription(w.Context(), n, billing.Change{Amount: new(money.New(1500, eur)), From: from})
			}
			return err
		}, []string{"€10.00 · 28 June 2026; from 28 September 2026 on €15.00"}, ""},
		"paused": {"pm_card_visa", nil, func(w *portalWorld, n billing.Name) error {
			_, err := w.engine.Pause(w.Context(), n)
			return err
		}, []string{"Paused"}, "Next payment"},
		"ended": {"pm_card_visa", nil, func(w *portalWorld, n billing.Name) error {
			_, err := w.engine.Cancel(w.Context(), n, false)
			return err
		}, []string{"Canceled", `class="over"`}, "/account/c"},
		"declined": {"pm_card_visa_chargeDeclined", nil, func(w *portalWorld, _ billing.Name) error { w.pay("2026-06-28"); return nil },
			[]string{"The payment was declined. The next attempt is on 29 June 2026", "€10.00 · 28 June 2026"}, ""},
		"failed": {"pm_card_visa_chargeDeclinedStolenCard", nil, func(w *portalWorld, _ billing.Name) error { w.pay("2026-06-28"); return nil },
			[]string{"A new card continues the subscription", "Gold membership: €10.00 every month, next on 28 July 2026",
				"<dt>Next payment with a new card</dt><dd><bdi>€10.00 · 28 July 2026"}, "/account/cancel"},
		"no method": {"", nil, func(w *portalWorld, _ billing.Name) error { w.pay("2026-06-28"); return nil }, []string{"On hold", "Enter a new card"}, ""},
		"wire":      {"", func(n *billing.NewSubscription) { n.Collection = billing.ByWire }, func(w *portalWorld, _ billing.Name) error { w.pay("2026-06-28"); return nil }, []string{"which must arrive before 12 July 2026"}, "/account/card"},
		"last":      {"pm_card_visa", func(n *billing.NewSubscription) { n.Installments = 1 }, nil, []string{"€10.00 · 28 June 2026"}, "from 28"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPortal(t)
			change := c.make
			if change == nil {
				change = func(*billing.NewSubscription) {}
			}
			w.subscribe("eve", "1", "gold", 1000, c.method, change)
			if c.do != nil {
				w.must(c.do(w, billing.Name{Account: "eve", ID: "1", SKU: "gold"}))
			}
			w.enter("eve")
			page := w.page()
			for _, want := range c.want {
				if !strings.Contains(page, want) {
					t.Errorf("no %s in %s", want, page[strings.Index(page, "<main>"):])
				}
			}
			if c.lacks != "" && strings.Contains(page, c.lacks) {
				t.Errorf("%s in %s", c.lacks, page[strings.Index(page, "<main>"):])
			}
		})
	}
}

// TestVisit_NoWallet: a processor without cards has no form for one.
func TestVisit_NoWallet(t *testing.T) {
	w := newPortal(t)
	w.enter("ada")
	page := w.page()
	w.without()
	if page := w.page(); strings.Contains(page, "/account/card") {
		t.Error(page)
	}
	if r := w.ask("POST", "/account/card", form(t, page)); r.StatusCode != http.StatusConflict {
		t.Error(r.StatusCode)
	}
}

var _ processor.Wallet = (*bank)(nil)
