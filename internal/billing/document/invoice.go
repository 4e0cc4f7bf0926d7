package document

import (
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/settings"
)

// Kind returns settings.Invoice if the store issues invoices and the document has all fields that article 226 of
// Directive 2006/112/EC asks for, and otherwise settings.Receipt. The numbers are those of the article:
//
//   - (1) date of issue: the day of the payment
//   - (2) sequential number: the receipt's number in its series
//   - (3) seller's VAT number: seller-tax-id
//   - (4) customer's VAT number, if the customer is liable for the tax: tax_id, if the tax note has "reverse charge"
//   - (5) full name and address of both: seller, seller-address and seller-country; name or company,
//     address_line1, city and country
//   - (6) extent and nature of the service: the quantity and the product's name
//   - (7) date of the payment on account: paid on
//   - (8) taxable amount for each rate, unit price without tax, and discounts: the price's lines
//   - (9) rate, and (10) amount of the tax, and with a rate of 0 (11), (11a) the tax note
//
// Not supported are (7a) cash accounting, (10a) self-billing, (12) to (14) vehicles and margin schemes, and (15)
// tax representatives. A payment without one of the fields, such as that of a customer without an address, stays
// a receipt. So does an imported one, which another system may have invoiced, and one of another amount than its
// price.
func (d *Document) Kind() string {
	if d.Settings.Document == settings.Invoice && d.isComplete() {
		return settings.Invoice
	}
	return settings.Receipt
}

func (d *Document) isComplete() bool {
	a, s := d.Account, &d.Settings
	for _, text := range [...]string{d.Receipt.InSeries, s.Seller, s.SellerAddress, s.SellerCountry, s.SellerTaxID, a.Name + a.Details.Company,
		a.Details.Address.Line1, a.Details.Address.City, a.Details.Address.Country} {
		if text == "" {
			return false
		}
	}
	x, kind := d.Receipt.Price, d.Receipt.Kind
	if x == nil || x.Terms.Tax.Mode == price.Untaxed || kind != billing.Charged && kind != billing.External {
		return false
	}
	t := x.Terms.Tax
	reverse := strings.Contains(strings.ToLower(t.Note), "reverse charge")
	return (t.Rate > 0 || t.Note != "") && (!reverse || a.Details.TaxID != "")
}
