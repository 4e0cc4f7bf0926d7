package money

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

var (
	// ErrOverflow is wrapped by errors about amounts that do not fit into an int64 of minor units.
	ErrOverflow = errors.New("amount overflow")
	// ErrCurrency is wrapped by errors about adding amounts of different currencies, or without a
	// currency.
	ErrCurrency = errors.New("currency mismatch")
)

// Amount is a signed amount of money, comparable with ==. The zero value is zero without a
// currency.
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

// Add returns the exact sum. The error wraps [ErrCurrency] if the currencies differ or are missing,
// and [ErrOverflow] if the sum does not fit.
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

// Round returns an amount of the given minor units, rounded half up, or ErrOverflow.
func Round(minor *big.Rat, c Currency) (Amount, error) {
	two := big.NewInt(2)
	n := new(big.Int).Add(new(big.Int).Mul(minor.Num(), two), minor.Denom())
	if n.Quo(n, two.Mul(two, minor.Denom())); !n.IsInt64() {
		return Amount{}, ErrOverflow
	}
	return New(n.Int64(), c), nil
}

// Parse reads a decimal number such as "12.99", "12.9" or "-12" as an amount of c. It accepts ASCII
// digits with at most as many decimals as c has, at least one digit on each side of a point, and a
// minus sign. The error shows the required form, and wraps [ErrOverflow] if the number is too
// large.
func Parse(text string, c Currency) (Amount, error) {
	if c.IsZero() {
		return Amount{}, fmt.Errorf("amount %.40q has no currency", text)
	}
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	missing := c.Exponent() - len(fraction)
	// On the stack: joined strings took twice as long.
	number := append(append(append(make([]byte, 0, 32), '-'), whole...), fraction...)
	noDigit := func(b byte) bool { return b < '0' || b > '9' }
	if whole == "" || (point && fraction == "") || missing < 0 || slices.ContainsFunc(number[1:], noDigit) {
		return Amount{}, formError(text, c)
	}
	for range missing {
		number = append(number, '0')
	}
	limit := int64(math.MinInt64)
	if !negative {
		number, limit = number[1:], math.MaxInt64
	}
	minor, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil { // its digits are too many
		return Amount{}, fmt.Errorf("amount %.40q is over the limit of %s: %w", text, New(limit, c), ErrOverflow)
	}
	return Amount{minor: minor, currency: c}, nil
}

// formError cuts long text, so that an error stays fit for a log line.
func formError(text string, c Currency) error {
	if c.Exponent() == 0 {
		return fmt.Errorf("amount must be digits without decimals, such as %s (got %.40q)", c.example(), text)
	}
	return fmt.Errorf("amount must be digits with at most %d decimals, such as %s (got %.40q)", c.Exponent(), c.example(), text)
}

// Decimal returns the amount with exactly the currency's number of decimals, without the currency:
// "12.99", "500", "-0.05". [Parse] reads it back as the same amount.
func (a Amount) Decimal() string {
	var buf [32]byte
	return string(a.AppendDecimal(buf[:0]))
}

// AppendDecimal appends the text of [Amount.Decimal] to dst.
func (a Amount) AppendDecimal(dst []byte) []byte { return a.appendNumber(dst, "", "") }

// String returns the decimal and the code: "12.99 USD".
func (a Amount) String() string {
	var buf [48]byte
	dst := append(a.AppendDecimal(buf[:0]), ' ')
	return string(append(dst, a.currency.String()...))
}

// Format returns the amount for people: "$1,234.50", "¥500", "-£5.00", "CHF 12.00". A currency
// whose symbol is missing or ambiguous is shown by its code. No function parses this format.
func (a Amount) Format() string {
	prefix := cmp.Or(entries[a.currency.index].symbol, a.currency.String()+" ")
	var buf [48]byte
	return string(a.appendNumber(buf[:0], prefix, ","))
}

// appendNumber appends sign, prefix and number, with separator between groups of three digits.
func (a Amount) appendNumber(dst []byte, prefix, separator string) []byte {
	units := uint64(a.minor)
	if a.minor < 0 {
		dst = append(dst, '-')
		units = -units // two's complement: exact for the smallest int64 too
	}
	dst = append(dst, prefix...)

	var buf [20]byte // the digits of the largest uint64
	digits := strconv.AppendUint(buf[:0], units, 10)
	exponent := a.currency.Exponent()
	whole := len(digits) - exponent
	if whole <= 0 {
		dst = append(dst, '0')
	}
	for i := range max(whole, 0) {
		if i > 0 && (whole-i)%3 == 0 {
			dst = append(dst, separator...)
		}
		dst = append(dst, digits[i])
	}
	if exponent == 0 {
		return dst
	}
	dst = append(dst, '.')
	for range -whole {
		dst = append(dst, '0')
	}
	return append(dst, digits[max(whole, 0):]...)
}

// Totals sums amounts by currency. The zero value is empty. It is not safe for concurrent use.
type Totals struct {
	sums map[Currency]Amount
}

// Add adds a to the sum of its currency. If Add returns an error, the sums are unchanged. The error
// wraps [ErrOverflow] or, for an amount without a currency, [ErrCurrency].
func (t *Totals) Add(a Amount) error {
	sum, err := New(t.sums[a.currency].minor, a.currency).Add(a)
	if err != nil {
		return fmt.Errorf("totals: %w", err)
	}
	if t.sums == nil {
		t.sums = make(map[Currency]Amount)
	}
	t.sums[a.currency] = sum
	return nil
}

// Len returns the number of added currencies, including currencies whose sum is zero.
func (t *Totals) Len() int { return len(t.sums) }

// All yields the sums in the order of their currency codes.
func (t *Totals) All() iter.Seq[Amount] {
	return slices.Values(slices.SortedFunc(maps.Values(t.sums), func(a, b Amount) int {
		return cmp.Compare(a.currency.Code(), b.currency.Code())
	}))
}
