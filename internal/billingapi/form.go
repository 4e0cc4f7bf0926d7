package billingapi

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/duesday/duesday/internal/billing"
	pricing "github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/civil"
	"github.com/duesday/duesday/internal/money"
)

// A form parses a request's fields and collects the errors. The first error of a field counts.
type form struct{ wrong []error }

func (f *form) add(err error) { f.wrong = append(f.wrong, err) }

func (f *form) err() error { return errors.Join(f.wrong...) }

// date parses a date, or "" for none.
func (f *form) date(name, text string) (d civil.Date) {
	var err error
	if text == "" {
		return d
	}
	if d, err = civil.Parse(text); err != nil {
		f.add(billing.Invalid(name, "must be a date such as 2027-01-31"))
	}
	return d
}

// days parses a number of days up to a year, or "" for the usual one.
func (f *form) days(name, text string, least, usual int) int {
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > yearOfDays {
		f.add(billing.Invalid(name, fmt.Sprintf("must be %d to %d", least, yearOfDays)))
	}
	return n
}

// interval parses an interval, or "" for none.
func (f *form) interval(text string) (i civil.Interval) {
	var err error
	if text == "" {
		return i
	}
	if i, err = civil.ParseInterval(text); err != nil {
		f.add(billing.Invalid("interval", "must be week, month or year, a number of them such as 6 months, or 7 to 3650 days"))
	}
	return i
}

// A price is an amount in a currency's minor units. Each field requires the other.
type price struct {
	Amount   *int64 `json:"amount"`
	Currency string `json:"currency" empty:"no"`
}

// maxAmount is the largest amount, in minor units: Stripe takes twelve digits at most. Sums of larger ones could
// overflow, and the report would fail for all.
const maxAmount = 999_999_999_999

// amount parses a price. It returns the zero Amount if the price is absent or invalid.
func (f *form) amount(p price) (a money.Amount) {
	if p == (price{}) {
		return a
	}
	c, err := money.ParseCurrency(p.Currency)
	if p.Currency == "" {
		f.add(billing.Invalid("currency", "is missing"))
	} else if err != nil || c.Code() != p.Currency { // the command line reads lower case, too
		f.add(billing.Invalid("currency", "must be an ISO 4217 code in upper case, such as EUR"))
	}
	if err != nil { // check the amount in any currency
		c, _ = money.ParseCurrency("EUR")
	}
	if p.Amount == nil || *p.Amount <= 0 || *p.Amount > maxAmount {
		f.add(billing.Invalid("amount", "must be a whole number of minor units, 1 to 999999999999, such as 500 for 5.00 EUR"))
		return a
	}
	return money.New(*p.Amount, c)
}

// A discountForm is a percentage, or an amount in a currency's minor units. An empty one removes the discount.
type discountForm struct {
	Percent  string `json:"percent" field:"discount_percent" empty:"no"`
	Amount   *int64 `json:"amount" field:"discount_amount"`
	Currency string `json:"currency" field:"discount_currency" empty:"no"`
	Periods  int    `json:"periods" field:"discount_periods" empty:"no"`
}

// discount parses a discount. It returns nil if the form is absent.
func (f *form) discount(d *discountForm) *pricing.Discount {
	if d == nil {
		return nil
	}
	x := &pricing.Discount{Periods: d.Periods}
	if d.Amount != nil || d.Currency != "" {
		c, err := money.ParseCurrency(d.Currency)
		if err != nil || c.Code() != d.Currency {
			f.add(billing.Invalid("discount_currency", "must be an ISO 4217 code in upper case, such as EUR"))
		} else if d.Amount == nil || *d.Amount <= 0 {
			f.add(billing.Invalid("discount_amount", "must be a whole number of minor units, 1 or more, such as 500 for 5.00 EUR"))
		} else {
			x.Amount = money.New(*d.Amount, c)
		}
	}
	if d.Percent != "" {
		var err error
		if x.Percent, err = pricing.ParsePercent(d.Percent); err != nil || x.Percent == 0 {
			f.add(billing.Invalid("discount_percent", "must be more than 0 and less than 100, with at most 4 decimals, such as 7.5"))
		}
	}
	return x
}

// terms returns the terms of a new subscription. Check finds what is wrong with them, except for a quantity of 0.
func (f *form) terms(quantity *int, d *discountForm) (t pricing.Terms) {
	if quantity != nil {
		if t.Quantity = *quantity; t.Quantity == 0 {
			f.add(billing.Invalid("quantity", "must be 1 or more"))
		}
	}
	if x := f.discount(d); x != nil {
		t.Discount = *x
	}
	return t
}

// periodOf parses the period number in a path.
func periodOf(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == text
}
