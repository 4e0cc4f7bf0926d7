package money

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

var (
	// ErrOverflow is wrapped when an amount does not fit an int64 of minor units.
	ErrOverflow = errors.New("amount overflow")
	// ErrCurrency is wrapped when amounts of different currencies, or of none,
	// are added.
	ErrCurrency = errors.New("currency mismatch")
)

// Amount is a signed amount of money. It is comparable with ==. The zero value
// is zero of no currency.
type Amount struct {
	minor    int64
	currency Currency
}

// New returns an amount of minor units, such as cents: New(1299, usd) is 12.99.
func New(minor int64, c Currency) Amount { return Amount{minor: minor, currency: c} }

// Minor returns the amount in minor units.
func (a Amount) Minor() int64 { return a.minor }

// Currency returns the amount's currency.
func (a Amount) Currency() Currency { return a.currency }

// IsPositive reports whether the amount is above zero.
func (a Amount) IsPositive() bool { return a.minor > 0 }

// IsZero reports whether the amount is zero, in any currency.
func (a Amount) IsZero() bool { return a.minor == 0 }

// Add returns the exact sum. The error wraps [ErrCurrency] when the currencies
// differ or there is none, and [ErrOverflow] when the sum does not fit.
func (a Amount) Add(b Amount) (Amount, error) {
	if a.currency != b.currency || a.currency.IsZero() {
		return Amount{}, fmt.Errorf("adding %s and %s: %w", a, b, ErrCurrency)
	}
	sum := a.minor + b.minor
	if (sum > a.minor) != (b.minor > 0) { // it has wrapped around
		return Amount{}, fmt.Errorf("adding %s and %s: %w", a, b, ErrOverflow)
	}
	return Amount{minor: sum, currency: a.currency}, nil
}

// Parse reads a decimal number such as "12.99", "12.9" or "-12" as an amount of
// c. It takes ASCII digits with at most as many decimals as c has, at least one
// digit on each side of a point, and no sign but a leading minus. The error names
// the right form, and wraps [ErrOverflow] when the number is well formed
// but too large.
func Parse(text string, c Currency) (Amount, error) {
	if c.IsZero() {
		return Amount{}, fmt.Errorf("amount %.40q: there is no currency to read it in", text)
	}
	digits, negative := strings.CutPrefix(text, "-")
	limit := int64(math.MaxInt64)
	if negative {
		limit = math.MinInt64
	}
	// As a uint64 the negative limit, -1<<63, is its own absolute value.
	units, overflow, ok := readUnits(digits, c.Exponent(), uint64(limit))
	if !ok {
		return Amount{}, formError(text, c)
	}
	if overflow {
		return Amount{}, fmt.Errorf("amount %.40q: the limit is %s: %w", text, New(limit, c), ErrOverflow)
	}
	minor := int64(units)
	if negative {
		minor = -minor // leaves the limit as it is, which is right
	}
	return Amount{minor: minor, currency: c}, nil
}

// readUnits reads unsigned digits with at most exponent decimals as a number of
// minor units. It reads to the end even after an overflow, so that a malformed
// number is always reported as malformed.
func readUnits(digits string, exponent int, limit uint64) (units uint64, overflow, ok bool) {
	whole, fraction, point := strings.Cut(digits, ".")
	if whole == "" || (point && fraction == "") || len(fraction) > exponent {
		return 0, false, false
	}
	for _, part := range [2]string{whole, fraction} {
		for i := range len(part) {
			digit := uint64(part[i]) - '0'
			if digit > 9 {
				return 0, false, false
			}
			units, overflow = shift(units, digit, limit, overflow)
		}
	}
	for range exponent - len(fraction) {
		units, overflow = shift(units, 0, limit, overflow)
	}
	return units, overflow, true
}

// shift appends a decimal digit to units, unless that exceeds limit.
func shift(units, digit, limit uint64, overflow bool) (uint64, bool) {
	if overflow || units > (limit-digit)/10 {
		return 0, true
	}
	return 10*units + digit, false
}

// formError cuts long text, so that an error stays fit for a log line.
func formError(text string, c Currency) error {
	if c.Exponent() == 0 {
		return fmt.Errorf("amount %.40q: want digits with no decimals, such as %s", text, c.example())
	}
	return fmt.Errorf("amount %.40q: want digits with at most %d decimals, such as %s", text, c.Exponent(), c.example())
}
