package api

import (
	"cmp"
	"math"
	"strings"

	"github.com/duesday/duesday/internal/money"
)

// The tables follow docs.stripe.com/currencies: supported presentment currencies, zero-decimal
// and three-decimal currencies, special cases, and minimum and maximum charge amounts. Stripe
// writes an amount as a whole number of units, which can differ from ISO 4217's minor units.
const (
	// twoDecimals: a unit is a hundredth, as ISO 4217 has it.
	twoDecimals = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BWP BYN BZD CAD CDF " +
		"CHF CNY COP CRC CVE CZK DKK DOP DZD EGP ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR " +
		"JMD KES KGS KHR KYD KZT LAK LBP LKR LRD LSL MAD MDL MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK " +
		"NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SEK SGD SHP SLE SOS SRD STN SVC SZL THB TJS TOP TRY " +
		"TTD TWD TZS UAH USD UYU UZS WST XCD XCG YER ZAR ZMW"
	// zeroDecimals: a unit is the whole. MGA has two decimals in ISO 4217, which are not in use.
	zeroDecimals = "BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF"
	// wholeOnly: written in hundredths, and the hundredths are always 00.
	wholeOnly = "ISK UGX"
	// threeDecimals: a unit is a thousandth, and the last digit is always 0.
	threeDecimals = "BHD JOD KWD OMR TND"
)

// A scale describes how Stripe writes amounts of a currency.
type scale struct {
	decimals int   // of a unit
	step     int64 // amounts are multiples of so many units
}

func scaleOf(c money.Currency) (scale, bool) {
	in := func(list string) bool { return c.Code() != "" && strings.Contains(" "+list+" ", " "+c.Code()+" ") }
	switch {
	case in(twoDecimals):
		return scale{2, 1}, true
	case in(zeroDecimals):
		return scale{0, 1}, true
	case in(wholeOnly):
		return scale{2, 100}, true
	case in(threeDecimals):
		return scale{3, c.Step()}, true
	}
	return scale{}, false
}

// Units returns the amount in Stripe's units. It returns ErrInvalid if Stripe does not support the
// amount or the currency.
func Units(a money.Amount) (int64, error) {
	c := a.Currency()
	s, ok := scaleOf(c)
	if !ok {
		return 0, Unsent("Stripe does not accept payments in %s", c)
	}
	units, ok := rescale(a.Minor(), c.Exponent(), s.decimals)
	switch {
	case !ok && c.Exponent() < s.decimals:
		return 0, Unsent("%s is more than Stripe can charge", a)
	case ok && units%s.step == 0:
		return units, nil
	case ok && s.decimals == 3:
		return 0, Unsent("%s: for Stripe, the last digit of an amount in %s must be 0", a, c)
	}
	return 0, Unsent("%s: for Stripe, an amount in %s must be whole", a, c)
}

// rescale moves the point of a number from so many decimals to so many. It is not ok if digits would
// be lost or the number does not fit.
func rescale(n int64, from, to int) (scaled int64, ok bool) {
	for ; from < to; from++ {
		if n > math.MaxInt64/10 || n < math.MinInt64/10 {
			return 0, false
		}
		n *= 10
	}
	for ; from > to; from-- {
		if n%10 != 0 {
			return 0, false
		}
		n /= 10
	}
	return n, true
}

// ChargeUnits is Units for a charge, whose amount must be within Stripe's limits.
func ChargeUnits(a money.Amount) (int64, error) {
	units, err := Units(a)
	if err != nil {
		return 0, err
	}
	least, most := limits(a.Currency().Code())
	if units < least || units > most {
		return 0, Unsent("%s is outside Stripe's limits: %s to %s", a,
			Amount(least, a.Currency().Code()), Amount(most, a.Currency().Code()))
	}
	return units, nil
}

// limits returns the least and the most that Stripe charges, in its units. Stripe publishes a
// minimum for settlement currencies. For the others the account's own settlement currency decides,
// and Stripe refuses the charge itself.
func limits(code string) (least, most int64) {
	least = map[string]int64{"USD": 50, "AUD": 50, "BRL": 50, "CAD": 50, "CHF": 50, "EUR": 50, "INR": 50, "JPY": 50,
		"NZD": 50, "SGD": 50, "GBP": 30, "BGN": 100, "AED": 200, "MYR": 200, "PLN": 200, "RON": 200, "DKK": 250, "NOK": 300,
		"SEK": 300, "HKD": 400, "MXN": 1000, "THB": 1000, "CZK": 1500, "HUF": 17500, "ISK": 100, "UGX": 100,
		"BHD": 10, "JOD": 10, "KWD": 10, "OMR": 10, "TND": 10}[code]
	most = map[string]int64{"BHD": 99_999_990, "JOD": 99_999_990, "KWD": 99_999_990, "OMR": 99_999_990, "TND": 99_999_990,
		"ISK": 99_999_900, "UGX": 99_999_900,
		// more digits than eight
		"INR": 999_999_999, "COP": 9_999_999_999, "HUF": 9_999_999_999, "JPY": 9_999_999_999, "LBP": 9_999_999_999,
		"IDR": 999_999_999_999}[code]
	return cmp.Or(least, 1), cmp.Or(most, 99_999_999)
}

// Amount returns the amount of Stripe's units. If Duesday does not know the currency, or the units
// are not an amount of it, Amount returns the zero Amount, which no request contains.
func Amount(units int64, code string) money.Amount {
	c, err := money.ParseCurrency(code)
	s, known := scaleOf(c)
	minor, fits := rescale(units, s.decimals, c.Exponent())
	if err != nil || !known || !fits {
		return money.Amount{}
	}
	return money.New(minor, c)
}

// FeeUnits returns the fee that a connected account pays us. fee is in hundredths of a percent of
// the units. The result is rounded down to an amount that the currency allows.
func FeeUnits(units int64, fee int, c money.Currency) (int64, error) {
	if fee < 0 || fee > 10000 {
		return 0, Unsent("the application fee must be 0 to 10000 hundredths of a percent (got %d)", fee)
	}
	s, _ := scaleOf(c)
	got := units/10000*int64(fee) + units%10000*int64(fee)/10000
	return got - got%max(1, s.step), nil
}
