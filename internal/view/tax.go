package view

import (
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/billing/taxchange"
)

// SubscriptionTax returns a subscription's tax, or nil if it has no rate.
func SubscriptionTax(t price.Tax) Object {
	if t.Mode == price.Untaxed {
		return nil
	}
	return Object{"rate", t.Rate.String(), "mode", t.Mode, "country?", t.Country, "note?", t.Note}
}

// Taxed returns what a period's price says about tax. It returns nil if the period has no rate.
func Taxed(p *price.Price) Object {
	if p == nil || p.Terms.Tax.Mode == price.Untaxed {
		return nil
	}
	t := p.Terms.Tax
	return Object{"net", p.Net, "tax", p.Tax, "tax_rate", t.Rate.String(), "tax_mode", t.Mode, "tax_country?", t.Country, "tax_note?", t.Note}
}

// TaxText returns the tax for human readers, such as 19% exclusive, DE, or "" if there is no rate.
func TaxText(t price.Tax) string {
	if t.Mode == price.Untaxed {
		return ""
	}
	list := slices.DeleteFunc([]string{t.Rate.String() + "% " + string(t.Mode), t.Country, t.Note}, func(text string) bool { return text == "" })
	return strings.Join(list, ", ")
}

// TaxChange returns the number of subscriptions whose tax a change sets.
func TaxChange(x taxchange.Sum) Object {
	return Object{"before?", SubscriptionTax(x.Before), "after?", SubscriptionTax(x.After), "subscriptions", x.Count}
}
