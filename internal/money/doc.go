// Package money holds exact amounts of money: int64 minor units (cents, yen, fils) of one currency.
//
// It reads and writes decimal text, adds and sums by currency: the exact answer or an error.
//
// The package never rounds, converts between currencies, divides or multiplies,
// and knows no taxes or rates. Floating point appears nowhere. It does no I/O.
package money
