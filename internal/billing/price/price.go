// Package price computes what a period costs: unit amount, quantity, discount and tax. It also
// defines how they are stored. It does not decide when a period is opened.
package price

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"

	"github.com/duesday/duesday/internal/billing/party"
	"github.com/duesday/duesday/internal/field"
	"github.com/duesday/duesday/internal/money"
)

// Terms say what a subscription's periods cost beside the unit amount. The zero Terms are one unit
// without discount and tax.
type Terms struct {
	Quantity int // 0: one
	Discount Discount
	Tax      Tax
}

// A Discount is an amount or a percentage, which reduces the subtotal of each of its periods.
type Discount struct {
	Percent Percent
	Amount  money.Amount // instead of Percent
	From    int          // number of the first period
	Periods int          // counted by their numbers, so a skipped period counts; 0: no end
}

// A Mode tells whether amounts contain the tax.
type Mode string

// The modes.
const (
	Untaxed   Mode = "" // no rate is known
	Exclusive Mode = "exclusive"
	Inclusive Mode = "inclusive"
)

// A Tax is one rate. A rate of 0 has a mode, too.
type Tax struct {
	Mode    Mode
	Rate    Percent
	Country string // ISO 3166-1 alpha-2
	Note    string // such as "reverse charge"
}

// A Price is what one period costs, and why. All its amounts have one currency, and are exact: Net
// and Tax add up to Gross.
type Price struct {
	Unit     money.Amount
	Terms    Terms        // those that count for the period
	Subtotal money.Amount // the units
	Discount money.Amount // to be subtracted from Subtotal
	Net      money.Amount
	Tax      money.Amount
	Gross    money.Amount // what the customer pays
}

// IsPlain reports whether the price is one unit's amount, without discount and tax.
func (p *Price) IsPlain() bool { return p == nil || p.Terms == Terms{} }

// Count returns the quantity.
func (t *Terms) Count() int { return max(1, t.Quantity) }

// String returns what ParseDiscount reads: 10% or 2.50.
func (d Discount) String() string {
	switch {
	case d.Percent > 0:
		return d.Percent.String() + "%"
	case d.Amount.IsZero():
		return ""
	}
	return d.Amount.Decimal()
}

// ParseDiscount reads a percentage such as 10%, or an amount in the currency.
func ParseDiscount(text string, c money.Currency) (d Discount, err error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		d.Percent, err = ParsePercent(percent)
	} else {
		d.Amount, err = money.Parse(text, c)
	}
	if err != nil {
		return Discount{}, field.Wrong("discount", "must be a percentage such as 10%, or an amount: "+err.Error())
	}
	return d, nil
}

// IsZero reports whether there is no discount.
func (d Discount) IsZero() bool { return d.Percent == 0 && d.Amount.IsZero() }

// On reports whether the discount reduces the period.
func (d Discount) On(period int) bool {
	return !d.IsZero() && period >= d.From && (d.Periods == 0 || period-d.From < d.Periods)
}

// Replace returns the new discount, which begins with the period. The same discount stays as it is
// while it lasts, because it may be the same request again.
func (d Discount) Replace(by Discount, from int) Discount {
	again := d
	by.From, again.From = from, from
	switch {
	case by.IsZero():
		return Discount{}
	case again == by && d.On(from):
		return d
	}
	return by
}

// Left returns the discount as a new subscription would have it whose first period is this one.
func (d Discount) Left(period int) Discount {
	if d.Periods > 0 {
		if d.Periods -= max(0, period-d.From); d.Periods <= 0 {
			return Discount{}
		}
	}
	d.From = 0
	return d
}

// Of returns the price of a period with a unit amount and terms. Discount and tax are rounded half
// up, each once, to the currency's step. A price that is not plain must be more than zero and at most
// twelve digits. Otherwise Of returns a field.Error, and a price of zero.
func Of(unit money.Amount, t Terms, period int) (Price, error) {
	if !t.Discount.On(period) {
		t.Discount = Discount{}
	}
	return inSteps(step(unit, t.Discount.Amount), unit, t)
}

// step returns the step of the currency, or 1 if the amounts are not multiples of it: another tool or
// an earlier version stored them.
func step(amounts ...money.Amount) int64 {
	s := amounts[0].Currency().Step()
	for _, a := range amounts {
		if a.Minor()%s != 0 {
			return 1
		}
	}
	return s
}

// inSteps is Of for a period with the discount. Discount and tax are rounded to multiples of the step.
func inSteps(step int64, unit money.Amount, t Terms) (Price, error) {
	if t.Quantity == 1 {
		t.Quantity = 0
	}
	zero := money.New(0, unit.Currency())
	p := Price{Unit: unit, Terms: t, Subtotal: unit, Discount: zero, Net: unit, Tax: zero, Gross: unit}
	if t == (Terms{}) {
		return p, nil
	}
	m := sum{zero: zero, step: step}
	p.Subtotal = m.rounded(int64(t.Count()), unit, 1)
	p.Discount = cmp.Or(t.Discount.Amount, zero)
	if t.Discount.Percent > 0 {
		p.Discount = m.rounded(int64(t.Discount.Percent), p.Subtotal, Whole)
	}
	left := m.less(p.Subtotal, p.Discount)
	switch p.Net, p.Gross = left, left; t.Tax.Mode {
	case Exclusive:
		p.Tax = m.rounded(int64(t.Tax.Rate), left, Whole)
		p.Gross = m.less(left, money.New(-p.Tax.Minor(), p.Tax.Currency()))
	case Inclusive:
		p.Tax = m.rounded(int64(t.Tax.Rate), left, Whole+t.Tax.Rate)
		p.Net = m.less(left, p.Tax)
	}
	switch {
	case m.wrong != nil || p.Gross.Minor() > most || p.Subtotal.Minor() > most:
		cause := "quantity"
		if t.Count() == 1 {
			cause = "tax_rate"
		}
		m.wrong = field.Wrong(cause, "must leave an amount of at most twelve digits")
	case unit.Minor() <= 0:
		m.wrong = field.Wrong("amount", "must be more than zero")
	case left.Minor() <= 0:
		m.wrong = field.Wrong("discount", "must be less than "+p.Subtotal.String()+", the period's amount; for a free period, skip it")
	}
	if m.wrong != nil {
		return Price{Unit: unit, Terms: t, Subtotal: zero, Discount: zero, Net: zero, Tax: zero, Gross: zero}, m.wrong
	}
	return p, nil
}

// most is the largest amount in minor units that Stripe charges.
const most = 999_999_999_999

// A sum notes the first error of several operations.
type sum struct {
	zero  money.Amount
	step  int64 // amounts are rounded to its multiples
	wrong error
}

// rounded returns n/of parts of the amount.
func (m *sum) rounded(n int64, a money.Amount, of Percent) money.Amount {
	step := big.NewRat(m.step, 1)
	r := new(big.Rat).Mul(big.NewRat(n, int64(of)), new(big.Rat).SetInt64(a.Minor()))
	sum, err := money.Round(r.Quo(r, step), a.Currency())
	if err == nil {
		sum, err = money.Round(r.SetInt64(sum.Minor()).Mul(r, step), a.Currency())
	}
	return m.note(sum, err)
}

func (m *sum) less(a, b money.Amount) money.Amount {
	return m.note(a.Add(money.New(-b.Minor(), b.Currency())))
}

func (m *sum) note(a money.Amount, err error) money.Amount {
	if err != nil {
		m.wrong = cmp.Or(m.wrong, err)
		return m.zero
	}
	return a
}

// The largest numbers that Check accepts.
const (
	MaxQuantity = 1_000_000
	maxPeriods  = 9999
	maxNote     = 200
)

// CheckAmount returns a field.Error unless the amount can be charged in the currency.
func CheckAmount(a money.Amount, c money.Currency) error {
	if c.IsZero() || !a.IsPositive() || a.Currency() != c {
		return field.Wrong("amount", strings.TrimSpace("must be more than zero "+c.Code()))
	}
	return checkStep("amount", a)
}

// checkStep returns a field.Error unless the amount is a multiple of the currency's step.
func checkStep(name string, a money.Amount) error {
	if s := a.Currency().Step(); a.Minor()%s != 0 {
		return field.Wrong(name, "must be a multiple of "+money.New(s, a.Currency()).String()+", the smallest step of a card payment (got "+a.Decimal()+")")
	}
	return nil
}

// Check returns a field.Error for each wrong field of the terms with the unit amount. It checks the
// characters and length of the note with text.
func Check(unit money.Amount, t Terms, text func(field, text string, limit int) error) (all []error) {
	wrong := func(is bool, name, problem string) {
		if is {
			all = append(all, field.Wrong(name, problem))
		}
	}
	d, x := t.Discount, t.Tax
	wrong(t.Quantity < 0 || t.Quantity > MaxQuantity, "quantity", "must be 1 to "+strconv.Itoa(MaxQuantity))
	wrong(d.Percent < 0 || d.Percent >= Whole, "discount", "must be less than 100%; for a free period, skip it")
	wrong(d.Amount.Minor() < 0 || d.Percent != 0 && !d.Amount.IsZero(), "discount", "must be either a percentage or an amount, and not below zero")
	wrong(!d.Amount.IsZero() && d.Amount.Currency() != unit.Currency(), "discount", "must be in "+unit.Currency().Code())
	wrong(d.Periods < 0 || d.Periods > maxPeriods, "discount_periods", "must be 0 (no end) to "+strconv.Itoa(maxPeriods))
	wrong(d.IsZero() && d.Periods != 0, "discount_periods", "cannot be given without a discount")
	wrong(x.Mode != Untaxed && x.Mode != Exclusive && x.Mode != Inclusive, "tax", "must be inclusive or exclusive")
	wrong(x.Rate < 0 || x.Rate > Whole, "tax_rate", errPercent.Error())
	wrong(!party.IsCountry(x.Country), "tax_country", "must be an ISO 3166-1 code in upper case such as DE")
	wrong(x.Mode == Untaxed && x != Tax{}, "tax_rate", "is required with a tax's other fields")
	for _, err := range [...]error{checkStep("discount", d.Amount), text("tax_note", x.Note, maxNote)} {
		if err != nil {
			all = append(all, err)
		}
	}
	if all != nil {
		return all
	}
	for _, period := range [...]int{d.From, -1} { // with and without the discount
		if _, err := Of(unit, t, period); err != nil {
			return []error{err}
		}
	}
	return nil
}
