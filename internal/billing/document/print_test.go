package document_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing/document"
	"github.com/duesday/duesday/internal/locale"
	"github.com/duesday/duesday/internal/processor"
)

// sheet is a page's object in a PDF.
var sheet = regexp.MustCompile(`/Type\s*/Page\b`)

// TestPrint_OneSheet: Chromium prints an invoice in each language, the longest values that Duesday stores, and ten refunds on one
// sheet of A4.
func TestPrint_OneSheet(t *testing.T) {
	if testing.Short() {
		t.Skip("Chromium prints several pages, which takes seconds")
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip("SKIPPED, NOT TESTED: chromium is not installed: apt-get install chromium")
	}
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, language := range locale.Languages() {
		text, err := os.ReadFile(filepath.Join("testdata", language+"-invoice.html"))
		if err != nil {
			t.Fatal(err)
		}
		pages[language] = string(text)
	}
	for name, value := range map[string]string{"wide": strings.Repeat("W", 200), "ideographs": strings.Repeat("長", 66), "right to left": strings.Repeat("مكتبة ", 18)} {
		d := sample(t, "de")
		long(d, value)
		refund(t, d, "299.50", processor.Refunded, processor.ReversalSucceeded)
		pages[name] = page(t, d)
	}
	d := sample(t, "pt")
	for range 10 {
		refund(t, d, "129.95", processor.Refunded, processor.ReversalSucceeded)
	}
	pages["refunds"] = page(t, d)
	dir := t.TempDir()
	for name, text := range pages {
		file := filepath.Join(dir, name+".html")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		run := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer",
			"--user-data-dir="+filepath.Join(dir, "profile"), "--print-to-pdf="+file+".pdf", "file://"+file)
		says, err := run.CombinedOutput()
		cancel()
		pdf, missing := os.ReadFile(file + ".pdf")
		if err != nil || missing != nil {
			t.Fatalf("%s: %v, %v\n%s", name, err, missing, says)
		}
		if n := len(sheet.FindAll(pdf, -1)); n != 1 {
			t.Errorf("%s: %d sheets", name, n)
		}
	}
}

// long sets every text to the value, cut to the length that Duesday accepts for it.
func long(d *document.Document, value string) {
	cut := func(limit int) string { return strings.ToValidUTF8(value[:min(limit, len(value))], "") }
	a, at := d.Account, &d.Account.Details.Address
	a.Name, a.Details.Company, a.Details.TaxID = cut(200), cut(200), cut(32)
	at.Line1, at.Line2, at.City, at.PostalCode, at.State = cut(200), cut(200), cut(100), cut(20), cut(100)
	d.Receipt.Email, d.Receipt.ID, d.Receipt.Charge, d.Receipt.Account = cut(200), cut(128), cut(200), cut(128)
	s := &d.Settings
	s.Seller, s.SellerAddress, s.SellerTaxID, s.ReplyTo, s.Products = cut(400), cut(400), cut(400), cut(200), map[string]string{"gold": cut(200)}
}
