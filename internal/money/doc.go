// Package money holds exact amounts of money: an int64 count of minor units
// (cents, yen, fils) in one ISO 4217 currency.
//
// It reads and writes decimal text, adds with overflow checks and sums by
// currency. An operation either gives the exact answer or an error.
//
// The package never rounds, converts between currencies, divides or multiplies,
// and knows no taxes or rates. Floating point appears nowhere. It does no I/O.
package money
