package settings

import (
	"cmp"
	"net"
	"net/url"
	"strings"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/billing/tax"
)

// The values of Document.
const (
	Receipt = "receipt"
	Invoice = "invoice" // of each payment whose document has all fields that an invoice needs
)

// SellerName returns the seller's name on documents, or "".
func (s *Settings) SellerName() string { return cmp.Or(s.Seller, s.MerchantName) }

// SellerPlace returns the seller's address on documents, or "".
func (s *Settings) SellerPlace() string { return cmp.Or(s.SellerAddress, s.PostalAddress) }

// Links reports whether mail links to documents. A document without a seller proves nothing.
func (s *Settings) Links() bool {
	return s.PublicURL != "" && s.SellerName() != "" && s.SellerPlace() != ""
}

// checkDocument returns an error if the settings of documents do not fit together. Its text names
// everything that is missing.
func (s *Settings) checkDocument() error {
	of := party.Details{TaxID: s.SellerTaxID}
	of.Address.Country = s.SellerCountry
	if len(party.Check(of, func(string, string, int) error { return nil })) > 0 {
		return billing.Invalid("seller-tax-id", "must have letters and digits, and the form of the VAT ids of seller-country")
	}
	if s.Document != Invoice {
		return nil
	}
	var missing []string
	for _, name := range [...]string{"seller", "seller-address", "seller-country", "seller-tax-id"} {
		if s.Text(name) == "" {
			missing = append(missing, name)
		}
	}
	if s.Tax != On {
		missing = append(missing, "tax=on")
	}
	if s.ReceiptPrefix == NoNumbers {
		missing = append(missing, "receipt-prefix other than "+NoNumbers)
	}
	if s.ReceiptMonths != 0 && s.ReceiptMonths < tax.Months {
		missing = append(missing, "receipt-months=120 or more, or 0")
	}
	if len(missing) > 0 {
		return billing.Invalid("document", "must be receipt, because invoice needs "+strings.Join(missing, ", "))
	}
	return nil
}

// isPublic reports whether customers can reach the URL: over plain HTTP, only on this machine.
func isPublic(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || strings.HasSuffix(u.Host, ":") || u.String() != u.Scheme+"://"+u.Host || u.User != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip.IsLoopback())
}
