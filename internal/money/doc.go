// Package money represents exact amounts of money as int64 minor units (cents, yen, fils) of one currency.
//
// It parses and formats decimal text, and adds amounts by currency. Each operation returns the exact
// result or an error.
//
// The package never rounds, converts between currencies, divides or multiplies,
// and knows no taxes or rates. Floating point appears nowhere. It does no I/O.
package money
