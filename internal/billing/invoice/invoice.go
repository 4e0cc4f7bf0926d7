// Package invoice decides which payments get an invoice instead of a receipt, and keeps what an
// invoice says, because it must not change.
//
// It does not number, render or send invoices.
package invoice

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/settings"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

// A Content is what a document says beside its amounts. A text is empty if it is not known.
type Content struct {
	Seller   [4]string // name, address, country, tax id
	Customer [8]string // name, company, address lines 1 and 2, postal code and city, state, country, tax id
	Product  string
	Day      civil.Date // of the payment, for the account
}

// ContentOf returns the content of the account's receipt as it is now.
func ContentOf(s *settings.Settings, a *billing.Account, r *billing.Receipt) Content {
	at := a.Details.Address
	return Content{[4]string{s.SellerName(), s.SellerPlace(), s.SellerCountry, s.SellerTaxID},
		[8]string{a.Name, a.Details.Company, at.Line1, at.Line2, strings.TrimSpace(at.PostalCode + " " + at.City), at.State, at.Country, a.Details.TaxID},
		cmp.Or(s.Products[r.SKU], r.SKU, r.ID), billing.TodayIn(a.TimeZone, r.Processed)}
}

// The members of the stored map.
const (
	customer = "customer"
	day      = "day"
	product  = "product"
	seller   = "seller"
)

// Stored returns the content of a receipt that is an invoice. A receipt is an invoice for good if
// it was one when it got its number.
func Stored(r *billing.Receipt) (c Content, is bool) {
	it := r.Raw.Get(schema.InvoicedTo).Map()
	for name, to := range map[string][]string{seller: c.Seller[:], customer: c.Customer[:]} {
		for i, v := range it.Get(name).List() {
			if i < len(to) {
				to[i] = v.Str()
			}
		}
	}
	c.Product = it.Str(product)
	c.Day, _ = civil.Parse(it.Str(day))
	return c, len(it) > 0
}

func (c *Content) item() store.Item {
	return store.NewItem(store.Attribute{Name: customer, Value: texts(c.Customer[:])}, store.Attribute{Name: day, Value: store.S(c.Day.String())},
		store.Attribute{Name: product, Value: store.S(c.Product)}, store.Attribute{Name: seller, Value: texts(c.Seller[:])})
}

// Note sets what the receipt's item must keep if the receipt becomes an invoice with its number. A
// receipt whose account cannot be read stays one, because its number must not wait.
func Note(ctx context.Context, e *billing.Records, s *settings.Settings, receipt store.Item, set *store.Item) error {
	r, err := billing.DecodeReceipt(receipt)
	if s.Document != settings.Invoice || err != nil || !strings.HasPrefix(receipt.Str(schema.SK), billing.RecPrefix) {
		return nil
	}
	a, err := e.Account(ctx, r.Account)
	if err != nil {
		if errors.As(err, new(*billing.IllegibleError)) {
			err = nil
		}
		return billing.IgnoreNotFound(err)
	}
	if complete(s, a, r) {
		c := ContentOf(s, a, r)
		set.Set(schema.InvoicedTo, store.M(c.item()))
	}
	return nil
}

func texts(all []string) store.Value {
	values := make([]store.Value, len(all))
	for i, text := range all {
		values[i] = store.S(text)
	}
	return store.L(values...)
}

// complete reports whether the payment has all fields that article 226 of Directive 2006/112/EC
// asks for, with its numbers:
//
//   - (1) date of issue, and (7) date of the payment on account: the day of the payment
//   - (2) sequential number: the receipt's number in its series, which it gets now
//   - (3) seller's VAT number: seller-tax-id
//   - (4) customer's VAT number, if the customer is liable for the tax: tax_id, if the tax note has "reverse charge"
//   - (5) full name and address of both: seller, seller-address and seller-country; name or company,
//     address_line1, city and country
//   - (6) extent and nature of the service: the quantity and the product's name
//   - (8) taxable amount for each rate, unit price without tax, and discounts: the price's lines
//   - (9) rate, and (10) amount of the tax, and with a rate of 0 (11), (11a) the tax note
//
// Not supported are (7a) cash accounting, (10a) self-billing, (12) to (14) vehicles and margin
// schemes, and (15) tax representatives. An imported payment is not complete, because another
// system may have invoiced it, and neither is one of another amount than its price.
func complete(s *settings.Settings, a *billing.Account, r *billing.Receipt) bool {
	at := a.Details.Address
	for _, text := range [...]string{s.Seller, s.SellerAddress, s.SellerCountry, s.SellerTaxID, a.Name + a.Details.Company, at.Line1, at.City, at.Country} {
		if text == "" {
			return false
		}
	}
	if r.Price == nil || r.Price.Terms.Tax.Mode == price.Untaxed || r.Kind != billing.Charged && r.Kind != billing.External {
		return false
	}
	t := r.Price.Terms.Tax
	reverse := strings.Contains(strings.ToLower(t.Note), "reverse charge")
	return (t.Rate > 0 || t.Note != "") && (!reverse || a.Details.TaxID != "")
}
