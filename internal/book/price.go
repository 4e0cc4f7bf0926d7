package book

import (
	"errors"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/price"
)

// A Price is a row of a price list.
type Price struct {
	SKU      string
	Amount   string // as money.Parse takes it
	Currency string // "": that of the SKU's subscriptions
	Name     string // of the product, for customers; "": none is given
}

// price returns the row as a price. The row is good if c.problems is then empty.
func (s *session) price(line int, t *texts) *Price {
	s.reset()
	for col, text := range t {
		switch column(col) {
		case sku, amount, currency, customerName:
		default:
			if text != "" {
				s.fault(column(col), "is not a column of a price list, which has sku, amount, currency and name")
			}
		}
	}
	p := &Price{SKU: t[sku], Currency: t[currency], Name: t[customerName]}
	check := func(col column, err error) {
		if f, wrong := errors.AsType[*billing.FieldError](err); wrong && !s.card(col, t[col]) {
			s.fault(col, f.Problem)
		}
	}
	check(sku, billing.CheckID("sku", p.SKU))
	check(customerName, billing.CheckName(p.Name))
	if p.Currency == "" {
		p.Amount = s.amountOfAny(t[amount])
	} else if a := s.amount(t[amount], p.Currency); len(s.problems) == 0 {
		p.Amount, p.Currency = a.Decimal(), a.Currency().Code()
		check(amount, price.CheckAmount(a, a.Currency()))
	}
	keys := []string{p.SKU + "/" + p.Currency, p.SKU + "/"}
	if p.Currency == "" { // beside any other
		keys[0] = p.SKU
	}
	for _, key := range keys {
		if first, known := s.prices[key]; known {
			s.fault(sku, "already has a price"+onLine(first)+"; a SKU must have one price, or one for each currency")
		}
	}
	s.prices[p.SKU], s.prices[p.SKU+"/"+p.Currency] = line, line
	s.compareProduct(line, &billing.NewSubscription{SKU: p.SKU, Product: p.Name})
	return p
}
