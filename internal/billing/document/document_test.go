package document_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/document"
	"github.com/duesday/duesday/internal/billing/invoice"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/locale"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

var update = flag.Bool("update", false, "write the golden files anew")

func amount(t testing.TB, text, code string) money.Amount {
	t.Helper()
	c, err := money.ParseCurrency(code)
	if err != nil {
		t.Fatal(err)
	}
	a, err := money.Parse(text, c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var paid = time.Date(2026, 6, 28, 23, 15, 39, 247e6, time.UTC)

// sample is a payment of a customer of the language.
func sample(t testing.TB, language string) *document.Document {
	t.Helper()
	of := map[string]struct{ zone, currency, name, company, line, postal, city, country, tax, product string }{
		"en": {"Europe/London", "GBP", "Ada Lovelace", "Analytical Ltd", "12 St James's Square", "SW1Y 4JH", "London", "GB", "GB 123 4567 89", "Gold membership"},
		"de": {"Europe/Berlin", "EUR", "Jürgen Groß", "Groß & Söhne GmbH", "Königstraße 7", "10115", "Berlin", "DE", "DE123456789", "Gold-Mitgliedschaft"},
		"pt": {"America/Sao_Paulo", "BRL", "João Conceição", "Padaria São João Ltda.", "Rua da Consolação, 1200", "01302-001", "São Paulo", "BR", "12.345.678/0001-95", "Plano Ouro"},
		"zh": {"Asia/Shanghai", "CNY", "王小明", "上海示例有限公司", "南京东路100号", "200001", "上海", "CN", "91310000MA1FL0000X", "黄金会员"},
		"ko": {"Asia/Seoul", "KRW", "김민준", "한빛 주식회사", "세종대로 110", "04524", "서울", "KR", "123-45-67890", "골드 회원권"},
	}[language]
	due, err := civil.Parse("2026-06-28")
	if err != nil {
		t.Fatal(err)
	}
	price := "1299.50"
	if of.currency == "KRW" {
		price = "129900"
	}
	r := &billing.Receipt{Name: billing.Name{Account: "1001", ID: "1", SKU: "gold"}, SKU: "gold", Email: "customer@example.com", Kind: billing.Charged,
		Period: 5, Due: due, Processed: paid, Amount: amount(t, price, of.currency), Charge: "ch_3PqX2LGswQ1", InSeries: "R-2026-000123"}
	a := &billing.Account{ID: "1001", Name: of.name, Locale: language, TimeZone: of.zone}
	a.Details.Company, a.Details.TaxID = of.company, of.tax
	a.Details.Address.Line1, a.Details.Address.PostalCode, a.Details.Address.City, a.Details.Address.Country = of.line, of.postal, of.city, of.country
	s := settings.Default()
	s.Seller, s.SellerAddress, s.SellerCountry, s.SellerTaxID = "Ada's Gym Ltd", "12 Bridge Street, Birmingham B1 1AA", "GB", "GB 987 6543 21"
	s.ReplyTo, s.Products = "help@example.com", map[string]string{"gold": of.product}
	return &document.Document{Receipt: r, Account: a, Settings: s, Installation: "INSTALLATION"}
}

// refund is a refund, or another reversal, of the amount.
func refund(t testing.TB, d *document.Document, text string, kind processor.ReversalKind, state processor.ReversalState) {
	t.Helper()
	d.Reversals = append(d.Reversals, &billing.ReversalRecord{Name: d.Receipt.Name, Kind: kind, Charge: d.Receipt.Charge, State: state,
		Amount: amount(t, text, d.Receipt.Amount.Currency().Code()), Created: paid.AddDate(0, 0, 3), Processed: paid.AddDate(0, 0, 4), InSeries: "R-2026-000131"})
}

// priced gives the payment a price with the terms, per unit.
func priced(t testing.TB, d *document.Document, unit string, terms price.Terms) {
	t.Helper()
	x, err := price.Of(amount(t, unit, d.Receipt.Amount.Currency().Code()), terms, d.Receipt.Period)
	if err != nil {
		t.Fatal(err)
	}
	d.Receipt.Price, d.Receipt.Amount = &x, x.Gross
}

func percent(t testing.TB, text string) price.Percent {
	t.Helper()
	p, err := price.ParsePercent(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func page(t testing.TB, d *document.Document) string {
	t.Helper()
	text, err := d.HTML()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(name); err != nil || got != string(want) {
		t.Errorf("%s: %v; got\n%s", name, err, got)
	}
}

func TestHTML_Golden(t *testing.T) {
	for _, language := range locale.Languages() {
		d := sample(t, language)
		golden(t, language+".html", page(t, d))
		if language == "ko" {
			refund(t, d, "29900", processor.Refunded, processor.ReversalSucceeded)
		} else {
			refund(t, d, "299.50", processor.Refunded, processor.ReversalSucceeded)
		}
		golden(t, language+"-refunded.html", page(t, d))
		d = sample(t, language)
		invoiced(t, d)
		unit := map[bool]string{true: "43300", false: "433.17"}[language == "ko"]
		priced(t, d, unit, price.Terms{Quantity: 3, Discount: price.Discount{Percent: percent(t, "12.5")},
			Tax: price.Tax{Mode: price.Exclusive, Rate: percent(t, "7.7"), Country: d.Account.Details.Address.Country}})
		golden(t, language+"-invoice.html", page(t, d))
	}
}

// TestHTML_Price: the lines add up to what was paid.
func TestHTML_Price(t *testing.T) {
	for name, tt := range map[string]struct {
		terms price.Terms
		want  []string // values, in order
		notes []string
	}{
		"plain":            {price.Terms{}, []string{"£10.00", "£10.00"}, nil},
		"quantity":         {price.Terms{Quantity: 3}, []string{"£30.00", "£30.00"}, []string{"Quantity: 3", "Unit price: £10.00"}},
		"discount":         {price.Terms{Discount: price.Discount{Amount: amount(t, "2.50", "GBP")}}, []string{"£10.00", "-£2.50", "£7.50"}, []string{"Discount<"}},
		"discount percent": {price.Terms{Discount: price.Discount{Percent: percent(t, "12.5")}}, []string{"£10.00", "-£1.25", "£8.75"}, []string{"Discount 12.5%"}},
		"exclusive":        {price.Terms{Tax: price.Tax{Mode: price.Exclusive, Rate: percent(t, "20"), Country: "GB"}}, []string{"£10.00", "£10.00", "£2.00", "£12.00"}, []string{"Tax 20% GB"}},
		"inclusive": {price.Terms{Quantity: 2, Tax: price.Tax{Mode: price.Inclusive, Rate: percent(t, "20")}}, []string{"£20.00", "£16.67", "£3.33", "£20.00"},
			[]string{"Tax 20%<", "Unit price without tax: £8.33"}},
		"reverse charge": {price.Terms{Tax: price.Tax{Mode: price.Exclusive, Rate: 0, Note: "Reverse charge"}}, []string{"£10.00", "£10.00", "£0.00", "£10.00"}, []string{"Tax 0%<", "Reverse charge"}},
	} {
		d := sample(t, "en")
		priced(t, d, "10.00", tt.terms)
		text := page(t, d)
		var got []string
		for _, found := range regexp.MustCompile(`<td><bdi>([^<]*)<`).FindAllStringSubmatch(text, -1) {
			got = append(got, found[1])
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		for _, note := range tt.notes {
			if !strings.Contains(text, note) {
				t.Errorf("%s: there is no %s", name, note)
			}
		}
	}
}

// active is an element or attribute that could load or run something.
var active = regexp.MustCompile(`(?i)<(script|img|link|iframe|object|embed|form|base|svg|a)\b|<[^<>]*\s(on\w+|src|href|action)=|url\(|@import`)

// TestHTML_IsSelfContained: nothing is loaded or run, the policy allows exactly the style, and there is one page.
func TestHTML_IsSelfContained(t *testing.T) {
	for _, language := range locale.Languages() {
		text := page(t, sample(t, language))
		if found := active.FindString(text); found != "" {
			t.Errorf("%s has %q", language, found)
		}
		_, style, _ := strings.Cut(text, "<style>")
		style, _, ok := strings.Cut(style, "</style>")
		sum := sha256.Sum256([]byte(style))
		if want := "style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !ok || !strings.Contains(document.Policy(), want) {
			t.Errorf("the policy %s does not allow the style: %s", document.Policy(), want)
		}
		for _, want := range []string{`<html lang="` + language + `">`, "R-2026-000123", "ch_3PqX2LGswQ1", "help@example.com"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: there is no %s", language, want)
			}
		}
	}
	if !strings.Contains(document.Policy(), "default-src 'none'") || strings.Contains(document.Policy(), "unsafe") {
		t.Error(document.Policy())
	}
}

// TestHTML_LocalDay: the day is the account's, as in the mail.
func TestHTML_LocalDay(t *testing.T) {
	for language, want := range map[string]string{"en": "29 June 2026", "de": "29. Juni 2026", "pt": "28 de junho de 2026", "zh": "2026年6月29日", "ko": "2026년 6월 29일"} {
		if text := page(t, sample(t, language)); !strings.Contains(text, "<bdi>"+want+"</bdi>") {
			t.Errorf("%s: not paid on %s", language, want)
		}
	}
}

// hostile are values that try to become markup, styles, other lines or other directions.
func hostile() []string {
	return []string{`<script>alert(1)</script>`, `</style><script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, "{{.Account}}", "<!--", "]]>",
		"a\u202egnp\u2066b", "line\r\nline\u2028line", "a\x00b", "\xff\xfe", "javascript:alert(1)", "&lt;b&gt;", "</title></bdi></p>",
		strings.Repeat("W", 200), strings.Repeat("محمد ", 40), "مكتبة الإسكندرية", "שלום עולם", strings.Repeat("長", 200)}
}

func TestHTML_HostileValues(t *testing.T) {
	for _, value := range hostile() {
		d := sample(t, "en")
		d.Receipt.ID, d.Receipt.SKU, d.Receipt.Email, d.Receipt.Charge, d.Receipt.Account = value, value, value, value, value
		d.Account.Name, d.Account.Locale = value, value
		for _, f := range d.Account.Details.Fields() {
			*f = value
		}
		d.Settings.Seller, d.Settings.SellerAddress, d.Settings.SellerTaxID, d.Settings.ReplyTo = value, value, value, value
		d.Settings.Products = map[string]string{value: value}
		refund(t, d, "299.50", processor.Refunded, processor.ReversalSucceeded)
		text := page(t, d)
		if found := active.FindString(text); found != "" {
			t.Errorf("%q: the page has %q", value, found)
		}
		if strings.ContainsAny(text, "\u202e\u2066\u2028\x00\r") || strings.Count(text, "</style>") != 1 || strings.Count(text, "<title>") != 1 ||
			strings.Count(text, "</html>") != 1 {
			t.Errorf("%q: came through\n%s", value, text)
		}
	}
}

func TestHTML_GivenBack(t *testing.T) {
	type reversal struct {
		text  string
		kind  processor.ReversalKind
		state processor.ReversalState
	}
	const ok, pending, failed = processor.ReversalSucceeded, processor.ReversalPending, processor.ReversalFailed
	for name, tt := range map[string]struct {
		all         []reversal
		stamp, left string
		shown       int
	}{
		"nothing":        {nil, "", "", 0},
		"part":           {[]reversal{{"299.50", processor.Refunded, ok}}, "Partly refunded", "£1,000.00", 1},
		"all in parts":   {[]reversal{{"299.50", processor.Refunded, ok}, {"1000.00", processor.Refunded, ok}}, "Refunded", "£0.00", 2},
		"under way":      {[]reversal{{"299.50", processor.Refunded, pending}}, "", "", 1},
		"asked for":      {[]reversal{{"299.50", processor.Refunded, processor.ReversalRequested}}, "", "", 1},
		"failed":         {[]reversal{{"299.50", processor.Refunded, failed}}, "", "", 0},
		"canceled":       {[]reversal{{"299.50", processor.Refunded, processor.ReversalCanceled}}, "", "", 0},
		"disputed":       {[]reversal{{"1299.50", processor.Disputed, pending}}, "", "", 0},
		"inquiry":        {[]reversal{{"1299.50", processor.Disputed, processor.ReversalInquiry}}, "", "", 0},
		"dispute lost":   {[]reversal{{"1299.50", processor.Disputed, ok}}, "Refunded", "£0.00", 1},
		"dispute won":    {[]reversal{{"1299.50", processor.Disputed, failed}}, "", "", 0},
		"part and asked": {[]reversal{{"299.50", processor.Refunded, ok}, {"1.00", processor.Refunded, pending}}, "Partly refunded", "£1,000.00", 2},
	} {
		d := sample(t, "en")
		for _, r := range tt.all {
			refund(t, d, r.text, r.kind, r.state)
		}
		text := page(t, d)
		_, stamp, _ := strings.Cut(text, `<p class="stamp">`)
		stamp, _, _ = strings.Cut(stamp, "</p>")
		if !strings.Contains(text, `class="stamp"`) {
			stamp = ""
		}
		_, left, _ := strings.Cut(text, "Remaining</bdi></th><td><bdi>")
		left, _, _ = strings.Cut(left, "</bdi>")
		if !strings.Contains(text, "Remaining") {
			left = ""
		}
		if stamp != tt.stamp || left != tt.left || strings.Count(text, "<td><bdi>-£") != tt.shown {
			t.Errorf("%s: stamp %q, left %q, %d shown; want %+v", name, stamp, left, strings.Count(text, "<td><bdi>-£"), tt)
		}
	}
}

// TestHTML_Bare: a payment of which little is known has a page, too.
func TestHTML_Bare(t *testing.T) {
	d := &document.Document{Receipt: &billing.Receipt{Name: billing.Name{Account: "7", ID: "1"}, Kind: billing.Imported, Processed: paid,
		Amount: amount(t, "5.00", "USD")}, Account: &billing.Account{ID: "7"}, Settings: settings.Default()}
	text := page(t, d)
	for _, unwanted := range []string{"<no value>", "R-", "Tax ID", "Due on", "<nil>", "Questions"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("the page has %s:\n%s", unwanted, text)
		}
	}
}

// invoiced makes the payment an invoice to its account, as its number does.
func invoiced(t testing.TB, d *document.Document) {
	t.Helper()
	x := invoice.ContentOf(&d.Settings, d.Account, d.Receipt)
	texts := func(all []string) store.Value {
		var values []store.Value
		for _, text := range all {
			values = append(values, store.S(text))
		}
		return store.L(values...)
	}
	d.Receipt.Raw = store.NewItem(store.Attribute{Name: schema.InvoicedTo, Value: store.M(store.NewItem(
		store.Attribute{Name: "customer", Value: texts(x.Customer[:])}, store.Attribute{Name: "day", Value: store.S(x.Day.String())},
		store.Attribute{Name: "product", Value: store.S(x.Product)}, store.Attribute{Name: "seller", Value: texts(x.Seller[:])}))})
}

// TestHTML_InvoiceStays: whatever becomes of the seller, the account and the settings, an invoice says the same, and a
// receipt never becomes one.
func TestHTML_InvoiceStays(t *testing.T) {
	d := sample(t, "en")
	if d.Settings.Document = settings.Invoice; d.Kind() != settings.Receipt || strings.Contains(page(t, d), "Invoice") {
		t.Error("a receipt has become an invoice")
	}
	invoiced(t, d)
	was := page(t, d)
	for _, want := range []string{"<h1>Invoice</h1>", "Date of issue", "Analytical Ltd", "GB 987 6543 21"} {
		if !strings.Contains(was, want) {
			t.Errorf("there is no %s", want)
		}
	}
	s := &d.Settings
	s.Document, s.Seller, s.SellerAddress, s.SellerCountry, s.SellerTaxID = settings.Receipt, "Other", "Other", "DE", ""
	s.Products = nil
	d.Account = &billing.Account{ID: "1001", Locale: "en", TimeZone: "America/New_York"} // erased
	d.Receipt.Email = ""
	if now := page(t, d); now != was {
		t.Errorf("was\n%s\nis\n%s", was, now)
	}
}

// TestNotices: they say nothing but that, in each language.
func TestNotices(t *testing.T) {
	for name, make := range map[string]func(string) ([]byte, error){"missing": document.Missing, "later": document.Unavailable} {
		var all []byte
		for _, language := range append(locale.Languages(), "fr") {
			text, err := make(language)
			if err != nil || bytes.Contains(text, []byte("<table")) || bytes.Contains(text, []byte("<title></title>")) {
				t.Errorf("%s: %s, %v", language, text, err)
			}
			_, text, _ = bytes.Cut(text, []byte("<main>"))
			all = append(all, text...)
		}
		golden(t, name+".html", string(all))
	}
}
