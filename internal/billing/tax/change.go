package tax

import (
	"cmp"

	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/field"
)

// None is the text of a new rate that removes the tax.
const None = "none"

// A Change is a person's input about a subscription's tax. It takes effect from the next period to be opened.
type Change struct {
	Rate *string    // digits with at most four decimals, or None; nil: it stays
	Mode price.Mode // Untaxed: it stays
	Note *string    // nil: it stays, but a new rate removes it

	country string
	usual   price.Mode
}

// In returns the change for an account in the country, in a store whose new subscriptions have the mode.
func (c Change) In(country string, usual price.Mode) *Change {
	c.country, c.usual = country, usual
	return &c
}

// New returns the tax of a new subscription, in a store with the mode. It does not accept None, because a new
// subscription without a rate of its own gets that of its account's country.
func (c Change) New(usual price.Mode) (price.Tax, error) {
	if c.Rate != nil && *c.Rate == None {
		return price.Tax{}, field.Wrong("tax_rate", "must be a percentage for a new subscription; without one, it has the rate of the account's country, if any")
	}
	return c.In("", usual).Of(price.Tax{})
}

// Of returns the tax after the change. It returns a field.Error if the rate is not one, or is missing. package price
// checks the rest.
func (c *Change) Of(was price.Tax) (now price.Tax, err error) {
	switch {
	case c.Rate != nil && *c.Rate == None && (c.Mode != price.Untaxed || c.Note != nil):
		return was, field.Wrong("tax_rate", "none cannot be combined with a tax's other fields")
	case c.Rate != nil && *c.Rate == None:
		return price.Tax{}, nil
	case c.Rate == nil && was.Mode == price.Untaxed:
		return was, field.Wrong("tax_rate", "is required, because the subscription has no rate yet")
	}
	if now = was; c.Rate != nil {
		if now.Rate, err = price.ParsePercent(*c.Rate); err != nil {
			return was, field.Wrong("tax_rate", err.Error())
		}
		now.Note = ""
	}
	now.Note = *cmp.Or(c.Note, &now.Note)
	now.Mode = cmp.Or(c.Mode, was.Mode, c.usual, price.Inclusive)
	now.Country = cmp.Or(c.country, was.Country)
	return now, nil
}

// Defaults are what a new subscription gets whose own tax is not given.
type Defaults struct {
	Table Table
	Mode  price.Mode
}

// Of returns the tax of a new subscription whose account is in the country. given is its own tax, and d is nil if
// there are no defaults.
func (d *Defaults) Of(given price.Tax, country string) price.Tax {
	switch {
	case given != price.Tax{}:
		given.Country = country
	case d != nil:
		given = d.Table.Of(country, d.Mode)
	}
	return given
}
