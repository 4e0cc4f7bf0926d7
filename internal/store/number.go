package store

import (
	"fmt"
	"strconv"
	"strings"
)

// The powers of ten that a number's first digit may stand for, in DynamoDB.
const (
	minMagnitude = -130
	maxMagnitude = 125
)

// Number returns the number value of a decimal text such as "12", "-0.5" or "6.02e23", exactly.
// Texts for the same number give equal Values: "1e3", "1000.0" and Int(1000) are equal. It returns
// ErrInvalid if the text is not a decimal number. It returns ErrTooLarge for more than
// MaxNumberDigits significant digits, or for a number other than zero with a magnitude outside
// 1E-130 to 9.99E+125.
func Number(text string) (Value, error) {
	negative, digits, exponent, ok := parseDecimal(text)
	if !ok {
		return Value{}, fmt.Errorf("%w: not a decimal number", ErrInvalid)
	}
	significant := strings.TrimRight(digits, "0")
	exponent += int64(len(digits) - len(significant))
	significant = strings.TrimLeft(significant, "0")
	if significant == "" {
		return Int(0), nil
	}
	if len(significant) > MaxNumberDigits {
		return Value{}, fmt.Errorf("%w: a number of %d digits; the limit is %d", ErrTooLarge, len(significant), MaxNumberDigits)
	}
	magnitude := exponent + int64(len(significant)) - 1
	if magnitude < minMagnitude || magnitude > maxMagnitude {
		return Value{}, fmt.Errorf("%w: a number's magnitude must be 1E%d to 1E+%d (got 1E%+d)", ErrTooLarge, minMagnitude,
			maxMagnitude, magnitude)
	}
	s := canonical(significant, int(exponent), int(magnitude))
	if negative {
		s = "-" + s
	}
	return Value{kind: KindNumber, s: s}, nil
}

// parseDecimal splits a text into sign, digits (one or more) and the last one's power of ten.
func parseDecimal(text string) (negative bool, digits string, exponent int64, ok bool) {
	negative, text = cutSign(text)
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		below, power := cutSign(text[i+1:])
		if !onlyDigits(power) {
			return false, "", 0, false
		}
		// A huge one becomes a size beyond every limit that cannot overflow, whatever the digits.
		const beyond = 1 << 60
		n, err := strconv.ParseInt(power, 10, 64)
		if err != nil || n > beyond { // digits alone can fail by overflow only
			n = beyond
		}
		if exponent = n; below {
			exponent = -n
		}
		text = text[:i]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits = whole + fraction
	return negative, digits, exponent - int64(len(fraction)), onlyDigits(digits)
}

func cutSign(text string) (negative bool, rest string) {
	if text != "" && (text[0] == '-' || text[0] == '+') {
		return text[0] == '-', text[1:]
	}
	return false, text
}

func onlyDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// canonical writes digits (no zero at either end) × 10^exponent in the one form of that value. An
// integer of up to 38 digits is plain, as strconv writes it, so that Int and Int64 agree with it.
// So is a fraction with at most six zeros after the point. All others are in scientific form.
func canonical(digits string, exponent, magnitude int) string {
	switch {
	case exponent >= 0 && magnitude < MaxNumberDigits:
		return digits + strings.Repeat("0", exponent)
	case exponent < 0 && magnitude >= 0:
		return digits[:magnitude+1] + "." + digits[magnitude+1:]
	case exponent < 0 && magnitude >= -7:
		return "0." + strings.Repeat("0", -magnitude-1) + digits
	}
	mantissa := digits[:1]
	if len(digits) > 1 {
		mantissa += "." + digits[1:]
	}
	return fmt.Sprintf("%sE%+d", mantissa, magnitude)
}
