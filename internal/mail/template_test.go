package mail

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/locale"
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
	for _, language := range locale.Languages() {
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

// TestDocumentLink: a receipt leads to its document, in each language, and other mail does not. A folder's words from
// before have the English text.
func TestDocumentLink(t *testing.T) {
	const link = "https://pay.example.com/r/Vrw0j6I1NXJP"
	for language, want := range map[string]string{"en": "View or print your receipt", "de": "Beleg ansehen oder drucken", "pt": "Ver ou imprimir o recibo",
		"zh": "查看或打印收据", "ko": "영수증 보기 또는 인쇄"} {
		for _, kind := range Kinds() {
			e := Sample(kind, language, "ada@example.com", created)
			e.Data[outbox.DataDocument] = link
			m, err := compose(e, writer(t))
			if err != nil {
				t.Fatal(err)
			}
			_, text, html := parts(t, m)
			for _, body := range []string{text, html} {
				if is := kind == outbox.KindReceipt; strings.Contains(body, want) != is || strings.Contains(body, link) != is {
					t.Errorf("%s/%s:\n%s", language, kind, body)
				}
			}
		}
	}
	words, err := embedded.ReadFile("templates/de/words.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, before, _ := strings.Cut(string(words), `{{define "document"}}`)
	before, _, _ = strings.Cut(before, "{{end}}")
	old, err := NewTemplates(folderOf(t, map[string]string{"de/words.txt": strings.Replace(string(words), `{{define "document"}}`+before+"{{end}}", "", 1)}))
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(old, settings.Default())
	if err != nil {
		t.Fatal(err)
	}
	e := Sample(outbox.KindReceipt, "de", "ada@example.com", created)
	e.Data[outbox.DataDocument] = link
	if m, err := compose(e, w); err != nil || !strings.Contains(string(m), "View or print your receipt") {
		t.Errorf("%s, %v", m, err)
	}
}

// TestPageLink: every mail can have a link to the customer's page, in each language.
func TestPageLink(t *testing.T) {
	const link = "https://pay.example.com/l/Vrw0j6I1NXJP"
	for language, want := range map[string]string{"en": "Your subscriptions and receipts", "de": "Ihre Abonnements und Belege", "pt": "Suas assinaturas e recibos",
		"zh": "您的订阅和收据", "ko": "내 구독과 영수증"} {
		for _, kind := range Kinds() {
			for _, address := range []string{link, ""} {
				e := Sample(kind, language, "ada@example.com", created)
				e.Data[outbox.DataPage] = address
				m, err := compose(e, writer(t))
				if err != nil {
					t.Fatal(err)
				}
				_, text, html := parts(t, m)
				for _, body := range []string{text, html} {
					if is := address != ""; strings.Contains(body, want) != is || strings.Contains(body, link) != is {
						t.Errorf("%s/%s:\n%s", language, kind, body)
					}
				}
			}
		}
	}
}

// TestTaxNote: the note is in the tax line, in each language.
func TestTaxNote(t *testing.T) {
	for language, want := range map[string]string{"en": "Tax: $0.00 (0%, Reverse charge)", "de": "Steuer: 0,00\u00a0US$ (0\u00a0%, Reverse charge)",
		"pt": "Imposto: US$\u00a00,00 (0%, Reverse charge)", "zh": "税: US$0.00 (0%, Reverse charge)", "ko": "세금: US$0.00 (0%, Reverse charge)"} {
		e := Sample(outbox.KindReceipt, language, "ada@example.com", created)
		e.Data[outbox.DataTax], e.Data[outbox.DataTaxRate], e.Data[outbox.DataTaxNote] = "0.00", "0", "Reverse charge"
		if _, text, err := writer(t).Preview(e, false); err != nil || !strings.Contains(text, want) {
			t.Errorf("%s: %v\n%s", language, err, text)
		}
	}
}

// TestUnknownLabel: a folder's words without a label leave its fact out.
func TestUnknownLabel(t *testing.T) {
	words, err := embedded.ReadFile("templates/de/words.txt")
	if err != nil {
		t.Fatal(err)
	}
	old, err := NewTemplates(folderOf(t, map[string]string{"de/words.txt": strings.Replace(string(words), `{{- else if eq . "quantity"}}Anzahl`, "", 1)}))
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(old, settings.Default())
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := w.Preview(Sample(outbox.KindReceipt, "de", "ada@example.com", created), false)
	if err != nil || strings.Contains(text, "433") || !strings.Contains(text, "Rabatt: 0,01") {
		t.Errorf("%s, %v", text, err)
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
	if err != nil || len(names) != 2+len(locale.Languages())*(len(Kinds())+1) {
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
