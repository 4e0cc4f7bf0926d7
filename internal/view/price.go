package view

import (
	"strconv"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
)

// Discount returns the discount, or nil.
func Discount(d price.Discount) Object {
	if d.IsZero() {
		return nil
	}
	v := Object{"percent?", "", "amount?", d.Amount, "currency?", d.Amount.Currency().Code(), "from_period", d.From, "periods?", d.Periods}
	if d.Percent > 0 {
		v[1] = d.Percent.String()
	}
	return v
}

// DiscountText returns the discount that the subscription's next periods have, for human readers.
func DiscountText(s *billing.Subscription) string {
	d := s.Terms.Discount
	text := d.String()
	if text == "" {
		return ""
	}
	if d.From > s.Period {
		text += ", from period " + strconv.Itoa(d.From)
	}
	if d.Periods > 0 {
		text += ", up to period " + strconv.Itoa(d.From+d.Periods-1)
	}
	return text
}

// Price returns what makes the amount of a period, or nil if that is the unit amount.
func Price(p *price.Price) Object {
	if p.IsPlain() {
		return nil
	}
	return Object{"unit_amount", p.Unit, "currency", p.Unit.Currency().Code(), "quantity", p.Terms.Count(), "subtotal", p.Subtotal,
		"discount?", p.Discount, "discount_terms?", p.Terms.Discount.String()}
}
