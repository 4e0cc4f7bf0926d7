package bookkeeping

import (
	"strconv"

	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/billing/price"
	"github.com/duesday/duesday/internal/money"
	"github.com/duesday/duesday/internal/screen"
)

// termsFlags holds the flags that change a period's amount beside the unit amount.
type termsFlags struct {
	tax               taxFlags
	quantity          int
	discount, periods string
}

func (t *termsFlags) add(f *pflag.FlagSet, none string) {
	t.tax.add(f, none)
	f.IntVar(&t.quantity, "quantity", 1, "`NUMBER` of units; a period costs so many times the amount")
	f.StringVar(&t.discount, "discount", "", "`DISCOUNT` of each period: a percentage such as 10%, or an amount such as 2.50"+none)
	f.StringVar(&t.periods, "discount-periods", ever, "`NUMBER` of periods that have the discount, or "+ever)
}

// ever is the number of a discount's periods without an end, and noDiscount the flag's text that
// removes it.
const (
	ever       = "ever"
	noDiscount = "none"
)

// check returns an error for flags that say nothing, or nothing together.
func (t *termsFlags) check(f *pflag.FlagSet) error {
	if f.Changed("quantity") && t.quantity < 1 {
		return screen.Usagef("--quantity must be 1 or more (got %d)", t.quantity)
	}
	if f.Changed("discount-periods") && (t.discount == "" || t.discount == noDiscount) {
		return screen.Usagef("--discount-periods needs a --discount")
	}
	if n, err := strconv.Atoi(t.periods); t.periods != ever && (err != nil || n < 1) {
		return screen.Usagef("--discount-periods must be 1 or more, or %s (got %q)", ever, t.periods)
	}
	return nil
}

// in returns the discount in the currency, which is zero to remove it, or nil if it was not set.
func (t *termsFlags) in(c money.Currency) (*price.Discount, error) {
	if t.discount == "" || t.discount == noDiscount {
		return map[bool]*price.Discount{true: {}}[t.discount == noDiscount], nil
	}
	d, err := price.ParseDiscount(t.discount, c)
	if err != nil {
		return nil, screen.Invalid(err)
	}
	if t.periods != ever {
		d.Periods, _ = strconv.Atoi(t.periods)
	}
	return &d, nil
}
