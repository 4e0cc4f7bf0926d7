package price

import (
	"errors"
	"fmt"

	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/store"
)

// The members of the stored maps.
const (
	unitAmount      = "unit_amount"
	quantity        = "quantity"
	discount        = "discount" // 10% or 2.50
	discountAmount  = "discount_amount"
	discountFrom    = "discount_from"
	discountPeriods = "discount_periods"
	tax             = "tax" // the mode
	taxAmount       = "tax_amount"
	taxCountry      = "tax_country"
	taxNote         = "tax_note"
	taxRate         = "tax_rate"
)

// Item returns the stored form of the terms, which is empty for the zero Terms.
func (t *Terms) Item() (it store.Item) {
	number := func(name string, n int) {
		if n != 0 {
			it.Set(name, store.Int(int64(n)))
		}
	}
	text := func(name, s string) {
		if s != "" {
			it.Set(name, store.S(s))
		}
	}
	if d := t.Discount; !d.IsZero() {
		text(discount, d.String())
		number(discountFrom, d.From)
		number(discountPeriods, d.Periods)
	}
	number(quantity, t.Quantity)
	if x := t.Tax; x.Mode != Untaxed {
		text(tax, string(x.Mode))
		text(taxCountry, x.Country)
		text(taxNote, x.Note)
		text(taxRate, x.Rate.String())
	}
	return it
}

// errStored is wrapped by errors about stored maps.
var errStored = errors.New("is not readable")

// DecodeTerms reads the stored form of the terms of a subscription in the currency.
func DecodeTerms(it store.Item, c money.Currency) (t Terms, err error) {
	for _, n := range [...]struct {
		name string
		to   *int
	}{{quantity, &t.Quantity}, {discountFrom, &t.Discount.From}, {discountPeriods, &t.Discount.Periods}} {
		v := it.Get(n.name)
		if at, whole := v.Int64(); !v.IsZero() && (!whole || at < 0 || at > MaxQuantity) {
			return Terms{}, fmt.Errorf("%s %w", n.name, errStored)
		} else {
			*n.to = int(at)
		}
	}
	if text := it.Get(discount); !text.IsZero() {
		d, err := ParseDiscount(text.Str(), c)
		if d.From, d.Periods = t.Discount.From, t.Discount.Periods; err != nil || d.IsZero() {
			return Terms{}, fmt.Errorf("%s %w", discount, errStored)
		}
		t.Discount = d
	}
	if mode := it.Get(tax); !mode.IsZero() {
		t.Tax = Tax{Mode: Mode(mode.Str()), Country: it.Str(taxCountry), Note: it.Str(taxNote)}
		if t.Tax.Rate, err = ParsePercent(it.Str(taxRate)); err != nil || t.Tax.Mode != Exclusive && t.Tax.Mode != Inclusive {
			return Terms{}, fmt.Errorf("%s %w", tax, errStored)
		}
	}
	return t, nil
}

// Item returns the stored form of the price. The currency is stored with the period.
func (p *Price) Item() store.Item {
	it := p.Terms.Item()
	it.Set(unitAmount, store.S(p.Unit.Decimal()))
	if !p.Discount.IsZero() {
		it.Set(discountAmount, store.S(p.Discount.Decimal()))
	}
	if !p.Tax.IsZero() {
		it.Set(taxAmount, store.S(p.Tax.Decimal()))
	}
	return it
}

// Decode reads the stored form of a price in the currency. It computes the amounts that are not
// stored.
func Decode(it store.Item, c money.Currency) (p Price, err error) {
	if p.Terms, err = DecodeTerms(it, c); err != nil {
		return Price{}, err
	}
	m := sum{zero: money.New(0, c), step: 1}
	amount := func(name string) money.Amount {
		if !it.Has(name) {
			return m.zero
		}
		return m.note(money.Parse(it.Str(name), c))
	}
	p.Unit, p.Discount, p.Tax = amount(unitAmount), amount(discountAmount), amount(taxAmount)
	p.Subtotal = m.rounded(int64(p.Terms.Count()), p.Unit, 1)
	p.Net = m.less(p.Subtotal, p.Discount)
	if p.Gross = p.Net; p.Terms.Tax.Mode == Inclusive {
		p.Net = m.less(p.Gross, p.Tax)
	} else {
		p.Gross = m.less(p.Net, money.New(-p.Tax.Minor(), c))
	}
	if m.wrong != nil {
		return Price{}, fmt.Errorf("an amount %w", errStored)
	}
	return p, nil
}

// Explain returns an error unless the price is what its own terms say for the period, with the
// amount that was charged.
func (p *Price) Explain(period int, charged money.Amount) error {
	if p.IsPlain() {
		return nil
	}
	d := p.Terms.Discount
	want, err := inSteps(step(p.Unit, p.Discount, p.Tax), p.Unit, p.Terms)
	switch {
	case err != nil:
		return err
	case !d.IsZero() && !d.On(period):
		return fmt.Errorf("period %d has the discount of the periods from %d on", period, d.From)
	case want != *p:
		return fmt.Errorf("period %d must cost %s by its terms, but its price is %s", period, want.Gross, p.Gross)
	case p.Gross != charged:
		return fmt.Errorf("period %d has a price of %s, but its amount is %s", period, p.Gross, charged)
	}
	return nil
}
