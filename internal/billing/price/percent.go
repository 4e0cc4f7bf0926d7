package price

import (
	"errors"
	"strconv"
	"strings"
)

// A Percent is an exact percentage in ten-thousandths of a percent, so 7.7 % is 77000.
type Percent int64

// Whole is 100 %.
const Whole Percent = 100 * point

const (
	decimals = 4
	point    = 10_000 // 1 %
)

var errPercent = errors.New("must be a percentage from 0 to 100 with at most 4 decimals, such as 7.7")

// ParsePercent reads digits with at most four decimals, without a percent sign.
func ParsePercent(text string) (Percent, error) {
	whole, fraction, found := strings.Cut(text, ".")
	digits := whole + fraction
	if whole == "" || len(whole) > 3 || found && fraction == "" || len(fraction) > decimals || strings.Trim(digits, "0123456789") != "" {
		return 0, errPercent
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", decimals-len(fraction)), 10, 64)
	if err != nil || Percent(n) > Whole {
		return 0, errPercent
	}
	return Percent(n), nil
}

// String returns the shortest text that ParsePercent reads as p.
func (p Percent) String() string {
	text := strconv.FormatInt(int64(p)/point, 10)
	if rest := int64(p) % point; rest > 0 {
		text += "." + strings.TrimRight(strconv.FormatInt(point+rest, 10)[1:], "0")
	}
	return text
}
