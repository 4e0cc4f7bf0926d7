// Package bench measures Duesday against a bare Pebble, tuned like the embedded engine. The bare
// side commits the fixed bytes of a payment run (W1) and of webhooks (W2), lists due rows (W3)
// and imports (W4). Both sides run in turn, in one process on one disk; only their ratio is worth
// quoting.
//
// The bare side checks no condition, decodes no item and knows no payment. The package does not
// judge the figures, and prints nothing.
package bench
