package invoice_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/invoice"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/memstore"
)

// A payment is one with all that an invoice needs.
type payment struct {
	settings settings.Settings
	account  billing.Account
	receipt  billing.Receipt
	absent   bool // there is no account
}

func newPayment(t *testing.T) *payment {
	t.Helper()
	c, err := money.ParseCurrency("EUR")
	if err != nil {
		t.Fatal(err)
	}
	x, err := price.Of(money.New(1000, c), price.Terms{Tax: price.Tax{Mode: price.Exclusive, Rate: 19 * price.Whole / 100, Country: "DE"}}, 3)
	if err != nil {
		t.Fatal(err)
	}
	p := &payment{settings: settings.Default(), account: billing.Account{ID: "1001", Name: "Jürgen Groß"}}
	s := &p.settings
	s.Document, s.Seller, s.SellerAddress, s.SellerCountry, s.SellerTaxID = settings.Invoice, "Gym GmbH", "Berlin", "DE", "DE123456789"
	s.Products = map[string]string{"gold": "Gold membership"}
	at := &p.account.Details.Address
	at.Line1, at.PostalCode, at.City, at.Country, p.account.Details.TaxID = "Königstraße 7", "10115", "Berlin", "DE", "DE987654321"
	p.receipt = billing.Receipt{Name: billing.Name{Account: "1001", ID: "1", SKU: "gold"}, SKU: "gold", Kind: billing.Charged, Period: 3,
		Processed: time.Date(2026, 6, 28, 12, 0, 0, 0, time.UTC), Amount: x.Gross, Price: &x, Charge: "ch_1"}
	return p
}

// noted returns the content that the receipt keeps when it gets its number.
func (p *payment) noted(t *testing.T, fault error) (invoice.Content, bool, error) {
	t.Helper()
	now := func() time.Time { return p.receipt.Processed }
	tables := schema.New(schema.DefaultPrefix)
	mem, err := memstore.Open(tables.All(), now)
	if err != nil {
		t.Fatal(err)
	}
	if !p.absent {
		if err := mem.Commit(t.Context(), store.Put(tables.RecurringPayments.Name, p.account.Item())); err != nil {
			t.Fatal(err)
		}
	}
	r := billing.NewRecords(mem, tables, now, slog.New(slog.DiscardHandler))
	if fault != nil {
		r.Store = failing{mem, fault}
	}
	it := p.receipt.Item()
	err = invoice.Note(t.Context(), r, &p.settings, p.receipt.Item(), &it)
	stored, wrong := billing.DecodeReceipt(it)
	if wrong != nil {
		t.Fatal(wrong)
	}
	content, is := invoice.Stored(stored)
	return content, is, err
}

func TestNote(t *testing.T) {
	p := newPayment(t)
	got, is, err := p.noted(t, nil)
	want := invoice.Content{Seller: [4]string{"Gym GmbH", "Berlin", "DE", "DE123456789"},
		Customer: [8]string{"Jürgen Groß", "", "Königstraße 7", "", "10115 Berlin", "", "DE", "DE987654321"}, Product: "Gold membership", Day: civil.Of(p.receipt.Processed)}
	if !is || err != nil || got != want {
		t.Errorf("%+v, %v, %v", got, is, err)
	}
}

// TestNote_Incomplete: what lacks a field of article 226 stays a receipt, and gets its number all the same.
func TestNote_Incomplete(t *testing.T) {
	tax := func(p *payment) *price.Tax { return &p.receipt.Price.Terms.Tax }
	for name, tt := range map[string]struct {
		change func(p *payment)
		want   bool
	}{
		"receipts":          {func(p *payment) { p.settings.Document = settings.Receipt }, false},
		"a brand":           {func(p *payment) { p.settings.Seller, p.settings.MerchantName = "", "Gym" }, false},
		"no seller address": {func(p *payment) { p.settings.SellerAddress, p.settings.PostalAddress = "", "Here" }, false},
		"no seller country": {func(p *payment) { p.settings.SellerCountry = "" }, false},
		"no seller tax id":  {func(p *payment) { p.settings.SellerTaxID = "" }, false},
		"no name":           {func(p *payment) { p.account.Name = "" }, false},
		"a company":         {func(p *payment) { p.account.Name, p.account.Details.Company = "", "Groß GmbH" }, true},
		"no line":           {func(p *payment) { p.account.Details.Address.Line1 = "" }, false},
		"no city":           {func(p *payment) { p.account.Details.Address.City = "" }, false},
		"no country":        {func(p *payment) { p.account.Details.Address.Country = "" }, false},
		"no tax id":         {func(p *payment) { p.account.Details.TaxID = "" }, true},
		"no account":        {func(p *payment) { p.absent = true }, false},
		"no price":          {func(p *payment) { p.receipt.Price = nil }, false},
		"no rate": {func(p *payment) {
			*p.receipt.Price = price.Price{Unit: p.receipt.Amount, Terms: price.Terms{Quantity: 2}}
		}, false},
		"no tax, no reason": {func(p *payment) { tax(p).Rate = 0 }, false},
		"exempt":            {func(p *payment) { tax(p).Rate, tax(p).Note = 0, "Exempt, article 132" }, true},
		"reverse charge":    {func(p *payment) { tax(p).Rate, tax(p).Note = 0, "Reverse charge" }, true},
		"nobody's tax":      {func(p *payment) { tax(p).Rate, tax(p).Note, p.account.Details.TaxID = 0, "REVERSE CHARGE", "" }, false},
		"by hand":           {func(p *payment) { p.receipt.Kind = billing.External }, true},
		"imported":          {func(p *payment) { p.receipt.Kind = billing.Imported }, false},
		"overpaid":          {func(p *payment) { p.receipt.Kind = billing.Overpayment }, false},
	} {
		p := newPayment(t)
		tt.change(p)
		if _, is, err := p.noted(t, nil); is != tt.want || err != nil {
			t.Errorf("%s: %v, %v", name, is, err)
		}
	}
}

// A failing store reads nothing.
type failing struct {
	store.Store
	error
}

func (f failing) Get(context.Context, string, store.Key) (store.Item, error) { return nil, f.error }

// TestNote_Unreadable: a number waits for a store that does not answer, and not for an account that cannot be read.
func TestNote_Unreadable(t *testing.T) {
	p := newPayment(t)
	down := errors.New("down")
	if _, is, err := p.noted(t, down); is || !errors.Is(err, down) {
		t.Errorf("%v, %v", is, err)
	}
	if _, is, err := p.noted(t, &billing.IllegibleError{Err: errors.New("it is odd")}); is || err != nil {
		t.Errorf("%v, %v", is, err)
	}
	for _, key := range []store.Key{{PK: "ACC#1001", SK: "REF#2026-06-28T12:00:00.000Z#rf_1"}, {PK: "ACC#1001", SK: "SUB#1"}} {
		it := billing.ItemAt(key)
		if err := invoice.Note(t.Context(), nil, &p.settings, billing.ItemAt(key), &it); err != nil || it.Has(schema.InvoicedTo) {
			t.Errorf("%v: %v, %v", key, it, err)
		}
	}
}
