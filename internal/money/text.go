package money

import "strconv"

// Decimal returns the amount with exactly the currency's decimals and no
// currency: "12.99", "500", "-0.05". [Parse] reads it back as the same amount.
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

// Format returns the amount as English-reading people write it: "$1,234.50",
// "¥500", "-£5.00", "CHF 12.00". A currency without a symbol that means it
// alone goes by its code. The form is for reading only; nothing parses it.
func (a Amount) Format() string {
	prefix := a.currency.symbol()
	if prefix == "" {
		prefix = a.currency.String() + " "
	}
	var buf [48]byte
	return string(a.appendNumber(buf[:0], prefix, ","))
}

// appendNumber appends the sign, the prefix and the number, with separator
// between groups of three digits before the point.
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
