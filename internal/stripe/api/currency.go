package api

import (
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
		return scale{3, 10}, true
	}
	return scale{}, false
}

// Units returns the amount in Stripe's units, or ErrInvalid if it cannot be written in them or
// Stripe does not support the currency.
func Units(a money.Amount) (int64, error) {
	c := a.Currency()
	s, ok := scaleOf(c)
	if !ok {
		return 0, Unsent("Stripe takes no payments in %s", c)
	}
	units := a.Minor()
	for d := c.Exponent(); d < s.decimals; d++ {
		if units > math.MaxInt64/10 || units < math.MinInt64/10 {
			return 0, Unsent("%s is too much for Stripe", a)
		}
		units *= 10
	}
	for d := s.decimals; d < c.Exponent(); d++ {
		if units%10 != 0 {
			return 0, Unsent("%s: Stripe takes whole amounts of %s alone", a, c)
		}
		units /= 10
	}
	switch {
	case units%s.step == 0:
		return units, nil
	case s.decimals == 3:
		return 0, Unsent("%s: Stripe takes amounts of %s whose last digit is 0", a, c)
	}
	return 0, Unsent("%s: Stripe takes whole amounts of %s alone", a, c)
}

// ChargeUnits is Units for a charge, whose amount must be within Stripe's limits.
func ChargeUnits(a money.Amount) (int64, error) {
	units, err := Units(a)
	if err != nil {
		return 0, err
	}
	least, most := limits(a.Currency().Code())
	if units < least || units > most {
		return 0, Unsent("%s: Stripe charges from %s to %s", a,
			Amount(least, a.Currency().Code()), Amount(most, a.Currency().Code()))
	}
	return units, nil
}

// limits returns the least and the most that Stripe charges, in its units. Stripe publishes a
// minimum for settlement currencies. For the others the account's own settlement currency decides,
// and Stripe refuses the charge itself.
func limits(code string) (least, most int64) {
	least, most = 1, 99_999_999
	switch code {
	case "USD", "AUD", "BRL", "CAD", "CHF", "EUR", "INR", "JPY", "NZD", "SGD":
		least = 50
	case "GBP":
		least = 30
	case "BGN":
		least = 100
	case "AED", "MYR", "PLN", "RON":
		least = 200
	case "DKK":
		least = 250
	case "NOK", "SEK":
		least = 300
	case "HKD":
		least = 400
	case "MXN", "THB":
		least = 1000
	case "CZK":
		least = 1500
	case "HUF":
		least = 17500
	case "ISK", "UGX":
		least = 100
	case "BHD", "JOD", "KWD", "OMR", "TND":
		least, most = 10, 99_999_990
	}
	switch code { // more digits than eight
	case "INR":
		most = 999_999_999
	case "COP", "HUF", "JPY", "LBP":
		most = 9_999_999_999
	case "IDR":
		most = 999_999_999_999
	case "ISK", "UGX":
		most = 99_999_900
	}
	return least, most
}

// Amount returns the amount of Stripe's units. It is the zero Amount, which is never asked for, if
// Duesday does not know the currency or the units are no amount of it.
func Amount(units int64, code string) money.Amount {
	c, err := money.ParseCurrency(code)
	if err != nil {
		return money.Amount{}
	}
	s, ok := scaleOf(c)
	if !ok {
		return money.Amount{}
	}
	for d := s.decimals; d < c.Exponent(); d++ {
		if units > math.MaxInt64/10 || units < math.MinInt64/10 {
			return money.Amount{}
		}
		units *= 10
	}
	for d := c.Exponent(); d < s.decimals; d++ {
		if units%10 != 0 {
			return money.Amount{}
		}
		units /= 10
	}
	return money.New(units, c)
}

// FeeUnits returns a connected account's fee to us. fee is in hundredths of a percent of the units.
// The result is rounded down to a payable amount of the currency.
func FeeUnits(units int64, fee int, c money.Currency) (int64, error) {
	if fee < 0 || fee > 10000 {
		return 0, Unsent("application fee of %d hundredths of a percent: want 0 to 10000", fee)
	}
	s, _ := scaleOf(c)
	got := units/10000*int64(fee) + units%10000*int64(fee)/10000
	if s.step > 1 {
		got -= got % s.step
	}
	return got, nil
}
