// Package tax checks the tax settings, and computes what refunds give back of a receipt's tax. Its settings are the
// table of rates by country, and how long receipts must be kept.
//
// It does not know where a supply is taxed: an operator gives each country's rate. Package price adds the tax.
package tax

import (
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/money"
)

// Months are the months for which receipts with tax must be kept at least: ten years, the longest that a
// member state of the EU requires.
const Months = 120

// Keep returns when a receipt expires that would expire at the time: with tax, not within the first ten years after
// the payment, even if tax is off by now. The zero time is never.
func Keep(p *price.Price, paid, expires time.Time) time.Time {
	if least := paid.AddDate(0, Months, 0); p != nil && p.Terms.Tax.Mode != price.Untaxed && !expires.IsZero() && expires.Before(least) {
		return least
	}
	return expires
}

// A Table has the rate of each country as a text such as DE:19 or LI:8.1.
type Table []string

// Check sorts the table, and reports whether each of its lines has another country and a rate.
func (t Table) Check() bool {
	slices.Sort(t)
	last := ""
	for _, line := range t {
		country, rate, _ := strings.Cut(line, ":")
		if _, err := price.ParsePercent(rate); err != nil || country == last || !party.IsCountry(country) {
			return false
		}
		last = country
	}
	return true
}

// Of returns the tax of a subscription whose account is in the country, or no tax if the table does not have it.
func (t Table) Of(country string, mode price.Mode) price.Tax {
	for _, line := range t {
		of, text, _ := strings.Cut(line, ":")
		if rate, err := price.ParsePercent(text); err == nil && of == country && country != "" {
			return price.Tax{Mode: mode, Rate: rate, Country: country}
		}
	}
	return price.Tax{}
}

// Share returns how much tax a refund gives back after refunds of before. All refunds together give back the tax
// in proportion to their amounts, rounded half up, so that a full refund gives back all of the tax. What is
// refunded beyond the receipt's amount has no tax.
func Share(p *price.Price, before, refund money.Amount) money.Amount {
	upTo := func(refunded int64) int64 {
		if refunded >= p.Gross.Minor() {
			return p.Tax.Minor()
		}
		part := new(big.Rat).Mul(big.NewRat(p.Tax.Minor(), p.Gross.Minor()), new(big.Rat).SetInt64(refunded))
		tax, _ := money.Round(part, p.Tax.Currency()) // less than p.Tax
		return tax.Minor()
	}
	return money.New(upTo(before.Minor()+refund.Minor())-upTo(before.Minor()), p.Tax.Currency())
}
