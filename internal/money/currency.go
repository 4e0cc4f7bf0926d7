package money

import (
	"fmt"
	"slices"
	"strings"
)

// Currency is an ISO 4217 currency with a minor unit, comparable with ==. The zero value is not a
// currency.
type Currency struct {
	// An index into entries keeps an Amount at 16 bytes without a pointer. It
	// is never stored or printed, so the order of the table is free to change.
	index uint8
}

// An entry is one currency of the table.
type entry struct {
	code     string
	exponent uint8  // decimals of the minor unit
	symbol   string // for people; "" means the code
}

// entries are the active codes of ISO 4217 List One that have a minor unit, sorted by code after
// the zero entry. ANG (left 2025) and BGN (left 2026) are kept: records of them are not old.
//
// A symbol is given only where it is well known and means one currency: dollars other than the US
// one carry their country, and a sign of several countries, such as kr, gives way to the code.
var entries = func() []entry {
	codes := [...]string{ // by the decimals
		0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
		2: "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD " +
			"CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD " +
			"GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA " +
			"MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR " +
			"RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD " +
			"TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG",
		3: "BHD IQD JOD KWD LYD OMR TND",
		4: "CLF UYW",
	}
	symbols := map[string]string{
		"AUD": "A$", "BRL": "R$", "CAD": "CA$", "CNY": "CN¥", "EUR": "€", "GBP": "£", "HKD": "HK$", "ILS": "₪",
		"INR": "₹", "JPY": "¥", "KRW": "₩", "MXN": "MX$", "NZD": "NZ$", "PHP": "₱", "TWD": "NT$", "USD": "$",
		"VND": "₫", "XCD": "EC$",
	}
	list := []entry{{}}
	for exponent, some := range codes {
		for code := range strings.FieldsSeq(some) {
			list = append(list, entry{code, uint8(exponent), symbols[code]})
		}
	}
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.code, b.code) })
	return list
}()

// byCode finds a currency by its upper-case code.
var byCode = func() map[[3]byte]Currency {
	m := make(map[[3]byte]Currency, len(entries))
	for i, e := range entries[1:] {
		m[[3]byte([]byte(e.code))] = Currency{index: uint8(i + 1)}
	}
	return m
}()

// ParseCurrency returns the currency with the given ISO 4217 code, in upper or lower case. The
// error names the code. For a listed code that cannot be used for payments, such as gold, it also
// gives the reason.
func ParseCurrency(code string) (Currency, error) {
	if len(code) != 3 {
		return Currency{}, fmt.Errorf("currency must be a three-letter ISO 4217 code, such as EUR (got %.40q)", code)
	}
	var key [3]byte
	for i := range key {
		c := code[i]
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		key[i] = c
	}
	if c, ok := byCode[key]; ok {
		return c, nil
	}
	upper := string(key[:])
	for codes, what := range notMoney {
		if slices.Contains(strings.Fields(codes), upper) {
			return Currency{}, fmt.Errorf(
				"currency %q is %s, which has no minor unit; use a currency that people pay in, such as EUR", upper, what)
		}
	}
	return Currency{}, fmt.Errorf("currency %q is not an active ISO 4217 code; use an active one, such as EUR", code)
}

// notMoney describes the codes that ISO 4217 lists without a minor unit.
var notMoney = map[string]string{
	"XAG XAU XPD XPT": "a precious metal", "XBA XBB XBC XBD": "a bond market unit", "XDR XSU XUA": "a unit of account",
	"XTS": "the code for testing", "XXX": "the code for no currency",
}

// Code returns the upper-case ISO 4217 code, and "" for the zero value.
func (c Currency) Code() string { return entries[c.index].code }

// Exponent returns the number of decimals: 2 for USD, 0 for JPY, 3 for KWD.
func (c Currency) Exponent() int { return int(entries[c.index].exponent) }

// Step returns the minor units that every amount of a card payment is a multiple of: 100 for MGA,
// whose decimals are not in use, 10 for the currencies with three decimals that Stripe accepts, else 1.
func (c Currency) Step() int64 {
	switch c.Code() {
	case "MGA":
		return 100
	case "BHD", "JOD", "KWD", "OMR", "TND":
		return 10
	}
	return 1
}

// IsZero reports whether c is the zero value.
func (c Currency) IsZero() bool { return c.index == 0 }

// String returns the code, and "(no currency)" for the zero value.
func (c Currency) String() string {
	if c.IsZero() {
		return "(no currency)"
	}
	return c.Code()
}

// example returns an amount in the form that Parse wants.
func (c Currency) example() string {
	if c.Exponent() == 0 {
		return "500"
	}
	return "12.9900"[:len("12.")+c.Exponent()]
}
