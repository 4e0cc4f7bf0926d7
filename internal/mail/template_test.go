package mail

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/outbox"
)

// golden compares the text with a file of testdata, which -update writes.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", filepath.FromSlash(name))
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestEveryKindInEveryLanguage(t *testing.T) {
	w := writer(t)
	at := time.Date(2026, 6, 21, 6, 10, 0, 0, time.UTC)
	for _, language := range Languages() {
		for _, kind := range Kinds() {
			e := Sample(kind, language, "ada@example.com", at)
			subject, text, err := w.Preview(e, false)
			if err != nil {
				t.Fatal(err)
			}
			_, html, err := w.Preview(e, true)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, language+"/"+kind+".txt", "Subject: "+subject+"\n\n"+text)
			golden(t, language+"/"+kind+".html", html)
			if e.Data[outbox.DataCollect] = "2026-07-28"; kind == outbox.KindFailed {
				if _, text, err = w.Preview(e, false); err != nil {
					t.Fatal(err)
				}
				golden(t, language+"/failed-collect.txt", text)
			}
			if language == "en" {
				continue
			}
			for _, english := range []string{"June", "please", "payment", "Subscription", "card ", "ending in"} {
				if strings.Contains(subject+text+html, english) {
					t.Errorf("%s/%s: %q is English", language, kind, english)
				}
			}
		}
	}
}

func TestLanguageOf(t *testing.T) {
	for locale, want := range map[string]string{"": "en", "en-GB": "en", "pt-BR": "pt", "pt": "pt", "PT": "pt",
		"zh-Hant-TW": "zh", "ko-KR": "ko", "de-DE": "de", "fr-FR": "en", "x": "en", "../../etc": "en"} {
		if got := languageOf(locale); got != want {
			t.Errorf("%q: %s, want %s", locale, got, want)
		}
	}
}

func TestAmounts(t *testing.T) {
	tests := []struct{ code, amount, en, de, pt, zh, ko string }{
		{"USD", "1299.50", "$1,299.50", "1.299,50\u00a0US$", "US$\u00a01.299,50", "US$1,299.50", "US$1,299.50"},
		{"BRL", "12.05", "R$12.05", "12,05\u00a0R$", "R$\u00a012,05", "R$12.05", "R$12.05"},
		{"EUR", "0.05", "€0.05", "0,05\u00a0€", "€\u00a00,05", "€0.05", "€0.05"},
		{"JPY", "1234567", "¥1,234,567", "1.234.567\u00a0JP¥", "JP¥\u00a01.234.567", "JP¥1,234,567", "JP¥1,234,567"},
		{"KRW", "500", "₩500", "500\u00a0₩", "₩\u00a0500", "₩500", "₩500"},
		{"CNY", "8.00", "CN¥8.00", "8,00\u00a0CN¥", "CN¥\u00a08,00", "¥8.00", "CN¥8.00"},
		{"KWD", "1234.567", "KWD 1,234.567", "1.234,567\u00a0KWD", "KWD\u00a01.234,567", "KWD\u00a01,234.567", "KWD\u00a01,234.567"},
		{"CHF", "-100.00", "-CHF 100.00", "-100,00\u00a0CHF", "-CHF\u00a0100,00", "-CHF\u00a0100.00", "-CHF\u00a0100.00"},
		{"USD", "92233720368547758.07", "$92,233,720,368,547,758.07", "92.233.720.368.547.758,07\u00a0US$", "US$\u00a092.233.720.368.547.758,07",
			"US$92,233,720,368,547,758.07", "US$92,233,720,368,547,758.07"},
	}
	for _, tt := range tests {
		c, err := money.ParseCurrency(tt.code)
		if err != nil {
			t.Fatal(err)
		}
		a, err := money.Parse(tt.amount, c)
		if err != nil {
			t.Fatal(err)
		}
		for language, want := range map[string]string{"en": tt.en, "de": tt.de, "pt": tt.pt, "zh": tt.zh, "ko": tt.ko} {
			if got := formOf(language).amount(a); got != want {
				t.Errorf("%s %s in %s: %q, want %q", tt.amount, tt.code, language, got, want)
			}
		}
	}
}

func TestDates(t *testing.T) {
	at := time.Date(2026, 5, 1, 23, 59, 0, 0, time.UTC) // May is its own abbreviation
	for language, want := range map[string]string{"en": "1 May 2026|May 2026|23:59 UTC on 1 May 2026",
		"de": "1. Mai 2026|Mai 2026|1. Mai 2026, 23:59 UTC",
		"pt": "1 de maio de 2026|maio de 2026|23:59 UTC de 1 de maio de 2026",
		"zh": "2026年5月1日|2026年5月|2026年5月1日 23:59 UTC", "ko": "2026년 5월 1일|2026년 5월|2026년 5월 1일 23:59 UTC"} {
		f := formOf(language)
		if got := f.date(at, f.day) + "|" + f.date(at, f.month) + "|" + f.date(at, f.moment); got != want {
			t.Errorf("%s: %s, want %s", language, got, want)
		}
	}
}

func TestHTMLEscapes(t *testing.T) {
	hostile := `<script>alert(1)</script>"'&`
	w := writerOf(t, settings.Settings{MerchantName: hostile, PostalAddress: hostile, ReplyTo: "a@b.example"})
	for _, kind := range Kinds() {
		e := Sample(kind, "en", "ada@example.com", created)
		for key := range e.Data {
			if key != outbox.DataEmail && key != outbox.DataLocale {
				e.Data[key] = hostile
			}
		}
		e.Data[outbox.DataLink] = `https://pay.example.com/?a="><script>alert(1)</script>`
		m, err := w.Message(e)
		if err != nil {
			t.Fatal(err)
		}
		_, _, html := parts(t, m.Bytes)
		if strings.Contains(html, "<script") || strings.Contains(html, `="">`) {
			t.Errorf("%s: markup came through:\n%s", kind, html)
		}
	}
}

// folderOf returns a folder with the files.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const ownReceipt = `{{define "subject"}}Paid: {{.Amount}}{{end}}{{define "title"}}Paid{{end}}
{{define "opening"}}Thanks.{{end}}{{define "next"}}Bye.{{end}}`

func TestOwnTemplates(t *testing.T) {
	dir := folderOf(t, map[string]string{"en/receipt.txt": ownReceipt, ".hidden/x": "", "en/.x.swp": "",
		"pt/refund.txt": strings.ReplaceAll(ownReceipt, "Thanks.", "Nosso {{.Amount}} & mais")})
	templates, err := NewTemplates(dir)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(templates, settings.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ kind, locale, want, not string }{
		{outbox.KindReceipt, "en", "Thanks.", "received"}, {outbox.KindReceipt, "pt", "Recebemos", "Thanks."},
		{outbox.KindRefund, "pt-BR", "Nosso US$\u00a01.299,50 & mais", "Reembolsamos"},
	} {
		_, html, err := w.Preview(Sample(tt.kind, tt.locale, "a@b.example", created), true)
		if err != nil || !strings.Contains(html, tt.want) || strings.Contains(html, tt.not) {
			t.Errorf("%s in %s: %v\n%s", tt.kind, tt.locale, err, html)
		}
	}
}

func TestWrongTemplatesAreNamed(t *testing.T) {
	define := func(block string) string { return strings.Replace(ownReceipt, `"`+block+`"`, `"other"`, 1) }
	for name, tt := range map[string]struct{ file, text, want string }{
		"unknown file":   {"en/recipt.txt", ownReceipt, "en/recipt.txt is not the name of a template"},
		"unknown folder": {"xx/receipt.txt", ownReceipt, "xx/receipt.txt is not the name of a template"},
		"open brace":     {"en/receipt.txt", "\n\n{{define", "en/receipt.txt:3"},
		"unknown field": {"ko/receipt.txt", "\n" + strings.Replace(ownReceipt, ".Amount", ".Price", 1),
			"ko/receipt.txt:2:"},
		"unknown function": {"zh/refund.txt", "{{shout}}", "zh/refund.txt:1"},
		"no subject":       {"en/receipt.txt", define("subject"), `en/receipt.txt: template: no template "subject"`},
		"empty subject": {"en/receipt.txt", strings.Replace(ownReceipt, "Paid: {{.Amount}}", " ", 1),
			"en/receipt.txt: the subject is empty"},
		"no words":         {"pt/words.txt", "", `no template "label"`},
		"broken markup":    {"layout.html", "\n<a href='{{.Amount}}", "layout.html"},
		"fault in one way": {"en/reminder.txt", "{{define \"subject\"}}x{{end}}{{define \"title\"}}x{{end}}{{define \"opening\"}}x{{end}}\n{{define \"next\"}}{{if .NoMethod}}{{.Nothing}}{{end}}{{end}}", "en/reminder.txt:2:"},
		"html alone":       {"layout.html", "\n<p>{{.Nothing}}</p>", "layout.html:2:"},
	} {
		_, err := NewTemplates(folderOf(t, map[string]string{tt.file: tt.text}))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if _, err := NewTemplates(filepath.Join(t.TempDir(), "nothing")); err == nil {
		t.Error("a folder that is not there is taken")
	}
}

func TestExport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mine")
	names, err := Export(dir)
	if err != nil || len(names) != 2+len(Languages())*(len(Kinds())+1) {
		t.Fatalf("%q, %v", names, err)
	}
	if _, err := NewTemplates(dir); err != nil {
		t.Errorf("the exported templates: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "layout.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Export(dir); err == nil {
		t.Error("a second export replaces files")
	}
	if got, err := os.ReadFile(filepath.Join(dir, "layout.txt")); err != nil || string(got) != "mine" {
		t.Errorf("replaced: %q, %v", got, err)
	}
}
